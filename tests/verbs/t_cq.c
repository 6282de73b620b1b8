/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues that change: cleaned of a queue that goes, resized, armed.
 *
 * Method: entries are written by hand; what is left must come out in order, with the owner bits of
 * the places where it stands now.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <stdlib.h>
#include <string.h>
#include "hw-models/mlx5_cqe.h"
#include "hw-models/mlx5_doorbell.h"
#include "hw-models/mlx5_opcode.h"
#include "script.h"

#define RECVS 16u

static struct world {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *base;
	struct vb_cq *cq;
	struct ibv_srq *srq;
	struct vb_qp *qp[3];	/* the last one on the shared queue */
	uint32_t written;
} w;

static void world_open(unsigned entry_bytes, int cqe)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = RECVS - 1, .max_sge = 1 } };

	setenv("MLX5_CQE_SIZE", entry_bytes == 128 ? "128" : "64", 1);
	if (!w.context)
		w.context = script_open();
	w.pd = ibv_alloc_pd(w.context);
	w.base = script_cq(w.context, cqe);
	w.cq = vb_cq_of(w.base);
	w.srq = ibv_create_srq(w.pd, &init);
	cr_assert(w.srq);
	for (unsigned i = 0; i < 3; i++)
		w.qp[i] = script_qp(&(struct script_qp){
			.type = IBV_QPT_RC, .pd = w.pd, .send_cq = w.base, .recv_cq = w.base,
			.srq = i == 2 ? w.srq : NULL, .depth = 64, .sges = 1, .inline_bytes = 4,
		});
}

static unsigned both_sizes[] = { 64, 128 };

#define BOTH(name)                                                                   \
	static void name(unsigned entry_bytes);                                      \
	ParameterizedTestParameters(cq, name)                                        \
	{                                                                            \
		return cr_make_param_array(unsigned, both_sizes, 2);                 \
	}                                                                            \
	ParameterizedTest(unsigned *entry_bytes, cq, name) { name(*entry_bytes); }    \
	static void name(unsigned entry_bytes)

/* Starts where the ring's end and a change of the owner bit are near. */
static void begin_at(uint32_t index)
{
	for (uint32_t i = 0; i < index; i++) {
		struct hw_cqe cqe = { .kind = HW_CQE_RECV, .user_index = 0x333333 };

		script_complete(w.cq, i, &cqe);
	}
	w.cq->consumed = w.written = index;
}

static void complete(struct vb_qp *qp, struct hw_cqe cqe)
{
	cqe.user_index = qp->queue.user_index;
	cqe.qpn = qp->ex.qp_base.qp_num;
	script_complete(w.cq, w.written++, &cqe);
}

static void must_post_recv(struct vb_qp *qp, uint64_t wr_id)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id }, *bad;

	cr_assert_eq(qp->srq ? ibv_post_srq_recv(w.srq, &wr, &bad) :
		     ibv_post_recv(vb_qp_base(qp), &wr, &bad), 0);
}

/* A receive of QP @number whose length is @value. */
static void receive(unsigned number, uint32_t value, uint16_t entry)
{
	must_post_recv(w.qp[number], value);
	complete(w.qp[number], (struct hw_cqe){ .kind = HW_CQE_RECV, .bytes = value,
						.wqe_counter = entry });
}

/* What is left, by length; ends with 0. */
static void check_left(const uint32_t *want)
{
	struct ibv_wc wc;

	for (; *want; want++) {
		cr_assert_eq(ibv_poll_cq(w.base, 1, &wc), 1);
		cr_assert_eq(wc.byte_len, *want, "%u instead of %u", wc.byte_len, *want);
		cr_assert_eq(wc.wr_id, *want);
	}
	cr_assert_eq(ibv_poll_cq(w.base, 1, &wc), 0);
	cr_assert_eq(be32toh(w.cq->record[0]), w.cq->consumed & 0xffffff);
}

/* --- cleaning --- */

BOTH(a_queue_that_goes_takes_its_completions_along)
{
	for (uint32_t begin = 0; begin < 17; begin++) {
		world_open(entry_bytes, 7);
		begin_at(begin);
		receive(0, 1, 0);
		receive(1, 2, 0);
		receive(0, 3, 0);
		receive(1, 4, 0);
		receive(1, 5, 0);
		receive(0, 6, 0);
		receive(0, 7, 0);
		receive(1, 8, 0);
		cr_assert_eq(ibv_destroy_qp(vb_qp_base(w.qp[1])), 0);
		cr_assert_eq(be32toh(w.cq->record[0]), begin + 4, "the device may use them again");
		check_left((const uint32_t[]){ 1, 3, 6, 7, 0 });
		/* What comes next is found where the device writes it. */
		receive(0, 9, 0);
		check_left((const uint32_t[]){ 9, 0 });
	}
}

