/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: what may be created, and what modify_qp does and refuses.
 */
#include "tests/unit/obj_world.h"
#include "hw-models/ib_packet.h"

#define ADDR(p)	((uint64_t)(uintptr_t)(p))
#define INIT_MASK	(A_STATE | A_PKEY | A_PORT | A_ACCESS)
#define RTR_MASK	(A_STATE | A_AV | A_MTU | A_DEST_QPN | A_RQ_PSN | A_MAX_DEST_RD | A_MIN_RNR)
#define RTS_MASK	(A_STATE | A_TIMEOUT | A_RETRY | A_RNR | A_SQ_PSN | A_MAX_RD)
#define RIGHTS		(KEY_LOCAL_WRITE | KEY_REMOTE_WRITE | KEY_REMOTE_READ)

static struct emu_dev *dev;
static struct emu_pd *pd;
static struct emu_cq *send_cq, *recv_cq;
static struct emu_channel *async;
static int async_fd;
static uint8_t *buf;
static struct qp_init init;
static struct emu_qp *qp;

/* Good attributes for every edge. */
static const struct qp_attr attr_init = { .state = QP_INIT, .port = 1, .access = RIGHTS };
static struct qp_attr attr_rtr = {
	.state = QP_RTR, .path_mtu = 3, .dest_qpn = 0x1000123, .rq_psn = 0x2000007,
	.max_dest_rd_atomic = 3, .min_rnr_timer = 12,
	.path = { .is_global = 1, .sgid_index = 0, .port = 1, .hop_limit = 64 },
};
static const struct qp_attr attr_rts = {
	.state = QP_RTS, .timeout = 14, .retry_cnt = 6, .rnr_retry = 5, .sq_psn = 0xf0abcdef,
	.max_rd_atomic = 5,
};

static struct emu_cq *new_cq(void)
{
	struct cq_init ci = {
		.buf_addr = ADDR(world_pages(1)), .db_addr = ADDR(world_pages(1)), .cqe = 15,
		.cqe_bytes = 64,
	};
	struct emu_cq *cq;

	CHECK_INT(cq_create(dev, &ci, &cq), 0);
	return cq;
}

static void start(void)
{
	memcpy(attr_rtr.path.dgid, world_peer, 16);
	dev = world_dev();
	CHECK_INT(pd_create(dev, &pd), 0);
	send_cq = new_cq();
	recv_cq = new_cq();
	CHECK_INT(channel_create(EVENT_ASYNC_BYTES, &async, &async_fd), 0);
	buf = world_pages(16);
	init = (struct qp_init){
		.type = QPT_RC, .user_handle = 0xabcdef0011223344, .pd = pd, .send_cq = send_cq,
		.recv_cq = recv_cq, .async = async, .buf_addr = ADDR(buf),
		.db_addr = ADDR(world_pages(1)), .sq_blocks = 64, .rq_count = 32, .rq_stride = 32,
		.user_index = 9, .max_send_wr = 60, .max_recv_wr = 31, .max_send_sge = 4,
		.max_recv_sge = 2, .max_inline = 64, .signals_all = true,
	};
}

TestSuite(qp_obj, .init = start);

static void create(void)
{
	CHECK_INT(qp_create(dev, &init, &qp), 0);
}

static void destroy(uint32_t events)
{
	uint32_t got = 99;

	CHECK_INT(qp_destroy(dev, qp, &got), 0);
	CHECK_INT(got, events);
}

static int modify(struct qp_attr attr, uint32_t mask)
{
	return qp_modify(dev, qp, &attr, mask);
}

static void bring_to(enum qp_state state)
{
	create();
	if (state >= QP_INIT)
		CHECK_INT(modify(attr_init, INIT_MASK), 0);
	if (state >= QP_RTR)
		CHECK_INT(modify(attr_rtr, RTR_MASK), 0);
	if (state >= QP_RTS)
		CHECK_INT(modify(attr_rts, RTS_MASK), 0);
	CHECK_INT(qp->state, state);
}

/* --- create and destroy --- */

