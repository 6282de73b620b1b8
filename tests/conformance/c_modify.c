/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_modify_qp(): edges, masks, values; and what ibv_query_qp() says afterwards.
 *
 * Rules: device-abi E.1 (the core's table), E.2 (what mlx5 adds); rxe-oracle section 7,
 * "modify_qp / query_qp / create_qp".  One end is enough: a QP may be connected to itself.
 */
#include <errno.h>
#include <string.h>
#include "harness/check.h"

#define S IBV_QP_STATE
#define INIT_MASK (S | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define RTR_MASK (S | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
		  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_MASK (S | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | \
		  IBV_QP_MAX_QP_RD_ATOMIC)

TestSuite(modify, .timeout = 60);

static struct end end;
static struct end_info self;

static void open_end(void)
{
	struct end_opts opts;
	int err;

	end_defaults(&opts);
	err = end_open(&end, &opts, NULL);
	cr_assert_eq(err, 0, "open: %s", strerror(err));
	end_describe(&end, &self);
}

static void close_end(void)
{
	end_close(&end);
}

/* A fresh QP in @state. */
static void bring_to(enum ibv_qp_state state)
{
	cr_assert_eq(end_to(&end, IBV_QPS_RESET), 0);
	end.opts.state = state;
	cr_assert_eq(end_connect(&end, &self), 0);
	cr_assert_eq(end_state(&end), state);
}

/* Good values for everything that an edge may need. */
static struct ibv_qp_attr good_attr(enum ibv_qp_state to)
{
	return (struct ibv_qp_attr){
		.qp_state = to, .port_num = 1, .qp_access_flags = ACCESS_ALL,
		.path_mtu = IBV_MTU_1024, .dest_qp_num = self.qpn, .rq_psn = 1, .sq_psn = 1,
		.max_rd_atomic = 1, .max_dest_rd_atomic = 1, .min_rnr_timer = 1, .timeout = 14,
		.retry_cnt = 7, .rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = self.gid, .sgid_index = GID_INDEX,
				      .hop_limit = 64 } },
	};
}

static int good_mask(enum ibv_qp_state to)
{
	return to == IBV_QPS_INIT ? INIT_MASK : to == IBV_QPS_RTR ? RTR_MASK :
	       to == IBV_QPS_RTS ? RTS_MASK : S;
}

/* ---- edges ---- */

#define RST IBV_QPS_RESET
#define INI IBV_QPS_INIT
#define RTR IBV_QPS_RTR
#define RTS IBV_QPS_RTS
#define ERR IBV_QPS_ERR

/* E.1 and E.2 for RC on mlx5: is [from][to] an edge?  From SQD and SQE nothing starts: an RC
 * QP can't be brought there. */
static const uint8_t is_edge[7][7] = {
	[RST] = { [RST] = 1, [INI] = 1 },
	[INI] = { [RST] = 1, [INI] = 1, [RTR] = 1, [ERR] = 1 },
	[RTR] = { [RST] = 1, [RTS] = 1, [ERR] = 1 },
	[RTS] = { [RST] = 1, [RTS] = 1, [ERR] = 1 },
	[ERR] = { [RST] = 1, [ERR] = 1 },
};

static void check_edge(enum ibv_qp_state from, enum ibv_qp_state to)
{
	struct ibv_qp_attr attr = good_attr(to);
	int mask = from == to ? S : good_mask(to), err;

	bring_to(from);
	err = ibv_modify_qp(end.qp, &attr, mask);
	cr_expect_eq(err, is_edge[from][to] ? 0 : EINVAL, "%d to %d: %s", from, to,
		     strerror(err));
	cr_expect_eq(end_state(&end), is_edge[from][to] ? to : from, "%d to %d: state", from,
		     to);
}

Test(modify, every_edge_is_as_the_table_says, .init = open_end, .fini = close_end)
{
	static const enum ibv_qp_state from[] = { RST, INI, RTR, RTS, ERR };

	for (unsigned i = 0; i < ROWS(from); i++)
		for (unsigned to = RST; to <= ERR; to++)
			check_edge(from[i], (enum ibv_qp_state)to);
}

/* ---- masks ---- */

