/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive work queues, and the tables that spread packets over them.
 *
 * Method: commands are read as the device gets them, receives as they lie in the ring, and
 * completions are written as a device would.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <string.h>
#include "hw-models/mlx5_cqe.h"
#include "hw-models/mlx5_wqe.h"
#include "script.h"
#include "verbs/dv.h"
#include "verbs/wq.h"

#define STRIDES_LOG	3u
#define PATTERN		0xa5
#define MODIFY_WQ	(0x80000000 | IB_USER_VERBS_EX_CMD_MODIFY_WQ)
#define CREATE_TABLE	(0x80000000 | IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL)
#define QUERY_DEVICE	(0x80000000 | IB_USER_VERBS_EX_CMD_QUERY_DEVICE)

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static uint32_t written;		/* completions so far */

static struct mlx5_ib_striding_rq_caps stride_caps = {
	.min_single_stride_log_num_of_bytes = 6, .max_single_stride_log_num_of_bytes = 13,
	.min_single_wqe_log_num_of_strides = STRIDES_LOG, .max_single_wqe_log_num_of_strides = 16,
};

/* What was asked for last. */
static struct {
	struct mlx5_ib_create_wq wq;
	uint32_t wq_flags;
	struct ib_uverbs_ex_modify_wq modify;
	uint8_t table[64];
	size_t table_bytes;
} asked;

static void look_at_write(struct ib_uverbs_ioctl_hdr *header)
{
	uint64_t command = script_value(header, UVERBS_ATTR_WRITE_CMD);
	const void *in = script_memory(header, UVERBS_ATTR_CORE_IN);
	struct ib_uverbs_ex_create_rwq_ind_table_resp *table;
	struct mlx5_ib_query_device_resp *device;

	if (command == QUERY_DEVICE) {
		device = script_memory(header, UVERBS_ATTR_UHW_OUT);
		device->striding_rq_caps = stride_caps;
	} else if (command == MODIFY_WQ) {
		memcpy(&asked.modify, in, sizeof asked.modify);
	} else if (command == CREATE_TABLE) {
		asked.table_bytes = script_attr(header, UVERBS_ATTR_CORE_IN)->len;
		cr_assert_leq(asked.table_bytes, sizeof asked.table);
		memcpy(asked.table, in, asked.table_bytes);
		table = script_memory(header, UVERBS_ATTR_CORE_OUT);
		table->response_length = sizeof *table;
	}
}

static void look(struct ib_uverbs_ioctl_hdr *header)
{
	const void *driver = script_memory(header, UVERBS_ATTR_UHW_IN);

	if (script_is(header, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE)) {
		look_at_write(header);
	} else if (script_is(header, UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_CREATE)) {
		memcpy(&asked.wq, driver, sizeof asked.wq);
		asked.wq_flags = (uint32_t)script_value(header, UVERBS_ATTR_CREATE_WQ_FLAGS);
	}
}

static void setup(void)
{
	script.on_command = look;
	script.device_caps = IBV_DEVICE_RAW_IP_CSUM;
	context = script_open();
	pd = script_keep(ibv_alloc_pd(context));
	cq = script_keep(script_cq(context, 63));
}

TestSuite(wq, .init = setup);

static struct ibv_wq_init_attr attr_of(uint32_t max_wr, uint32_t max_sge)
{
	return (struct ibv_wq_init_attr){ .wq_type = IBV_WQT_RQ, .max_wr = max_wr,
					  .max_sge = max_sge, .pd = pd, .cq = cq };
}

static struct vb_wq *plain(uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_wq_init_attr attr = attr_of(max_wr, max_sge);
	struct ibv_wq *wq = ibv_create_wq(context, &attr);

	cr_assert(wq, "errno %d", errno);
	return vb_wq_of(wq);
}

static struct mlx5dv_wq_init_attr strides_of(uint32_t bytes_log, uint32_t count_log)
{
	return (struct mlx5dv_wq_init_attr){
		.comp_mask = MLX5DV_WQ_INIT_ATTR_MASK_STRIDING_RQ,
		.striding_rq_attrs = { .single_stride_log_num_of_bytes = bytes_log,
				       .single_wqe_log_num_of_strides = count_log },
	};
}

