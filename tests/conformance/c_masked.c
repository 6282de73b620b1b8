/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Masked atomics, which no verb of libibverbs posts: UCX and others write them into the queue.
 *
 * Rules: device-abi C.3.5.
 */
#include <string.h>
#include "harness/check.h"
#include "harness/raw.h"

#define MASKED_CS 0x14
#define MASKED_FA 0x15
#define TARGET 512		/* in the other end's buffer */
#define OLD UINT64_C(0x1122334455667788)

TestSuite(masked, .timeout = 60);

struct row {
	const char *name;
	uint8_t opcode, bytes;
	uint64_t operand, compare, mask, compare_mask;
	uint64_t want;			/* there, afterwards; the low bytes if 4 */
};

#define ALL UINT64_MAX

static const struct row rows[] = {
	{ "swap all", MASKED_CS, 8, 42, OLD, ALL, ALL, 42 },
	{ "compare fails", MASKED_CS, 8, 42, OLD + 1, ALL, ALL, OLD },
	{ "compare nothing, swap all", MASKED_CS, 8, 42, 0, ALL, 0, 42 },
	{ "compare the low byte", MASKED_CS, 8, 42, 0x88, ALL, 0xff, 42 },
	{ "compare the low byte, differs", MASKED_CS, 8, 42, 0x87, ALL, 0xff, OLD },
	{ "swap the high byte", MASKED_CS, 8, ALL, OLD, UINT64_C(0xff) << 56, ALL,
	  UINT64_C(0xff22334455667788) },
	{ "swap nothing", MASKED_CS, 8, ALL, OLD, 0, ALL, OLD },
	{ "add as ever", MASKED_FA, 8, 1, 0, 0, 0, OLD + 1 },
	{ "add to two halves", MASKED_FA, 8, UINT64_C(0x00000001ffffffff), 0,
	  UINT64_C(0x8000000080000000), 0, UINT64_C(0x1122334555667787) },
	{ "add to eight bytes", MASKED_FA, 8, UINT64_C(0xffffffffffffffff), 0,
	  UINT64_C(0x8080808080808080), 0, UINT64_C(0x1021324354657687) },
	{ "every bit a field", MASKED_FA, 8, UINT64_C(0xff), 0, ALL, 0, OLD ^ 0xff },
	{ "4 bytes: swap all", MASKED_CS, 4, 42, (uint32_t)OLD, ALL, ALL, 42 },
	{ "4 bytes: compare fails", MASKED_CS, 4, 42, 1, ALL, ALL, (uint32_t)OLD },
	{ "4 bytes: swap a byte", MASKED_CS, 4, 0, 0, 0xff00, 0, 0x55660088 },
	{ "4 bytes: add, no carry beyond", MASKED_FA, 4, 0xffffffff, 0, 0, 0, 0x55667787 },
	{ "4 bytes: two fields", MASKED_FA, 4, 0x0001ffff, 0, 0x80008000, 0, 0x55677787 },
};

/* An operand as the segment has it: big-endian, as wide as the operands are. */
static uint8_t *operand_put(uint8_t *at, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
	return at + bytes;
}

static struct raw_wqe request(const struct pair *p, const struct row *r, uint64_t remote,
			      uint32_t rkey)
{
	struct raw_wqe w = { .opcode = r->opcode, .opmod = r->bytes == 4 ? 8 : 9,
			     .fm_ce_se = 0x08 };
	unsigned at = raw_seg_remote(&w, 0, remote, rkey);
	uint8_t *end = w.body + at * 16;

	end = operand_put(end, r->operand, r->bytes);
	if (r->opcode == MASKED_CS)
		end = operand_put(end, r->compare, r->bytes);
	end = operand_put(end, r->mask, r->bytes);
	if (r->opcode == MASKED_CS)
		operand_put(end, r->compare_mask, r->bytes);
	at += r->opcode == MASKED_CS && r->bytes == 8 ? 2 : 1;
	at = raw_seg_data(&w, at, p->ia.addr, r->bytes, p->ia.lkey);
	w.units = at;
	w.ds = (uint8_t)(at + 1);
	return w;
}

static void post(struct pair *p, const struct raw_wqe *w)
{
	struct raw_sq sq;

	cr_assert_eq(raw_sq_open(&sq, p->a.qp), 0);
	raw_sq_write(&sq, w);
	raw_sq_publish(&sq, (uint16_t)((w->ds + 3) / 4), 1);
}

