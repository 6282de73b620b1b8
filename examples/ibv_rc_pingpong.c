/* SPDX-License-Identifier: BSD-2-Clause */
/* Bounces a message between two reliable connected queue pairs: nothing is lost or reordered. */
#include "examples/pingpong.h"

static const struct transport rc = {
	RELIABLE_CONNECTION,
	.endpoint_count = 1,
};

static const struct program program = {
	.summary = "Bounces a message between two reliable connected (RC) queue pairs.",
	.letters = "pdismrnlegoOPtcjN",
	.takes_server = true,
};

int main(int argc, char **argv)
{
	struct options options = { OPTIONS_DEFAULT };

	options_parse(&options, &program, argc, argv);
	return pingpong(&rc, &options);
}
