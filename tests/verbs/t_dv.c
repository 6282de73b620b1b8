/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the driver's own interface makes of attributes and of answers: what the emulated device
 * never says or refuses must be translated, too.
 *
 * Method: the device's answers are written here, and its commands are read.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <string.h>
#include "script.h"
#include "verbs/dv.h"

static struct ibv_context *context;
static struct mlx5_ib_query_device_resp device;	/* what the device says of itself */
static struct mlx5_ib_create_qp qp_asked;
static struct mlx5_ib_create_cq cq_asked;
static unsigned ports_asked;
static uint64_t page_asked;	/* the type of the last doorbell page */

static void look(struct ib_uverbs_ioctl_hdr *header)
{
	const void *driver = script_memory(header, UVERBS_ATTR_UHW_IN);
	uint32_t *port = script_memory(header, MLX5_IB_ATTR_QUERY_PORT);

	if (script_is(header, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE)) {
		memcpy(&qp_asked, driver, sizeof qp_asked);
	} else if (script_is(header, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE)) {
		memcpy(&cq_asked, driver, sizeof cq_asked);
	} else if (script_is(header, UVERBS_OBJECT_DEVICE, MLX5_IB_METHOD_QUERY_PORT)) {
		ports_asked++;
		port[0] = MLX5DV_QUERY_PORT_VPORT;
	} else if (script_is(header, MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC)) {
		page_asked = script_value(header, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE);
	} else if (script_value(header, UVERBS_ATTR_WRITE_CMD) ==
		   (0x80000000 | IB_USER_VERBS_EX_CMD_QUERY_DEVICE)) {
		memcpy(script_memory(header, UVERBS_ATTR_UHW_OUT), &device, sizeof device);
	}
}

static void setup(void)
{
	script.on_command = look;
	context = script_open();
}

TestSuite(dv, .init = setup);

/* --- what a device says --- */

static uint64_t flags_told(void)
{
	struct mlx5dv_context out = { 0 };

	cr_assert_eq(vb_dv_query_device(context, &out), 0);
	return out.flags;
}

Test(dv, flags_of_a_device)
{
	static const struct { uint32_t packets, flags; uint64_t want; } rows[] = {
		{ 0, 0, 0 },
		{ MLX5_IB_ALLOW_MPW, 0, MLX5DV_CONTEXT_FLAGS_MPW_ALLOWED },
		{ MLX5_IB_SUPPORT_EMPW, 0, MLX5DV_CONTEXT_FLAGS_ENHANCED_MPW },
		{ 0, MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_COMP,
		  MLX5DV_CONTEXT_FLAGS_CQE_128B_COMP },
		{ 0, MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_PAD,
		  MLX5DV_CONTEXT_FLAGS_CQE_128B_PAD },
		{ 0, MLX5_IB_QUERY_DEV_RESP_PACKET_BASED_CREDIT_MODE,
		  MLX5DV_CONTEXT_FLAGS_PACKET_BASED_CREDIT_MODE },
	};

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		device.mlx5_ib_support_multi_pkt_send_wqes = rows[i].packets;
		device.flags = rows[i].flags;
		cr_assert_eq(flags_told(), MLX5DV_CONTEXT_FLAGS_CQE_V1 | rows[i].want, "row %u", i);
	}
}

static struct mlx5dv_context ask(uint64_t mask)
{
	struct mlx5dv_context out;

	memset(&out, 0xa5, sizeof out);
	out.comp_mask = mask;
	cr_assert_eq(vb_dv_query_device(context, &out), 0);
	return out;
}

