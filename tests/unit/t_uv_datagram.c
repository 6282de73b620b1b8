/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands about datagrams: QPs of type UD, their Q_Keys, and the port's counters.
 */
#include <linux/capability.h>
#include <sys/syscall.h>
#include "tests/unit/uv_world.h"

struct rig {
	struct uv_world w;
	uint32_t pd;
	struct qp_ask qp;
};

static struct rig rig_new(void)
{
	struct rig r = { .w = uv_world_new() };
	struct cq_ask cq = cq_ask_new(&r.w);

	r.pd = pd_alloc(&r.w);
	CHECK_INT(cq_make(&r.w, &cq), 0);
	r.qp = qp_ask_new(&r.w, r.pd, cq.handle);
	r.qp.type = IB_UVERBS_QPT_UD;
	return r;
}

static int modify(const struct rig *r, uint8_t state, uint32_t mask, uint32_t qkey)
{
	struct ib_uverbs_modify_qp in = {
		.qp_handle = r->qp.handle, .attr_mask = A_STATE | mask, .qp_state = state,
		.port_num = 1, .qkey = qkey,
	};
	struct cmd c = cmd_write(IB_USER_VERBS_CMD_MODIFY_QP, &in, sizeof in, NULL, 0);

	return cmd_run(&r->w, &c);
}

Test(uv_datagram, a_ud_qp_has_the_ports_mtu_and_its_qkey)
{
	struct rig r = rig_new();
	struct emu_qp *qp;

	CHECK_INT(qp_make(&r.w, &r.qp), 0);
	qp = qp_find(r.w.dev, r.qp.qpn);
	CHECK_INT(qp->type, QPT_UD);
	CHECK_REFUSED(modify(&r, QP_INIT, A_PKEY | A_PORT, 0), -EINVAL, WHY_MODIFY_MASK);
	CHECK_INT(modify(&r, QP_INIT, A_PKEY | A_PORT | A_QKEY, 0x1234), 0);
	CHECK_INT(qp->mtu_bytes, 4096);
	CHECK_INT(qp->attr.qkey, 0x1234);
	CHECK_INT(modify(&r, QP_RTR, 0, 0), 0);
	CHECK_INT(modify(&r, QP_RTS, A_SQ_PSN, 0), 0);
	CHECK_INT(modify(&r, QP_RTS, A_QKEY, 0x5678), 0);
	CHECK_INT(qp->attr.qkey, 0x5678);
	uv_world_end(&r.w);
}

static bool set_net_raw(bool wants)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data))
		return false;
	if (wants)
		data[0].effective |= 1u << CAP_NET_RAW;
	else
		data[0].effective &= ~(1u << CAP_NET_RAW);
	return !syscall(SYS_capset, &header, data);
}

Test(uv_datagram, controlled_qkeys_are_for_the_privileged)
{
	struct rig r = rig_new();

	CHECK_INT(qp_make(&r.w, &r.qp), 0);
	CHECK_INT(set_net_raw(false), true);
	CHECK_REFUSED(modify(&r, QP_INIT, A_PKEY | A_PORT | A_QKEY, 0x80010000), -EPERM,
		      WHY_CMD_CAPABILITY);
	CHECK_INT(modify(&r, QP_INIT, A_PKEY | A_PORT | A_QKEY, 0x7fffffff), 0);
	CHECK_INT(modify(&r, QP_RTR, 0, 0x80000000), 0);	/* not asked to set it */
	if (set_net_raw(true))
		CHECK_INT(modify(&r, QP_RTR, A_QKEY, 0x80010000), -EINVAL);	/* the edge */
	uv_world_end(&r.w);
}

Test(uv_datagram, controlled_qkeys_can_be_for_all_or_for_nobody)
{
	struct rig r = rig_new();

	CHECK_INT(qp_make(&r.w, &r.qp), 0);
	r.w.dev->options.net_raw = NET_RAW_DENY;
	CHECK_REFUSED(modify(&r, QP_INIT, A_PKEY | A_PORT | A_QKEY, 0x80010000), -EPERM,
		      WHY_CMD_CAPABILITY);
	CHECK_INT(set_net_raw(false), true);
	r.w.dev->options.net_raw = NET_RAW_ALLOW;
	CHECK_INT(modify(&r, QP_INIT, A_PKEY | A_PORT | A_QKEY, 0x80010000), 0);
	uv_world_end(&r.w);
}

Test(uv_datagram, violations_are_counted_by_the_port)
{
	struct rig r = rig_new();
	struct cmd c = cmd_new(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
	struct ib_uverbs_query_port_resp_ex port;

	r.w.dev->port.bad_pkeys = 3;
	r.w.dev->port.qkey_violations = 5;
	cmd_u64(&c, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 1);
	cmd_out(&c, UVERBS_ATTR_QUERY_PORT_RESP, &port, sizeof port);
	CHECK_INT(cmd_run(&r.w, &c), 0);
	CHECK_INT(port.legacy_resp.bad_pkey_cntr, 3);
	CHECK_INT(port.legacy_resp.qkey_viol_cntr, 5);
	uv_world_end(&r.w);
}

static int mcast(const struct rig *r, uint32_t command, uint8_t first, uint16_t mlid)
{
	struct ib_uverbs_attach_mcast in = { .gid = { first, 0x0e, [15] = 1 },
					     .qp_handle = r->qp.handle, .mlid = mlid };
	struct cmd c = cmd_write(command, &in, sizeof in, NULL, 0);

	return cmd_run(&r->w, &c);
}

#define ATTACH(r, first, mlid)	mcast(r, IB_USER_VERBS_CMD_ATTACH_MCAST, first, mlid)
#define DETACH(r, first, mlid)	mcast(r, IB_USER_VERBS_CMD_DETACH_MCAST, first, mlid)

Test(uv_datagram, an_attached_qp_stays)
{
	struct rig r = rig_new();

	CHECK_INT(qp_make(&r.w, &r.qp), 0);
	CHECK_REFUSED(ATTACH(&r, 0xfe, 0), -EINVAL, WHY_MULTICAST_GROUP);
	CHECK_INT(ATTACH(&r, 0xff, 0), 0);
	CHECK_REFUSED(qp_free(&r.w, r.qp.handle), -EBUSY, WHY_CMD_BUSY);
	CHECK_REFUSED(DETACH(&r, 0xff, 1), -EINVAL, WHY_MULTICAST_GROUP);
	CHECK_INT(DETACH(&r, 0xff, 0), 0);
	CHECK_INT(qp_free(&r.w, r.qp.handle), 0);
	uv_world_end(&r.w);
}

Test(uv_datagram, closing_the_file_detaches_all)
{
	struct rig r = rig_new();

	CHECK_INT(qp_make(&r.w, &r.qp), 0);
	for (uint16_t mlid = 0; mlid < 100; mlid++)
		CHECK_INT(ATTACH(&r, 0xff, mlid), 0);
	uv_file_close(r.w.file);
	CHECK_INT(r.w.dev->mcast.group_count, 0);
	engine_destroy(r.w.engine);
	world_end(r.w.dev);
}

Test(uv_datagram, loopback_can_be_blocked)
{
	struct rig r = rig_new();

	r.qp.flags = IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
	CHECK_INT(qp_make(&r.w, &r.qp), 0);
	CHECK_INT(qp_find(r.w.dev, r.qp.qpn)->blocks_loopback, true);
	uv_world_end(&r.w);
}