static struct vb_wq *striding(uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_wq_init_attr attr = attr_of(max_wr, max_sge);
	struct mlx5dv_wq_init_attr dv = strides_of(6, STRIDES_LOG);
	struct ibv_wq *wq = vb_dv_create_wq(context, &attr, &dv);

	cr_assert(wq, "errno %d", errno);
	return vb_wq_of(wq);
}

/* --- making --- */

static uint32_t power_of_2(uint32_t log)
{
	return 1u << log;
}

Test(wq, sizes_of_a_ring)
{
	static const struct { uint32_t wr, sge, entries, bytes; } rows[] = {
		{ 1, 1, 4, 16 }, { 1, 0, 4, 16 }, { 10, 2, 16, 32 }, { 5, 3, 8, 64 },
		{ 1, 32, 1, 512 },
	};

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct vb_wq *wq = plain(rows[i].wr, rows[i].sge);

		cr_assert_eq(asked.wq.rq_wqe_count, rows[i].entries, "row %u", i);
		cr_assert_eq(power_of_2(asked.wq.rq_wqe_shift), rows[i].bytes, "row %u", i);
		cr_assert_eq(asked.wq.comp_mask, 0);
		cr_assert_eq(asked.wq.buf_addr, (uintptr_t)wq->ring.at);
		cr_assert_eq(asked.wq.db_addr, (uintptr_t)wq->record);
		cr_assert_eq(asked.wq.user_index, wq->queue.user_index);
		cr_assert_eq(ibv_destroy_wq(&wq->wq), 0);
	}
}

static int error_of(struct ibv_wq_init_attr attr)
{
	unsigned commands = script.commands;

	errno = 0;
	cr_assert_null(ibv_create_wq(context, &attr));
	cr_assert_eq(script.commands, commands);
	return errno;
}

Test(wq, attributes_that_are_refused)
{
	struct ibv_wq_init_attr attr = attr_of(4, 1);

	cr_assert_eq(error_of(attr_of(0, 1)), EINVAL);
	cr_assert_eq(error_of(attr_of(32769, 1)), EINVAL);
	cr_assert_eq(error_of(attr_of(4, 33)), EINVAL);
	cr_assert_eq(error_of(attr_of(4, UINT32_MAX)), EINVAL);
	attr.wq_type = (enum ibv_wq_type)1;
	cr_assert_eq(error_of(attr), EINVAL);
	attr = attr_of(4, 1);
	attr.comp_mask = IBV_WQ_INIT_ATTR_RESERVED;
	cr_assert_eq(error_of(attr), EINVAL);
	attr.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
	attr.create_flags = IBV_WQ_FLAGS_RESERVED;
	cr_assert_eq(error_of(attr), EOPNOTSUPP);
}

Test(wq, flags_are_handed_on)
{
	struct ibv_wq_init_attr attr = attr_of(4, 1);
	struct ibv_wq *wq;

	for (uint32_t flag = 1; flag < IBV_WQ_FLAGS_RESERVED; flag <<= 1) {
		attr.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
		attr.create_flags = flag;
		wq = ibv_create_wq(context, &attr);
		cr_assert(wq);
		cr_assert_eq(asked.wq_flags, flag);
		cr_assert_eq(ibv_destroy_wq(wq), 0);
	}
	attr.comp_mask = 0;
	wq = ibv_create_wq(context, &attr);
	cr_assert_eq(asked.wq_flags, 0, "without the bit they do not count");
	cr_assert_eq(ibv_destroy_wq(wq), 0);
}

/* --- changing --- */