/* Each required attribute is really required; the state stays. */
Test(modify, each_required_attribute_is_required, .init = open_end, .fini = close_end)
{
	static const struct { enum ibv_qp_state from, to; } steps[] = {
		{ RST, INI }, { INI, RTR }, { RTR, RTS },
	};

	for (unsigned i = 0; i < ROWS(steps); i++) {
		struct ibv_qp_attr attr = good_attr(steps[i].to);

		bring_to(steps[i].from);
		for (int bit = 2; bit <= IBV_QP_RATE_LIMIT; bit <<= 1) {
			int mask = good_mask(steps[i].to);

			if (!(mask & bit))
				continue;
			cr_expect_eq(ibv_modify_qp(end.qp, &attr, mask & ~bit), EINVAL,
				     "to %d without 0x%x", steps[i].to, bit);
			cr_expect_eq(end_state(&end), steps[i].from);
		}
	}
}

struct mask_row {
	enum ibv_qp_state from, to;
	int extra;
	int err;
};

/* Optional attributes of E.1, and attributes that do not belong there. */
static const struct mask_row mask_rows[] = {
	{ RST, INI, IBV_QP_QKEY, EINVAL },
	{ RST, INI, IBV_QP_TIMEOUT, EINVAL },
	{ RST, INI, IBV_QP_AV, EINVAL },
	{ INI, INI, IBV_QP_PORT, 0 },
	{ INI, INI, IBV_QP_ACCESS_FLAGS, 0 },
	{ INI, INI, IBV_QP_PKEY_INDEX, 0 },
	{ INI, INI, IBV_QP_QKEY, EINVAL },
	{ INI, INI, IBV_QP_PATH_MTU, EINVAL },
	{ INI, RTR, IBV_QP_ACCESS_FLAGS, 0 },
	{ INI, RTR, IBV_QP_PKEY_INDEX, 0 },
	{ INI, RTR, IBV_QP_PORT, EINVAL },
	{ INI, RTR, IBV_QP_SQ_PSN, EINVAL },
	{ INI, RTR, IBV_QP_QKEY, EINVAL },
	{ RTR, RTS, IBV_QP_ACCESS_FLAGS, 0 },
	{ RTR, RTS, IBV_QP_MIN_RNR_TIMER, 0 },
	{ RTR, RTS, IBV_QP_DEST_QPN, EINVAL },
	{ RTR, RTS, IBV_QP_RQ_PSN, EINVAL },
	{ RTR, RTS, IBV_QP_PATH_MTU, EINVAL },
	{ RTS, RTS, IBV_QP_ACCESS_FLAGS, 0 },
	{ RTS, RTS, IBV_QP_MIN_RNR_TIMER, 0 },
	{ RTS, RTS, IBV_QP_TIMEOUT, EINVAL },
	{ RTS, RTS, IBV_QP_SQ_PSN, EINVAL },
	{ RTS, RTS, IBV_QP_PORT, EINVAL },
	{ RTS, RTS, IBV_QP_CAP, EINVAL },
	{ RTS, ERR, IBV_QP_ACCESS_FLAGS, EINVAL },
	{ RTS, RST, IBV_QP_ACCESS_FLAGS, EINVAL },
	{ RST, INI, 1 << 30, EOPNOTSUPP },	/* E.2: unknown bits */
};

Test(modify, optional_attributes_pass_and_others_do_not, .init = open_end, .fini = close_end)
{
	for (unsigned i = 0; i < ROWS(mask_rows); i++) {
		const struct mask_row *r = &mask_rows[i];
		struct ibv_qp_attr attr = good_attr(r->to);
		int mask = r->from == r->to ? S : good_mask(r->to), err;

		bring_to(r->from);
		err = ibv_modify_qp(end.qp, &attr, mask | r->extra);
		cr_expect_eq(err, r->err, "%d to %d with 0x%x: %s", r->from, r->to, r->extra,
			     strerror(err));
	}
}

/* CUR_STATE is optional where E.1 lists it, and must be true. */
Test(modify, cur_state_must_be_true, .init = open_end, .fini = close_end)
{
	struct ibv_qp_attr attr = good_attr(IBV_QPS_RTS);

	bring_to(IBV_QPS_RTS);
	attr.cur_qp_state = IBV_QPS_RTS;
	cr_expect_eq(ibv_modify_qp(end.qp, &attr, S | IBV_QP_CUR_STATE), 0);
	attr.cur_qp_state = IBV_QPS_INIT;
	cr_expect_eq(ibv_modify_qp(end.qp, &attr, S | IBV_QP_CUR_STATE), EINVAL);
}

/* ---- values ---- */

