/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The clock of the device: its pages, and what a stamp of it means.
 *
 * Source: device-abi B.5, B.6, C.12.
 */
#ifndef VERBS_CLOCK_H
#define VERBS_CLOCK_H
#include "verbs/context.h"

struct mlx5_ib_clock_info;

/* How cycles become ns, as of now.  EINVAL: the device does not tell. */
int vb_clock_info(struct vb_context *c, struct mlx5_ib_clock_info *out);
/* Where the cycles stand, two big-endian words; NULL: nowhere. */
void *vb_core_clock(struct vb_context *c);
/* The wall clock at the stamp @cycles, in ns since 1970; 0 where the device does not tell. */
uint64_t vb_clock_ns(struct vb_context *c, uint64_t cycles);
#endif
