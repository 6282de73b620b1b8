/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requester and responder, case by case: the status table of RC as a table.
 *
 * Each row is one request that something is wrong with (or just not wrong), with what both
 * ends must see of it.  Rules: expected-statuses.md, "Requester and responder"; device-abi
 * F.1; where those are silent, the rows of rxe-oracle section 7 that it calls right.
 */
#include <string.h>
#include "harness/check.h"

#define AREA	8192	/* where the registered area starts, within the buffer */
#define AREA_BYTES 4096

enum key_kind { K_GOOD, K_UNKNOWN, K_TAG, K_ZERO, K_OTHER_PD, K_FREED, K_RIGHTS };
enum recv_kind { R_NONE, R_GOOD, R_NO_SGE, R_SMALL, R_UNKNOWN, R_FREED, R_RANGE, R_NO_WRITE,
		 R_OTHER_PD, R_LONG_SGE };

#define NOTHING	(-1)	/* no completion */
#define FAILS	(-2)	/* an error, the table leaves open which */
#define OK	IBV_WC_SUCCESS
#define WRAPS	INT64_MIN	/* an address so high that address + length wraps */

struct row {
	const char *name;
	enum ibv_wr_opcode op;
	uint32_t bytes;
	struct { enum key_kind kind; unsigned access; int64_t shift; } local, remote;
	enum recv_kind recv;
	unsigned qp_denies;		/* access flags that b's QP lacks */
	int a, b;			/* status; b: of the receive */
	int event;			/* at b, or 0 */
};

#define LW IBV_ACCESS_LOCAL_WRITE
#define RW IBV_ACCESS_REMOTE_WRITE
#define RR IBV_ACCESS_REMOTE_READ
#define RA IBV_ACCESS_REMOTE_ATOMIC
#define SEND IBV_WR_SEND
#define SEND_IMM IBV_WR_SEND_WITH_IMM
#define SEND_INV IBV_WR_SEND_WITH_INV
#define WRITE IBV_WR_RDMA_WRITE
#define WRITE_IMM IBV_WR_RDMA_WRITE_WITH_IMM
#define READ IBV_WR_RDMA_READ
#define CAS IBV_WR_ATOMIC_CMP_AND_SWP
#define FADD IBV_WR_ATOMIC_FETCH_AND_ADD
#define LOC_LEN IBV_WC_LOC_LEN_ERR
#define LOC_PROT IBV_WC_LOC_PROT_ERR
#define REM_INV IBV_WC_REM_INV_REQ_ERR
#define REM_ACC IBV_WC_REM_ACCESS_ERR
#define REM_OP IBV_WC_REM_OP_ERR
#define RNR IBV_WC_RNR_RETRY_EXC_ERR
#define LOCAL(...) .local = { __VA_ARGS__ }
#define REMOTE(...) .remote = { __VA_ARGS__ }
#define ROW(name_, op_, bytes_, ...) { .name = name_, .op = op_, .bytes = bytes_, __VA_ARGS__ }
#define BOTH(a_, b_) .a = a_, .b = b_
#define REQUESTER(a_) .a = a_, .b = NOTHING
#define NAKS_ACCESS .a = REM_ACC, .b = NOTHING, .event = IBV_EVENT_QP_ACCESS_ERR
#define NAKS_REQUEST .a = REM_INV, .b = NOTHING, .event = IBV_EVENT_QP_REQ_ERR