Test(qp_obj, the_receive_queue_comes_before_the_send_queue)
{
	create();
	CHECK_INT(qp->rq_addr, ADDR(buf));
	CHECK_INT(qp->sq_addr, ADDR(buf) + 32 * 32);
	CHECK_INT(qp->state, QP_RESET);
	CHECK_INT(qp->obj.type, OBJ_QP);
	CHECK_INT(qp->pdn, pd->pdn);
	CHECK_INT(qp->pkey, 0xffff);
	CHECK_INT(qp->user_index, 9);
	cr_assert(qp->signals_all && qp->dev == dev && qp_find(dev, qp->qpn) == qp);
	cr_assert_geq(qp->qpn, 2);
	qp->req.sent[63].psn = 1;	/* a sanitizer watches */
	destroy(0);
}

Test(qp_obj, what_it_needs_is_counted)
{
	uint32_t a, b;

	create();
	CHECK_INT(pd->obj.users, 1);
	CHECK_INT(channel_obj(async)->users, 1);
	CHECK_REFUSED(pd_destroy(dev, pd), -EBUSY, WHY_CMD_BUSY);
	CHECK_REFUSED(cq_destroy(dev, send_cq, &a, &b), -EBUSY, WHY_CMD_BUSY);
	CHECK_REFUSED(cq_destroy(dev, recv_cq, &a, &b), -EBUSY, WHY_CMD_BUSY);
	destroy(0);
	CHECK_INT(cq_destroy(dev, send_cq, &a, &b), 0);
	CHECK_INT(cq_destroy(dev, recv_cq, &a, &b), 0);
	CHECK_INT(pd_destroy(dev, pd), 0);
	CHECK_INT(channel_obj(async)->users, 0);
	world_end(dev);
}

Test(qp_obj, one_cq_may_serve_both_directions)
{
	init.recv_cq = send_cq;
	create();
	CHECK_INT(send_cq->obj.users, 2);
	destroy(0);
	CHECK_INT(send_cq->obj.users, 0);
}

Test(qp_obj, queues_may_be_absent)
{
	init.sq_blocks = init.rq_count = init.rq_stride = 0;
	init.buf_addr = 0;
	create();
	qp->req.sent[0].psn = 1;
	destroy(0);
}

#define REFUSED_WITH(change, rc, why)                              \
	do {                                                       \
		struct qp_init bad = init;                         \
		bad.change;                                        \
		CHECK_REFUSED(qp_create(dev, &bad, &qp), rc, why); \
	} while (0)

Test(qp_obj, creation_checks_values)
{
	REFUSED_WITH(sq_blocks = 3, -EINVAL, WHY_CMD_VALUE);
	REFUSED_WITH(sq_blocks = 2048, -EINVAL, WHY_CMD_VALUE);
	REFUSED_WITH(sq_blocks = 1u << 31, -EINVAL, WHY_CMD_VALUE);
	REFUSED_WITH(rq_count = 33, -EINVAL, WHY_CMD_VALUE);
	REFUSED_WITH(rq_count = 2048, -EINVAL, WHY_CMD_VALUE);
	REFUSED_WITH(rq_stride = 0, -EINVAL, WHY_CMD_VALUE);
	REFUSED_WITH(rq_stride = 8, -EINVAL, WHY_CMD_VALUE);
	REFUSED_WITH(rq_stride = 48, -EINVAL, WHY_CMD_VALUE);
	REFUSED_WITH(rq_stride = 1024, -EINVAL, WHY_CMD_VALUE);
	REFUSED_WITH(db_addr += 4, -EINVAL, WHY_CMD_VALUE);
	REFUSED_WITH(buf_addr += 32, -EINVAL, WHY_CMD_VALUE);
	REFUSED_WITH(user_index = 0x1000000, -EINVAL, WHY_CMD_VALUE);
	REFUSED_WITH(type = QPT_COUNT, -EINVAL, WHY_CMD_VALUE);
	REFUSED_WITH(pd = NULL, -EINVAL, WHY_CMD_VALUE);
	REFUSED_WITH(send_cq = NULL, -EINVAL, WHY_CMD_VALUE);
	REFUSED_WITH(recv_cq = NULL, -EINVAL, WHY_CMD_VALUE);
	REFUSED_WITH(db_addr = 8, -EFAULT, WHY_CMD_MEMORY);
	REFUSED_WITH(buf_addr = 0, -EFAULT, WHY_CMD_MEMORY);
	REFUSED_WITH(buf_addr = 0xffff800000000000ull, -EFAULT, WHY_CMD_MEMORY);
	munmap(buf + WORLD_PAGE, WORLD_PAGE);
	REFUSED_WITH(sq_blocks = 64, -EFAULT, WHY_CMD_MEMORY);
	CHECK_INT(pd->obj.users + send_cq->obj.users + recv_cq->obj.users, 0);
	CHECK_INT(dev->qpns.taken, 0);
}

