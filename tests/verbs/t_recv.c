/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives: the lists that are written, the counter that the device reads, and shared queues from
 * their making on.
 *
 * Method: entries are filled with a pattern first, so that what is not written is seen.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/mlx5-abi.h>
#include <string.h>
#include "hw-models/mlx5_wqe.h"
#include "script.h"
#include "verbs/wq.h"

#define PATTERN	0xa5
#define PIECES_MAX 8
#define KEY	0x77u		/* of pieces: and their number */

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct mlx5_ib_create_srq srq_asked;
static uint32_t srq_limit, srq_wr;

static void look(struct ib_uverbs_ioctl_hdr *header)
{
	if (!script_is(header, UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE))
		return;
	memcpy(&srq_asked, script_memory(header, UVERBS_ATTR_UHW_IN), sizeof srq_asked);
	srq_limit = (uint32_t)script_value(header, UVERBS_ATTR_CREATE_SRQ_LIMIT);
	srq_wr = (uint32_t)script_value(header, UVERBS_ATTR_CREATE_SRQ_MAX_WR);
}

static void setup(void)
{
	script.on_command = look;
	context = script_open();
	pd = ibv_alloc_pd(context);
}

TestSuite(recv, .init = setup);

static const uint32_t no_bytes[PIECES_MAX];

/* Piece i is at 0x1000 * (i + 1) and has bytes[i]. */
static void pieces_fill(struct ibv_sge *sge, const uint32_t *bytes)
{
	for (unsigned i = 0; i < PIECES_MAX; i++)
		sge[i] = (struct ibv_sge){ 0x1000 * (i + 1), bytes[i], KEY + i };
}

static void check_segment(const uint8_t *at, uint64_t addr, uint32_t bytes, uint32_t key)
{
	struct mlx5_data seg;

	memcpy(&seg, at, sizeof seg);
	cr_assert_eq(mlx5_data_addr(&seg), addr);
	cr_assert_eq(be32_load(seg.dw[0]), bytes);
	cr_assert_eq(be32_load(seg.dw[1]), key);
}

static void check_end(const uint8_t *at)
{
	check_segment(at, 0, 0, HW_LKEY_END);
}

static void check_untouched(const uint8_t *at, const uint8_t *end)
{
	for (; at < end; at++)
		cr_assert_eq(*at, PATTERN);
}

/* --- of a QP --- */

static struct vb_qp *qp_with(uint32_t sges)
{
	struct ibv_cq *cq = script_keep(script_cq(context, 63));

	return script_qp(&(struct script_qp){ .type = IBV_QPT_RC, .pd = pd, .send_cq = cq,
					      .recv_cq = cq, .depth = 4, .sges = sges });
}

static int post(struct vb_qp *qp, uint64_t wr_id, const uint32_t *bytes, int count)
{
	struct ibv_sge sge[PIECES_MAX];
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = sge, .num_sge = count }, *bad = NULL;
	int error;

	pieces_fill(sge, bytes);
	error = ibv_post_recv(vb_qp_base(qp), &wr, &bad);
	cr_assert_eq(bad, error ? &wr : NULL);
	return error;
}

static const uint8_t *entry_of(const struct vb_ring *r, uint32_t index)
{
	return r->at + ((size_t)index << r->entry_shift);
}

static void poison(const struct vb_ring *r)
{
	memset(r->at, PATTERN, (size_t)r->entries << r->entry_shift);
}

/* From a list of nothing to one that fills the entry, which then needs no end. */
Test(recv, a_list_ends_where_the_entry_does_not)
{
	static const uint32_t bytes[PIECES_MAX] = { 10, 20, 30, 40 };
	struct vb_qp *qp = qp_with(4);
	const uint8_t *at;

	cr_assert_eq(qp->rq.max_sge, 4);
	poison(&qp->rq);
	for (int count = 0; count <= 4; count++) {
		atomic_store(&qp->rq.tail, qp->rq.head);
		poison(&qp->rq);
		at = entry_of(&qp->rq, qp->rq.head % qp->rq.entries);
		cr_assert_eq(post(qp, 1, bytes, count), 0);
		for (int i = 0; i < count; i++)
			check_segment(at + i * 16, 0x1000u * (unsigned)(i + 1), bytes[i],
				      KEY + (unsigned)i);
		if (count < 4)
			check_end(at + count * 16);
		check_untouched(at + (count + 1) * 16, at + 64);
	}
}

