/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a new flow rule says of the counters that it counts into.  For on_flow.c.
 */
#ifndef EMU_UVERBS_ON_COUNTERS_H
#define EMU_UVERBS_ON_COUNTERS_H
#include "emu/obj/flow.h"
#include "emu/uverbs/dispatch.h"

/* The driver's data of CREATE_FLOW. */
struct counters_ask {
	bool is_given;
	uint64_t addr;
	uint32_t count;
};

/* -EOPNOTSUPP, -EINVAL */
int counters_ask_read(struct uv_call *call, struct counters_ask *out);
/* The first rule must say what can be read, and no other.  counters_settle() takes it back.
 * -EINVAL, -EFAULT, -ENOMEM */
int counters_ask_apply(struct uv_call *call, struct emu_counters *counters,
		       const struct counters_ask *ask);
#endif