static const struct row send_rows[] = {
	ROW("SEND", SEND, 64, .recv = R_GOOD, BOTH(OK, OK)),
	ROW("SEND_IMM", SEND_IMM, 64, .recv = R_GOOD, BOTH(OK, OK)),
	ROW("SEND of 0 bytes into 0 SGEs", SEND, 0, .recv = R_NO_SGE, BOTH(OK, OK)),
	ROW("SEND of 1 byte into 0 SGEs", SEND, 1, .recv = R_NO_SGE, BOTH(REM_INV, LOC_LEN)),
	ROW("SEND longer than the receive", SEND, 64, .recv = R_SMALL, BOTH(REM_INV, LOC_LEN)),
	ROW("SEND longer, several packets", SEND, 4096, .recv = R_SMALL, BOTH(REM_INV, LOC_LEN)),
	ROW("SEND_IMM longer", SEND_IMM, 64, .recv = R_SMALL, BOTH(REM_INV, LOC_LEN)),
	ROW("SEND into an unknown lkey", SEND, 64, .recv = R_UNKNOWN, BOTH(REM_OP, LOC_PROT)),
	ROW("SEND into a freed lkey", SEND, 64, .recv = R_FREED, BOTH(REM_OP, LOC_PROT)),
	ROW("SEND into a receive out of its MR", SEND, 64, .recv = R_RANGE,
	    BOTH(REM_OP, LOC_PROT)),
	ROW("SEND into an MR without LOCAL_WRITE", SEND, 64, .recv = R_NO_WRITE,
	    BOTH(REM_OP, LOC_PROT)),
	ROW("SEND into an MR of another PD", SEND, 64, .recv = R_OTHER_PD,
	    BOTH(REM_OP, LOC_PROT)),
	ROW("SEND into the good part of a long SGE", SEND, 64, .recv = R_LONG_SGE, BOTH(OK, OK)),
	ROW("SEND without a receive", SEND, 64, .recv = R_NONE, REQUESTER(RNR)),
	ROW("SEND_IMM without a receive", SEND_IMM, 64, .recv = R_NONE, REQUESTER(RNR)),
	ROW("SEND_INV without a receive", SEND_INV, 64, .recv = R_NONE, REQUESTER(RNR)),
	ROW("SEND_INV of an unknown key", SEND_INV, 64, REMOTE(K_UNKNOWN), .recv = R_GOOD,
	    BOTH(OK, FAILS)),
	ROW("SEND_INV of a plain MR", SEND_INV, 64, .recv = R_GOOD, BOTH(OK, FAILS)),
	ROW("SEND, unknown lkey", SEND, 64, LOCAL(K_UNKNOWN), .recv = R_GOOD,
	    REQUESTER(LOC_PROT)),
	ROW("SEND, lkey 0", SEND, 64, LOCAL(K_ZERO), .recv = R_GOOD, REQUESTER(LOC_PROT)),
	ROW("SEND, lkey with another tag", SEND, 64, LOCAL(K_TAG), .recv = R_GOOD,
	    REQUESTER(LOC_PROT)),
	ROW("SEND, freed lkey", SEND, 64, LOCAL(K_FREED), .recv = R_GOOD, REQUESTER(LOC_PROT)),
	ROW("SEND, lkey of another PD", SEND, 64, LOCAL(K_OTHER_PD), .recv = R_GOOD,
	    REQUESTER(LOC_PROT)),
	ROW("SEND, out of its MR behind", SEND, 64, LOCAL(K_GOOD, .shift = AREA_BYTES - 63),
	    .recv = R_GOOD, REQUESTER(LOC_PROT)),
	ROW("SEND, out of its MR in front", SEND, 64, LOCAL(K_GOOD, .shift = -1),
	    .recv = R_GOOD, REQUESTER(LOC_PROT)),
	ROW("SEND, bad lkey and no receive", SEND, 64, LOCAL(K_UNKNOWN), .recv = R_NONE,
	    REQUESTER(LOC_PROT)),
	ROW("SEND from an MR without rights", SEND, 64, LOCAL(K_RIGHTS, 0), .recv = R_GOOD,
	    BOTH(OK, OK)),
	ROW("WRITE_IMM", WRITE_IMM, 64, .recv = R_NO_SGE, BOTH(OK, OK)),
	ROW("WRITE_IMM of 0 bytes", WRITE_IMM, 0, .recv = R_NO_SGE, BOTH(OK, OK)),
	ROW("WRITE_IMM, receive with a bad lkey is not looked at", WRITE_IMM, 64,
	    .recv = R_UNKNOWN, BOTH(OK, OK)),
	ROW("WRITE_IMM without a receive", WRITE_IMM, 64, .recv = R_NONE, REQUESTER(RNR)),
	ROW("WRITE_IMM, bad lkey", WRITE_IMM, 64, LOCAL(K_UNKNOWN), .recv = R_NO_SGE,
	    REQUESTER(LOC_PROT)),
	ROW("WRITE_IMM, bad rkey", WRITE_IMM, 64, REMOTE(K_UNKNOWN), .recv = R_NO_SGE,
	    BOTH(REM_ACC, IBV_WC_WR_FLUSH_ERR), .event = IBV_EVENT_QP_ACCESS_ERR),
};

