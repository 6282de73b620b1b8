/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that were linked with libibverbs 1.0: the functions of version IBVERBS_1.0, and the
 * objects of that time, which a header of then would describe.
 *
 * Rules: binary-compat "Symbols"; symbols/exports-libibverbs44.txt.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include "harness/check.h"

#define ON_QP (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)

TestSuite(old, .timeout = 60);

static const char *const names[] = {
	"ibv_ack_async_event", "ibv_ack_cq_events", "ibv_alloc_pd", "ibv_attach_mcast",
	"ibv_close_device", "ibv_create_ah", "ibv_create_cq", "ibv_create_qp", "ibv_create_srq",
	"ibv_dealloc_pd", "ibv_dereg_mr", "ibv_destroy_ah", "ibv_destroy_cq", "ibv_destroy_qp",
	"ibv_destroy_srq", "ibv_detach_mcast", "ibv_free_device_list", "ibv_get_async_event",
	"ibv_get_cq_event", "ibv_get_device_guid", "ibv_get_device_list", "ibv_get_device_name",
	"ibv_modify_qp", "ibv_modify_srq", "ibv_open_device", "ibv_query_device", "ibv_query_gid",
	"ibv_query_pkey", "ibv_query_port", "ibv_query_qp", "ibv_query_srq", "ibv_reg_mr",
	"ibv_resize_cq",
};

struct recv_wr { struct recv_wr *next; uint64_t wr_id; struct ibv_sge *sg_list; int num_sge; };

struct context {
	void *device;
	struct {
		void *first[7];
		int (*poll_cq)(void *cq, int count, struct ibv_wc *wc);
		int (*req_notify_cq)(void *cq, int solicited_only);
		void *second[7];
		int (*post_srq_recv)(void *srq, struct recv_wr *wr, struct recv_wr **bad);
		void *third[4];
		int (*post_send)(void *qp, void *wr, void **bad);
		int (*post_recv)(void *qp, struct recv_wr *wr, struct recv_wr **bad);
		void *fourth[4];
	} ops;
	int cmd_fd, async_fd, num_comp_vectors;
};

struct mr { void *context, *pd; uint32_t handle, lkey, rkey; };
struct cq { void *context, *cq_context; uint32_t handle; int cqe; };
struct srq { void *context, *srq_context; };
struct qp { void *context, *qp_context, *pd, *cq[2], *srq; uint32_t handle, qp_num; };

struct init_attr {
	void *qp_context, *send_cq, *recv_cq, *srq;
	struct ibv_qp_cap cap;
	enum ibv_qp_type type;
	int sq_sig_all;
};

struct send_wr {
	struct send_wr *next;
	uint64_t wr_id;
	struct ibv_sge *sg_list;
	int num_sge;
	enum ibv_wr_opcode opcode;
	int send_flags;
	uint32_t imm_data;
	struct { void *ah; uint32_t qpn, qkey; uint64_t rest[2]; } ud;
};

static void *find(const char *name, const char *version)
{
	static void *library;

	if (!library)
		library = dlopen("libibverbs.so.1", RTLD_NOW);
	cr_assert_not_null(library);
	return dlvsym(library, name, version);
}

/* What such a program calls. */
#define CALL(type, name, ...) ((type (*)(__VA_ARGS__))(uintptr_t)find(name, "IBVERBS_1.0"))

static void *call(const char *name, void *object)
{
	return CALL(void *, name, void *)(object);
}

static int end(const char *name, void *object)
{
	return CALL(int, name, void *)(object);
}

struct rig {
	void **list;
	struct context *c;
	void *pd;
	struct cq *cq;
	struct qp *qp;
	struct mr *mr;
	uint8_t *buf;
};

