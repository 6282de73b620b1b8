/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Privileges; see privilege.h.
 */
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "emu/uverbs/privilege.h"

bool has_net_raw(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	return !syscall(SYS_capget, &header, data) && data[0].effective >> CAP_NET_RAW & 1;
}