Test(qp_obj, numbers_run_out)
{
	for (unsigned i = 0; i < world_profile.max_qp; i++)
		create();
	CHECK_REFUSED(qp_create(dev, &init, &qp), -ENOMEM, WHY_CMD_LIMIT);
}

Test(qp_obj, a_used_qp_stays)
{
	uint32_t events;

	create();
	qp->obj.users = 1;
	CHECK_REFUSED(qp_destroy(dev, qp, &events), -EBUSY, WHY_CMD_BUSY);
	qp->obj.users = 0;
	destroy(0);
}

Test(qp_obj, destruction_takes_unread_events_back)
{
	struct { uint64_t element; uint32_t type, zero; } event;

	create();
	qp_event(qp, 1);
	qp_event(qp, 3);
	CHECK_INT(read(async_fd, &event, 16), 16);
	CHECK_INT(event.element, 0xabcdef0011223344);
	CHECK_INT(event.type, 1);
	CHECK_INT(event.zero, 0);
	destroy(1);
	CHECK_INT(recv(async_fd, &event, 16, MSG_DONTWAIT), -1);
}

Test(qp_obj, a_qp_without_async_file_has_no_events)
{
	init.async = NULL;
	create();
	qp_event(qp, 1);
	destroy(0);
}

/* --- modify: the way up --- */

Test(qp_obj, init_takes_rights)
{
	bring_to(QP_INIT);
	CHECK_INT(qp->resp->access, RIGHTS);
	CHECK_INT(qp->attr.port, 1);
	CHECK_INT(qp->attr.state, QP_INIT);
	CHECK_INT(qp->work, 0);
}

Test(qp_obj, rtr_readies_the_responder)
{
	bring_to(QP_RTR);
	CHECK_INT(qp->dest_qpn, 0x000123);
	CHECK_INT(qp->attr.dest_qpn, 0x000123);
	CHECK_INT(qp->resp->psn_expected, 0x000007);
	CHECK_INT(qp->attr.rq_psn, 0x000007);
	CHECK_INT(qp->mtu_bytes, 1024);
	CHECK_INT(qp->resp->resource_limit, 4);
	CHECK_INT(qp->attr.max_dest_rd_atomic, 4);
	CHECK_INT(qp->attr.min_rnr_timer, 12);
	cr_assert(!memcmp(qp->dgid, world_peer, 16) && !memcmp(qp->sgid, world_gid, 16));
	CHECK_INT(qp->work, 0);
}

Test(qp_obj, rts_readies_the_requester)
{
	bring_to(QP_RTS);
	CHECK_INT(qp->req.psn_next, 0xabcdef);
	CHECK_INT(qp->req.psn_una, 0xabcdef);
	CHECK_INT(qp->attr.sq_psn, 0xabcdef);
	CHECK_INT(qp->attr.max_rd_atomic, 8);
	CHECK_INT(qp->req.retries_left, 6);
	CHECK_INT(qp->req.rnr_left, 5);
	CHECK_INT(qp->attr.timeout, 14);
	CHECK_INT(qp->work, QP_WORK_DOORBELL);
	CHECK_INT(qp->attr.state, QP_RTS);
	CHECK_INT(qp->attr.cur_state, QP_RTS);
	cr_assert_eq(world_why.made, 0);
}

Test(qp_obj, rd_limits_are_rounded_as_the_device_keeps_them)
{
	static const uint8_t row[][2] = {
		{ 0, 0 }, { 1, 1 }, { 2, 2 }, { 3, 4 }, { 5, 8 }, { 9, 16 }, { 16, 16 },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct qp_attr a = attr_rtr;

		bring_to(QP_INIT);
		a.max_dest_rd_atomic = row[i][0];
		CHECK_INT(modify(a, RTR_MASK), 0);
		CHECK_INT(qp->resp->resource_limit, row[i][1]);
		CHECK_INT(qp->attr.max_dest_rd_atomic, row[i][1]);
		destroy(0);
	}
}