Test(recv, pieces_of_no_bytes_are_left_out)
{
	static const uint32_t bytes[PIECES_MAX] = { 0, 20, 0, 40 };
	struct vb_qp *qp = qp_with(4);
	const uint8_t *at = entry_of(&qp->rq, 0);

	poison(&qp->rq);
	cr_assert_eq(post(qp, 1, bytes, 4), 0);
	check_segment(at, 0x2000, 20, KEY + 1);
	check_segment(at + 16, 0x4000, 40, KEY + 3);
	check_end(at + 32);
	check_untouched(at + 48, at + 64);
}

Test(recv, lists_that_are_too_long)
{
	static const uint32_t bytes[PIECES_MAX] = { 1, 1, 1, 1, 1, 1, 1, 1 };
	struct vb_qp *qp = qp_with(3);	/* which is rounded up to 4 */

	cr_assert_eq(post(qp, 1, bytes, 5), EINVAL);
	cr_assert_eq(post(qp, 1, bytes, -1), EINVAL);
	cr_assert_eq(post(qp, 1, bytes, INT32_MIN), EINVAL);
	cr_assert_eq(qp->rq.head, 0);
	cr_assert_eq(qp->record[0], 0);
	cr_assert_eq(post(qp, 1, bytes, 4), 0);
}

Test(recv, a_full_queue_takes_no_more)
{
	struct vb_qp *qp = qp_with(1);
	uint32_t depth = qp->rq.max_post;

	for (uint32_t i = 0; i < depth; i++)
		cr_assert_eq(post(qp, 100 + i, no_bytes, 0), 0);
	cr_assert_eq(post(qp, 1, no_bytes, 0), ENOMEM);
	cr_assert_eq(be32toh(qp->record[0]), depth);
	for (uint32_t i = 0; i < depth; i++)
		cr_assert_eq(qp->rq.wr_id[i], 100 + i);
	atomic_store(&qp->rq.tail, 1);
	cr_assert_eq(post(qp, 7, no_bytes, 0), 0);
	cr_assert_eq(qp->rq.wr_id[0], 7);
	cr_assert_eq(post(qp, 1, no_bytes, 0), ENOMEM);
}

/* The counter has 16 bits for the device. */
Test(recv, the_counter_wraps)
{
	struct vb_qp *qp = qp_with(1);

	qp->rq.head = 0xfffe;
	atomic_store(&qp->rq.tail, 0xfffe);
	cr_assert_eq(post(qp, 1, no_bytes, 0), 0);
	cr_assert_eq(be32toh(qp->record[0]), 0xffff);
	cr_assert_eq(post(qp, 1, no_bytes, 0), 0);
	cr_assert_eq(be32toh(qp->record[0]), 0);
	cr_assert_eq(post(qp, 1, no_bytes, 0), 0);
	cr_assert_eq(be32toh(qp->record[0]), 1);
}

/* Raw packets would come in at once: the device is told when the QP may receive. */
Test(recv, raw_packets_wait_for_their_state)
{
	struct ibv_cq *cq = script_keep(script_cq(context, 8));
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RAW_PACKET, .send_cq = cq,
					 .recv_cq = cq, .cap = { 4, 4, 1, 1, 0 } };
	struct vb_qp *qp = vb_qp_of(script_keep(ibv_create_qp(pd, &init)));

	cr_assert(qp);
	cr_assert_eq(post(qp, 1, no_bytes, 0), EINVAL, "in RESET");
	script_state(qp, IBV_QPS_INIT);
	cr_assert_eq(post(qp, 1, no_bytes, 0), 0);
	cr_assert_eq(post(qp, 1, no_bytes, 0), 0);
	cr_assert_eq(qp->record[0], 0);
	script_state(qp, IBV_QPS_RTR);
	cr_assert_eq(be32toh(qp->record[0]), 2);
	cr_assert_eq(post(qp, 1, no_bytes, 0), 0);
	cr_assert_eq(be32toh(qp->record[0]), 3);
}