Test(dv, capabilities_are_handed_on)
{
	struct mlx5dv_context out;

	device.cqe_comp_caps.max_num = 7;
	device.cqe_comp_caps.supported_format = 3;
	device.sw_parsing_caps.sw_parsing_offloads = 5;
	device.sw_parsing_caps.supported_qpts = 6;
	device.striding_rq_caps.min_single_stride_log_num_of_bytes = 11;
	device.striding_rq_caps.max_single_stride_log_num_of_bytes = 12;
	device.striding_rq_caps.min_single_wqe_log_num_of_strides = 13;
	device.striding_rq_caps.max_single_wqe_log_num_of_strides = 14;
	device.striding_rq_caps.supported_qpts = 15;
	device.tunnel_offloads_caps = 9;
	device.dci_streams_caps.max_log_num_concurent = 2;
	device.dci_streams_caps.max_log_num_errored = 4;
	out = ask(UINT64_MAX);
	cr_expect_eq(out.cqe_comp_caps.max_num, 7);
	cr_expect_eq(out.cqe_comp_caps.supported_format, 3);
	cr_expect_eq(out.sw_parsing_caps.sw_parsing_offloads, 5);
	cr_expect_eq(out.sw_parsing_caps.supported_qpts, 6);
	cr_expect_eq(out.striding_rq_caps.min_single_stride_log_num_of_bytes, 11);
	cr_expect_eq(out.striding_rq_caps.max_single_stride_log_num_of_bytes, 12);
	cr_expect_eq(out.striding_rq_caps.min_single_wqe_log_num_of_strides, 13);
	cr_expect_eq(out.striding_rq_caps.max_single_wqe_log_num_of_strides, 14);
	cr_expect_eq(out.striding_rq_caps.supported_qpts, 15);
	cr_expect_eq(out.tunnel_offloads_caps, 9);
	cr_expect_eq(out.dci_streams_caps.max_log_num_concurent, 2);
	cr_expect_eq(out.dci_streams_caps.max_log_num_errored, 4);
	out = ask(0);
	cr_expect_eq(out.cqe_comp_caps.max_num, 0xa5a5a5a5);
	cr_expect_eq(out.tunnel_offloads_caps, 0xa5a5a5a5);
}

/* Of a clock that the device does not have nothing is told. */
Test(dv, a_device_without_a_clock)
{
	struct mlx5dv_clock_info info;

	cr_expect_eq(ask(MLX5DV_CONTEXT_MASK_CLOCK_INFO_UPDATE | MLX5DV_CONTEXT_MASK_SWP).comp_mask,
		     MLX5DV_CONTEXT_MASK_SWP);
	cr_expect_neq(vb_dv_get_clock_info(context, &info), 0);
}

Test(dv, a_port_is_asked_of_the_device)
{
	struct mlx5dv_port port = { 0 };

	cr_assert_eq(vb_dv_query_port(context, 1, &port, sizeof port), 0);
	cr_expect_eq(ports_asked, 1);
	cr_expect_eq(port.flags, MLX5DV_QUERY_PORT_VPORT);
	script.fail_object = UVERBS_OBJECT_DEVICE;
	script.fail_method = MLX5_IB_METHOD_QUERY_PORT;
	script.fail_error = ENODEV;
	cr_expect_eq(vb_dv_query_port(context, 1, &port, sizeof port), ENODEV);
}

Test(dv, a_query_that_fails)
{
	struct mlx5dv_context out = { 0 };

	script.fail_object = UVERBS_OBJECT_DEVICE;
	script.fail_method = UVERBS_METHOD_INVOKE_WRITE;
	script.fail_error = EIO;
	cr_assert_eq(vb_dv_query_device(context, &out), EIO);
}

/* --- what a device is asked for --- */

static struct ibv_cq *padded(uint32_t bytes)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 8 };
	struct mlx5dv_cq_init_attr dv = {
		.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_FLAGS | MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE,
		.flags = MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD, .cqe_size = (uint16_t)bytes,
	};
	struct ibv_cq_ex *cq;

	errno = 0;
	cq = vb_dv_create_cq(context, &attr, &dv);
	return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

Test(dv, long_entries_are_padded_where_the_device_does)
{
	struct ibv_cq *cq;

	cr_assert_null(padded(128));
	cr_assert_eq(errno, EINVAL);
	device.flags = MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_PAD;
	cr_assert_null(padded(64));
	cr_assert_eq(errno, EINVAL);
	cq = padded(128);
	cr_assert(cq);
	cr_assert_eq(cq_asked.cqe_size, 128);
	cr_assert(cq_asked.flags & MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD);
	cr_assert_eq(vb_cq_of(cq)->entry_bytes, 128);
	cr_assert_eq(ibv_destroy_cq(cq), 0);
	cq = script_cq(context, 8);
	cr_assert_not(cq_asked.flags & MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD);
}