Test(qp_obj, attributes_of_rts_to_rts_are_taken)
{
	bring_to(QP_RTS);
	CHECK_INT(modify((struct qp_attr){ .min_rnr_timer = 3 }, A_MIN_RNR), 0);
	CHECK_INT(qp->attr.min_rnr_timer, 3);
	CHECK_INT(modify((struct qp_attr){ .access = KEY_REMOTE_READ }, A_ACCESS), 0);
	CHECK_INT(qp->resp->access, KEY_REMOTE_READ);
	CHECK_INT(qp->attr.access, KEY_REMOTE_READ);
	CHECK_INT(modify((struct qp_attr){ .cur_state = QP_RTS }, A_CUR_STATE), 0);
	CHECK_INT(modify((struct qp_attr){ 0 }, 0), 0);
	CHECK_INT(qp->req.psn_next, 0xabcdef);
	CHECK_INT(qp->attr.timeout, 14);
	CHECK_INT(qp->state, QP_RTS);
}

/* --- modify: down --- */

Test(qp_obj, reset_forgets_everything_but_the_queues)
{
	struct rc_sent *sent;
	struct rc_req empty;

	bring_to(QP_RTS);
	sent = qp->req.sent;
	qp->req.sq_produced = qp->req.sq_done = qp->req.sent_head = 17;
	qp->req.deadline_ns = 5;
	qp->answers.rq_consumed = qp->resp->msn = 4;
	qp->answers.resource_made = 2;
	qp->work = QP_WORK_FLUSH | QP_WORK_RESPOND;
	qp->is_armed_fatal = qp->is_established = qp->is_ready = true;
	qp->timer_slot = 3;
	CHECK_INT(modify((struct qp_attr){ .state = QP_RESET }, A_STATE), 0);
	CHECK_INT(qp->state, QP_RESET);
	empty = (struct rc_req){ .sent = sent };
	cr_assert(!memcmp(&qp->req, &empty, sizeof empty));
	CHECK_INT(qp->answers.rq_consumed + qp->resp->msn + qp->answers.resource_made, 0);
	CHECK_INT(qp->work, 0);
	CHECK_INT(qp->is_armed_fatal + qp->is_established, 0);
	CHECK_INT(qp->attr.dest_qpn + qp->attr.timeout + qp->attr.port + qp->resp->access, 0);
	CHECK_INT(qp->dest_qpn, 0);
	CHECK_INT(qp->sq_blocks, 64);
	CHECK_INT(qp->is_ready, 1);	/* the engine's lists are the engine's */
	CHECK_INT(qp->timer_slot, 3);
	CHECK_INT(modify(attr_init, INIT_MASK), 0);
	CHECK_INT(modify(attr_rtr, RTR_MASK), 0);
	CHECK_INT(modify(attr_rts, RTS_MASK), 0);
}

Test(qp_obj, err_asks_for_a_flush)
{
	for (enum qp_state from = QP_INIT; from <= QP_RTS; from++) {
		bring_to(from);
		CHECK_INT(modify((struct qp_attr){ .state = QP_ERR }, A_STATE), 0);
		CHECK_INT(qp->state, QP_ERR);
		cr_assert(qp->work & QP_WORK_FLUSH);
		CHECK_INT(modify((struct qp_attr){ .state = QP_ERR }, A_STATE), 0);
		CHECK_INT(modify((struct qp_attr){ .state = QP_RESET }, A_STATE), 0);
		destroy(0);
	}
}

Test(qp_obj, reset_to_reset_is_fine_and_reset_to_err_is_not)
{
	create();
	CHECK_INT(modify((struct qp_attr){ .state = QP_RESET }, A_STATE), 0);
	CHECK_REFUSED(modify((struct qp_attr){ .state = QP_ERR }, A_STATE), -EINVAL,
		      WHY_MODIFY_EDGE);
	CHECK_INT(qp->state, QP_RESET);
}

Test(qp_obj, mlx5_does_not_drain_a_send_queue)
{
	bring_to(QP_RTS);
	CHECK_REFUSED(modify((struct qp_attr){ .state = QP_SQD }, A_STATE), -EINVAL,
		      WHY_MODIFY_EDGE);
	CHECK_REFUSED(modify((struct qp_attr){ .state = QP_SQD }, A_STATE | A_EN_SQD_NOTIFY),
		      -EINVAL, WHY_MODIFY_EDGE);
	CHECK_INT(qp->state, QP_RTS);
}