Test(recv, a_list_of_requests_may_fail_in_the_middle)
{
	struct vb_qp *qp = qp_with(1);
	struct ibv_recv_wr wr[3] = { { .wr_id = 1, .next = &wr[1] },
				     { .wr_id = 2, .num_sge = 9, .next = &wr[2] },
				     { .wr_id = 3 } }, *bad;

	cr_assert_eq(ibv_post_recv(vb_qp_base(qp), wr, &bad), EINVAL);
	cr_assert_eq(bad, &wr[1]);
	cr_assert_eq(be32toh(qp->record[0]), 1);
	cr_assert_eq(qp->rq.head, 1);
}

/* --- of a work queue --- */

Test(recv, a_work_queue)
{
	static const uint32_t bytes[PIECES_MAX] = { 10 };
	struct ibv_wq_init_attr init = { .wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 2,
					 .pd = pd, .cq = script_keep(script_cq(context, 8)) };
	struct vb_wq *wq = vb_wq_of(script_keep(ibv_create_wq(context, &init)));
	struct ibv_sge sge[PIECES_MAX];
	struct ibv_recv_wr wr = { .wr_id = 6, .sg_list = sge, .num_sge = 1 }, *bad;

	cr_assert(wq);
	poison(&wq->ring);
	pieces_fill(sge, bytes);
	cr_assert_eq(ibv_post_wq_recv(&wq->wq, &wr, &bad), 0);
	check_segment(entry_of(&wq->ring, 0), 0x1000, 10, KEY);
	check_end(entry_of(&wq->ring, 0) + 16);
	cr_assert_eq(be32toh(wq->record[0]), 1);
	cr_assert_eq(wq->ring.wr_id[0], 6);
}

/* --- shared --- */

static struct vb_srq *srq_with(uint32_t wr, uint32_t sge, uint32_t limit)
{
	struct ibv_srq_init_attr init = {
		.attr = { .max_wr = wr, .max_sge = sge, .srq_limit = limit },
	};
	struct vb_srq *srq = vb_srq_of(script_keep(ibv_create_srq(pd, &init)));

	cr_assert(srq, "errno %d", errno);
	cr_assert_eq(init.attr.max_wr, srq->ring.max_post);
	cr_assert_eq(init.attr.max_sge, srq->ring.max_sge);
	return srq;
}

static int post_shared(struct vb_srq *srq, uint64_t wr_id, const uint32_t *bytes, int count)
{
	struct ibv_sge sge[PIECES_MAX];
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = sge, .num_sge = count }, *bad;

	pieces_fill(sge, bytes);
	return ibv_post_srq_recv(&srq->srq, &wr, &bad);
}

/* 64 receives: one entry more than a power of two makes the next one. */
Test(recv, sizes_of_shared_queues)
{
	static const struct { uint32_t wr, sge, wr_made, sge_made, bytes; } rows[] = {
		{ 0, 1, 0, 1, 32 }, { 1, 1, 1, 1, 32 }, { 2, 0, 3, 1, 32 }, { 3, 2, 3, 3, 64 },
		{ 4, 3, 7, 3, 64 }, { 63, 4, 63, 7, 128 }, { 64, 15, 127, 15, 256 },
		{ 7, 30, 7, 31, 512 },
	};

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct vb_srq *srq = srq_with(rows[i].wr, rows[i].sge, 0);

		cr_assert_eq(srq->ring.max_post, rows[i].wr_made, "row %u", i);
		cr_assert_eq(srq->ring.entries, rows[i].wr_made + 1, "row %u", i);
		cr_assert_eq(srq->ring.max_sge, rows[i].sge_made, "row %u", i);
		cr_assert_eq(1u << srq->ring.entry_shift, rows[i].bytes, "row %u", i);
		cr_assert_eq(srq_wr, rows[i].wr_made, "row %u", i);
		cr_assert_eq(ibv_destroy_srq(&srq->srq), 0);
	}
}

