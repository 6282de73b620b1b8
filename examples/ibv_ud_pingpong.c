/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bounces a datagram between two queue pairs that are not connected: each send says where to, with
 * an address handle, a QP number and a Q_Key.  A datagram is one packet, and may get lost.
 */
#include "examples/pingpong.h"

static const struct transport ud = {
	.type = IBV_QPT_UD,
	.init_mask = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
	.rtr_mask = 0,
	.rts_mask = IBV_QP_SQ_PSN,
	.is_datagram = true,
	.endpoint_count = 1,
};

static const struct program program = {
	.summary = "Bounces a datagram between two unconnected (UD) queue pairs.",
	.letters = "pdisrnlegc",
	.takes_server = true,
};

int main(int argc, char **argv)
{
	struct options options = { OPTIONS_DEFAULT };

	options.size_bytes = 1024;
	options_parse(&options, &program, argc, argv);
	return pingpong(&ud, &options);
}
