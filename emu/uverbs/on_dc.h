/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What on_qp.c asks about QPs of type DRIVER.
 */
#ifndef EMU_UVERBS_ON_DC_H
#define EMU_UVERBS_ON_DC_H
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include "emu/uverbs/dispatch.h"

/*
 * Streams of an initiator: their numbers are accepted, and requests are served one after the other
 * as without them.  The first stream that fails takes the initiator with it, because only DEVX
 * could repair one.
 */
enum { DC_STREAMS_LOG_MAX = 3, DC_STREAMS_FAILED_LOG_MAX = 0 };

static inline bool dc_is_asked(uint64_t type)
{
	return type == IB_UVERBS_QPT_DRIVER;
}

/* Flags of the driver's part that mean something for this type and for no other. */
uint32_t dc_flags_known(uint64_t type);
/* A target rings on no page. */
bool dc_needs_page(uint64_t type, const struct mlx5_ib_create_qp *ask);
/* Type, queues and key.  @init has objects, and the capacities that were asked for. */
int dc_init_fill(struct uv_call *call, struct qp_init *init, const struct mlx5_ib_create_qp *ask);
/* The number that the application is told at creation: a target has none before RTR. */
uint32_t dc_number(const struct emu_qp *qp);

/* @room: bytes for the driver's part of the answer, which a target's number needs. */
int dc_modify_check(struct uv_call *call, const struct emu_qp *qp, const struct qp_attr *attr,
		    uint32_t mask, unsigned room);
void dc_modify_answer(const struct emu_qp *qp, unsigned room,
		      struct mlx5_ib_modify_qp_resp *reply);

/* The whole of query_qp for a target. */
int dct_query(struct uv_call *call, const struct emu_qp *qp, uint32_t mask);
#endif