static const struct row rdma_rows[] = {
	ROW("WRITE", WRITE, 64, REQUESTER(OK)),
	ROW("READ", READ, 64, REQUESTER(OK)),
	ROW("WRITE up to the last byte", WRITE, 64, REMOTE(K_GOOD, .shift = AREA_BYTES - 64),
	    REQUESTER(OK)),
	ROW("READ up to the last byte", READ, 64, REMOTE(K_GOOD, .shift = AREA_BYTES - 64),
	    REQUESTER(OK)),
	ROW("WRITE, bad lkey", WRITE, 64, LOCAL(K_UNKNOWN), REQUESTER(LOC_PROT)),
	ROW("WRITE, freed lkey", WRITE, 64, LOCAL(K_FREED), REQUESTER(LOC_PROT)),
	ROW("WRITE, lkey of another PD", WRITE, 64, LOCAL(K_OTHER_PD), REQUESTER(LOC_PROT)),
	ROW("READ, bad lkey", READ, 64, LOCAL(K_UNKNOWN), REQUESTER(LOC_PROT)),
	ROW("READ, freed lkey", READ, 64, LOCAL(K_FREED), REQUESTER(LOC_PROT)),
	ROW("READ into an MR without LOCAL_WRITE", READ, 64, LOCAL(K_RIGHTS, RR),
	    REQUESTER(LOC_PROT)),
	ROW("READ out of the local MR", READ, 64, LOCAL(K_GOOD, .shift = AREA_BYTES - 63),
	    REQUESTER(LOC_PROT)),
	ROW("WRITE, unknown rkey", WRITE, 64, REMOTE(K_UNKNOWN), NAKS_ACCESS),
	ROW("WRITE, rkey 0", WRITE, 64, REMOTE(K_ZERO), NAKS_ACCESS),
	ROW("WRITE, rkey with another tag", WRITE, 64, REMOTE(K_TAG), NAKS_ACCESS),
	ROW("WRITE, freed rkey", WRITE, 64, REMOTE(K_FREED), NAKS_ACCESS),
	ROW("WRITE, rkey of another PD", WRITE, 64, REMOTE(K_OTHER_PD), NAKS_ACCESS),
	ROW("WRITE in front of the MR", WRITE, 64, REMOTE(K_GOOD, .shift = -1), NAKS_ACCESS),
	ROW("WRITE behind the MR", WRITE, 64, REMOTE(K_GOOD, .shift = AREA_BYTES - 63),
	    NAKS_ACCESS),
	ROW("WRITE just behind the MR", WRITE, 64, REMOTE(K_GOOD, .shift = AREA_BYTES),
	    NAKS_ACCESS),
	ROW("WRITE of several packets, the last out of the MR", WRITE, 4096,
	    REMOTE(K_GOOD, .shift = 1), NAKS_ACCESS),
	ROW("WRITE whose address wraps", WRITE, 64, REMOTE(K_GOOD, .shift = WRAPS), NAKS_ACCESS),
	ROW("WRITE without any right", WRITE, 64, REMOTE(K_RIGHTS, 0), NAKS_ACCESS),
	ROW("WRITE with LOCAL_WRITE only", WRITE, 64, REMOTE(K_RIGHTS, LW), NAKS_ACCESS),
	ROW("WRITE with REMOTE_READ", WRITE, 64, REMOTE(K_RIGHTS, LW | RR), NAKS_ACCESS),
	ROW("WRITE with REMOTE_ATOMIC", WRITE, 64, REMOTE(K_RIGHTS, LW | RA), NAKS_ACCESS),
	ROW("WRITE with REMOTE_WRITE", WRITE, 64, REMOTE(K_RIGHTS, LW | RW), REQUESTER(OK)),
	ROW("READ, unknown rkey", READ, 64, REMOTE(K_UNKNOWN), NAKS_ACCESS),
	ROW("READ, freed rkey", READ, 64, REMOTE(K_FREED), NAKS_ACCESS),
	ROW("READ, rkey of another PD", READ, 64, REMOTE(K_OTHER_PD), NAKS_ACCESS),
	ROW("READ in front of the MR", READ, 64, REMOTE(K_GOOD, .shift = -1), NAKS_ACCESS),
	ROW("READ behind the MR", READ, 64, REMOTE(K_GOOD, .shift = AREA_BYTES - 63),
	    NAKS_ACCESS),
	ROW("READ whose address wraps", READ, 64, REMOTE(K_GOOD, .shift = WRAPS), NAKS_ACCESS),
	ROW("READ with LOCAL_WRITE only", READ, 64, REMOTE(K_RIGHTS, LW), NAKS_ACCESS),
	ROW("READ with REMOTE_WRITE", READ, 64, REMOTE(K_RIGHTS, LW | RW), NAKS_ACCESS),
	ROW("READ with REMOTE_READ", READ, 64, REMOTE(K_RIGHTS, RR), REQUESTER(OK)),
	ROW("READ, both keys bad", READ, 64, LOCAL(K_UNKNOWN), REMOTE(K_UNKNOWN), NAKS_ACCESS),
	ROW("WRITE, both keys bad", WRITE, 64, LOCAL(K_UNKNOWN), REMOTE(K_UNKNOWN),
	    REQUESTER(LOC_PROT)),
	ROW("WRITE of 0 bytes, unknown rkey", WRITE, 0, REMOTE(K_UNKNOWN), REQUESTER(OK)),
	ROW("WRITE of 0 bytes, address anywhere", WRITE, 0, REMOTE(K_GOOD, .shift = WRAPS),
	    REQUESTER(OK)),
	ROW("READ of 0 bytes, unknown rkey", READ, 0, REMOTE(K_UNKNOWN), REQUESTER(OK)),
	ROW("WRITE, denied by the QP", WRITE, 64, .qp_denies = RW, NAKS_REQUEST),
	ROW("READ, denied by the QP", READ, 64, .qp_denies = RR, NAKS_REQUEST),
};