BOTH(only_its_own)
{
	world_open(entry_bytes, 7);
	receive(0, 1, 0);
	receive(0, 2, 0);
	cr_assert_eq(ibv_destroy_qp(vb_qp_base(w.qp[1])), 0);
	check_left((const uint32_t[]){ 1, 2, 0 });
}

BOTH(all_of_them)
{
	world_open(entry_bytes, 7);
	for (uint32_t i = 1; i <= 8; i++)
		receive(0, i, 0);
	script_state(w.qp[0], IBV_QPS_RESET);
	check_left((const uint32_t[]){ 0 });
	cr_assert_eq(w.cq->consumed, 8);
	script_state(w.qp[0], IBV_QPS_RTS);
	receive(0, 9, 0);
	check_left((const uint32_t[]){ 9, 0 });
}

static bool srq_is_free(uint32_t entry)
{
	struct vb_srq *srq = vb_srq_of(w.srq);
	uint32_t at = srq->free_first;

	for (;; at = mlx5_srq_next(srq->ring.at + ((size_t)at << srq->ring.entry_shift))) {
		if (at == entry)
			return true;
		if (at == srq->free_last)
			return false;
	}
}

/* Receives of a shared queue are given back to it: once, and only those of that QP. */
BOTH(a_shared_queue_gets_its_entries_back)
{
	world_open(entry_bytes, 15);
	for (uint32_t i = 0; i < 4; i++)
		receive(2, i + 1, (uint16_t)(3 - i));
	receive(0, 5, 0);
	complete(w.qp[2], (struct hw_cqe){ .kind = HW_CQE_REQ, .wqe_opcode = MLX5_OPCODE_SEND,
					   .wqe_counter = 9 });
	for (uint32_t i = 0; i < 4; i++)
		cr_assert_not(srq_is_free(i));
	cr_assert_eq(ibv_destroy_qp(vb_qp_base(w.qp[2])), 0);
	for (uint32_t i = 0; i < 4; i++)
		cr_assert(srq_is_free(i));
	check_left((const uint32_t[]){ 5, 0 });
}

/* All entries go round: none is lost or given twice. */
BOTH(a_shared_queue_goes_round)
{
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	unsigned posted = 0;

	world_open(entry_bytes, 15);
	for (uint32_t turn = 0; turn < 5 * RECVS; turn++)
		receive(2, turn + 1, (uint16_t)vb_srq_of(w.srq)->free_first),
		check_left((const uint32_t[]){ turn + 1, 0 });
	while (!ibv_post_srq_recv(w.srq, &wr, &bad))
		posted++;
	cr_assert_eq(posted, RECVS - 1);
	cr_assert_eq(be32toh(vb_srq_of(w.srq)->record[0]), 5 * RECVS + RECVS - 1);
}

BOTH(a_queue_of_receives_and_one_of_sends)
{
	struct ibv_cq *other;
	struct vb_qp *qp;

	world_open(entry_bytes, 7);
	other = script_cq(w.context, 7);
	qp = script_qp(&(struct script_qp){
		.type = IBV_QPT_RC, .pd = w.pd, .send_cq = other, .recv_cq = w.base, .depth = 4,
	});
	receive(0, 1, 0);
	complete(qp, (struct hw_cqe){ .kind = HW_CQE_RECV, .bytes = 2 });
	script_complete(vb_cq_of(other), 0, &(struct hw_cqe){
		.kind = HW_CQE_REQ, .user_index = qp->queue.user_index });
	cr_assert_eq(ibv_destroy_qp(vb_qp_base(qp)), 0);
	check_left((const uint32_t[]){ 1, 0 });
	cr_assert_eq(vb_cq_of(other)->consumed, 1);
	cr_assert_eq(vb_cq_of(other)->lock.is_taken, 0);
	cr_assert_eq(w.cq->lock.is_taken, 0);
}

/* Who reads a CQ may post to a QP that another thread resets: neither waits for the other. */
static void *reset(void *qp)
{
	script_state(qp, IBV_QPS_RESET);
	return NULL;
}

