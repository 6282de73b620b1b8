/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Privileges; see privilege.h.
 */
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "emu/uverbs/privilege.h"

/* Of the calling thread, as the kernel looks at it. */
static bool has_net_raw(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	return !syscall(SYS_capget, &header, data) && data[0].effective >> CAP_NET_RAW & 1;
}

bool may_use_frames(const struct emu_dev *dev)
{
	return dev->options.net_raw != NET_RAW_DENY;
}

bool may_control_qkeys(const struct emu_dev *dev)
{
	return dev->options.net_raw == NET_RAW_UNSAID ? has_net_raw() : may_use_frames(dev);
}
