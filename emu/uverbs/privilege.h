/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a ConnectX does for processes with CAP_NET_RAW only.
 *
 * Nothing here leaves the emulated network, so frames and rules are for everybody unless
 * VERBENA_NET_RAW=deny: who tests a program should not need to be root.  Q_Keys are as the kernel
 * has them unless the variable is set, because a program is more likely to be wrong about them.
 */
#ifndef EMU_UVERBS_PRIVILEGE_H
#define EMU_UVERBS_PRIVILEGE_H
#include <stdbool.h>
#include "emu/obj/obj.h"

/* RAW_PACKET QPs, flow rules. */
bool may_use_frames(const struct emu_dev *dev);
/* Q_Keys with the upper bit, of the calling thread. */
bool may_control_qkeys(const struct emu_dev *dev);
#endif
