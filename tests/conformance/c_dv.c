/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver's own interface: what it tells, what it makes, and what it refuses.
 *
 * Rules: mlx5dv_query_device(3), mlx5dv_create_cq(3), mlx5dv_create_qp(3), mlx5dv_init_obj(3) and
 * the pages of the others; device-abi B.5, B.7, H.1.  Dynamic connections are c_dc.c.
 */
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdlib.h>
#include <string.h>
#include "harness/check.h"

static struct end e;

static void open_end(void)
{
	must_open(&e);
}

static void close_end(void)
{
	end_close(&e);
}

TestSuite(dv, .timeout = 60, .init = open_end, .fini = close_end);

/* Made, or the errno is @want. */
static void expect_errno(const void *made, int want, unsigned row)
{
	cr_expect((made != NULL) == (want == 0) && (made || errno == want), "row %u: %s, not %s",
		  row, made ? "made" : strerror(errno), strerror(want));
}

/* ---- devices ---- */

Test(dv, opens_devices_of_its_own)
{
	static const struct { struct mlx5dv_context_attr attr; int error; } rows[] = {
		{ { 0 }, 0 }, { { .comp_mask = 1 }, EINVAL }, { { .flags = 1 << 1 }, EINVAL },
	};

	cr_assert(mlx5dv_is_supported(e.context->device));
	for (unsigned i = 0; i < ROWS(rows); i++) {
		struct mlx5dv_context_attr attr = rows[i].attr;
		struct ibv_context *context;

		errno = 0;
		context = mlx5dv_open_device(e.context->device, &attr);
		cr_expect(!!context == !rows[i].error, "row %u: %s", i, strerror(errno));
		cr_expect(!context || !ibv_close_device(context));
	}
}

/* All but the ports of a bond, which this device is not part of. */
#define TOLD (((UINT64_C(1) << 14) - 1) & ~(uint64_t)MLX5DV_CONTEXT_MASK_NUM_LAG_PORTS)

static uint64_t told(uint64_t asked, struct mlx5dv_context *out)
{
	memset(out, 0xa5, sizeof *out);
	out->comp_mask = asked;
	cr_assert_eq(mlx5dv_query_device(e.context, out), 0);
	cr_expect_eq(out->version, 0);
	cr_expect(out->flags & MLX5DV_CONTEXT_FLAGS_CQE_V1);
	return out->comp_mask;
}

Test(dv, tells_what_it_is_asked_for_and_no_more)
{
	struct mlx5dv_context out;

	cr_expect_eq(told(UINT64_MAX, &out), TOLD);
	cr_expect_eq(told(0, &out), 0);
	for (unsigned bit = 0; bit < 64; bit++)
		cr_expect_eq(told(UINT64_C(1) << bit, &out), UINT64_C(1) << bit & TOLD, "bit %u",
			     bit);
	/* No bit but the last was asked for here, and none of those below it has been written. */
	cr_expect_eq(told(MLX5DV_CONTEXT_MASK_CRYPTO_OFFLOAD, &out),
		     MLX5DV_CONTEXT_MASK_CRYPTO_OFFLOAD);
	cr_expect_eq(out.max_dynamic_bfregs, 0xa5a5a5a5);
	cr_expect_eq(out.max_clock_info_update_nsec, 0xa5a5a5a5a5a5a5a5);
	cr_expect_eq(out.max_wr_memcpy_length, 0xa5a5a5a5a5a5a5a5);
	cr_expect_eq(out.dci_streams_caps.max_log_num_concurent, 0xa5);
	cr_expect_eq(out.crypto_caps.crypto_engines, 0);
}

Test(dv, tells_of_clock_and_streams)
{
	struct mlx5dv_context out;

	told(UINT64_MAX, &out);
	cr_expect_gt(out.max_clock_info_update_nsec, 0);
	cr_expect_not_null(out.hca_core_clock);
	cr_expect_eq(out.sig_caps.block_prot, 0);
	cr_expect_eq(out.cqe_comp_caps.max_num, 0);
	cr_expect_eq(out.dci_streams_caps.max_log_num_concurent, 3);
}

