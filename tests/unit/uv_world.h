/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An open device file for tests of emu/uverbs: a whole device without a wire, and ioctl
 * commands built attribute by attribute as libibverbs builds them.
 */
#ifndef TESTS_UNIT_UV_WORLD_H
#define TESTS_UNIT_UV_WORLD_H
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/stat.h>
#include <time.h>
#include "emu/engine/engine.h"
#include "emu/uverbs/uverbs.h"
#include "tests/unit/obj_world.h"

#define OTHER		UINT32_MAX	/* no handle of anything */
#define NOWHERE		((void *)0x10)	/* never mapped */

struct uv_world {
	struct emu_dev *dev;
	struct engine *engine;
	struct uv_file *file;
	int async_fd;
	uint32_t page_id;
	uint64_t page_offset;
};

struct cmd {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attr[64];
};

static inline struct cmd cmd_new(uint16_t object, uint16_t method)
{
	return (struct cmd){ .hdr = { .object_id = object, .method_id = method, .driver_id = 1 } };
}

static inline struct ib_uverbs_attr *cmd_attr(struct cmd *c, uint16_t id, size_t len,
					      uint64_t data)
{
	struct ib_uverbs_attr *a = &c->attr[c->hdr.num_attrs++];

	*a = (struct ib_uverbs_attr){ .attr_id = id, .len = (uint16_t)len,
				      .flags = UVERBS_ATTR_F_MANDATORY, .data = data };
	return a;
}

/* Up to 8 bytes travel inside the attribute. */
static inline struct ib_uverbs_attr *cmd_in(struct cmd *c, uint16_t id, const void *in, size_t len)
{
	uint64_t data = (uintptr_t)in;

	if (len <= sizeof data) {
		data = 0;
		memcpy(&data, in, len);
	}
	return cmd_attr(c, id, len, data);
}

static inline void cmd_u32(struct cmd *c, uint16_t id, uint32_t value)
{
	cmd_attr(c, id, 4, value);
}

static inline void cmd_u64(struct cmd *c, uint16_t id, uint64_t value)
{
	cmd_attr(c, id, 8, value);
}

static inline void cmd_out(struct cmd *c, uint16_t id, void *out, size_t len)
{
	cmd_attr(c, id, len, (uintptr_t)out);
}

static inline void cmd_obj(struct cmd *c, uint16_t id, uint64_t handle)
{
	cmd_attr(c, id, 0, handle);
}

static inline int cmd_run(const struct uv_world *w, struct cmd *c)
{
	c->hdr.length = (uint16_t)(sizeof c->hdr + c->hdr.num_attrs * sizeof *c->attr);
	return uv_ioctl(w->file, c);
}

static inline struct ib_uverbs_attr *cmd_find(struct cmd *c, uint16_t id)
{
	for (unsigned i = 0; i < c->hdr.num_attrs; i++)
		if (c->attr[i].attr_id == id)
			return &c->attr[i];
	return NULL;
}

/* INVOKE_WRITE with what is not NULL. */
static inline struct cmd cmd_write(uint32_t command, const void *in, size_t in_bytes, void *out,
				   size_t out_bytes)
{
	struct cmd c = cmd_new(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);

	cmd_u64(&c, UVERBS_ATTR_WRITE_CMD, command);
	if (in)
		cmd_in(&c, UVERBS_ATTR_CORE_IN, in, in_bytes);
	if (out)
		cmd_out(&c, UVERBS_ATTR_CORE_OUT, out, out_bytes);
	return c;
}

#define cmd_write_run(w, command, in, out)						\
	({										\
		struct cmd c_ = cmd_write(command, in, sizeof *(in), out, sizeof *(out)); \
		cmd_run(w, &c_);							\
	})

/* --- what libmlx5 does at open --- */

static inline struct mlx5_ib_alloc_ucontext_req_v2 context_request(void)
{
	return (struct mlx5_ib_alloc_ucontext_req_v2){
		.total_num_bfregs = 16, .num_low_latency_bfregs = 4, .max_cqe_version = 1,
		.lib_caps = MLX5_LIB_CAP_4K_UAR | MLX5_LIB_CAP_DYN_UAR,
	};
}