struct value_row {
	const char *name;
	enum ibv_qp_state to;
	void (*spoil)(struct ibv_qp_attr *attr);
	int err;			/* -1: any error */
};

#define SPOIL(name, change) static void name(struct ibv_qp_attr *a) { change; }
SPOIL(port_0, a->port_num = 0)
SPOIL(port_2, a->port_num = 2)
SPOIL(pkey_1000, a->pkey_index = 1000)
SPOIL(mtu_0, a->path_mtu = 0)
SPOIL(mtu_6, a->path_mtu = 6)
SPOIL(dest_rd_16, a->max_dest_rd_atomic = 16)
SPOIL(dest_rd_17, a->max_dest_rd_atomic = 17)
SPOIL(dest_rd_255, a->max_dest_rd_atomic = 255)
SPOIL(rnr_timer_31, a->min_rnr_timer = 31)
SPOIL(rnr_timer_32, a->min_rnr_timer = 32)
SPOIL(no_grh, a->ah_attr.is_global = 0)
SPOIL(gid_empty, a->ah_attr.grh.sgid_index = 200)
SPOIL(gid_beyond, a->ah_attr.grh.sgid_index = 255)
SPOIL(dgid_zero, memset(&a->ah_attr.grh.dgid, 0, 16))
SPOIL(av_port_2, a->ah_attr.port_num = 2)
SPOIL(timeout_31, a->timeout = 31)
SPOIL(timeout_32, a->timeout = 32)
SPOIL(retry_8, a->retry_cnt = 8)
SPOIL(rnr_8, a->rnr_retry = 8)
SPOIL(rd_16, a->max_rd_atomic = 16)
SPOIL(rd_17, a->max_rd_atomic = 17)
SPOIL(rd_0, a->max_rd_atomic = 0)
SPOIL(qpn_25_bits, a->dest_qp_num |= 0x1000000)

static const struct value_row value_rows[] = {
	{ "port 0", INI, port_0, EINVAL },
	{ "port 2", INI, port_2, EINVAL },
	{ "pkey_index 1000", INI, pkey_1000, EINVAL },
	{ "path_mtu 0", RTR, mtu_0, EINVAL },
	{ "path_mtu 6", RTR, mtu_6, EINVAL },
	{ "max_dest_rd_atomic 16", RTR, dest_rd_16, 0 },
	{ "max_dest_rd_atomic 17", RTR, dest_rd_17, EINVAL },
	{ "max_dest_rd_atomic 255", RTR, dest_rd_255, EINVAL },
	{ "min_rnr_timer 31", RTR, rnr_timer_31, 0 },
	{ "min_rnr_timer 32", RTR, rnr_timer_32, EINVAL },
	{ "no GRH", RTR, no_grh, EINVAL },
	{ "sgid_index of an empty entry", RTR, gid_empty, ENODATA },
	{ "sgid_index beyond the table", RTR, gid_beyond, -1 },
	{ "dgid of zeros", RTR, dgid_zero, -1 },
	{ "port 2 in the address vector", RTR, av_port_2, EINVAL },
	{ "dest_qp_num of 25 bits", RTR, qpn_25_bits, 0 },
	{ "timeout 31", RTS, timeout_31, 0 },
	{ "timeout 32", RTS, timeout_32, EINVAL },
	{ "retry_cnt 8", RTS, retry_8, EINVAL },
	{ "rnr_retry 8", RTS, rnr_8, EINVAL },
	{ "max_rd_atomic 16", RTS, rd_16, 0 },
	{ "max_rd_atomic 17", RTS, rd_17, EINVAL },
	{ "max_rd_atomic 0", RTS, rd_0, 0 },
};

Test(modify, values_out_of_range_are_refused, .init = open_end, .fini = close_end)
{
	for (unsigned i = 0; i < ROWS(value_rows); i++) {
		const struct value_row *r = &value_rows[i];
		struct ibv_qp_attr attr = good_attr(r->to);
		enum ibv_qp_state from = (enum ibv_qp_state)(r->to - 1);
		int err;

		bring_to(from);
		r->spoil(&attr);
		err = ibv_modify_qp(end.qp, &attr, good_mask(r->to));
		if (r->err < 0)
			cr_expect_neq(err, 0, "%s", r->name);
		else
			cr_expect_eq(err, r->err, "%s: %s", r->name, strerror(err));
		cr_expect_eq(end_state(&end), err ? from : r->to, "%s: state", r->name);
	}
}