static const struct row atomic_rows[] = {
	ROW("CAS", CAS, 8, REQUESTER(OK)),
	ROW("FADD", FADD, 8, REQUESTER(OK)),
	ROW("FADD on the last 8 bytes", FADD, 8, REMOTE(K_GOOD, .shift = AREA_BYTES - 8),
	    REQUESTER(OK)),
	ROW("FADD with REMOTE_ATOMIC", FADD, 8, REMOTE(K_RIGHTS, LW | RA), REQUESTER(OK)),
	ROW("CAS, address + 4", CAS, 8, REMOTE(K_GOOD, .shift = 4), NAKS_REQUEST),
	ROW("FADD, address + 1", FADD, 8, REMOTE(K_GOOD, .shift = 1), NAKS_REQUEST),
	ROW("FADD, address + 4, and a bad rkey", FADD, 8, REMOTE(K_UNKNOWN, .shift = 4),
	    NAKS_REQUEST),
	ROW("CAS, address + 4, right missing", CAS, 8, REMOTE(K_RIGHTS, LW, .shift = 4),
	    NAKS_REQUEST),
	ROW("CAS, unknown rkey", CAS, 8, REMOTE(K_UNKNOWN), NAKS_ACCESS),
	ROW("FADD, freed rkey", FADD, 8, REMOTE(K_FREED), NAKS_ACCESS),
	ROW("FADD, rkey of another PD", FADD, 8, REMOTE(K_OTHER_PD), NAKS_ACCESS),
	ROW("FADD behind the MR", FADD, 8, REMOTE(K_GOOD, .shift = AREA_BYTES), NAKS_ACCESS),
	ROW("CAS in front of the MR", CAS, 8, REMOTE(K_GOOD, .shift = -8), NAKS_ACCESS),
	ROW("CAS without REMOTE_ATOMIC", CAS, 8, REMOTE(K_RIGHTS, LW | RW | RR), NAKS_ACCESS),
	ROW("FADD with LOCAL_WRITE only", FADD, 8, REMOTE(K_RIGHTS, LW), NAKS_ACCESS),
	ROW("CAS, bad lkey", CAS, 8, LOCAL(K_UNKNOWN), REQUESTER(LOC_PROT)),
	ROW("FADD into an MR without LOCAL_WRITE", FADD, 8, LOCAL(K_RIGHTS, RR),
	    REQUESTER(LOC_PROT)),
	ROW("FADD, both keys bad", FADD, 8, LOCAL(K_UNKNOWN), REMOTE(K_UNKNOWN), NAKS_ACCESS),
	ROW("CAS, denied by the QP", CAS, 8, .qp_denies = RA, NAKS_REQUEST),
	ROW("FADD, denied by the QP", FADD, 8, .qp_denies = RA, NAKS_REQUEST),
};

