/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Creating QPs: capabilities and limits; and verbs that this device does not have.
 *
 * Rules: ibv_create_qp(3) (caps returned are at least those asked); device-abi C.1 (sizing),
 * B.7 (limits); rxe-oracle section 7 for what an unsupported verb answers (EOPNOTSUPP).
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include "harness/check.h"

TestSuite(create, .timeout = 60);

static struct end e;

static void open_end(void)
{
	must_open(&e);
}

static void close_end(void)
{
	end_close(&e);
}

#define CREATE_TEST(name) Test(create, name, .init = open_end, .fini = close_end)

static struct ibv_qp *try_create(struct ibv_qp_cap *cap, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = { .send_cq = e.cq[SEND_CQ], .recv_cq = e.cq[RECV_CQ],
		.cap = *cap, .qp_type = type };
	struct ibv_qp *qp;

	errno = 0;
	qp = ibv_create_qp(e.pd, &init);
	*cap = init.cap;
	return qp;
}

CREATE_TEST(caps_returned_are_at_least_those_asked)
{
	static const struct ibv_qp_cap asked[] = {
		{ 1, 1, 1, 1, 0 }, { 10, 10, 1, 1, 1 }, { 33, 33, 3, 3, 100 },
		{ 100, 100, 30, 30, 0 }, { 1000, 1000, 5, 5, 220 }, { 8192, 8192, 1, 1, 0 },
		{ 1, 0, 1, 0, 0 }, { 0, 1, 0, 1, 0 },
	};

	for (unsigned i = 0; i < ROWS(asked); i++) {
		struct ibv_qp_cap got = asked[i];
		struct ibv_qp *qp = try_create(&got, IBV_QPT_RC);

		cr_assert_not_null(qp, "row %u: %s", i, strerror(errno));
		cr_expect_geq(got.max_send_wr, asked[i].max_send_wr, "row %u", i);
		cr_expect_geq(got.max_recv_wr, asked[i].max_recv_wr, "row %u", i);
		cr_expect_geq(got.max_send_sge, asked[i].max_send_sge, "row %u", i);
		cr_expect_geq(got.max_recv_sge, asked[i].max_recv_sge, "row %u", i);
		cr_expect_geq(got.max_inline_data, asked[i].max_inline_data, "row %u", i);
		cr_expect_eq(ibv_destroy_qp(qp), 0);
	}
}

CREATE_TEST(limits_of_the_device_are_refused_one_beyond)
{
	struct ibv_device_attr attr;

	cr_assert_eq(ibv_query_device(e.context, &attr), 0);
	const struct ibv_qp_cap rows[] = {
		{ (uint32_t)attr.max_qp_wr + 1, 1, 1, 1, 0 },
		{ 1, (uint32_t)attr.max_qp_wr + 1, 1, 1, 0 },
		{ 1, 1, (uint32_t)attr.max_sge + 40, 1, 0 },
		{ 1, 1, 1, (uint32_t)attr.max_sge + 40, 0 },
		{ 1, 1, 1, 1, 4096 }, { 1, 1, 1, 1, 1 << 20 },
		{ UINT32_MAX, 1, 1, 1, 0 }, { 1, UINT32_MAX, 1, 1, 0 },
		{ 1, 1, UINT32_MAX, 1, 0 }, { 1, 1, 1, UINT32_MAX, 0 },
	};

	for (unsigned i = 0; i < ROWS(rows); i++) {
		struct ibv_qp_cap cap = rows[i];

		cr_expect_null(try_create(&cap, IBV_QPT_RC), "row %u", i);
		cr_expect(errno == EINVAL || errno == ENOMEM, "row %u: %s", i, strerror(errno));
	}
}

/* The deepest queues that libmlx5 can ask for: rings of 32768 blocks. */
CREATE_TEST(the_deepest_receive_queue_works)
{
	struct ibv_device_attr attr;
	struct ibv_qp_cap cap = { 1, 0, 1, 1, 0 };
	struct ibv_qp *qp;

	cr_assert_eq(ibv_query_device(e.context, &attr), 0);
	cap.max_recv_wr = (uint32_t)attr.max_qp_wr;
	qp = try_create(&cap, IBV_QPT_RC);
	cr_assert_not_null(qp, "%s", strerror(errno));
	cr_expect_eq(ibv_destroy_qp(qp), 0);
}

CREATE_TEST(unknown_qp_types_are_refused)
{
	static const int types[] = { 0, 1, 5, 7, 77, 255 };

	for (unsigned i = 0; i < ROWS(types); i++) {
		struct ibv_qp_cap cap = { 1, 1, 1, 1, 0 };

		cr_expect_null(try_create(&cap, (enum ibv_qp_type)types[i]), "type %d",
			       types[i]);
	}
}