static inline int context_get(const struct uv_world *w, const void *request, size_t bytes,
			      struct mlx5_ib_alloc_ucontext_resp *reply)
{
	struct cmd c = cmd_new(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
	uint32_t vectors = 0;
	uint64_t support = 0;
	int ret;

	cmd_out(&c, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, &vectors, sizeof vectors);
	cmd_out(&c, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, &support, sizeof support);
	cmd_in(&c, UVERBS_ATTR_UHW_IN, request, bytes);
	cmd_out(&c, UVERBS_ATTR_UHW_OUT, reply, sizeof *reply);
	ret = cmd_run(w, &c);
	if (!ret)
		CHECK_INT(vectors == 4 && support == 1, 1);
	return ret;
}

static inline int uar_alloc(struct uv_world *w, uint64_t type, uint32_t *handle)
{
	struct cmd c = cmd_new(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC);
	uint32_t length;
	int ret;

	*handle = OTHER;
	cmd_obj(&c, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, 0);
	cmd_u64(&c, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, type);
	cmd_out(&c, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, &w->page_offset, 8);
	cmd_out(&c, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, &length, 4);
	cmd_out(&c, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, &w->page_id, 4);
	ret = cmd_run(w, &c);
	if (!ret)
		*handle = (uint32_t)c.attr[0].data;
	return ret;
}

static inline int async_alloc(const struct uv_world *w, int *fd)
{
	struct cmd c = cmd_new(UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC);
	int ret;

	*fd = -1;
	cmd_obj(&c, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, 0);
	ret = cmd_run(w, &c);
	if (!ret)
		*fd = (int)c.attr[0].data_s64;
	return ret;
}

static uint64_t world_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A file nobody has asked for a context yet. */
static inline struct uv_world uv_world_bare(const char *profile)
{
	struct uv_world w = { .dev = world_dev() };

	w.dev->profile = hw_profile_find(profile);
	w.dev->node_guid = 0x0200c0fffe000001;
	w.dev->now_ns = world_now_ns;
	w.dev->gid[0] = (struct emu_gid){ .raw = { 0xfe, 0x80, [15] = 1 }, .type = 1 };
	w.dev->gid[2] = (struct emu_gid){ .raw = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 },
					  .type = 2, .netdev_ifindex = 7 };
	w.dev->gid_count = 3;
	CHECK_INT(engine_create(w.dev, NULL, NULL, &w.engine), 0);
	w.dev->engine = w.engine;
	CHECK_INT(uv_file_open(w.dev, &w.file), 0);
	return w;
}

static inline struct uv_world uv_world_new(void)
{
	struct uv_world w = uv_world_bare("connectx-6dx");
	struct mlx5_ib_alloc_ucontext_req_v2 request = context_request();
	struct mlx5_ib_alloc_ucontext_resp reply;
	uint32_t uar;

	CHECK_INT(context_get(&w, &request, sizeof request, &reply), 0);
	CHECK_INT(uar_alloc(&w, MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC, &uar), 0);
	CHECK_INT(async_alloc(&w, &w.async_fd), 0);
	return w;
}

/* Closing must leave nothing behind, whatever the application leaked. */
static inline void uv_world_end(struct uv_world *w)
{
	uv_file_close(w->file);
	engine_destroy(w->engine);
	world_end(w->dev);
}

/* --- objects --- */

static inline uint32_t pd_alloc(const struct uv_world *w)
{
	struct ib_uverbs_alloc_pd in = { 0 };
	struct ib_uverbs_alloc_pd_resp out = { .pd_handle = OTHER };

	CHECK_INT(cmd_write_run(w, IB_USER_VERBS_CMD_ALLOC_PD, &in, &out), 0);
	return out.pd_handle;
}

static inline int mr_reg(const struct uv_world *w, uint32_t pd, void *at, uint64_t bytes,
			 struct ib_uverbs_reg_mr_resp *out)
{
	struct ib_uverbs_reg_mr in = { .start = (uintptr_t)at, .length = bytes,
				       .hca_va = (uintptr_t)at, .pd_handle = pd,
				       .access_flags = 1 };

	return cmd_write_run(w, IB_USER_VERBS_CMD_REG_MR, &in, out);
}

static inline int channel_open(const struct uv_world *w, int *fd)
{
	struct ib_uverbs_create_comp_channel in = { 0 };
	struct ib_uverbs_create_comp_channel_resp out = { 0 };
	int ret = cmd_write_run(w, IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, &in, &out);

	*fd = (int)out.fd;
	return ret;
}

struct cq_ask {
	uint32_t cqe;
	int channel_fd;			/* 0: none */
	struct mlx5_ib_create_cq mlx5;
	/* results */
	uint32_t handle, cqn, cqe_out;
};

static inline struct cq_ask cq_ask_new(const struct uv_world *w)
{
	uint8_t *memory = world_pages(2);

	return (struct cq_ask){ .cqe = 40, .mlx5 = {
		.buf_addr = (uintptr_t)memory, .db_addr = (uintptr_t)memory + WORLD_PAGE,
		.cqe_size = 64, .flags = MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX,
		.uar_page_index = (uint16_t)w->page_id } };
}

/* The command points into @ask. */
static inline struct cmd cq_cmd(struct cq_ask *ask, uint32_t *cqn)
{
	struct cmd c = cmd_new(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);

	cmd_obj(&c, UVERBS_ATTR_CREATE_CQ_HANDLE, 0);
	cmd_out(&c, UVERBS_ATTR_CREATE_CQ_RESP_CQE, &ask->cqe_out, 4);
	cmd_u32(&c, UVERBS_ATTR_CREATE_CQ_CQE, ask->cqe);
	cmd_u64(&c, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 0x1234);
	if (ask->channel_fd)
		cmd_obj(&c, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, (uint64_t)ask->channel_fd);
	cmd_u32(&c, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 0);
	cmd_in(&c, UVERBS_ATTR_UHW_IN, &ask->mlx5, sizeof ask->mlx5);
	cmd_out(&c, UVERBS_ATTR_UHW_OUT, cqn, 8);
	return c;
}

