/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive work queues, indirection tables and the QPs over them: what an application can make,
 * change and destroy.
 *
 * Rules: device-abi B.9, B.9.4, H.3; api-inventory WQ-3, WQ-6, WQ-9.
 */
#include <errno.h>
#include <string.h>
#include "harness/check.h"

#define QUEUES_MAX	8

TestSuite(wq, .timeout = 60);

static struct end e;

static void open_end(void)
{
	must_open(&e);
}

static void close_end(void)
{
	end_close(&e);
}

#define WQ_TEST(name)	Test(wq, name, .init = open_end, .fini = close_end)

static struct ibv_wq *queue(uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = max_wr, .max_sge = max_sge, .pd = e.pd,
		.cq = e.cq[RECV_CQ],
	};

	return ibv_create_wq(e.context, &attr);
}

static int state_set(struct ibv_wq *wq, enum ibv_wq_state state)
{
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = state };

	return ibv_modify_wq(wq, &attr);
}

/* An errno, whether it is returned with a sign or not. */
static int error_of(int ret)
{
	return ret < 0 ? -ret : ret;
}

WQ_TEST(queue_of_every_usual_size)
{
	static const struct { uint32_t max_wr, max_sge; } rows[] = {
		{ 1, 1 }, { 100, 1 }, { 512, 30 }, { 8192, 4 },
	};

	for (unsigned i = 0; i < ROWS(rows); i++) {
		struct ibv_wq *wq = queue(rows[i].max_wr, rows[i].max_sge);

		cr_assert_not_null(wq, "row %u: %s", i, strerror(errno));
		cr_expect_eq(wq->state, IBV_WQS_RESET);
		cr_expect_eq(ibv_destroy_wq(wq), 0);
	}
}

WQ_TEST(queue_that_is_too_large_is_einval)
{
	errno = 0;
	cr_expect_null(queue(8193, 1));
	cr_expect_eq(errno, EINVAL, "%s", strerror(errno));
}

WQ_TEST(states_and_receives)
{
	struct ibv_sge sge = { .addr = (uintptr_t)e.buf, .length = 64, .lkey = e.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 7, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_wq *wq = queue(16, 1);
	struct ibv_wc wc;

	cr_assert_not_null(wq, "%s", strerror(errno));
	cr_expect_eq(state_set(wq, IBV_WQS_RDY), 0);
	for (unsigned i = 0; i < 16; i++)
		cr_expect_eq(ibv_post_wq_recv(wq, &wr, &bad), 0);
	cr_expect_eq(ibv_post_wq_recv(wq, &wr, &bad), ENOMEM);
	cr_expect_eq(ibv_poll_cq(e.cq[RECV_CQ], 1, &wc), 0);
	cr_expect_eq(state_set(wq, IBV_WQS_ERR), 0);
	cr_expect_eq(error_of(state_set(wq, IBV_WQS_RDY)), EINVAL);
	cr_expect_eq(state_set(wq, IBV_WQS_RESET), 0);
	cr_expect_eq(state_set(wq, IBV_WQS_RDY), 0);
	cr_expect_eq(ibv_post_wq_recv(wq, &wr, &bad), 0);
	cr_expect_eq(ibv_destroy_wq(wq), 0);
}

WQ_TEST(state_that_it_is_not_in_is_einval)
{
	struct ibv_wq_attr attr = {
		.attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE,
		.curr_wq_state = IBV_WQS_RDY, .wq_state = IBV_WQS_ERR,
	};
	struct ibv_wq *wq = queue(4, 1);

	cr_assert_not_null(wq, "%s", strerror(errno));
	cr_expect_eq(error_of(ibv_modify_wq(wq, &attr)), EINVAL);
	attr.curr_wq_state = IBV_WQS_RESET;
	cr_expect_eq(ibv_modify_wq(wq, &attr), 0);
	cr_expect_eq(ibv_destroy_wq(wq), 0);
}

WQ_TEST(flags_that_nobody_offers_are_refused)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1, .pd = e.pd,
		.cq = e.cq[RECV_CQ], .comp_mask = IBV_WQ_INIT_ATTR_FLAGS,
	};

	for (uint32_t flag = IBV_WQ_FLAGS_DELAY_DROP; flag < IBV_WQ_FLAGS_RESERVED; flag <<= 1) {
		attr.create_flags = flag;
		errno = 0;
		cr_expect_null(ibv_create_wq(e.context, &attr));
		cr_expect_eq(errno, EOPNOTSUPP, "flag %u: %s", flag, strerror(errno));
	}
}

