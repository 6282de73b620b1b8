/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What on_qp.c asks about QPs with an indirection table.
 */
#ifndef EMU_UVERBS_ON_RSS_H
#define EMU_UVERBS_ON_RSS_H
#include <rdma/mlx5-abi.h>
#include "emu/uverbs/dispatch.h"

/* The driver's part of create_qp is one of these. */
union create_qp_driver {
	struct mlx5_ib_create_qp qp;
	struct mlx5_ib_create_qp_rss rss;
};

/* @init: what else was given, which must be nothing but a domain.  @flags: of creation. */
int rss_create(struct uv_call *call, const struct qp_init *init, uint64_t flags,
	       struct emu_rwq_table *table, struct emu_qp **out);
#endif