static const uint8_t wqe_opcodes[] = {
	[WRITE] = 0x08, [WRITE_IMM] = 0x09, [SEND] = 0x0a, [SEND_IMM] = 0x0b, [READ] = 0x10,
	[CAS] = 0x11, [FADD] = 0x12, [SEND_INV] = 0x01,
};

static const enum ibv_wc_opcode wc_opcodes[] = {
	[WRITE] = IBV_WC_RDMA_WRITE, [WRITE_IMM] = IBV_WC_RDMA_WRITE, [SEND] = IBV_WC_SEND,
	[SEND_IMM] = IBV_WC_SEND, [READ] = IBV_WC_RDMA_READ, [CAS] = IBV_WC_COMP_SWAP,
	[FADD] = IBV_WC_FETCH_ADD, [SEND_INV] = IBV_WC_SEND,
};

static unsigned rights_of(enum key_kind kind, unsigned access)
{
	return kind == K_RIGHTS ? access : ACCESS_ALL;
}

/* What is wrong with a key, given the right one. */
static uint32_t key_spoil(enum key_kind kind, uint32_t key)
{
	return kind == K_UNKNOWN ? key ^ 0x3fff0000 : kind == K_TAG ? key ^ 1 :
	       kind == K_ZERO ? 0 : key;
}

static uint32_t local_key(struct pair *p, const struct row *r)
{
	int slot = end_register(&p->a, p->ia.addr + AREA, AREA_BYTES,
				rights_of(r->local.kind, r->local.access),
				r->local.kind == K_OTHER_PD);
	uint32_t key;

	cr_assert_geq(slot, 0);
	key = p->a.key[slot].mr->lkey;
	if (r->local.kind == K_FREED)
		cr_assert_eq(end_deregister(&p->a, (unsigned)slot), 0);
	return key_spoil(r->local.kind, key);
}

static uint32_t remote_key(struct pair *p, const struct row *r)
{
	struct end_info info;
	int slot = peer_register(&p->peer, p->ib.addr + AREA, AREA_BYTES,
				 rights_of(r->remote.kind, r->remote.access),
				 r->remote.kind == K_OTHER_PD, &info);

	cr_assert_geq(slot, 0);
	if (r->remote.kind == K_FREED)
		cr_assert_eq(peer_deregister(&p->peer, slot), 0);
	return key_spoil(r->remote.kind, info.rkey);
}

static uint32_t recv_key(struct pair *p, enum recv_kind kind)
{
	struct end_info info;
	unsigned access = kind == R_NO_WRITE ? RR : ACCESS_ALL;
	int slot;

	if (kind == R_UNKNOWN)
		return p->ib.lkey ^ 0x3fff0000;
	slot = peer_register(&p->peer, p->ib.addr + AREA, AREA_BYTES, access,
			     kind == R_OTHER_PD, &info);
	cr_assert_geq(slot, 0);
	if (kind == R_FREED)
		cr_assert_eq(peer_deregister(&p->peer, slot), 0);
	return info.lkey;
}

static void recv_prepare(struct pair *p, const struct row *r)
{
	struct work recv = pair_recv(p, 9, AREA, r->bytes);

	if (r->recv == R_NONE)
		return;
	recv.sge[0].lkey = recv_key(p, r->recv);
	if (r->recv == R_NO_SGE)
		recv.sge_count = 0;
	if (r->recv == R_SMALL)
		recv.sge[0].length--;
	if (r->recv == R_RANGE)
		recv.sge[0].addr += AREA_BYTES - 8;
	if (r->recv == R_LONG_SGE)
		recv.sge[0].length = 3 * AREA_BYTES;
	must_recv(p, &recv);
}