WQ_TEST(queue_in_a_table_is_busy)
{
	struct ibv_wq *wq[QUEUES_MAX];
	struct ibv_rwq_ind_table_init_attr attr = { .log_ind_tbl_size = 3, .ind_tbl = wq };
	struct ibv_rwq_ind_table *table;

	for (unsigned i = 0; i < QUEUES_MAX; i++) {
		wq[i] = i % 4 == 3 ? wq[0] : queue(4, 1);
		cr_assert_not_null(wq[i], "%s", strerror(errno));
	}
	table = ibv_create_rwq_ind_table(e.context, &attr);
	cr_assert_not_null(table, "%s", strerror(errno));
	for (unsigned i = 0; i < QUEUES_MAX; i++)
		if (i % 4 != 3)
			cr_expect_eq(error_of(ibv_destroy_wq(wq[i])), EBUSY);
	cr_expect_eq(ibv_destroy_rwq_ind_table(table), 0);
	for (unsigned i = 0; i < QUEUES_MAX; i++)
		if (i % 4 != 3)
			cr_expect_eq(ibv_destroy_wq(wq[i]), 0);
}

static struct ibv_qp *spread(struct ibv_rwq_ind_table *table, uint64_t fields)
{
	uint8_t key[40] = { 1 };
	struct ibv_qp_init_attr_ex qp = {
		.qp_type = IBV_QPT_RAW_PACKET, .pd = e.pd, .rwq_ind_tbl = table,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH |
			     IBV_QP_INIT_ATTR_IND_TABLE,
		.rx_hash_conf = { .rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
				  .rx_hash_key_len = sizeof key, .rx_hash_key = key,
				  .rx_hash_fields_mask = fields },
	};

	errno = 0;
	return ibv_create_qp_ex(e.context, &qp);
}

WQ_TEST(qp_over_a_table)
{
	struct ibv_wq *wq = queue(4, 1);
	struct ibv_rwq_ind_table_init_attr attr = { .ind_tbl = &wq };
	struct ibv_rwq_ind_table *table = ibv_create_rwq_ind_table(e.context, &attr);
	struct ibv_qp_attr to_init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp;

	cr_assert_not_null(wq, "%s", strerror(errno));
	cr_assert_not_null(table, "%s", strerror(errno));
	cr_expect_null(spread(table, IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_SRC_IPV6));
	cr_expect_eq(errno, EINVAL, "%s", strerror(errno));
	qp = spread(table, IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_SRC_PORT_UDP);
	cr_assert_not_null(qp, "%s", strerror(errno));
	cr_expect_neq(ibv_modify_qp(qp, &to_init, IBV_QP_STATE | IBV_QP_PORT), 0);
	cr_expect_eq(error_of(ibv_destroy_rwq_ind_table(table)), EBUSY);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	cr_expect_eq(ibv_destroy_rwq_ind_table(table), 0);
	cr_expect_eq(ibv_destroy_wq(wq), 0);
}

WQ_TEST(device_says_what_it_offers)
{
	struct ibv_device_attr_ex attr;

	cr_assert_eq(ibv_query_device_ex(e.context, NULL, &attr), 0);
	cr_expect(attr.max_wq_type_rq);
	cr_expect(attr.rss_caps.supported_qpts & 1 << IBV_QPT_RAW_PACKET);
	cr_expect(attr.rss_caps.max_rwq_indirection_table_size >= 128);
	cr_expect(attr.raw_packet_caps & IBV_RAW_PACKET_CAP_CVLAN_STRIPPING);
	cr_expect(attr.raw_packet_caps & IBV_RAW_PACKET_CAP_SCATTER_FCS);
	cr_expect(attr.raw_packet_caps & IBV_RAW_PACKET_CAP_IP_CSUM);
	cr_expect(attr.tso_caps.max_tso);
}