/* --- modify: refusals --- */

Test(qp_obj, masks_and_states_are_checked)
{
	bring_to(QP_RTS);
	CHECK_REFUSED(modify(attr_rts, 1u << 30), -EOPNOTSUPP, WHY_MODIFY_MASK);
	CHECK_REFUSED(modify(attr_rts, A_RATE_LIMIT), -EINVAL, WHY_MODIFY_MASK);
	CHECK_REFUSED(modify(attr_rts, 1u << 24), -EOPNOTSUPP, WHY_MODIFY_MASK);
	CHECK_REFUSED(modify((struct qp_attr){ .state = 7 }, A_STATE), -EINVAL, WHY_MODIFY_VALUE);
	CHECK_REFUSED(modify((struct qp_attr){ .state = 255 }, A_STATE), -EINVAL,
		      WHY_MODIFY_VALUE);
	CHECK_REFUSED(modify((struct qp_attr){ .cur_state = QP_INIT }, A_CUR_STATE), -EINVAL,
		      WHY_MODIFY_VALUE);
	CHECK_REFUSED(modify((struct qp_attr){ .cur_state = 200 }, A_CUR_STATE), -EINVAL,
		      WHY_MODIFY_VALUE);
	CHECK_REFUSED(modify(attr_rts, A_TIMEOUT), -EINVAL, WHY_MODIFY_MASK);
	CHECK_REFUSED(modify(attr_rts, A_CAP), -EINVAL, WHY_MODIFY_MASK);
	CHECK_REFUSED(modify(attr_init, INIT_MASK), -EINVAL, WHY_MODIFY_EDGE);
}

Test(qp_obj, a_missing_attribute_leaves_the_state)
{
	bring_to(QP_INIT);
	for (int bit = 1; bit < 22; bit++)
		if (RTR_MASK & 1u << bit) {
			CHECK_REFUSED(modify(attr_rtr, RTR_MASK & ~(1u << bit)), -EINVAL,
				      WHY_MODIFY_MASK);
			CHECK_INT(qp->state, QP_INIT);
			CHECK_INT(qp->dest_qpn, 0);
		}
}

