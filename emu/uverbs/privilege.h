/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the application's process must be allowed by the kernel before it may ask the device.
 */
#ifndef EMU_UVERBS_PRIVILEGE_H
#define EMU_UVERBS_PRIVILEGE_H
#include <stdbool.h>

/* Of the calling thread, as the kernel looks at it. */
bool has_net_raw(void);
#endif
