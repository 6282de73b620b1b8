/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bounces messages between many reliable connected queue pairs, which on each side take their
 * receives from one shared receive queue.  -n counts the messages of all of them together.
 */
#include "examples/pingpong.h"

static const struct transport rc_with_srq = {
	RELIABLE_CONNECTION,
	.has_srq = true,
	.endpoint_count = PAIRS_MAX,
};

static const struct option_row own[] = {
	{ 'q', "num-qp", "N", "queue pairs to use", OPTION_NUMBER,
	  offsetof(struct options, pair_count), 1, PAIRS_MAX - 1 },
	{ 0 },
};

static const struct program program = {
	.summary = "Bounces messages between RC queue pairs that share a receive queue.",
	.letters = "pdismrnlegoc",
	.own = own,
	.takes_server = true,
};

int main(int argc, char **argv)
{
	struct options options = { OPTIONS_DEFAULT };

	options.pair_count = 16;
	options_parse(&options, &program, argc, argv);
	return pingpong(&rc_with_srq, &options);
}