static void rig_open(struct rig *r, enum ibv_qp_type type)
{
	struct init_attr init = { .qp_context = r, .type = type, .sq_sig_all = 1,
				  .cap = { 4, 4, 1, 1, 0 } };

	r->cq = CALL(void *, "ibv_create_cq", void *, int, void *, void *, int)(r->c, 10, r, NULL,
										 0);
	cr_assert_not_null(r->cq);
	init.send_cq = init.recv_cq = r->cq;
	r->qp = CALL(void *, "ibv_create_qp", void *, void *)(r->pd, &init);
	cr_assert_not_null(r->qp);
	r->buf = aligned_alloc(4096, 4096);
	r->mr = CALL(void *, "ibv_reg_mr", void *, void *, size_t, int)(r->pd, r->buf, 4096,
								       IBV_ACCESS_LOCAL_WRITE);
	cr_assert_not_null(r->mr);
}

static void device_begin(struct rig *r)
{
	int count;

	r->list = CALL(void **, "ibv_get_device_list", int *)(&count);
	cr_assert_not_null(r->list);
	cr_assert_eq(count, 1);
	r->c = call("ibv_open_device", r->list[0]);
	cr_assert_not_null(r->c);
	r->pd = call("ibv_alloc_pd", r->c);
	cr_assert_not_null(r->pd);
}

static void device_end(struct rig *r)
{
	cr_expect_eq(end("ibv_dealloc_pd", r->pd), 0);
	cr_expect_eq(end("ibv_close_device", r->c), 0);
	CALL(void, "ibv_free_device_list", void *)(r->list);
}

static void rig_close(struct rig *r)
{
	cr_expect_eq(end("ibv_dereg_mr", r->mr), 0);
	cr_expect_eq(end("ibv_destroy_qp", r->qp), 0);
	cr_expect_eq(end("ibv_destroy_cq", r->cq), 0);
	free(r->buf);
}

static int modify(struct rig *r, struct ibv_qp_attr *attr, int mask)
{
	return CALL(int, "ibv_modify_qp", void *, void *, int)(r->qp, attr, mask);
}

static struct ibv_wc must_poll(struct rig *r)
{
	struct ibv_wc wc;
	int got = 0;

	for (unsigned i = 0; !got && i < 10000000; i++)
		got = r->c->ops.poll_cq(r->cq, 1, &wc);
	cr_assert_eq(got, 1);
	return wc;
}

Test(old, every_function_is_there)
{
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		cr_expect_not_null(find(names[i], "IBVERBS_1.0"), "%s", names[i]);
	cr_expect_not_null(find("ibv_register_driver", "IBVERBS_1.1"));
}

Test(old, objects_say_what_programs_read)
{
	struct ibv_port_attr port;
	struct ibv_device_attr attr;
	struct rig r = { 0 };

	device_begin(&r);
	cr_expect_not_null(call("ibv_get_device_name", r.list[0]));
	cr_assert_eq(CALL(int, "ibv_query_device", void *, void *)(r.c, &attr), 0);
	cr_expect_eq(attr.phys_port_cnt, 1);
	cr_assert_eq(CALL(int, "ibv_query_port", void *, uint8_t, void *)(r.c, 1, &port), 0);
	cr_expect_eq(port.state, IBV_PORT_ACTIVE);
	rig_open(&r, IBV_QPT_RC);
	cr_expect_eq(r.cq->cq_context, &r);
	cr_expect_geq(r.cq->cqe, 10);
	cr_expect_eq(r.qp->qp_context, &r);
	cr_expect_neq(r.qp->qp_num, 0);
	cr_expect_eq(r.qp->cq[0], r.cq);
	cr_expect_eq(r.mr->lkey, r.mr->rkey);
	cr_expect_neq(r.mr->lkey, 0);
	rig_close(&r);
	device_end(&r);
}

