/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues.  Source: device-abi B.9, B.9.2.
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include "emu/uverbs/file.h"
#include "emu/uverbs/handlers.h"

/* SRQ types of the uverbs ABI that exist, and whether this device has them. */
static const struct srq_type_row {
	bool exists, is_here;
	enum srq_type type;
} srq_types[] = {
	[IB_UVERBS_SRQT_BASIC] = { true, true, SRQ_BASIC },
	[IB_UVERBS_SRQT_XRC] = { true, true, SRQ_XRC },
	[IB_UVERBS_SRQT_TM] = { true, false, 0 },
};

static int type_check(struct uv_call *call, uint64_t type, struct srq_init *init)
{
	if (type >= sizeof srq_types / sizeof *srq_types || !srq_types[type].exists)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	if (!srq_types[type].is_here)
		return uv_refuse(call, WHY_CMD_UNSUPPORTED, -EOPNOTSUPP);
	init->type = srq_types[type].type;
	if (init->type != SRQ_XRC) {		/* whatever was given */
		init->cq = NULL;
		init->xrcd = NULL;
	} else if (!init->cq || !init->xrcd) {
		return uv_refuse(call, WHY_CMD_ATTRIBUTES, -EINVAL);
	}
	return 0;
}

static bool has_user_index(const struct uv_call *call, const struct srq_init *init)
{
	return init->type == SRQ_XRC && call->file->cqe_version;
}

/* No checksums in WQEs: the only flag there is. */
static int mlx5_check(struct uv_call *call, const struct mlx5_ib_create_srq *ask,
		      const struct srq_init *init)
{
	if (has_user_index(call, init) && ask->uidx >= SRQ_USER_INDEX_NONE)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	if (ask->flags)
		return uv_refuse(call, WHY_CMD_UNSUPPORTED, -EINVAL);
	if (ask->reserved0 || ask->reserved1)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	return 0;
}

/* Both ways to ask end here; the rest of @init is filled by the caller. */
static int create(struct uv_call *call, struct srq_init *init, uint64_t type,
		  struct emu_srq **out)
{
	const struct mlx5_ib_create_srq *ask = uv_in(call, UVERBS_ATTR_UHW_IN);
	struct mlx5_ib_create_srq_resp reply = { 0 };
	int ret = type_check(call, type, init);

	if (!ret)
		ret = mlx5_check(call, ask, init);
	if (ret)
		return ret;
	init->buf_addr = ask->buf_addr;
	init->db_addr = ask->db_addr;
	init->user_index = has_user_index(call, init) ? ask->uidx : SRQ_USER_INDEX_NONE;
	init->names_itself = init->type == SRQ_XRC || !call->file->cqe_version;
	if (!init->async)
		init->async = call->file->async;
	ret = srq_create(call->dev, init, out);
	if (ret)
		return ret;
	call->created = &(*out)->obj;
	reply.srqn = (*out)->srqn;
	uv_put(call, UVERBS_ATTR_UHW_OUT, &reply, sizeof reply);
	return 0;
}

int on_create_srq(struct uv_call *call)
{
	struct srq_init init = {
		.user_handle = uv_number(call, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE),
		.pd = uv_pd(call, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE),
		.cq = uv_cq(call, UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE),
		.xrcd = uv_xrcd(call, UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE),
		.async = uv_channel(call, UVERBS_ATTR_CREATE_SRQ_EVENT_FD),
		.max_wr = (uint32_t)uv_number(call, UVERBS_ATTR_CREATE_SRQ_MAX_WR),
		.max_sge = (uint32_t)uv_number(call, UVERBS_ATTR_CREATE_SRQ_MAX_SGE),
	};
	struct emu_srq *srq;
	int ret = create(call, &init, uv_number(call, UVERBS_ATTR_CREATE_SRQ_TYPE), &srq);

	if (ret)
		return ret;
	uv_put_number(call, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, uint32_t, srq_max_wr(srq));
	uv_put_number(call, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, uint32_t, srq_max_sge(srq));
	uv_put_number(call, UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, uint32_t, srq->srqn);
	return 0;
}

static void reply_legacy(struct uv_call *call, const struct emu_srq *srq)
{
	struct ib_uverbs_create_srq_resp reply = {
		.max_wr = srq_max_wr(srq), .max_sge = srq_max_sge(srq), .srqn = srq->srqn,
	};

	uv_put(call, UVERBS_ATTR_CORE_OUT, &reply, sizeof reply);
}

int on_create_srq_legacy(struct uv_call *call)
{
	const struct ib_uverbs_create_srq *ask = uv_in(call, UVERBS_ATTR_CORE_IN);
	struct srq_init init = {
		.user_handle = ask->user_handle, .pd = uv_pd(call, UV_PD),
		.max_wr = ask->max_wr, .max_sge = ask->max_sge,
	};
	struct emu_srq *srq;
	int ret = create(call, &init, IB_UVERBS_SRQT_BASIC, &srq);

	if (!ret)
		reply_legacy(call, srq);
	return ret;
}

int on_create_xsrq(struct uv_call *call)
{
	const struct ib_uverbs_create_xsrq *ask = uv_in(call, UVERBS_ATTR_CORE_IN);
	struct srq_init init = {
		.user_handle = ask->user_handle, .pd = uv_pd(call, UV_PD),
		.cq = uv_cq(call, UV_CQ), .xrcd = uv_xrcd(call, UV_XRCD),
		.max_wr = ask->max_wr, .max_sge = ask->max_sge,
	};
	struct emu_srq *srq;
	int ret = create(call, &init, ask->srq_type, &srq);

	if (!ret)
		reply_legacy(call, srq);
	return ret;
}

int on_modify_srq(struct uv_call *call)
{
	const struct ib_uverbs_modify_srq *ask = uv_in(call, UVERBS_ATTR_CORE_IN);

	return srq_modify(call->dev, uv_srq(call, UV_SRQ), ask->srq_limit, ask->attr_mask);
}

int on_query_srq(struct uv_call *call)
{
	const struct emu_srq *srq = uv_srq(call, UV_SRQ);
	struct ib_uverbs_query_srq_resp reply = {
		.max_wr = srq_max_wr(srq), .max_sge = srq_max_sge(srq), .srq_limit = srq->limit,
	};

	uv_put(call, UVERBS_ATTR_CORE_OUT, &reply, sizeof reply);
	return 0;
}

static int destroy(struct uv_call *call, uint16_t srq_id, uint16_t reply_id)
{
	struct ib_uverbs_destroy_srq_resp reply = { 0 };
	int ret = srq_destroy(call->dev, uv_srq(call, srq_id), &reply.events_reported);

	if (!ret)
		uv_put(call, reply_id, &reply, sizeof reply);
	return ret;
}

int on_destroy_srq(struct uv_call *call)
{
	return destroy(call, UVERBS_ATTR_DESTROY_SRQ_HANDLE, UVERBS_ATTR_DESTROY_SRQ_RESP);
}

int on_destroy_srq_legacy(struct uv_call *call)
{
	return destroy(call, UV_SRQ, UVERBS_ATTR_CORE_OUT);
}
