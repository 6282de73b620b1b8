/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bounces a message between two unreliable connected queue pairs: the network may lose it, then
 * this program waits for ever.  There are no acknowledgements, so neither retries nor credits.
 */
#include "examples/pingpong.h"

static const struct transport uc = {
	.type = IBV_QPT_UC,
	.init_mask = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	.rtr_mask = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	.rts_mask = IBV_QP_SQ_PSN,
	.endpoint_count = 1,
};

static const struct program program = {
	.summary = "Bounces a message between two unreliable connected (UC) queue pairs.",
	.letters = "pdismrnlegc",
	.takes_server = true,
};

int main(int argc, char **argv)
{
	struct options options = { OPTIONS_DEFAULT };

	options_parse(&options, &program, argc, argv);
	return pingpong(&uc, &options);
}