Test(wq, a_queue_that_is_readied_again_is_empty)
{
	struct vb_wq *wq = plain(4, 1);
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;

	cr_assert_eq(ibv_modify_wq(&wq->wq, &attr), 0);
	cr_assert_eq(wq->wq.state, IBV_WQS_RDY);
	cr_assert_eq(asked.modify.wq_state, IBV_WQS_RDY);
	cr_assert_eq(asked.modify.attr_mask, IBV_WQ_ATTR_STATE);
	cr_assert_eq(ibv_post_wq_recv(&wq->wq, &wr, &bad), 0);
	cr_assert_eq(be32toh(wq->record[0]), 1);
	attr.wq_state = IBV_WQS_RESET;
	cr_assert_eq(ibv_modify_wq(&wq->wq, &attr), 0);
	attr.wq_state = IBV_WQS_RDY;
	attr.attr_mask |= IBV_WQ_ATTR_CURR_STATE;
	attr.curr_wq_state = IBV_WQS_ERR;
	cr_assert_eq(ibv_modify_wq(&wq->wq, &attr), EINVAL);
	attr.curr_wq_state = IBV_WQS_RESET;
	cr_assert_eq(ibv_modify_wq(&wq->wq, &attr), 0);
	cr_assert_eq(wq->record[0], 0);
	cr_assert_eq(wq->ring.head, 0);
	cr_assert_eq(ibv_destroy_wq(&wq->wq), 0);
}

Test(wq, flags_change_under_a_mask)
{
	struct vb_wq *wq = plain(4, 1);
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_FLAGS,
				    .flags = IBV_WQ_FLAGS_CVLAN_STRIPPING,
				    .flags_mask = IBV_WQ_FLAGS_CVLAN_STRIPPING };

	cr_assert_eq(ibv_modify_wq(&wq->wq, &attr), 0);
	cr_assert_eq(asked.modify.flags, IBV_WQ_FLAGS_CVLAN_STRIPPING);
	cr_assert_eq(asked.modify.flags_mask, IBV_WQ_FLAGS_CVLAN_STRIPPING);
	attr.flags_mask = IBV_WQ_FLAGS_RESERVED;
	cr_assert_eq(ibv_modify_wq(&wq->wq, &attr), EOPNOTSUPP);
	attr.attr_mask = IBV_WQ_ATTR_RESERVED;
	cr_assert_eq(ibv_modify_wq(&wq->wq, &attr), EINVAL);
	cr_assert_eq(ibv_destroy_wq(&wq->wq), 0);
}

/* --- strides --- */

Test(wq, strides_are_asked_for)
{
	struct ibv_wq_init_attr attr = attr_of(10, 1);
	struct mlx5dv_wq_init_attr dv = strides_of(11, 9);
	struct ibv_wq *wq;

	dv.striding_rq_attrs.two_byte_shift_en = 1;
	wq = vb_dv_create_wq(context, &attr, &dv);
	cr_assert(wq);
	cr_assert_eq(asked.wq.comp_mask, MLX5_IB_CREATE_WQ_STRIDING_RQ);
	cr_assert_eq(asked.wq.single_stride_log_num_of_bytes, 11);
	cr_assert_eq(asked.wq.single_wqe_log_num_of_strides, 9);
	cr_assert_eq(asked.wq.two_byte_shift_en, 1);
	cr_assert_eq(asked.wq.rq_wqe_count, 16);
	cr_assert_eq(power_of_2(asked.wq.rq_wqe_shift), 32, "a segment stands before the list");
	cr_assert_eq(ibv_destroy_wq(wq), 0);
}

static int stride_error(struct mlx5dv_wq_init_attr dv)
{
	struct ibv_wq_init_attr attr = attr_of(4, 1);
	unsigned commands = script.commands;
	struct ibv_wq *wq;

	errno = 0;
	wq = vb_dv_create_wq(context, &attr, &dv);
	if (wq) {
		cr_assert_eq(ibv_destroy_wq(wq), 0);
		return 0;
	}
	cr_assert_eq(script.commands, commands);
	return errno;
}

Test(wq, strides_that_the_device_does_not_have)
{
	cr_assert_eq(stride_error(strides_of(6, 3)), 0);
	cr_assert_eq(stride_error(strides_of(13, 16)), 0);
	cr_assert_eq(stride_error(strides_of(5, 3)), EINVAL);
	cr_assert_eq(stride_error(strides_of(14, 3)), EINVAL);
	cr_assert_eq(stride_error(strides_of(6, 2)), EINVAL);
	cr_assert_eq(stride_error(strides_of(6, 17)), EINVAL);
	cr_assert_eq(stride_error(strides_of(UINT32_MAX, UINT32_MAX)), EINVAL);
	cr_assert_eq(stride_error((struct mlx5dv_wq_init_attr){ .comp_mask = 2 }), EINVAL);
	cr_assert_eq(stride_error((struct mlx5dv_wq_init_attr){ .comp_mask = 0 }), 0);
}

