/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Input that is refused before the device is asked: what is missing, too short or of no size.
 *
 * Method: the scripted device would take everything, and counts commands.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <string.h>
#include "script.h"

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct vb_qp *qp;
static unsigned commands;

static void setup(void)
{
	context = script_open();
	pd = ibv_alloc_pd(context);
	cr_assert(pd);
	qp = script_rc(context, 4);
}

TestSuite(refuse, .init = setup);

/* --- shared receive queues --- */

static void check_no_srq(struct ibv_xrcd *xrcd, struct ibv_cq *cq, uint32_t mask)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 1, .max_sge = 1 }, .srq_type = IBV_SRQT_XRC, .pd = pd,
		.xrcd = xrcd, .cq = cq, .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | mask,
	};

	commands = script.commands;
	errno = 0;
	cr_assert_null(ibv_create_srq_ex(context, &init));
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(script.commands, commands);
}

Test(refuse, xrc_queues_without_domain_or_cq)
{
	enum { ALL = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ };
	struct ibv_xrcd xrcd = { .context = context };
	struct ibv_cq *cq = qp->ex.qp_base.recv_cq;

	check_no_srq(NULL, cq, ALL);
	check_no_srq(&xrcd, NULL, ALL);
	check_no_srq(&xrcd, cq, ALL & ~IBV_SRQ_INIT_ATTR_CQ);
	check_no_srq(&xrcd, cq, ALL & ~IBV_SRQ_INIT_ATTR_XRCD);
	check_no_srq(&xrcd, cq, ALL & ~IBV_SRQ_INIT_ATTR_PD);
}

/* --- tables of GIDs --- */

Test(refuse, gid_entries_of_no_size)
{
	struct ibv_gid_entry entry;

	commands = script.commands;
	cr_assert_eq(_ibv_query_gid_table(context, &entry, 1, 0, 0), -EINVAL);
	cr_assert_eq(_ibv_query_gid_table(context, &entry, 1, 1, sizeof entry), -EOPNOTSUPP);
	cr_assert_eq(script.commands, commands);
}

/* --- rules --- */

union action {
	struct ibv_flow_spec_action_tag tag;
	struct ibv_flow_spec_action_drop drop;
	struct ibv_flow_spec_action_handle handle;
	struct ibv_flow_spec_counter_action count;
};

/* A rule of that action: 0 or the errno. */
static int try_action(union action action)
{
	struct { struct ibv_flow_attr attr; uint8_t behind[sizeof action]; } rule = {
		.attr = { .num_of_specs = 1 },
	};
	struct ibv_flow *flow;
	int error;

	/* Directly behind, at no particular address. */
	memcpy(&rule.attr + 1, &action, sizeof action);
	commands = script.commands;
	errno = 0;
	flow = ibv_create_flow(vb_qp_base(qp), &rule.attr);
	error = flow ? 0 : errno;
	cr_assert_eq(script.commands, commands + (error ? 0 : 1));
	if (flow)
		cr_assert_eq(ibv_destroy_flow(flow), 0);
	return error;
}

Test(refuse, actions_that_are_cut_short)
{
	union action tag = { .tag = { IBV_FLOW_SPEC_ACTION_TAG, sizeof tag.tag, 7 } };
	union action drop = { .drop = { IBV_FLOW_SPEC_ACTION_DROP,
					      sizeof drop.drop } };

	cr_assert_eq(try_action(tag), 0);
	tag.tag.size--;
	cr_assert_eq(try_action(tag), EINVAL);
	tag.tag.size = 0;
	cr_assert_eq(try_action(tag), EINVAL);
	cr_assert_eq(try_action(drop), 0);
	drop.drop.size = 0;
	cr_assert_eq(try_action(drop), EINVAL);
}

Test(refuse, counting_without_counters)
{
	struct ibv_counters_init_attr none = { 0 };
	struct ibv_counter_attach_attr packets = { .counter_desc = IBV_COUNTER_PACKETS };
	union action count = {
		.count = { IBV_FLOW_SPEC_ACTION_COUNT, sizeof count.count, NULL },
	};

	cr_assert_eq(try_action(count), EINVAL);
	count.count.counters = ibv_create_counters(context, &none);
	cr_assert(count.count.counters);
	cr_assert_eq(try_action(count), EINVAL, "they count nothing");
	cr_assert_eq(ibv_attach_counters_point_flow(count.count.counters, &packets, NULL), 0);
	cr_assert_eq(try_action(count), 0);
	count.count.size = sizeof(struct ibv_flow_spec_action_drop);
	cr_assert_eq(try_action(count), EINVAL, "the pointer is not in it");
	cr_assert_eq(ibv_destroy_counters(count.count.counters), 0);
}

Test(refuse, actions_that_nobody_knows)
{
	union action other = { .handle = { IBV_FLOW_SPEC_ACTION_HANDLE, sizeof other, NULL } };

	cr_assert_eq(try_action(other), EINVAL);
	other.tag.type = (enum ibv_flow_spec_type)(IBV_FLOW_SPEC_ACTION_COUNT + 1);
	cr_assert_eq(try_action(other), EINVAL);
	other.tag.type = (enum ibv_flow_spec_type)0xfff;
	cr_assert_eq(try_action(other), EINVAL);
}
