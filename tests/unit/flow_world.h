/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow rules as libibverbs asks for them: a QP to have them, a command that specs are put behind,
 * and the rule that came of it.  For t_uv_flow*.c and t_uv_counters.c.
 */
#ifndef TESTS_UNIT_FLOW_WORLD_H
#define TESTS_UNIT_FLOW_WORLD_H
#include "tests/unit/uv_world.h"
#include "emu/obj/flow.h"
#include "emu/uverbs/file.h"

#define EX(number)	(IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_##number)

enum { NORMAL, ALL_DEFAULT, MC_DEFAULT, SNIFFER };
enum { LOOP_BACK = 1, DONT_TRAP = 2, EGRESS = 4 };
enum { ETH = 0x20, IPV4 = 0x30, IPV6 = 0x31, ESP = 0x34, TCP = 0x40, UDP = 0x41, VXLAN = 0x50,
       GRE = 0x51, MPLS = 0x60, INNER = 0x100, TAG = 0x1000, DROP, HANDLE, COUNT };

struct flow_rig {
	struct uv_world w;
	uint32_t pd, cq;
	struct qp_ask qp;
};

static inline struct flow_rig flow_rig_of(struct uv_world w, uint64_t type)
{
	struct flow_rig r = { .w = w };
	struct cq_ask cq = cq_ask_new(&r.w);

	CHECK_INT(cq_make(&r.w, &cq), 0);
	r.pd = pd_alloc(&r.w);
	r.cq = cq.handle;
	r.qp = qp_ask_new(&r.w, r.pd, r.cq);
	r.qp.type = type;
	CHECK_INT(qp_make(&r.w, &r.qp), 0);
	return r;
}

static inline struct flow_rig flow_rig_new(void)
{
	return flow_rig_of(uv_world_new(), IB_UVERBS_QPT_RAW_PACKET);
}

/* The core structure and the specs behind it. */
struct flow_ask {
	struct ib_uverbs_create_flow core;
	uint8_t specs[16 * 88];
	unsigned more;			/* bytes behind the specs that the command has, too */
	/* of the driver */
	struct { uint32_t count, reserved; struct mlx5_ib_flow_counters_data data[2]; } mlx5;
	unsigned mlx5_bytes;
	/* results */
	struct ib_uverbs_create_flow_resp reply;
};

static inline void flow_ask_begin(struct flow_ask *ask, const struct flow_rig *r)
{
	memset(ask, 0, sizeof *ask);
	ask->core.qp_handle = r->qp.handle;
	ask->core.flow_attr.port = 1;
	ask->mlx5_bytes = 8;		/* as libmlx5 */
}

static inline uint8_t *spec_place(struct flow_ask *ask)
{
	return ask->specs + ask->core.flow_attr.size;
}

/* Without a filter, or with room for one of @bytes and its mask. */
static inline uint8_t *spec_add(struct flow_ask *ask, uint32_t type, unsigned bytes)
{
	struct ib_uverbs_flow_spec_hdr header = { .type = type,
						  .size = (uint16_t)(sizeof header + bytes) };
	uint8_t *at = spec_place(ask);

	memcpy(at, &header, sizeof header);
	ask->core.flow_attr.size += header.size;
	ask->core.flow_attr.num_of_specs++;
	return at + sizeof header;
}

static inline void filter_add(struct flow_ask *ask, uint32_t type, unsigned bytes,
			      const void *value, const void *mask)
{
	uint8_t *at = spec_add(ask, type, 2 * bytes);

	memcpy(at, value, bytes);
	memcpy(at + bytes, mask, bytes);
}

/* A filter that is right, whatever it is of. */
static inline void any_add(struct flow_ask *ask, uint32_t type, unsigned bytes)
{
	spec_add(ask, type, 2 * bytes);
}

static inline void number_add(struct flow_ask *ask, uint32_t type, uint32_t number)
{
	memcpy(spec_add(ask, type, 8), &number, sizeof number);
}

/* Frames to one MAC address. */
static inline void mac_add(struct flow_ask *ask, uint8_t first, uint8_t last)
{
	uint8_t value[16] = { first, 1, 2, 3, 4, last };
	uint8_t mask[16] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

	filter_add(ask, ETH, sizeof value, value, mask);
}

static inline int flow_make(const struct flow_rig *r, struct flow_ask *ask)
{
	struct cmd c = cmd_write(EX(CREATE_FLOW), &ask->core,
				 24u + ask->core.flow_attr.size + ask->more, &ask->reply,
				 sizeof ask->reply);

	ask->reply = (struct ib_uverbs_create_flow_resp){ 99, OTHER };
	if (ask->mlx5_bytes)
		cmd_in(&c, UVERBS_ATTR_UHW_IN, &ask->mlx5, ask->mlx5_bytes);
	return cmd_run(&r->w, &c);
}

static inline struct emu_flow *flow_of(const struct flow_rig *r, uint32_t handle)
{
	struct emu_obj *obj;

	CHECK_INT(file_handle_find(r->w.file, handle, OBJ_FLOW, &obj), 0);
	return (struct emu_flow *)obj;
}

static inline struct emu_flow *flow_made(const struct flow_rig *r, struct flow_ask *ask)
{
	CHECK_INT(flow_make(r, ask), 0);
	CHECK_INT(ask->reply.comp_mask, 0);
	return flow_of(r, ask->reply.flow_handle);
}

static inline int flow_free(const struct flow_rig *r, uint32_t handle)
{
	return obj_destroy(&r->w, UVERBS_OBJECT_FLOW, UVERBS_METHOD_FLOW_DESTROY,
			   UVERBS_ATTR_DESTROY_FLOW_HANDLE, handle, 0);
}
#endif