/* Its own context says so, whatever others are offered. */
Test(wq, strides_on_a_device_without_any)
{
	memset(&stride_caps, 0, sizeof stride_caps);
	context = script_open();
	cr_assert_eq(stride_error(strides_of(6, 3)), EINVAL);
	cr_assert_eq(stride_error(strides_of(0, 0)), EINVAL);
}

Test(wq, a_receive_in_strides_has_its_list_behind_a_segment)
{
	struct vb_wq *wq = striding(4, 2);
	struct ibv_sge sge[3] = { { 0x1000, 512, 7 }, { 0x2000, 512, 8 }, { 0x3000, 512, 9 } };
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = 1 }, *bad;
	const struct mlx5_data *list = (const void *)(wq->ring.at + MLX5_UNIT_BYTES);

	cr_assert_eq(wq->ring.max_sge, 3);
	memset(wq->ring.at, PATTERN, (size_t)wq->ring.entries << wq->ring.entry_shift);
	cr_assert_eq(ibv_post_wq_recv(&wq->wq, &wr, &bad), 0);
	for (unsigned i = 0; i < MLX5_UNIT_BYTES; i++)
		cr_assert_eq(wq->ring.at[i], PATTERN);
	cr_assert_eq(mlx5_data_addr(&list[0]), 0x1000);
	cr_assert_eq(mlx5_data_lkey(&list[1]), HW_LKEY_END);
	cr_assert_eq(((const uint8_t *)&list[2])[0], PATTERN);
	wr.num_sge = 3;
	cr_assert_eq(ibv_post_wq_recv(&wq->wq, &wr, &bad), 0);
	cr_assert_eq(wq->ring.at[64], PATTERN, "nor the next one's");
	cr_assert_eq(wq->ring.at[128], PATTERN);
	wr.num_sge = 4;
	cr_assert_eq(ibv_post_wq_recv(&wq->wq, &wr, &bad), EINVAL);
	cr_assert_eq(ibv_destroy_wq(&wq->wq), 0);
}

static struct ibv_wc poll_one(void)
{
	struct ibv_wc wc;

	cr_assert_eq(ibv_poll_cq(cq, 1, &wc), 1);
	return wc;
}

static struct ibv_wc complete(struct vb_wq *wq, uint16_t receive, uint32_t strides, bool is_good)
{
	struct hw_cqe cqe = {
		.kind = is_good ? HW_CQE_RECV : HW_CQE_RECV_ERR, .has_origin = is_good,
		.user_index = wq->queue.user_index, .bytes = strides << 16 | 60, .syndrome = 5,
		.checks_ok = 6, .l3_type = 2,
	};
	struct vb_cq *own = vb_cq_of(cq);
	struct mlx5_cqe *at = (void *)(own->at + (size_t)(written & (own->entries - 1)) * 64);

	script_complete(own, written++, &cqe);
	if (is_good)
		mlx5_cqe_set_wqe_id(at, receive);
	return poll_one();
}

/* Several packets end in one receive, whose place is free after the last. */
Test(wq, completions_of_strides)
{
	struct vb_wq *wq = striding(2, 1);
	struct ibv_recv_wr wr = { 0 }, *bad;

	for (uint64_t i = 0; i < wq->ring.max_post; i++) {
		wr.wr_id = 100 + i;
		cr_assert_eq(ibv_post_wq_recv(&wq->wq, &wr, &bad), 0);
	}
	cr_assert_eq(complete(wq, 0, 1, true).wr_id, 100);
	cr_assert_eq(complete(wq, 0, 5, true).wr_id, 100);
	cr_assert_eq(ibv_post_wq_recv(&wq->wq, &wr, &bad), ENOMEM);
	cr_assert_eq(complete(wq, 0, 2, true).wr_id, 100);
	cr_assert_eq(ibv_post_wq_recv(&wq->wq, &wr, &bad), 0);
	cr_assert_eq(complete(wq, 1, 8, true).wr_id, 101);
	cr_assert_eq(ibv_post_wq_recv(&wq->wq, &wr, &bad), 0);
	cr_assert_eq(ibv_destroy_wq(&wq->wq), 0);
}