static struct ibv_qp *qp_make(enum ibv_qp_type type, const struct mlx5dv_qp_init_attr *dv)
{
	struct ibv_cq *cq = script_keep(script_cq(context, 8));
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_pd *pd = script_keep(ibv_alloc_pd(context));
	bool is_target = dv->dc_init_attr.dc_type == MLX5DV_DCTYPE_DCT;
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = type, .send_cq = cq, .recv_cq = cq, .pd = pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.srq = is_target ? script_keep(ibv_create_srq(pd, &srq)) : NULL,
		.cap = { .max_send_wr = is_target ? 0 : 4, .max_send_sge = is_target ? 0 : 1 },
	};

	memset(&qp_asked, 0, sizeof qp_asked);
	errno = 0;
	return script_keep(vb_dv_create_qp(context, &attr, dv));
}

Test(dv, flags_of_a_qp)
{
	static const struct { uint32_t flag, driver; } rows[] = {
		{ 0, 0 },
		{ MLX5DV_QP_CREATE_TUNNEL_OFFLOADS, MLX5_QP_FLAG_TUNNEL_OFFLOADS },
		{ MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC,
		  MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_UC },
		{ MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_MC,
		  MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_MC },
		{ MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE, 0 },
		{ MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE,
		  MLX5_QP_FLAG_ALLOW_SCATTER_CQE | MLX5_QP_FLAG_SCATTER_CQE },
		{ MLX5DV_QP_CREATE_PACKET_BASED_CREDIT_MODE,
		  MLX5_QP_FLAG_PACKET_BASED_CREDIT_MODE },
		{ MLX5DV_QP_CREATE_TUNNEL_OFFLOADS | MLX5DV_QP_CREATE_PACKET_BASED_CREDIT_MODE,
		  MLX5_QP_FLAG_TUNNEL_OFFLOADS | MLX5_QP_FLAG_PACKET_BASED_CREDIT_MODE },
	};

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct mlx5dv_qp_init_attr dv = {
			.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
			.create_flags = rows[i].flag,
		};
		struct ibv_qp *qp = qp_make(IBV_QPT_RC, &dv);

		cr_assert(qp, "row %u: errno %d", i, errno);
		cr_assert_eq(qp_asked.flags, MLX5_QP_FLAG_UAR_PAGE_INDEX | rows[i].driver,
			     "row %u: 0x%x", i, qp_asked.flags);
		cr_assert_eq(ibv_destroy_qp(qp), 0);
	}
}

Test(dv, an_initiator_and_its_streams)
{
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC | MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS,
		.dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCI, .dci_streams = { 3, 2 } },
	};

	cr_assert(qp_make(IBV_QPT_DRIVER, &dv));
	cr_assert_eq(qp_asked.flags, MLX5_QP_FLAG_UAR_PAGE_INDEX | MLX5_QP_FLAG_TYPE_DCI |
				     MLX5_QP_FLAG_DCI_STREAM);
	cr_assert_eq(qp_asked.dci_streams.log_num_concurent, 3);
	cr_assert_eq(qp_asked.dci_streams.log_num_errored, 2);
	dv.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC;
	cr_assert(qp_make(IBV_QPT_DRIVER, &dv));
	cr_assert_eq(qp_asked.flags, MLX5_QP_FLAG_UAR_PAGE_INDEX | MLX5_QP_FLAG_TYPE_DCI);
	cr_assert_eq(qp_asked.dci_streams.log_num_concurent, 0);
}

Test(dv, a_target_and_its_key)
{
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCT,
				  .dct_access_key = 0x1122334455667788 },
	};

	cr_assert(qp_make(IBV_QPT_DRIVER, &dv));
	cr_assert_eq(qp_asked.flags, MLX5_QP_FLAG_TYPE_DCT);
	cr_assert_eq(qp_asked.access_key, 0x1122334455667788);
	dv.comp_mask |= MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS;
	dv.create_flags = MLX5DV_QP_CREATE_TUNNEL_OFFLOADS;
	cr_assert_null(qp_make(IBV_QPT_DRIVER, &dv));
	cr_assert_eq(errno, EINVAL);
	dv.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC | MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS;
	cr_assert_null(qp_make(IBV_QPT_DRIVER, &dv));
	cr_assert_eq(errno, EINVAL);
}

