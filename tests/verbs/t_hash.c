/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QPs that only spread packets over the queues of a table.
 *
 * Method: commands are read as the device gets them.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/mlx5-abi.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <string.h>
#include "script.h"
#include "verbs/dv.h"

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;

/* What was asked for last. */
static struct mlx5_ib_create_qp_rss asked;
static bool has_send_cq;
static uint64_t table_asked;

static void look(struct ib_uverbs_ioctl_hdr *header)
{
	if (!script_is(header, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE))
		return;
	memcpy(&asked, script_memory(header, UVERBS_ATTR_UHW_IN), sizeof asked);
	has_send_cq = script_attr(header, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE);
	table_asked = script_value(header, UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE);
}

static void setup(void)
{
	script.on_command = look;
	context = script_open();
	pd = script_keep(ibv_alloc_pd(context));
	cq = script_keep(script_cq(context, 63));
}

TestSuite(hash, .init = setup);

static uint8_t key[129];

static struct ibv_qp_init_attr_ex hash_attr(struct ibv_rwq_ind_table *table)
{
	for (unsigned i = 0; i < sizeof key; i++)
		key[i] = (uint8_t)(i + 1);
	return (struct ibv_qp_init_attr_ex){
		.qp_type = IBV_QPT_RAW_PACKET, .pd = pd, .rwq_ind_tbl = table,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH |
			     IBV_QP_INIT_ATTR_IND_TABLE,
		.rx_hash_conf = {
			.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ, .rx_hash_key_len = 40,
			.rx_hash_key = key,
			.rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_PORT_UDP,
		},
	};
}

static struct ibv_qp *hash_qp(const struct ibv_qp_init_attr_ex *from)
{
	struct ibv_qp_init_attr_ex attr = *from;

	memset(&asked, 0, sizeof asked);
	errno = 0;
	return ibv_create_qp_ex(context, &attr);
}

Test(hash, what_is_hashed_is_handed_on)
{
	struct ibv_rwq_ind_table table = { .context = context, .ind_tbl_handle = 0x321 };
	struct ibv_qp_init_attr_ex attr = hash_attr(&table);
	struct ibv_qp *qp = hash_qp(&attr);

	cr_assert(qp, "errno %d", errno);
	cr_assert_eq(asked.rx_hash_fields_mask,
		     IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_PORT_UDP);
	cr_assert_eq(asked.rx_hash_function, IBV_RX_HASH_FUNC_TOEPLITZ);
	cr_assert_eq(asked.rx_key_len, 40);
	cr_assert_arr_eq(asked.rx_hash_key, key, 40);
	cr_assert_eq(asked.rx_hash_key[40], 0);
	cr_assert_eq(asked.flags, 0);
	cr_assert_not(has_send_cq);
	cr_assert_eq(table_asked, 0x321);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
}

Test(hash, flags_of_the_driver_reach_the_hash)
{
	struct ibv_rwq_ind_table table = { .context = context };
	struct ibv_qp_init_attr_ex attr = hash_attr(&table);
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
		.create_flags = MLX5DV_QP_CREATE_TUNNEL_OFFLOADS |
				MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC,
	};
	struct ibv_qp *qp = vb_dv_create_qp(context, &attr, &dv);

	cr_assert(qp);
	cr_assert_eq(asked.flags, MLX5_QP_FLAG_TUNNEL_OFFLOADS |
				       MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_UC);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
}

static void check_no_hash(const struct ibv_qp_init_attr_ex *attr)
{
	unsigned commands = script.commands;

	cr_assert_null(hash_qp(attr));
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(script.commands, commands);
}

Test(hash, hashes_that_are_refused)
{
	struct ibv_rwq_ind_table table = { .context = context };
	struct ibv_qp_init_attr_ex good = hash_attr(&table), bad = good;

	bad.rx_hash_conf.rx_hash_key_len = 129;
	check_no_hash(&bad);
	bad = good;
	bad.comp_mask &= ~(uint32_t)IBV_QP_INIT_ATTR_RX_HASH;
	check_no_hash(&bad);
	bad = good;
	bad.comp_mask &= ~(uint32_t)IBV_QP_INIT_ATTR_IND_TABLE;
	check_no_hash(&bad);
	bad = good;
	bad.rwq_ind_tbl = NULL;
	check_no_hash(&bad);
	bad = good;
	bad.recv_cq = cq;
	check_no_hash(&bad);
	bad = good;
	bad.cap.max_recv_wr = 1;
	check_no_hash(&bad);
	bad = good;
	bad.cap.max_send_wr = 1;
	check_no_hash(&bad);
	bad = good;
	bad.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	check_no_hash(&bad);
}

/* Whether it may send is the kernel's to say; a CQ that nothing is sent to does not matter. */
Test(hash, the_send_cq_of_a_hash)
{
	struct ibv_rwq_ind_table table = { .context = context };
	struct ibv_qp_init_attr_ex attr = hash_attr(&table);
	struct ibv_qp *qp;

	attr.send_cq = cq;
	qp = hash_qp(&attr);
	cr_assert(qp);
	cr_assert_not(has_send_cq);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	attr.cap.max_send_wr = 1;
	qp = hash_qp(&attr);
	cr_assert(qp);
	cr_assert(has_send_cq);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
}

Test(hash, a_hash_has_no_state_and_no_queues)
{
	struct ibv_rwq_ind_table table = { .context = context };
	struct ibv_qp_init_attr_ex attr = hash_attr(&table);
	struct ibv_qp *qp = hash_qp(&attr);
	struct ibv_qp_attr state = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_init_attr init;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct ibv_recv_wr recv = { 0 }, *bad_recv;
	unsigned commands;

	cr_assert(qp);
	commands = script.commands;
	cr_assert_eq(ibv_modify_qp(qp, &state, IBV_QP_STATE | IBV_QP_PORT), EOPNOTSUPP);
	cr_assert_eq(ibv_query_qp(qp, &state, IBV_QP_STATE, &init), EOPNOTSUPP);
	cr_assert_neq(ibv_post_send(qp, &wr, &bad), 0);
	cr_assert_neq(ibv_post_recv(qp, &recv, &bad_recv), 0);
	cr_assert_eq(script.commands, commands);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
}