/* ---- what query says ---- */

/* ibv_query_qp(3): everything that was set comes back, and what the QP was created with. */
Test(modify, query_returns_what_was_set, .init = open_end, .fini = close_end)
{
	struct ibv_qp_init_attr init = { 0 };
	struct ibv_qp_attr q = { 0 };

	end.opts.timeout = 17;
	end.opts.retry = 5;
	end.opts.rnr_retry = 6;
	end.opts.min_rnr_timer = 13;
	end.opts.rd_atomic = 8;
	end.opts.dest_rd_atomic = 16;
	end.opts.sq_psn = 0x123456;
	end.opts.rq_psn = 0x654321;
	end.opts.mtu = IBV_MTU_2048;
	end.opts.qp_access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	bring_to(IBV_QPS_RTS);
	cr_assert_eq(ibv_query_qp(end.qp, &q, IBV_QP_RATE_LIMIT, &init), EOPNOTSUPP);
	cr_assert_eq(ibv_query_qp(end.qp, &q, IBV_QP_RATE_LIMIT - 1, &init), 0);
	cr_expect_eq(q.qp_state, IBV_QPS_RTS);
	cr_expect_eq(q.path_mtu, IBV_MTU_2048);
	cr_expect_eq(q.timeout, 17);
	cr_expect_eq(q.retry_cnt, 5);
	cr_expect_eq(q.rnr_retry, 6);
	cr_expect_eq(q.min_rnr_timer, 13);
	cr_expect_eq(q.max_rd_atomic, 8);
	cr_expect_eq(q.max_dest_rd_atomic, 16);
	cr_expect_eq(q.sq_psn, 0x123456);
	cr_expect_eq(q.rq_psn, 0x654321);
	cr_expect_eq(q.dest_qp_num, self.qpn);
	cr_expect_eq(q.qp_access_flags & 0xe, (int)end.opts.qp_access);
	cr_expect_eq(q.port_num, 1);
	cr_expect_eq(q.ah_attr.is_global, 1);
	cr_expect_eq(q.ah_attr.grh.sgid_index, GID_INDEX);
	cr_expect_eq(q.ah_attr.grh.hop_limit, 64);
	cr_expect(!memcmp(&q.ah_attr.grh.dgid, &self.gid, 16));
	cr_expect_eq(init.qp_type, IBV_QPT_RC);
	cr_expect_eq(init.send_cq, end.cq[SEND_CQ]);
	cr_expect_eq(init.recv_cq, end.cq[RECV_CQ]);
	cr_expect_eq(init.sq_sig_all, 0);
	cr_expect_geq(init.cap.max_send_wr, 64);
	cr_expect_geq(init.cap.max_recv_wr, 64);
	cr_expect_geq(init.cap.max_inline_data, 64);
}

/* E.1: what RTS to RTS changes is used from then on. */
CASE_EACH(modify, access_flags_changed_in_rts_take_effect)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS,
				    .qp_access_flags = IBV_ACCESS_REMOTE_READ };
	struct pair p;
	struct work w;

	pair_open(&p, where, NULL);
	w = pair_work(&p, IBV_WR_RDMA_WRITE, 8);
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	cr_assert_eq(peer_modify(&p.peer, &attr, S | IBV_QP_ACCESS_FLAGS), 0);
	must_post(&p, &w);
	await_error(&p, 1, IBV_WC_REM_INV_REQ_ERR);
	pair_close(&p);
}

/* device-abi E.3, F.2: libmlx5 posts by state. */
Test(modify, posting_before_its_time_is_refused, .init = open_end, .fini = close_end)
{
	struct work w = { .opcode = IBV_WR_RDMA_WRITE, .sge_count = 1,
		.sge = { { self.addr, 8, self.lkey } }, .remote_addr = self.addr,
		.rkey = self.rkey };

	cr_expect_eq(end_post(&end, &w), ENOMEM);
	cr_expect_eq(end_post_recv(&end, &w), EINVAL);
	bring_to(IBV_QPS_INIT);
	cr_expect_eq(end_post(&end, &w), ENOMEM);
	cr_expect_eq(end_post_recv(&end, &w), 0);
	bring_to(IBV_QPS_RTR);
	cr_expect_eq(end_post(&end, &w), ENOMEM);
	cr_expect_eq(end_post_recv(&end, &w), 0);
}