Test(old, receives_are_posted_and_flushed)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct recv_wr second = { .wr_id = 8 }, first = { .wr_id = 7, .next = &second };
	struct recv_wr many[8] = { { 0 } }, *bad = NULL;
	struct rig r = { 0 };

	device_begin(&r);
	rig_open(&r, IBV_QPT_RC);
	cr_assert_eq(modify(&r, &attr, ON_QP), 0);
	cr_assert_eq(r.c->ops.post_recv(r.qp, &first, &bad), 0);
	for (unsigned i = 0; i < 7; i++)
		many[i].next = &many[i + 1];
	cr_expect_eq(r.c->ops.post_recv(r.qp, many, &bad), ENOMEM);
	cr_expect_eq(bad, &many[2]);
	attr.qp_state = IBV_QPS_ERR;
	cr_assert_eq(modify(&r, &attr, IBV_QP_STATE), 0);
	for (uint64_t i = 7; i < 9; i++) {
		struct ibv_wc wc = must_poll(&r);

		cr_expect_eq(wc.wr_id, i);
		cr_expect_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
	}
	rig_close(&r);
	device_end(&r);
}

static void ud_begin(struct rig *r)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 5 };

	cr_assert_eq(modify(r, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			    IBV_QP_QKEY), 0);
	attr.qp_state = IBV_QPS_RTR;
	cr_assert_eq(modify(r, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RTS;
	cr_assert_eq(modify(r, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

/* To itself; the address handle is one of that time, too. */
Test(old, a_datagram_arrives)
{
	struct ibv_ah_attr to = { .port_num = 1, .is_global = 1, .grh = { .hop_limit = 1,
				  .sgid_index = 1 } };
	struct ibv_sge in = { .length = 256 }, out = { .length = 64 };
	struct recv_wr recv = { .wr_id = 1, .sg_list = &in, .num_sge = 1 }, *bad_recv;
	struct send_wr send = { .wr_id = 2, .sg_list = &out, .num_sge = 1, .opcode = IBV_WR_SEND };
	struct rig r = { 0 };
	void *bad, *ah;

	device_begin(&r);
	rig_open(&r, IBV_QPT_UD);
	ud_begin(&r);
	cr_assert_eq(CALL(int, "ibv_query_gid", void *, uint8_t, int, void *)(r.c, 1, 1,
									      &to.grh.dgid), 0);
	ah = CALL(void *, "ibv_create_ah", void *, void *)(r.pd, &to);
	cr_assert_not_null(ah);
	memset(r.buf, 0, 1024);
	memset(r.buf + 1024, 0x5a, 64);
	in.addr = (uintptr_t)r.buf;
	out.addr = in.addr + 1024;
	in.lkey = out.lkey = r.mr->lkey;
	send.ud.ah = ah;
	send.ud.qpn = r.qp->qp_num;
	send.ud.qkey = 5;
	cr_assert_eq(r.c->ops.post_recv(r.qp, &recv, &bad_recv), 0);
	cr_assert_eq(r.c->ops.post_send(r.qp, &send, &bad), 0);
	cr_expect_eq(must_poll(&r).status, IBV_WC_SUCCESS);
	cr_expect_eq(must_poll(&r).status, IBV_WC_SUCCESS);
	cr_expect_eq(memcmp(r.buf + 40, r.buf + 1024, 64), 0);
	cr_expect_eq(end("ibv_destroy_ah", ah), 0);
	rig_close(&r);
	device_end(&r);
}

/* A queue that is empty has reached any limit. */
Test(old, an_event_names_the_old_object)
{
	struct ibv_srq_init_attr init = { .srq_context = &init, .attr = { .max_wr = 8,
					  .max_sge = 1 } };
	struct ibv_srq_attr limit = { .srq_limit = 4 };
	struct ibv_async_event event;
	struct rig r = { 0 };
	struct srq *srq;

	device_begin(&r);
	srq = CALL(void *, "ibv_create_srq", void *, void *)(r.pd, &init);
	cr_assert_not_null(srq);
	cr_expect_eq(srq->srq_context, &init);
	cr_assert_eq(CALL(int, "ibv_modify_srq", void *, void *, int)(srq, &limit, IBV_SRQ_LIMIT),
		     0);
	cr_assert_eq(CALL(int, "ibv_get_async_event", void *, void *)(r.c, &event), 0);
	cr_expect_eq(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	cr_expect_eq((void *)event.element.srq, (void *)srq);
	CALL(void, "ibv_ack_async_event", void *)(&event);
	cr_expect_eq(end("ibv_destroy_srq", srq), 0);
	device_end(&r);
}