Test(recv, shared_queues_that_there_are_not)
{
	static const struct ibv_srq_attr rows[] = {
		{ .max_wr = 32768, .max_sge = 1 }, { .max_wr = UINT32_MAX, .max_sge = 1 },
		{ .max_wr = 1, .max_sge = 32 }, { .max_wr = 1, .max_sge = UINT32_MAX },
		{ .max_wr = 1, .max_sge = 0x10000000 },
	};

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct ibv_srq_init_attr init = { .attr = rows[i] };

		errno = 0;
		cr_assert_null(ibv_create_srq(pd, &init), "row %u", i);
		cr_assert_eq(errno, EINVAL);
	}
	cr_assert_eq(script_count(UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE), 0);
}

Test(recv, what_the_device_is_told_of_a_shared_queue)
{
	struct vb_srq *srq = srq_with(7, 1, 5);

	cr_assert_eq(srq_limit, 5);
	cr_assert_eq(srq_asked.buf_addr, (uintptr_t)srq->ring.at);
	cr_assert_eq(srq_asked.db_addr, (uintptr_t)srq->record);
	cr_assert_eq(srq_asked.flags, 0);
	cr_assert_eq(srq_asked.uidx, 0, "its completions carry the index of the QP");
}

/* A piece of no bytes stays where it is; the list ends behind the last, unless it fills the entry.
 */
Test(recv, lists_in_a_shared_queue)
{
	static const uint32_t bytes[PIECES_MAX] = { 10, 0, 30 };
	struct vb_srq *srq = srq_with(7, 3, 0);

	for (int count = 0; count <= 3; count++) {
		uint32_t index = srq->free_first;
		const uint8_t *at = entry_of(&srq->ring, index);

		memset((uint8_t *)(uintptr_t)at + 16, PATTERN, 48);
		cr_assert_eq(post_shared(srq, (uint64_t)count, bytes, count), 0);
		for (int i = 0; i < count; i++)
			check_segment(at + 16 + i * 16, 0x1000u * (unsigned)(i + 1), bytes[i],
				      KEY + (unsigned)i);
		if (count < 3)
			check_end(at + 16 + count * 16);
		check_untouched(at + 16 + (count + 1) * 16, at + 64);
		cr_assert_eq(srq->ring.wr_id[index], (uint64_t)count);
		cr_assert_eq(be32toh(*srq->record), (uint32_t)count + 1);
	}
	cr_assert_eq(post_shared(srq, 1, bytes, 4), EINVAL);
	cr_assert_eq(post_shared(srq, 1, bytes, -1), EINVAL);
}

/* As many as were promised, and again as they come back, in whatever order. */
Test(recv, entries_of_a_shared_queue_go_round)
{
	struct vb_srq *srq = srq_with(7, 1, 0);

	for (unsigned round = 0; round < 5; round++) {
		bool is_used[8] = { false };

		for (unsigned i = 0; i < 7; i++) {
			uint32_t index = srq->free_first;

			cr_assert_lt(index, 8);
			cr_assert_not(is_used[index], "entry %u twice", index);
			is_used[index] = true;
			cr_assert_eq(post_shared(srq, round * 10 + i, no_bytes, 0), 0);
			cr_assert_eq(srq->ring.wr_id[index], round * 10 + i);
		}
		cr_assert_eq(post_shared(srq, 1, no_bytes, 0), ENOMEM);
		for (unsigned i = 0; i < 8; i++)
			if (is_used[(i * 3 + round) % 8])
				vb_srq_give_back(srq, (i * 3 + round) % 8);
	}
}

Test(recv, the_counter_of_a_shared_queue_wraps)
{
	struct vb_srq *srq = srq_with(7, 1, 0);

	srq->posted = 0xffff;
	cr_assert_eq(post_shared(srq, 1, no_bytes, 0), 0);
	cr_assert_eq(be32toh(*srq->record), 0);
	cr_assert_eq(post_shared(srq, 1, no_bytes, 0), 0);
	cr_assert_eq(be32toh(*srq->record), 1);
}