static inline int cq_make(const struct uv_world *w, struct cq_ask *ask)
{
	uint32_t reply[2] = { 0 };
	struct cmd c = cq_cmd(ask, reply);
	int ret = cmd_run(w, &c);

	ask->cqn = reply[0];
	ask->handle = (uint32_t)c.attr[0].data;
	return ret;
}

struct qp_ask {
	uint32_t pd, cq;
	uint64_t type;
	uint32_t flags;
	struct ib_uverbs_qp_cap cap;
	struct mlx5_ib_create_qp mlx5;
	/* results */
	uint32_t handle, qpn;
	struct mlx5_ib_create_qp_resp reply;
};

static inline struct qp_ask qp_ask_new(const struct uv_world *w, uint32_t pd, uint32_t cq)
{
	uint8_t *memory = world_pages(3);

	return (struct qp_ask){
		.pd = pd, .cq = cq, .type = IB_UVERBS_QPT_RC,
		.cap = { .max_send_wr = 8, .max_recv_wr = 30, .max_send_sge = 1,
			 .max_recv_sge = 1, .max_inline_data = 36 },
		.mlx5 = { .buf_addr = (uintptr_t)memory,
			  .db_addr = (uintptr_t)memory + 2 * WORLD_PAGE, .sq_wqe_count = 32,
			  .rq_wqe_count = 32, .rq_wqe_shift = 5,
			  .flags = MLX5_QP_FLAG_SCATTER_CQE | MLX5_QP_FLAG_UAR_PAGE_INDEX,
			  .uidx = 3, .bfreg_index = w->page_id },
	};
}

static inline struct cmd qp_cmd(struct qp_ask *ask)
{
	struct cmd c = cmd_new(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);

	cmd_obj(&c, UVERBS_ATTR_CREATE_QP_HANDLE, 0);
	cmd_obj(&c, UVERBS_ATTR_CREATE_QP_PD_HANDLE, ask->pd);
	cmd_obj(&c, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, ask->cq);
	cmd_obj(&c, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, ask->cq);
	cmd_u64(&c, UVERBS_ATTR_CREATE_QP_TYPE, ask->type);
	cmd_u64(&c, UVERBS_ATTR_CREATE_QP_USER_HANDLE, 0x5678);
	cmd_in(&c, UVERBS_ATTR_CREATE_QP_CAP, &ask->cap, sizeof ask->cap);
	if (ask->flags)
		cmd_u32(&c, UVERBS_ATTR_CREATE_QP_FLAGS, ask->flags);
	cmd_out(&c, UVERBS_ATTR_CREATE_QP_RESP_CAP, &ask->cap, sizeof ask->cap);
	cmd_out(&c, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &ask->qpn, 4);
	cmd_in(&c, UVERBS_ATTR_UHW_IN, &ask->mlx5, sizeof ask->mlx5);
	cmd_out(&c, UVERBS_ATTR_UHW_OUT, &ask->reply, sizeof ask->reply);
	return c;
}

static inline int qp_make(const struct uv_world *w, struct qp_ask *ask)
{
	struct cmd c = qp_cmd(ask);
	int ret = cmd_run(w, &c);

	ask->handle = (uint32_t)c.attr[0].data;
	return ret;
}

/* DESTROY with a reply of @reply_bytes, 0 for those that have none. */
static inline int obj_destroy(const struct uv_world *w, uint16_t object, uint16_t method,
			      uint16_t id, uint32_t handle, size_t reply_bytes)
{
	struct cmd c = cmd_new(object, method);
	uint8_t reply[16];

	cmd_obj(&c, id, handle);
	if (reply_bytes)
		cmd_out(&c, id + 1, reply, reply_bytes);
	return cmd_run(w, &c);
}

static inline int pd_free(const struct uv_world *w, uint32_t handle)
{
	return obj_destroy(w, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY,
			   UVERBS_ATTR_DESTROY_PD_HANDLE, handle, 0);
}

static inline int mr_free(const struct uv_world *w, uint32_t handle)
{
	return obj_destroy(w, UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY,
			   UVERBS_ATTR_DESTROY_MR_HANDLE, handle, 0);
}

static inline int cq_free(const struct uv_world *w, uint32_t handle)
{
	return obj_destroy(w, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY,
			   UVERBS_ATTR_DESTROY_CQ_HANDLE, handle, 8);
}

static inline int qp_free(const struct uv_world *w, uint32_t handle)
{
	return obj_destroy(w, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY,
			   UVERBS_ATTR_DESTROY_QP_HANDLE, handle, 4);
}

static inline int uar_free(const struct uv_world *w, uint32_t handle)
{
	return obj_destroy(w, MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY,
			   MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, handle, 0);
}
#endif
