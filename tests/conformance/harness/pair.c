/* SPDX-License-Identifier: BSD-2-Clause */
/* Two connected ends; see pair.h. */
#include "pair.h"
#include <criterion/logging.h>
#include <errno.h>
#include <string.h>

void pair_defaults(struct pair_opts *opts)
{
	end_defaults(&opts->a);
	end_defaults(&opts->b);
	opts->b.sq_psn = opts->a.rq_psn = 0x2000;
}

void pair_open_unconnected(struct pair *p, enum placement placement,
			   const struct pair_opts *opts)
{
	struct pair_opts defaults;
	int err;

	pair_defaults(&defaults);
	opts = opts ? opts : &defaults;
	memset(p, 0, sizeof *p);
	cr_log_info("%s\n", placement_names[placement]);	/* seen with --verbose */
	peer_start(&p->peer, placement);
	err = end_open(&p->a, &opts->a, NULL);
	cr_assert_eq(err, 0, "open (%s): %s; is this run under `verbena run`?",
		     placement_names[placement], strerror(err));
	err = peer_open(&p->peer, &opts->b, &p->a, &p->ib);
	cr_assert_eq(err, 0, "open of the other end (%s): %s", placement_names[placement],
		     strerror(err));
	end_describe(&p->a, &p->ia);
}

void pair_connect(struct pair *p)
{
	int err = peer_connect(&p->peer, &p->ia);

	cr_assert_eq(err, 0, "connect of the other end: %s", strerror(err));
	err = end_connect(&p->a, &p->ib);
	cr_assert_eq(err, 0, "connect: %s", strerror(err));
}

void pair_open(struct pair *p, enum placement placement, const struct pair_opts *opts)
{
	pair_open_unconnected(p, placement, opts);
	pair_connect(p);
}

void pair_close(struct pair *p)
{
	peer_stop(&p->peer);
	end_close(&p->a);
}

struct work pair_work(const struct pair *p, enum ibv_wr_opcode opcode, uint32_t bytes)
{
	return (struct work){
		.opcode = opcode, .wr_id = 1, .flags = IBV_SEND_SIGNALED,
		.remote_addr = p->ib.addr, .rkey = p->ib.rkey, .sge_count = 1,
		.sge = { { .addr = p->ia.addr, .length = bytes, .lkey = p->ia.lkey } },
	};
}

struct work pair_recv(const struct pair *p, uint64_t wr_id, size_t offset, uint32_t bytes)
{
	return (struct work){
		.wr_id = wr_id, .sge_count = 1,
		.sge = { { .addr = p->ib.addr + offset, .length = bytes, .lkey = p->ib.lkey } },
	};
}