Test(dv, ports_that_there_are)
{
	struct mlx5dv_port port;

	memset(&port, 0xa5, sizeof port);
	cr_expect_eq(mlx5dv_query_port(e.context, 1, &port), 0);
	cr_expect_eq(port.flags & ~(uint64_t)MLX5DV_QUERY_PORT_VPORT, 0);
	cr_expect_eq(mlx5dv_query_port(e.context, 0, &port), EINVAL);
	cr_expect_eq(mlx5dv_query_port(e.context, 9, &port), EINVAL);
}

Test(dv, doorbell_pages_for_programs)
{
	static const struct { uint32_t flags; int error; } rows[] = {
		{ MLX5DV_UAR_ALLOC_TYPE_BF, 0 }, { MLX5DV_UAR_ALLOC_TYPE_NC, 0 },
		{ 2, EOPNOTSUPP }, { 3, EOPNOTSUPP }, { 0x80000000, EOPNOTSUPP },
	};

	for (unsigned i = 0; i < ROWS(rows); i++) {
		struct mlx5dv_devx_uar *uar, *second;

		errno = 0;
		uar = mlx5dv_devx_alloc_uar(e.context, rows[i].flags);
		expect_errno(uar, rows[i].error, i);
		if (!uar)
			continue;
		second = mlx5dv_devx_alloc_uar(e.context, rows[i].flags);
		cr_assert_not_null(second);
		/* One that is only rung may be rung by all. */
		cr_expect(uar->reg_addr != second->reg_addr ||
			  rows[i].flags == MLX5DV_UAR_ALLOC_TYPE_NC);
		cr_expect_eq((uint8_t *)uar->reg_addr - (uint8_t *)uar->base_addr, 0x800);
		mlx5dv_devx_free_uar(second);
		mlx5dv_devx_free_uar(uar);
	}
}

/* ---- who allocates ---- */

static unsigned allocated, freed;

static void *count_alloc(size_t bytes, void *data)
{
	cr_expect_eq(data, &allocated);
	allocated++;
	return aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
}

static void count_free(void *at, void *data)
{
	cr_expect_eq(data, &allocated);
	freed++;
	free(at);
}

Test(dv, the_program_may_allocate)
{
	struct mlx5dv_ctx_allocators own = { .alloc = count_alloc, .free = count_free,
					     .data = &allocated };
	struct ibv_cq *cq;

	cr_expect_eq(mlx5dv_set_context_attr(e.context, 0, &own), ENOTSUP);
	cr_assert_eq(mlx5dv_set_context_attr(e.context, MLX5DV_CTX_ATTR_BUF_ALLOCATORS, &own), 0);
	cq = ibv_create_cq(e.context, 100, NULL, NULL, 0);
	cr_assert_not_null(cq);
	cr_expect_gt(allocated, 0);
	cr_assert_eq(ibv_destroy_cq(cq), 0);
	cr_expect_gt(freed, 0);
	own = (struct mlx5dv_ctx_allocators){ 0 };
	cr_assert_eq(mlx5dv_set_context_attr(e.context, MLX5DV_CTX_ATTR_BUF_ALLOCATORS, &own), 0);
	allocated = 0;
	cq = ibv_create_cq(e.context, 100, NULL, NULL, 0);
	cr_assert_not_null(cq);
	cr_expect_eq(allocated, 0);
	cr_assert_eq(ibv_destroy_cq(cq), 0);
}

/* ---- queues ---- */