/* ---- verbs that are not there ---- */

static bool is_refusal(int err)
{
	return err == EOPNOTSUPP || err == ENOSYS || err == EPROTONOSUPPORT || err == EINVAL ||
	       err == ENOTTY;
}

static void check_refused(const char *verb, const void *object)
{
	cr_expect_null(object, "%s gave an object", verb);
	cr_expect(is_refusal(errno), "%s: %s", verb, strerror(errno));
	errno = 0;
}

CREATE_TEST(objects_that_are_not_emulated_are_refused)
{
	struct ibv_srq_init_attr_ex srq = { .attr = { .max_wr = 8, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM, .pd = e.pd, .cq = e.cq[RECV_CQ],
		.tm_cap = { .max_num_tags = 8, .max_ops = 4 } };

	check_refused("ibv_create_srq_ex (TM)", ibv_create_srq_ex(e.context, &srq));
	check_refused("ibv_reg_dmabuf_mr", ibv_reg_dmabuf_mr(e.pd, 0, 4096, 0, -1, 0));
}

CREATE_TEST(calls_that_are_not_emulated_are_refused)
{
	struct ibv_sge sge = { .addr = (uintptr_t)e.buf, .length = 64, .lkey = e.mr->lkey };
	struct ibv_qp_rate_limit_attr rate = { .rate_limit = 1000 };
	union ibv_gid group = { .raw = { 0xff, 0x0e } };
	struct ibv_ece ece = { .vendor_id = 0x15b3 };

	cr_expect(is_refusal(ibv_advise_mr(e.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1)));
	cr_expect(is_refusal(ibv_modify_qp_rate_limit(e.qp, &rate)));
	cr_expect(is_refusal(ibv_attach_mcast(e.qp, &group, 0)), "RC has no multicast");
	cr_expect(is_refusal(ibv_detach_mcast(e.qp, &group, 0)));
	ibv_set_ece(e.qp, &ece);		/* may be ignored; must not crash */
	ibv_query_ece(e.qp, &ece);
}

/* Verbs of later steps: they work or are refused, and the device is unharmed. */
CREATE_TEST(verbs_of_other_transports_work_or_are_refused)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RAW_PACKET,
						  IBV_QPT_XRC_SEND };
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_ah_attr ah_attr = { .is_global = 1, .port_num = 1,
		.grh = { .sgid_index = GID_INDEX, .hop_limit = 64 } };
	struct ibv_srq *srq;
	struct ibv_ah *ah;
	struct ibv_mw *mw;
	struct ibv_qp *qp;

	for (unsigned i = 0; i < ROWS(types); i++) {
		struct ibv_qp_cap cap = { 1, 1, 1, 1, 0 };

		qp = try_create(&cap, types[i]);
		cr_expect(qp || is_refusal(errno) || errno == EPERM, "QP type %d: %s", types[i],
			  strerror(errno));
		if (qp)
			cr_expect_eq(ibv_destroy_qp(qp), 0);
	}
	errno = 0;
	srq = ibv_create_srq(e.pd, &srq_attr);
	cr_expect(srq ? !ibv_destroy_srq(srq) : is_refusal(errno), "SRQ: %s", strerror(errno));
	cr_assert_eq(ibv_query_gid(e.context, 1, GID_INDEX, &ah_attr.grh.dgid), 0);
	ah = ibv_create_ah(e.pd, &ah_attr);
	cr_expect(ah ? !ibv_destroy_ah(ah) : is_refusal(errno), "AH: %s", strerror(errno));
	mw = ibv_alloc_mw(e.pd, IBV_MW_TYPE_1);
	cr_expect(mw ? !ibv_dealloc_mw(mw) : is_refusal(errno), "MW: %s", strerror(errno));
	qp = try_create(&(struct ibv_qp_cap){ 1, 1, 1, 1, 0 }, IBV_QPT_RC);
	cr_assert_not_null(qp);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
}

/* Counters count into flow steering rules: without one there is nothing to read. */
Test(create, counters_can_be_made_but_not_read)
{
	struct ibv_context *c = device_open();
	struct ibv_counters_init_attr init = { 0 };
	struct ibv_counters *counters;
	uint64_t value;

	cr_assert_not_null(c);
	counters = ibv_create_counters(c, &init);
	cr_assert_not_null(counters, "%s", strerror(errno));
	cr_expect_eq(ibv_read_counters(counters, &value, 1, 0), EINVAL);
	cr_expect_eq(ibv_destroy_counters(counters), 0);
	cr_expect_eq(ibv_close_device(c), 0);
}