BOTH(a_reset_waits_for_the_cq_without_the_ring)
{
	struct ibv_poll_cq_attr none = { 0 };
	struct ibv_recv_wr wr = { .wr_id = 9 }, *bad;
	struct ibv_cq_init_attr_ex init = { .cqe = 7 };
	struct ibv_cq_ex *ex;
	struct vb_qp *qp;
	pthread_t thread;

	world_open(entry_bytes, 7);
	ex = ibv_create_cq_ex(w.context, &init);
	cr_assert(ex);
	qp = script_qp(&(struct script_qp){
		.type = IBV_QPT_RC, .pd = w.pd, .send_cq = ibv_cq_ex_to_cq(ex),
		.recv_cq = ibv_cq_ex_to_cq(ex), .depth = 64, .sges = 1,
	});
	script_complete((struct vb_cq *)ex, 0, &(struct hw_cqe){
		.kind = HW_CQE_RECV, .user_index = qp->queue.user_index });
	cr_assert_eq(ibv_start_poll(ex, &none), 0);
	cr_assert_eq(pthread_create(&thread, NULL, reset, qp), 0);
	/* However far the other one comes. */
	for (unsigned i = 0; i < 2000; i++) {
		cr_assert_eq(__atomic_load_n(&qp->rq.lock.is_taken, __ATOMIC_RELAXED), 0);
		cr_assert_eq(__atomic_load_n(&qp->sq.lock.is_taken, __ATOMIC_RELAXED), 0);
		sched_yield();
	}
	cr_assert_eq(ibv_post_recv(vb_qp_base(qp), &wr, &bad), 0);
	ibv_end_poll(ex);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert_eq(qp->rq.head, 0, "the receive is forgotten");
}

/* A program that reads the CQ itself may still call us; the queue is gone all the same. */
BOTH(a_queue_that_goes_is_not_remembered)
{
	struct ibv_wc wc;

	world_open(entry_bytes, 7);
	receive(0, 1, 0);
	check_left((const uint32_t[]){ 1, 0 });
	cr_assert_eq(w.cq->last_queue, &w.qp[0]->queue);
	receive(0, 2, 0);
	w.cq->is_raw = true;
	cr_assert_eq(ibv_destroy_qp(vb_qp_base(w.qp[0])), 0);
	cr_assert_null(w.cq->last_queue);
	cr_assert_eq(ibv_poll_cq(w.base, 1, &wc), 0);
	cr_assert_eq(be32toh(w.cq->record[0]), 2, "the device may use that entry again");
}

/* --- resizing --- */

/* The device says in the old ring where it left. */
static void leave_old_ring(uint64_t command)
{
	struct hw_cqe cqe = { .kind = HW_CQE_RESIZE };

	if (command == IB_USER_VERBS_CMD_RESIZE_CQ)
		script_complete(w.cq, w.written++, &cqe);
}

static void try_resize(unsigned entry_bytes, int from, int to, uint32_t begin, uint32_t unread)
{
	uint32_t want[16] = { 0 };

	world_open(entry_bytes, from);
	begin_at(begin);
	script.on_write = leave_old_ring;
	for (uint32_t i = 0; i < unread; i++) {
		want[i] = i + 1;
		receive(i % 2, i + 1, 0);
	}
	cr_assert_eq(ibv_resize_cq(w.base, to), 0);
	cr_assert_eq(w.base->cqe, to);
	script.on_write = NULL;
	/* From now on in the new one. */
	want[unread] = unread + 1;
	receive(0, unread + 1, 0);
	check_left(want);
	for (uint32_t i = 0; i < 2 * w.cq->entries; i++) {
		receive(1, 99, 0);
		check_left((const uint32_t[]){ 99, 0 });
	}
	cr_assert_eq(ibv_destroy_qp(vb_qp_base(w.qp[0])), 0);
}

/* 64 beginnings: every phase of both rings' ends and owner bits against each other. */
BOTH(what_is_unread_moves_to_a_larger_ring)
{
	for (uint32_t begin = 0; begin < 64; begin++)
		try_resize(entry_bytes, 7, 31, begin, begin % 8);
}

BOTH(what_is_unread_moves_to_a_smaller_ring)
{
	for (uint32_t begin = 0; begin < 64; begin++)
		try_resize(entry_bytes, 31, 7, begin, begin % 7);
}

Test(cq, a_resize_that_fails_changes_nothing)
{
	world_open(64, 7);
	receive(0, 1, 0);
	script.fail_object = UVERBS_OBJECT_DEVICE;
	script.fail_method = UVERBS_METHOD_INVOKE_WRITE;
	script.fail_error = EOVERFLOW;
	cr_assert_eq(ibv_resize_cq(w.base, 31), EOVERFLOW);
	cr_assert_eq(w.base->cqe, 7);
	cr_assert_eq(w.cq->entries, 8);
	cr_assert_eq(w.cq->lock.is_taken, 0);
	check_left((const uint32_t[]){ 1, 0 });
	cr_assert_eq(ibv_resize_cq(w.base, -1), EINVAL);
	cr_assert_eq(ibv_resize_cq(w.base, 0), EINVAL);
	cr_assert_eq(ibv_resize_cq(w.base, 1 << 24), EINVAL);
}