Test(dv, cqs_of_each_kind)
{
	enum { SIZE = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE, FLAGS = MLX5DV_CQ_INIT_ATTR_MASK_FLAGS };
	static const struct {
		struct mlx5dv_cq_init_attr attr;
		uint32_t bytes;
		int error;
	} rows[] = {
		{ { 0 }, 64, 0 },
		{ { .comp_mask = SIZE, .cqe_size = 64 }, 64, 0 },
		{ { .comp_mask = SIZE, .cqe_size = 128 }, 128, 0 },
		{ { .comp_mask = FLAGS }, 64, 0 },
		{ { .cqe_size = 7 }, 64, 0 },
		{ { .comp_mask = SIZE, .cqe_size = 32 }, 0, EINVAL },
		{ { .comp_mask = SIZE, .cqe_size = 0 }, 0, EINVAL },
		{ { .comp_mask = SIZE, .cqe_size = 256 }, 0, EINVAL },
		{ { .comp_mask = SIZE | FLAGS, .cqe_size = 64, .flags = 1 }, 0, EINVAL },
		{ { .comp_mask = FLAGS, .flags = 1 << 1 }, 0, EINVAL },
		{ { .comp_mask = FLAGS, .flags = 1 << 15 }, 0, EINVAL },
		{ { .comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE,
		    .cqe_comp_res_format = MLX5DV_CQE_RES_FORMAT_HASH }, 0, EINVAL },
		{ { .comp_mask = 1 << 3 }, 0, EINVAL },
	};

	for (unsigned i = 0; i < ROWS(rows); i++) {
		struct ibv_cq_init_attr_ex attr = { .cqe = 100 };
		struct mlx5dv_cq_init_attr dv = rows[i].attr;
		struct mlx5dv_cq raw = { .comp_mask = UINT64_MAX };
		struct mlx5dv_obj obj = { .cq = { .out = &raw } };
		struct ibv_cq_ex *cq;

		errno = 0;
		cq = mlx5dv_create_cq(e.context, &attr, &dv);
		expect_errno(cq, rows[i].error, i);
		if (!cq)
			continue;
		obj.cq.in = ibv_cq_ex_to_cq(cq);
		cr_assert_eq(mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ), 0);
		cr_expect_eq(raw.cqe_size, rows[i].bytes, "row %u", i);
		cr_expect_eq(raw.cqe_cnt, 128);
		cr_expect_eq(raw.comp_mask, 0);
		cr_expect(raw.buf && raw.dbrec && raw.cq_uar);
		cr_assert_eq(ibv_destroy_cq(obj.cq.in), 0);
	}
}

#define FLAG(bit) { .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS, .create_flags = (bit) }
#define DC_OF(type)  { .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC, .dc_init_attr = { type } }

Test(dv, qps_of_each_kind)
{
	static const struct {
		enum ibv_qp_type type;
		struct mlx5dv_qp_init_attr attr;
		int error;
	} rows[] = {
		{ IBV_QPT_RC, { 0 }, 0 }, { IBV_QPT_UC, FLAG(0), 0 },
		{ IBV_QPT_RC, { .create_flags = UINT32_MAX }, 0 },
		{ IBV_QPT_RC, FLAG(MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE), 0 },
		{ IBV_QPT_RC, FLAG(MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE), 0 },
		{ IBV_QPT_UD, FLAG(MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE), 0 },
		{ IBV_QPT_RC, FLAG(MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE |
				   MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE), EINVAL },
		{ IBV_QPT_RC, FLAG(MLX5DV_QP_CREATE_TUNNEL_OFFLOADS), EINVAL },
		{ IBV_QPT_RC, FLAG(MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC), EINVAL },
		{ IBV_QPT_RC, FLAG(MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_MC), EINVAL },
		{ IBV_QPT_RC, FLAG(MLX5DV_QP_CREATE_PACKET_BASED_CREDIT_MODE), EINVAL },
		{ IBV_QPT_UD, FLAG(MLX5DV_QP_CREATE_PACKET_BASED_CREDIT_MODE), EINVAL },
		{ IBV_QPT_RC, FLAG(MLX5DV_QP_CREATE_SIG_PIPELINING), EOPNOTSUPP },
		{ IBV_QPT_RC, FLAG(1 << 7), EINVAL },
		{ IBV_QPT_RC, { .comp_mask = 1 << 5 }, EINVAL },
		{ IBV_QPT_RC, DC_OF(MLX5DV_DCTYPE_DCI), EINVAL },
		{ IBV_QPT_DRIVER, { 0 }, EINVAL },
		{ IBV_QPT_DRIVER, DC_OF(0), EINVAL },
		{ IBV_QPT_DRIVER, DC_OF(3), EINVAL },
		{ IBV_QPT_DRIVER, DC_OF(MLX5DV_DCTYPE_DCI), 0 },
	};

	for (unsigned i = 0; i < ROWS(rows); i++) {
		struct ibv_qp_init_attr_ex attr = {
			.qp_type = rows[i].type, .send_cq = e.cq[SEND_CQ], .recv_cq = e.cq[RECV_CQ],
			.pd = e.pd, .comp_mask = IBV_QP_INIT_ATTR_PD,
			.cap = { .max_send_wr = 4, .max_send_sge = 1 },
		};
		struct mlx5dv_qp_init_attr dv = rows[i].attr;
		struct ibv_qp *qp;

		errno = 0;
		qp = mlx5dv_create_qp(e.context, &attr, &dv);
		expect_errno(qp, rows[i].error, i);
		cr_expect(!qp || !ibv_destroy_qp(qp));
	}
}