/* libmlx5 knows nothing of these, so what it says of the opcode does not count. */
static enum ibv_wc_status await_status(struct pair *p)
{
	struct done d;

	end_await(&p->a, SEND_CQ, &d);
	cr_assert(d.found, "no completion");
	return d.wc.status;
}

static void target_set(struct pair *p, uint64_t value)
{
	struct work w = pair_work(p, IBV_WR_RDMA_WRITE, 24);
	uint64_t words[3] = { ALL, value, ALL };

	memcpy(p->a.buf, words, sizeof words);
	w.remote_addr += TARGET - 8;
	must_post(p, &w);
	await_ok(p, 1, IBV_WC_RDMA_WRITE);
	memset(p->a.buf, 0xee, sizeof words);
}

CASE_TABLE(masked, each_operation_changes_what_its_mask_says, ROWS(rows))
{
	const struct row *r = &rows[row];
	uint64_t words[3], returned;
	struct raw_wqe w;
	struct pair p;

	pair_open(&p, where, NULL);
	target_set(&p, OLD);
	w = request(&p, r, p.ib.addr + TARGET, p.ib.rkey);
	post(&p, &w);
	cr_assert_eq(await_status(&p), IBV_WC_SUCCESS, "%s", r->name);
	peer_read(&p.peer, TARGET - 8, words, sizeof words);
	cr_expect_eq(words[1], r->bytes == 8 ? r->want : (OLD >> 32 << 32 | r->want),
		     "%s: 0x%lx", r->name, words[1]);
	cr_expect(words[0] == ALL && words[2] == ALL, "%s: the neighbours changed", r->name);
	memcpy(&returned, p.a.buf, sizeof returned);
	cr_expect_eq(returned, r->bytes == 8 ? OLD :
		     (UINT64_C(0xeeeeeeee) << 32 | (uint32_t)OLD), "%s: returned 0x%lx", r->name,
		     returned);
	pair_close(&p);
}

struct refusal {
	const char *name;
	uint8_t bytes;
	int64_t shift;
	uint32_t key_spoil;
	enum ibv_wc_status status;
};

static const struct refusal refusals[] = {
	{ "8 bytes at address + 4", 8, 4, 0, IBV_WC_REM_INV_REQ_ERR },
	{ "4 bytes at address + 4", 4, 4, 0, IBV_WC_SUCCESS },
	{ "4 bytes at address + 2", 4, 2, 0, IBV_WC_REM_INV_REQ_ERR },
	{ "an old key", 8, 0, 1, IBV_WC_REM_ACCESS_ERR },
	{ "behind the region", 4, (1 << 16) - TARGET, 0, IBV_WC_REM_ACCESS_ERR },
	{ "the last 4 bytes", 4, (1 << 16) - TARGET - 4, 0, IBV_WC_SUCCESS },
};

CASE_TABLE(masked, what_is_refused_is_refused_as_other_atomics_are, ROWS(refusals))
{
	const struct refusal *f = &refusals[row];
	const struct row r = { "", MASKED_FA, f->bytes, 1, 0, 0, 0, 0 };
	struct raw_wqe w;
	struct pair p;

	pair_open(&p, where, NULL);
	w = request(&p, &r, p.ib.addr + TARGET + (uint64_t)f->shift, p.ib.rkey ^ f->key_spoil);
	post(&p, &w);
	cr_expect_eq(await_status(&p), f->status, "%s", f->name);
	pair_close(&p);
}

/* Many of both widths in a row add up. */
CASE_EACH(masked, additions_add_up)
{
	struct raw_sq sq;
	uint64_t got;
	struct pair p;

	pair_open(&p, where, NULL);
	target_set(&p, 0);
	cr_assert_eq(raw_sq_open(&sq, p.a.qp), 0);
	for (unsigned i = 0; i < 200; i++) {
		const struct row r = { "", MASKED_FA, i % 2 ? 4 : 8, 3, 0, 0, 0, 0 };
		struct raw_wqe w = request(&p, &r, p.ib.addr + TARGET, p.ib.rkey);

		raw_sq_write(&sq, &w);
		raw_sq_publish(&sq, 1, 1);
		cr_assert_eq(await_status(&p), IBV_WC_SUCCESS, "%u", i);
	}
	peer_read(&p.peer, TARGET, &got, sizeof got);
	cr_expect_eq(got, 600);
	pair_close(&p);
}
