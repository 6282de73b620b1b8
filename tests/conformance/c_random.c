/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random conversations against a model: whatever is posted in whatever mix, memory ends up
 * as if the requests had been executed one after the other (IBTA 9.5), each completes once
 * and in order.
 *
 * A failing case names its seed.  Requests that follow a READ are fenced: without that
 * the order of a READ and what comes after is open (IBTA 10.8.3.3).
 */
#include <stdlib.h>
#include <string.h>
#include "harness/check.h"

#define AREA	65536		/* sources at a, and everything at b */
#define LANDING	AREA		/* where READs and atomics land at a */
#define BATCH	16
#define LAND_BYTES (32768)	/* of one request of a batch */

TestSuite(random, .timeout = 100);

struct world {
	struct pair p;
	uint64_t state;				/* of the generator */
	uint8_t b[AREA];			/* what b's memory must be */
	uint8_t *land;				/* what a's landing area must be */
	uint64_t wr_id;
	bool has_read;
	unsigned recvs;
};

static uint64_t draw(struct world *w, uint64_t below)
{
	w->state = w->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (w->state >> 33) % below;
}

/* Cut [addr, addr + bytes) into one to four pieces. */
static void cut(struct world *w, struct work *work, uint64_t addr, uint32_t bytes)
{
	unsigned pieces = 1 + (unsigned)draw(w, 4);

	work->sge_count = 0;
	for (unsigned i = 0; i < pieces && bytes; i++) {
		uint32_t piece = i + 1 < pieces ? 1 + (uint32_t)draw(w, bytes) : bytes;

		work->sge[work->sge_count++] = (struct ibv_sge){ addr, piece, w->p.ia.lkey };
		addr += piece;
		bytes -= piece;
	}
}

static void post_write(struct world *w, struct work *work, bool is_send)
{
	uint32_t bytes = (uint32_t)draw(w, draw(w, 3) ? 3000 : LAND_BYTES);
	uint64_t from = draw(w, AREA - bytes), to = draw(w, AREA - bytes);

	work->opcode = is_send ? IBV_WR_SEND : IBV_WR_RDMA_WRITE;
	work->remote_addr += to;
	cut(w, work, w->p.ia.addr + from, bytes);
	memcpy(w->b + to, w->p.a.buf + from, bytes);
	if (is_send) {
		struct work recv = pair_recv(&w->p, w->wr_id, to, bytes);

		recv.sge_count = bytes ? 1 : 0;
		must_recv(&w->p, &recv);
		w->recvs++;
	}
}

static void post_read(struct world *w, struct work *work, unsigned slot)
{
	uint32_t bytes = (uint32_t)draw(w, draw(w, 3) ? 3000 : LAND_BYTES);
	uint64_t from = draw(w, AREA - bytes);

	work->opcode = IBV_WR_RDMA_READ;
	work->remote_addr += from;
	cut(w, work, w->p.ia.addr + LANDING + slot * LAND_BYTES, bytes);
	memcpy(w->land + slot * LAND_BYTES, w->b + from, bytes);
	w->has_read = true;
}

static void post_atomic(struct world *w, struct work *work, unsigned slot)
{
	uint64_t at = draw(w, AREA / 8) * 8, value;

	memcpy(&value, w->b + at, 8);
	memcpy(w->land + slot * LAND_BYTES, &value, 8);
	work->remote_addr += at;
	work->compare_add = draw(w, 2) ? value : draw(w, 1u << 30);
	work->swap = draw(w, 1u << 30);
	work->opcode = draw(w, 2) ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP;
	work->sge[0] = (struct ibv_sge){ w->p.ia.addr + LANDING + slot * LAND_BYTES, 8,
					 w->p.ia.lkey };
	if (work->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		value += work->compare_add;
	else if (value == work->compare_add)
		value = work->swap;
	memcpy(w->b + at, &value, 8);
	w->has_read = true;
}

static void post_one(struct world *w, unsigned slot, bool is_last)
{
	struct work work = pair_work(&w->p, IBV_WR_RDMA_WRITE, 0);
	unsigned kind = (unsigned)draw(w, 10);

	work.wr_id = w->wr_id;
	work.flags = (is_last || draw(w, 2) ? IBV_SEND_SIGNALED : 0) |
		     (w->has_read ? IBV_SEND_FENCE : 0);
	if (kind < 6)
		post_write(w, &work, kind < 3);
	else if (kind < 8)
		post_read(w, &work, slot);
	else
		post_atomic(w, &work, slot);
	must_post(&w->p, &work);
	w->wr_id++;
}

/* Completions come in order; unsignalled ones are skipped. */
static void await_batch(struct world *w, uint64_t first)
{
	struct done d;

	do {
		end_await(&w->p.a, SEND_CQ, &d);
		cr_assert(d.found, "no completion after %lu", (unsigned long)first);
		cr_assert_eq(d.wc.status, IBV_WC_SUCCESS, "wr_id %lu: %s",
			     (unsigned long)d.wc.wr_id, ibv_wc_status_str(d.wc.status));
		cr_assert(d.wc.wr_id >= first && d.wc.wr_id < w->wr_id, "out of order");
		first = d.wc.wr_id + 1;
	} while (first < w->wr_id);
	for (; w->recvs; w->recvs--) {
		peer_await(&w->p.peer, RECV_CQ, &d);
		cr_assert(d.found && d.wc.status == IBV_WC_SUCCESS, "receive");
	}
}

static void check_memory(struct world *w, uint64_t seed)
{
	uint8_t got[512];

	for (size_t at = 0; at < AREA; at += sizeof got) {
		peer_read(&w->p.peer, at, got, sizeof got);
		cr_assert(!memcmp(got, w->b + at, sizeof got), "seed %lu, wr_id %lu: b near %zu",
			  (unsigned long)seed, (unsigned long)w->wr_id, at);
	}
	cr_assert(!memcmp(w->p.a.buf + LANDING, w->land, BATCH * LAND_BYTES),
		  "seed %lu, wr_id %lu: what READs brought", (unsigned long)seed,
		  (unsigned long)w->wr_id);
}

#define SEEDS 6

CASE_TABLE(random, any_mix_of_requests_ends_as_if_run_one_by_one, SEEDS)
{
	static struct world w;
	struct pair_opts opts;

	pair_defaults(&opts);
	opts.a.mtu = opts.b.mtu = (enum ibv_mtu)(IBV_MTU_256 + row % 5);
	opts.a.rd_atomic = opts.b.dest_rd_atomic = (uint8_t)(1 << row % 5);
	opts.a.sq_psn = opts.b.rq_psn = 0xffff00 + (uint32_t)row;
	opts.a.bytes = LANDING + BATCH * LAND_BYTES;
	w = (struct world){ .state = 77u + (unsigned)row };
	w.land = calloc(BATCH, LAND_BYTES);
	pair_open(&w.p, where, &opts);
	pattern_fill(w.p.a.buf, AREA, (uint64_t)row);
	for (unsigned round = 0; round < 60; round++) {
		unsigned batch = 1 + (unsigned)draw(&w, BATCH);
		uint64_t first = w.wr_id;

		w.has_read = false;
		for (unsigned i = 0; i < batch; i++)
			post_one(&w, i, i + 1 == batch);
		await_batch(&w, first);
		if (round % 10 == 9)
			check_memory(&w, 77u + (unsigned)row);
	}
	check_quiet(&w.p);
	pair_close(&w.p);
	free(w.land);
}