Test(dv, receive_queues_with_strides)
{
	struct ibv_wq_init_attr attr = { .wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1,
					 .pd = e.pd, .cq = e.cq[RECV_CQ] };

	for (uint64_t mask = 0; mask < 4; mask++) {
		struct mlx5dv_wq_init_attr dv = { .comp_mask = mask };
		struct mlx5dv_rwq raw = { 0 };
		struct ibv_wq *wq;

		dv.striding_rq_attrs.single_stride_log_num_of_bytes = 6;
		dv.striding_rq_attrs.single_wqe_log_num_of_strides = 9;
		errno = 0;
		wq = mlx5dv_create_wq(e.context, &attr, &dv);
		expect_errno(wq, mask > MLX5DV_WQ_INIT_ATTR_MASK_STRIDING_RQ ? EINVAL : 0,
			     (unsigned)mask);
		if (!wq)
			continue;
		cr_assert_eq(mlx5dv_init_obj(&(struct mlx5dv_obj){
			.rwq = { .in = wq, .out = &raw } }, MLX5DV_OBJ_RWQ), 0);
		cr_expect_eq(raw.wqe_cnt, 4);
		cr_expect_eq(raw.stride, mask ? 32 : 16);
		cr_expect(raw.buf && raw.dbrec);
		cr_expect_eq(ibv_destroy_wq(wq), 0);
	}
}

Test(dv, device_memory_of_one_type)
{
	for (unsigned type = 0; type < 6; type++)
		for (unsigned mask = 0; mask < 2; mask++) {
			struct ibv_alloc_dm_attr attr = { .length = 64 };
			struct mlx5dv_alloc_dm_attr dv = { .type = type, .comp_mask = mask };
			bool is_known = type <= MLX5DV_DM_TYPE_HEADER_MODIFY_PATTERN_SW_ICM;
			int want = is_known && mask ? EINVAL :
				   type == MLX5DV_DM_TYPE_MEMIC ? 0 : EOPNOTSUPP;
			struct ibv_dm *dm;

			errno = 0;
			dm = mlx5dv_alloc_dm(e.context, &attr, &dv);
			expect_errno(dm, want, type * 2 + mask);
			cr_expect(!dm || !ibv_free_dm(dm));
		}
}

/* ---- objects as they lie in memory ---- */

Test(dv, nothing_is_no_object)
{
	struct mlx5dv_obj obj = { 0 };

	cr_expect_eq(mlx5dv_init_obj(&obj, 0), EINVAL);
}

Test(dv, a_qp_and_its_rings)
{
	struct mlx5dv_qp raw = { .comp_mask = UINT64_MAX };
	struct mlx5dv_pd pd = { .comp_mask = UINT64_MAX };
	struct mlx5dv_obj obj = { .qp = { .in = e.qp, .out = &raw },
				  .pd = { .in = e.pd, .out = &pd } };

	cr_assert_eq(mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP | MLX5DV_OBJ_PD), 0);
	cr_expect_eq(raw.sq.stride, 64);
	cr_expect_geq(raw.sq.wqe_cnt, e.opts.cap.max_send_wr);
	cr_expect_geq(raw.rq.wqe_cnt, e.opts.cap.max_recv_wr);
	cr_expect_eq((uint8_t *)raw.sq.buf - (uint8_t *)raw.rq.buf,
		     (ptrdiff_t)raw.rq.stride * raw.rq.wqe_cnt);
	cr_expect(raw.dbrec && raw.bf.reg);
	cr_expect_eq(raw.comp_mask, MLX5DV_QP_MASK_UAR_MMAP_OFFSET |
				    MLX5DV_QP_MASK_RAW_QP_HANDLES | MLX5DV_QP_MASK_RAW_QP_TIR_ADDR);
	cr_expect_eq(raw.sqn | raw.rqn | raw.tisn | raw.tirn, 0);
	cr_expect_eq(pd.comp_mask, 0);
	cr_expect_neq(pd.pdn, 0);
}