/* Even if the device would make one. */
Test(dv, only_driver_qps_connect_dynamically)
{
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCI },
	};

	cr_assert_null(qp_make(IBV_QPT_RC, &dv));
	cr_assert_eq(errno, EINVAL);
	dv.comp_mask = 0;
	cr_assert_null(qp_make(IBV_QPT_DRIVER, &dv));
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(script_count(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE), 0);
}

/* --- what is told of a QP --- */

/* Whole WQEs may go to a register of one QP's own; of a shared one only the doorbell. */
Test(dv, the_register_of_a_qp)
{
	struct vb_qp *shared = script_rc(context, 4), *own;
	struct ibv_td_init_attr td = { 0 };
	struct ibv_parent_domain_init_attr domain = { .pd = ibv_alloc_pd(context) };
	struct mlx5dv_qp raw = { .comp_mask = MLX5DV_QP_MASK_UAR_MMAP_OFFSET };
	struct mlx5dv_obj obj = { .qp = { .in = vb_qp_base(shared), .out = &raw } };

	cr_assert_eq(vb_dv_init_obj(&obj, MLX5DV_OBJ_QP), 0);
	cr_assert_eq(raw.bf.size, 0);
	cr_assert_eq(raw.bf.reg, shared->reg->at);
	cr_assert_eq(raw.uar_mmap_offset, (off_t)shared->reg->mmap_offset);
	cr_assert_eq(raw.comp_mask, MLX5DV_QP_MASK_UAR_MMAP_OFFSET);
	domain.td = ibv_alloc_td(context, &td);
	cr_assert(domain.td);
	own = script_qp(&(struct script_qp){
		.type = IBV_QPT_RC, .pd = ibv_alloc_parent_domain(context, &domain),
		.send_cq = script_cq(context, 8), .recv_cq = script_cq(context, 8),
		.depth = 4, .sges = 1,
	});
	obj.qp.in = vb_qp_base(own);
	cr_assert_eq(vb_dv_init_obj(&obj, MLX5DV_OBJ_QP), 0);
	cr_assert_eq(raw.bf.reg, own->reg->at);
	cr_assert_eq(raw.bf.size, SCRIPT_BF_BYTES / 2);
}

/* A CQ that a program reads by itself is not cleaned: who knows how far it is. */
Test(dv, a_cq_that_is_read_by_the_program)
{
	struct ibv_cq *cq = script_cq(context, 8);
	struct mlx5dv_cq raw = { 0 };
	struct mlx5dv_obj obj = { .cq = { .in = cq, .out = &raw } };

	cr_assert_not(vb_cq_of(cq)->is_raw);
	cr_assert_eq(vb_dv_init_obj(&obj, MLX5DV_OBJ_CQ), 0);
	cr_assert(vb_cq_of(cq)->is_raw);
	cr_assert_eq(raw.cqn, vb_cq_of(cq)->cqn);
	cr_assert_eq(raw.cq_uar, vb_context_of(context)->arm_uar.page);
	cr_assert_eq(*(uint8_t **)vb_dv_arm_page_place(context), raw.cq_uar);
}

Test(dv, doorbell_pages)
{
	struct mlx5dv_devx_uar *uar;

	script.fail_object = MLX5_IB_OBJECT_UAR;
	script.fail_method = MLX5_IB_METHOD_UAR_OBJ_ALLOC;
	script.fail_error = ENOSPC;
	cr_assert_null(vb_dv_alloc_uar(context, MLX5DV_UAR_ALLOC_TYPE_BF));
	cr_assert_eq(errno, ENOSPC);
	uar = vb_dv_alloc_uar(context, MLX5DV_UAR_ALLOC_TYPE_BF);
	cr_assert(uar);
	cr_assert_eq(page_asked, MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF);
	vb_dv_free_uar(uar);
	uar = vb_dv_alloc_uar(context, MLX5DV_UAR_ALLOC_TYPE_NC);
	cr_assert(uar);
	cr_assert_eq(page_asked, MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC);
	cr_assert_eq(uar->page_id, script.maps + 15);
	cr_assert_eq(uar->base_addr, script.map[script.maps - 1]);
	vb_dv_free_uar(uar);
	cr_assert_eq(script_count(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY), 2);
}