#define VALUE_REFUSED(from, base, mask, change) VALUE_ERRNO(from, base, mask, change, -EINVAL)
#define VALUE_ERRNO(from, base, mask, change, errno_)                              \
	do {                                                                       \
		struct qp_attr bad_ = base, kept_;                                 \
		bring_to(from);                                                    \
		kept_ = qp->attr;                                                  \
		bad_.change;                                                       \
		CHECK_REFUSED(modify(bad_, mask), errno_, WHY_MODIFY_VALUE);       \
		CHECK_INT(qp->state, from);                                        \
		cr_assert(!memcmp(&kept_, &qp->attr, sizeof kept_), "%s", #change); \
		destroy(0);                                                        \
	} while (0)

Test(qp_obj, values_of_init_are_checked)
{
	VALUE_REFUSED(QP_RESET, attr_init, INIT_MASK, port = 0);
	VALUE_REFUSED(QP_RESET, attr_init, INIT_MASK, port = 2);
	VALUE_REFUSED(QP_RESET, attr_init, INIT_MASK, pkey_index = 1);
	VALUE_REFUSED(QP_RESET, attr_init, INIT_MASK, pkey_index = 0xffff);
	VALUE_REFUSED(QP_RESET, attr_init, INIT_MASK, access = 0xffffff);
	VALUE_REFUSED(QP_RESET, attr_init, INIT_MASK, access = 1u << 31);
}

Test(qp_obj, values_of_rtr_are_checked)
{
	VALUE_REFUSED(QP_INIT, attr_rtr, RTR_MASK, path.is_global = 0);
	VALUE_ERRNO(QP_INIT, attr_rtr, RTR_MASK, path.sgid_index = 1, -ENODATA);
	VALUE_ERRNO(QP_INIT, attr_rtr, RTR_MASK, path.sgid_index = 2, -ENODATA);
	VALUE_REFUSED(QP_INIT, attr_rtr, RTR_MASK, path.sgid_index = 255);
	VALUE_REFUSED(QP_INIT, attr_rtr, RTR_MASK, path.port = 0);
	VALUE_REFUSED(QP_INIT, attr_rtr, RTR_MASK, path.port = 2);
	VALUE_REFUSED(QP_INIT, attr_rtr, RTR_MASK,
		      path = ((struct qp_path){ .is_global = 1, .port = 1 }));
	VALUE_REFUSED(QP_INIT, attr_rtr, RTR_MASK, path_mtu = 0);
	VALUE_REFUSED(QP_INIT, attr_rtr, RTR_MASK, path_mtu = 5);	/* above the port's */
	VALUE_REFUSED(QP_INIT, attr_rtr, RTR_MASK, path_mtu = 6);
	VALUE_REFUSED(QP_INIT, attr_rtr, RTR_MASK, max_dest_rd_atomic = 17);
	VALUE_REFUSED(QP_INIT, attr_rtr, RTR_MASK, min_rnr_timer = 32);
	VALUE_REFUSED(QP_INIT, attr_rtr, RTR_MASK | A_ALT, alt_port = 1);
	VALUE_REFUSED(QP_INIT, attr_rtr, RTR_MASK | A_PKEY, pkey_index = 1);
}

Test(qp_obj, values_of_rts_are_checked)
{
	VALUE_REFUSED(QP_RTR, attr_rts, RTS_MASK, timeout = 32);
	VALUE_REFUSED(QP_RTR, attr_rts, RTS_MASK, retry_cnt = 8);
	VALUE_REFUSED(QP_RTR, attr_rts, RTS_MASK, rnr_retry = 8);
	VALUE_REFUSED(QP_RTR, attr_rts, RTS_MASK, max_rd_atomic = 17);
	VALUE_REFUSED(QP_RTR, attr_rts, RTS_MASK | A_MIG, mig_state = 3);
}

Test(qp_obj, values_at_their_limits_are_good)
{
	struct qp_attr a = attr_rtr, b = attr_rts;

	bring_to(QP_INIT);
	a.path_mtu = 4;
	a.max_dest_rd_atomic = 16;
	a.min_rnr_timer = 31;
	a.path.dgid[12] = 223;
	CHECK_INT(modify(a, RTR_MASK), 0);
	b.timeout = 31;
	b.retry_cnt = b.rnr_retry = 7;
	b.max_rd_atomic = 16;
	CHECK_INT(modify(b, RTS_MASK), 0);
	CHECK_INT(qp->mtu_bytes, 2048);
}

Test(qp_obj, infiniband_needs_no_grh)
{
	static struct hw_profile ib;
	struct qp_attr a = attr_rtr;
	uint8_t lid[16];

	ib = world_profile;
	ib.link = HW_LINK_INFINIBAND;
	dev->profile = &ib;
	a.path.is_global = 0;
	a.path.sgid_index = 200;
	bring_to(QP_INIT);
	a.path.dlid = 0x1234;
	CHECK_INT(modify(a, RTR_MASK), 0);
	ib_lid_as_gid(0x1234, lid);
	cr_assert(!memcmp(qp->dgid, lid, 16));
	ib_lid_as_gid(dev->lid, lid);
	cr_assert(!memcmp(qp->sgid, lid, 16));
}

/* Of the path bits as many count as the port has; the destination's are the destination's. */
Test(qp_obj, path_bits_choose_the_source)
{
	static struct hw_profile ib;
	struct qp_attr a = attr_rtr;

	ib = world_profile;
	ib.link = HW_LINK_INFINIBAND;
	dev->profile = &ib;
	dev->lid = 0x1200;
	dev->lmc = 3;
	a.path.is_global = 0;
	a.path.dlid = 0x1237;
	a.path.src_path_bits = 0x7d;
	bring_to(QP_INIT);
	CHECK_INT(modify(a, RTR_MASK), 0);
	CHECK_INT(ib_gid_lid(qp->sgid), 0x1205);
	CHECK_INT(ib_gid_lid(qp->resp->sgid), 0x1205);
	CHECK_INT(ib_gid_lid(qp->dgid), 0x1237);
	CHECK_INT(qp->attr.path.src_path_bits, 0x7d);
	dev->lmc = 7;
	qp_source_apply(qp);
	CHECK_INT(ib_gid_lid(qp->sgid), 0x127d);
	CHECK_INT(ib_gid_lid(qp->resp->sgid), 0x127d);
}