Test(dv, a_shared_queue_and_its_list)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 10, .max_sge = 2 } };
	struct ibv_srq *srq = ibv_create_srq(e.pd, &init);
	struct mlx5dv_srq raw = { .comp_mask = UINT64_MAX };
	struct mlx5dv_obj obj = { .srq = { .in = srq, .out = &raw } };
	struct ibv_recv_wr wr = { 0 }, *bad;

	cr_assert_not_null(srq);
	cr_assert_eq(mlx5dv_init_obj(&obj, MLX5DV_OBJ_SRQ), 0);
	cr_expect_eq(raw.comp_mask, MLX5DV_SRQ_MASK_SRQN);
	cr_expect(raw.srqn && raw.buf && raw.dbrec);
	cr_expect_eq(raw.stride, 64);
	cr_expect_eq(raw.head, 0);
	cr_expect_eq(raw.tail, init.attr.max_wr);
	cr_assert_eq(ibv_post_srq_recv(srq, &wr, &bad), 0);
	cr_assert_eq(mlx5dv_init_obj(&obj, MLX5DV_OBJ_SRQ), 0);
	cr_expect_eq(raw.head, 1);
	cr_expect_eq(be32toh(*raw.dbrec), 1);
	cr_assert_eq(ibv_destroy_srq(srq), 0);
}

Test(dv, device_memory_and_its_bytes)
{
	struct ibv_alloc_dm_attr attr = { .length = 100 };
	struct ibv_dm *dm = ibv_alloc_dm(e.context, &attr);
	struct mlx5dv_dm raw = { .comp_mask = UINT64_MAX };
	struct mlx5dv_obj obj = { .dm = { .in = dm, .out = &raw } };
	static const uint8_t bytes[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };

	cr_assert_not_null(dm);
	cr_assert_eq(mlx5dv_init_obj(&obj, MLX5DV_OBJ_DM), 0);
	cr_expect_eq(raw.comp_mask, MLX5DV_DM_MASK_REMOTE_VA);
	cr_expect_eq(raw.remote_va, 0);
	cr_expect_eq(raw.length, 100);
	cr_assert_eq(ibv_memcpy_to_dm(dm, 4, bytes, sizeof bytes), 0);
	cr_expect_arr_eq((uint8_t *)raw.buf + 4, bytes, sizeof bytes);
	cr_assert_eq(ibv_free_dm(dm), 0);
}

Test(dv, an_address_and_its_vector)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .sl = 5,
				    .grh = { .sgid_index = GID_INDEX, .hop_limit = 9 } };
	struct mlx5dv_ah raw = { .comp_mask = UINT64_MAX };
	struct mlx5dv_obj obj = { .ah = { .out = &raw } };
	uint8_t rgid[16];

	cr_assert_eq(ibv_query_gid(e.context, 1, GID_INDEX, &attr.grh.dgid), 0);
	obj.ah.in = ibv_create_ah(e.pd, &attr);
	cr_assert_not_null(obj.ah.in);
	cr_assert_eq(mlx5dv_init_obj(&obj, MLX5DV_OBJ_AH), 0);
	cr_expect_eq(raw.comp_mask, 0);
	memcpy(rgid, raw.av->rgid, sizeof rgid);
	cr_expect_arr_eq(rgid, attr.grh.dgid.raw, sizeof rgid);
	cr_expect_eq(raw.av->hop_limit, 9);
	cr_assert_eq(ibv_destroy_ah(obj.ah.in), 0);
}

/* ---- what this device does not have ---- */

static bool is_refused(const void *object)
{
	return !object && (errno == EOPNOTSUPP || errno == EPROTONOSUPPORT);
}

/* A kernel that has no such commands refuses them as it refuses any that it does not know. */
Test(dv, no_commands_to_the_hardware)
{
	uint8_t command[16] = { 0 }, answer[16];

	errno = 0;
	cr_expect(is_refused(mlx5dv_devx_obj_create(e.context, command, 16, answer, 16)));
	cr_expect_neq(mlx5dv_devx_general_cmd(e.context, command, 16, answer, 16), 0);
	cr_expect(is_refused(mlx5dv_devx_umem_reg(e.context, e.buf, 4096, 0)));
	cr_expect(is_refused(mlx5dv_devx_create_cmd_comp(e.context)));
	cr_expect(is_refused(mlx5dv_devx_create_event_channel(e.context, 0)));
	cr_expect(is_refused(mlx5dv_alloc_var(e.context, 0)));
	cr_expect(is_refused(mlx5dv_pp_alloc(e.context, sizeof command, command, 0)));
}