/* What is flushed is flushed whole, in order. */
Test(wq, flushed_receives_of_strides)
{
	struct vb_wq *wq = striding(2, 1);
	struct ibv_recv_wr wr = { 0 }, *bad;
	struct ibv_wc wc;

	for (uint64_t i = 0; i < 2; i++) {
		wr.wr_id = 100 + i;
		cr_assert_eq(ibv_post_wq_recv(&wq->wq, &wr, &bad), 0);
	}
	cr_assert_eq(complete(wq, 0, 7, true).wr_id, 100);
	wc = complete(wq, 0, 0, false);
	cr_assert_eq(wc.wr_id, 100);
	cr_assert_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(complete(wq, 0, 0, false).wr_id, 101);
	cr_assert_eq(ibv_destroy_wq(&wq->wq), 0);
}

/* --- checksums --- */

Test(wq, checksums_are_checked_where_the_device_does)
{
	struct ibv_recv_wr wr = { 0 }, *bad;
	struct vb_wq *wq = plain(4, 1);

	cr_assert_eq(ibv_post_wq_recv(&wq->wq, &wr, &bad), 0);
	cr_assert_eq(complete(wq, 0, 0, true).wc_flags, IBV_WC_IP_CSUM_OK);
	cr_assert_eq(ibv_destroy_wq(&wq->wq), 0);
	vb_context_of(context)->attr.orig_attr.device_cap_flags = 0;
	wq = plain(4, 1);
	cr_assert_eq(ibv_post_wq_recv(&wq->wq, &wr, &bad), 0);
	cr_assert_eq(complete(wq, 0, 0, true).wc_flags, 0);
	cr_assert_eq(ibv_destroy_wq(&wq->wq), 0);
}

/* --- tables --- */

static struct ibv_rwq_ind_table *table_of(struct vb_wq *wq, uint32_t log)
{
	struct ibv_wq *list[] = { &wq->wq, &wq->wq, &wq->wq, &wq->wq };
	struct ibv_rwq_ind_table_init_attr attr = { .log_ind_tbl_size = log, .ind_tbl = list };
	struct ibv_rwq_ind_table *table = ibv_create_rwq_ind_table(context, &attr);

	cr_assert(table, "errno %d", errno);
	return table;
}

/* A table of one has a word of padding. */
Test(wq, tables_are_whole_words)
{
	struct vb_wq *wq = plain(4, 1);
	const struct ib_uverbs_ex_create_rwq_ind_table *head = (const void *)asked.table;

	wq->wq.handle = 0x1234;
	for (uint32_t log = 0; log < 3; log++) {
		struct ibv_rwq_ind_table *table = table_of(wq, log);

		cr_assert_eq(head->log_ind_tbl_size, log);
		cr_assert_eq(asked.table_bytes, log ? 8 + (4u << log) : 16);
		for (uint32_t i = 0; i < 1u << log; i++)
			cr_assert_eq(head->wq_handles[i], 0x1234);
		if (!log)
			cr_assert_eq(head->wq_handles[1], 0);
		cr_assert_eq(ibv_destroy_rwq_ind_table(table), 0);
	}
	cr_assert_eq(ibv_destroy_wq(&wq->wq), 0);
}

Test(wq, tables_that_are_refused)
{
	struct ibv_rwq_ind_table_init_attr attr = { .log_ind_tbl_size = 14 };
	unsigned commands = script.commands;

	cr_assert_null(ibv_create_rwq_ind_table(context, &attr));
	cr_assert_eq(errno, EINVAL);
	attr.log_ind_tbl_size = UINT32_MAX;
	cr_assert_null(ibv_create_rwq_ind_table(context, &attr));
	attr.log_ind_tbl_size = 0;
	attr.comp_mask = IBV_CREATE_IND_TABLE_RESERVED;
	cr_assert_null(ibv_create_rwq_ind_table(context, &attr));
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(script.commands, commands);
}
