/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The environment; see options.h.
 */
#include <rdma/mlx5-abi.h>
#include "emu/options.h"
#include "emu/self.h"
#include "emu/steer/frame.h"

static enum net_raw net_raw_said(void)
{
	if (self_env_says("VERBENA_NET_RAW", "allow"))
		return NET_RAW_ALLOW;
	return self_env_says("VERBENA_NET_RAW", "deny") ? NET_RAW_DENY : NET_RAW_UNSAID;
}

/* How much of a frame's header must be in its request: nothing, as on a ConnectX-5 and later, or
 * Ethernet's, as before; libmlx5 knows no more modes. */
static void inline_mode_fill(struct dev_options *out, bool is_l2)
{
	out->eth_inline = is_l2 ? MLX5_USER_INLINE_MODE_L2 : MLX5_USER_INLINE_MODE_NONE;
	out->eth_inline_bytes = is_l2 ? FRAME_HEADER_BYTES : 0;
}

void options_read(struct dev_options *out)
{
	out->lets_bound_regions_go = self_env_says("VERBENA_MW_BOUND_DEREG", "allow");
	out->enforces_memlock = self_env_says("VERBENA_MEMLOCK", "enforce");
	out->net_raw = net_raw_said();
	out->is_steering_off = self_env_says("VERBENA_FLOW_STEERING", "off");
	out->wants_full_masks = self_env_says("VERBENA_FLOW_MASKS", "full");
	inline_mode_fill(out, self_env_says("VERBENA_ETH_INLINE", "l2"));
}