static unsigned allocated, freed;
static void *last_allocated;

static void *count_alloc(size_t bytes, void *unused)
{
	(void)unused;
	allocated++;
	last_allocated = aligned_alloc(4096, bytes);
	return last_allocated;
}

static void count_free(void *at, void *unused)
{
	(void)unused;
	freed++;
	free(at);
}

/* The command is done, so the new ring is the device's, even if its last word is missing. */
Test(cq, a_ring_that_the_device_has_is_not_freed)
{
	w.context = script_open();
	vb_context_of(w.context)->allocators =
		(struct vb_allocators){ count_alloc, count_free, NULL };
	world_open(64, 7);
	allocated = 0;
	cr_assert_eq(ibv_resize_cq(w.base, 31), ENODATA);
	cr_assert_eq(allocated, 1);
	cr_assert_eq(freed, 0);
	cr_assert_eq(w.cq->lock.is_taken, 0);
	free(last_allocated);
}

Test(cq, a_ring_that_is_large_enough_stays)
{
	world_open(64, 7);
	cr_assert_eq(ibv_resize_cq(w.base, 5), 0);
	cr_assert_eq(script_count_write(IB_USER_VERBS_CMD_RESIZE_CQ), 0);
}

/* --- arming --- */

static struct mlx5_uar_arm arm_register(void)
{
	struct mlx5_uar_arm arm;

	memcpy(&arm, w.cq->arm_uar->page + MLX5_UAR_CQ_ARM, sizeof arm);
	return arm;
}

static void check_armed(uint32_t sn, bool solicited, uint32_t consumed)
{
	struct mlx5_uar_arm arm = arm_register();

	cr_assert_eq(w.cq->record[1], arm.dw[0].raw, "record and register say the same");
	cr_assert_eq(mlx5_uar_arm_arm_sn(&arm), sn);
	cr_assert_eq(mlx5_uar_arm_arm_solicited(&arm), solicited);
	cr_assert_eq(mlx5_uar_arm_arm_consumed(&arm), consumed);
	cr_assert_eq(mlx5_uar_arm_cqn(&arm), w.cq->cqn);
}

Test(cq, arming_says_what_was_seen)
{
	world_open(64, 7);
	cr_assert_eq(ibv_req_notify_cq(w.base, 0), 0);
	check_armed(0, false, 0);
	cr_assert_eq(script.armed, 1);
	receive(0, 1, 0);
	check_left((const uint32_t[]){ 1, 0 });
	cr_assert_eq(ibv_req_notify_cq(w.base, 1), 0);
	check_armed(0, true, 1);
	for (uint32_t events = 1; events < 6; events++) {
		w.cq->arm_sn++;		/* as an event does that was read */
		cr_assert_eq(ibv_req_notify_cq(w.base, 0), 0);
		check_armed(events & 3, false, 1);
	}
	w.cq->consumed = 0x1000005;
	cr_assert_eq(ibv_req_notify_cq(w.base, 0), 0);
	check_armed(1, false, 5);
}

/* --- making --- */

Test(cq, sizes)
{
	static const struct { int cqe; uint32_t entries; } rows[] = {
		{ 1, 2 }, { 2, 4 }, { 3, 4 }, { 4, 8 }, { 100, 128 }, { 127, 128 }, { 128, 256 },
	};

	world_open(64, 7);
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct ibv_cq *cq = script_cq(w.context, rows[i].cqe);

		cr_assert_eq(vb_cq_of(cq)->entries, rows[i].entries);
		cr_assert_eq(ibv_destroy_cq(cq), 0);
	}
	cr_assert_null(ibv_create_cq(w.context, 0, NULL, NULL, 0));
	cr_assert_eq(errno, EINVAL);
	cr_assert_null(ibv_create_cq(w.context, -1, NULL, NULL, 0));
	cr_assert_null(ibv_create_cq(w.context, 1 << 24, NULL, NULL, 0));
	script.fail_object = UVERBS_OBJECT_CQ;
	script.fail_method = UVERBS_METHOD_CQ_CREATE;
	script.fail_error = ENOSPC;
	cr_assert_null(ibv_create_cq(w.context, 1, NULL, NULL, 0));
	cr_assert_eq(errno, ENOSPC);
}