static void request(struct pair *p, const struct row *r)
{
	struct work w = pair_work(p, r->op, r->bytes);

	w.sge[0].addr += AREA + (uint64_t)r->local.shift;
	w.sge[0].lkey = local_key(p, r);
	w.rkey = remote_key(p, r);
	w.imm = r->op == SEND_INV ? w.rkey : 0x12345678;
	w.remote_addr += AREA + (uint64_t)r->remote.shift;
	if (r->remote.shift == WRAPS)
		w.remote_addr = UINT64_MAX - 31;
	if (!r->bytes)
		w.sge_count = 0;
	must_post(p, &w);
}

static void check_requester(struct pair *p, const struct row *r)
{
	struct done d;

	end_await(&p->a, SEND_CQ, &d);
	if (r->a == OK)
		check_ok(r->name, &d, 1, wc_opcodes[r->op]);
	else
		check_error(r->name, &d, 1, (enum ibv_wc_status)r->a, p->ia.qpn,
			    wqe_opcodes[r->op], 0);
}

static void check_responder(struct pair *p, const struct row *r)
{
	struct done d;

	if (r->b == NOTHING)
		return;
	peer_await(&p->peer, RECV_CQ, &d);
	if (r->b == OK) {
		check_ok(r->name, &d, 9, r->op == WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM :
			 IBV_WC_RECV);
		cr_expect_eq(d.wc.byte_len, r->bytes, "%s: byte_len", r->name);
	} else if (r->b == FAILS) {
		cr_expect(d.found && d.wc.status != IBV_WC_SUCCESS, "%s: receive", r->name);
	} else {
		check_error(r->name, &d, 9, (enum ibv_wc_status)r->b, p->ib.qpn, -1, 0);
	}
}

/* Nothing is written past a refusal, not even the packets that would have fitted. */
static void check_untouched(struct pair *p, const struct row *r)
{
	uint8_t area[512], zero[512] = { 0 };

	for (size_t at = AREA - 512; at < AREA + AREA_BYTES + 512; at += 512) {
		peer_read(&p->peer, at, area, sizeof area);
		cr_assert(!memcmp(area, zero, sizeof area), "%s: memory near %zu changed",
			  r->name, at);
	}
}

static void run_row(const struct row *r, enum placement where)
{
	enum ibv_qp_state b_state = IBV_QPS_RTS;
	struct pair_opts opts;
	struct pair p;

	pair_defaults(&opts);
	opts.a.rnr_retry = 0;
	opts.b.qp_access &= ~r->qp_denies;
	pair_open(&p, where, &opts);
	pattern_fill(p.a.buf, p.ia.bytes, 5);
	recv_prepare(&p, r);
	request(&p, r);
	check_requester(&p, r);
	check_responder(&p, r);
	if (r->a == REM_ACC || r->a == REM_INV || r->a == REM_OP || r->b == FAILS)
		b_state = IBV_QPS_ERR;
	check_states(r->name, &p, r->a == OK ? IBV_QPS_RTS : IBV_QPS_ERR, b_state);
	if (r->event)
		cr_expect(peer_event(&p.peer, (enum ibv_event_type)r->event, AWAIT_MS),
			  "%s: no event %d at the responder", r->name, r->event);
	if (r->a == REM_ACC)
		check_untouched(&p, r);
	pair_close(&p);
}

TestSuite(status, .timeout = 60);

CASE_TABLE(status, each_send_ends_as_the_table_says, ROWS(send_rows))
{
	run_row(&send_rows[row], where);
}

CASE_TABLE(status, each_rdma_ends_as_the_table_says, ROWS(rdma_rows))
{
	run_row(&rdma_rows[row], where);
}

CASE_TABLE(status, each_atomic_ends_as_the_table_says, ROWS(atomic_rows))
{
	run_row(&atomic_rows[row], where);
}