/* --- shared, of XRC --- */

static struct ibv_srq_init_attr_ex xrc_attr(struct ibv_cq *cq)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1,
	};

	return (struct ibv_srq_init_attr_ex){
		.attr = { .max_wr = 3, .max_sge = 1 }, .srq_type = IBV_SRQT_XRC, .pd = pd,
		.xrcd = script_keep(ibv_open_xrcd(context, &domain)), .cq = cq,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
	};
}

Test(recv, a_queue_of_xrc_wants_a_domain_and_a_cq)
{
	struct ibv_srq_init_attr_ex attr = xrc_attr(script_keep(script_cq(context, 8)));
	static const uint32_t needed[] = { IBV_SRQ_INIT_ATTR_XRCD, IBV_SRQ_INIT_ATTR_CQ,
					   IBV_SRQ_INIT_ATTR_PD };

	for (unsigned i = 0; i < 3; i++) {
		struct ibv_srq_init_attr_ex less = attr;

		less.comp_mask &= ~needed[i];
		errno = 0;
		cr_assert_null(ibv_create_srq_ex(context, &less));
		cr_assert_eq(errno, EINVAL);
	}
	cr_assert(script_keep(ibv_create_srq_ex(context, &attr)));
	attr.comp_mask |= 1 << 20;
	cr_assert_null(ibv_create_srq_ex(context, &attr));
	cr_assert_eq(errno, EINVAL);
}

/* Its completions carry its own index, lead to no QP, and go with it. */
Test(recv, a_queue_of_xrc_takes_its_completions_with_it)
{
	struct ibv_cq *cq = script_keep(script_cq(context, 8));
	struct ibv_srq_init_attr_ex attr = xrc_attr(cq);
	struct vb_srq *first = vb_srq_of(script_keep(ibv_create_srq_ex(context, &attr)));
	struct vb_srq *srq = vb_srq_of(script_keep(ibv_create_srq_ex(context, &attr)));
	struct hw_cqe cqe = { .kind = HW_CQE_RECV, .has_origin = true, .checks_ok = 6,
			      .l3_type = 2 };
	struct ibv_wc wc;

	cr_assert(first && srq);
	cr_assert_neq(first->queue.user_index, srq->queue.user_index);
	cr_assert_eq(srq_asked.uidx, srq->queue.user_index);
	cqe.user_index = srq->queue.user_index;
	cr_assert_eq(post_shared(srq, 40, no_bytes, 0), 0);
	cr_assert_eq(post_shared(srq, 41, no_bytes, 0), 0);
	cqe.wqe_counter = 1;
	script_complete(vb_cq_of(cq), 0, &cqe);
	cqe.wqe_counter = 0;
	script_complete(vb_cq_of(cq), 1, &cqe);
	cr_assert_eq(ibv_poll_cq(cq, 1, &wc), 1);
	cr_assert_eq(wc.wr_id, 41);
	cr_assert_eq(wc.wc_flags, 0, "nobody checks sums there");
	cr_assert_eq(srq->free_last, 1);
	cr_assert_eq(ibv_destroy_srq(&srq->srq), 0);
	cr_assert_eq(vb_cq_of(cq)->consumed, 2, "the other one is taken out");
	cr_assert_eq(ibv_poll_cq(cq, 1, &wc), 0);
}

/* A parent domain is in use as long as its queues are. */
Test(recv, a_shared_queue_holds_its_domain)
{
	struct ibv_parent_domain_init_attr init = { .pd = pd };
	struct ibv_pd *domain = ibv_alloc_parent_domain(context, &init);
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 3, .max_sge = 1 } };
	struct ibv_srq *srq;

	cr_assert(domain);
	srq = ibv_create_srq(domain, &attr);
	cr_assert(srq);
	cr_assert_eq(ibv_dealloc_pd(domain), EBUSY);
	cr_assert_eq(ibv_destroy_srq(srq), 0);
	cr_assert_eq(ibv_dealloc_pd(domain), 0);
}
