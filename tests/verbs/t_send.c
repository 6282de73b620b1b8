/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_post_send() as a whole: what rings and in which order, and what is left when it fails.
 *
 * Method: doorbell pages are the test's memory.  That a record is written before its register is
 * seen by a fault: the page is closed, and the handler of the fault looks at the record.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include "hw-models/mlx5_doorbell.h"
#include "hw-models/mlx5_opcode.h"
#include "hw-models/mlx5_wqe.h"
#include "script.h"
#include "verbs/mr.h"

#define PAGE_BYTES	4096u
#define BUFFER_BYTES	(SCRIPT_BF_BYTES / 2)

static struct ibv_context *context;
static uint8_t data[512];

static void setup(void)
{
	context = script_open();
	for (unsigned i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)i;
}

TestSuite(send, .init = setup);

/* A list in an array; @flags are those of each. */
static void requests_fill(struct ibv_send_wr *wr, struct ibv_sge *sge, unsigned count,
			  unsigned flags)
{
	for (unsigned i = 0; i < count; i++) {
		sge[i] = (struct ibv_sge){ (uintptr_t)data, 8, 7 };
		wr[i] = (struct ibv_send_wr){
			.wr_id = i + 1, .opcode = IBV_WR_SEND, .send_flags = flags,
			.sg_list = &sge[i], .num_sge = 1, .next = i + 1 < count ? &wr[i + 1] : NULL,
		};
	}
}

static int post(struct vb_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	return ibv_post_send(vb_qp_base(qp), wr, bad);
}

static void must_post(struct vb_qp *qp, unsigned count, unsigned flags, uint32_t bytes)
{
	struct ibv_send_wr wr[8], *bad;
	struct ibv_sge sge[8];

	requests_fill(wr, sge, count, flags);
	for (unsigned i = 0; i < count; i++)
		sge[i].length = bytes;
	cr_assert_eq(post(qp, wr, &bad), 0);
}

static uint8_t *block(const struct vb_qp *qp, uint32_t index)
{
	return qp->sq.at + (size_t)(index & (qp->sq.entries - 1)) * VB_SQ_BLOCK_BYTES;
}

static struct mlx5_ctrl ctrl_at(const struct vb_qp *qp, uint32_t index)
{
	struct mlx5_ctrl ctrl;

	memcpy(&ctrl, block(qp, index), sizeof ctrl);
	return ctrl;
}

static uint32_t record(const struct vb_qp *qp)
{
	return be32toh(qp->record[1]);
}

/* --- ringing --- */

static uint8_t *page_of(const struct vb_qp *qp)
{
	return (uint8_t *)((uintptr_t)qp->reg->at & ~(uintptr_t)(PAGE_BYTES - 1));
}

static void page_clear(const struct vb_qp *qp)
{
	memset(page_of(qp), 0, PAGE_BYTES);
}

/* The register's buffer number @n holds @bytes of the ring from block @index on, and nothing else
 * on the page is written. */
static void check_register(const struct vb_qp *qp, unsigned n, uint32_t index, unsigned bytes)
{
	const uint8_t *page = page_of(qp), *at = qp->reg->at + n * BUFFER_BYTES;

	for (unsigned i = 0; i < bytes; i++)
		cr_assert_eq(at[i], block(qp, index + i / 64)[i % 64], "byte %u", i);
	for (const uint8_t *other = page; other < page + PAGE_BYTES; other++)
		cr_assert((other >= at && other < at + bytes) || !*other, "0x%x was written",
			  (unsigned)(other - page));
}

Test(send, a_register_takes_eight_bytes_in_turns)
{
	struct vb_qp *qp = script_rc(context, 8);

	cr_assert_eq(qp->reg->at - page_of(qp), MLX5_UAR_SEND_FIRST);
	for (unsigned i = 0; i < 4; i++) {
		page_clear(qp);
		must_post(qp, 1, 0, 8);
		check_register(qp, i % 2, i, 8);
		cr_assert_eq(record(qp), i + 1);
	}
	cr_assert_eq(script.rang, 4);
	cr_assert_eq(script.rang_qpn, qp->ex.qp_base.qp_num);
}

Test(send, a_list_rings_once_with_its_last)
{
	struct vb_qp *qp = script_rc(context, 8);

	page_clear(qp);
	must_post(qp, 3, IBV_SEND_INLINE, 8);
	check_register(qp, 0, 2, 8);
	cr_assert_eq(record(qp), 3);
	cr_assert_eq(script.rang, 1);
}

Test(send, one_inline_request_is_copied_whole)
{
	static const struct { uint32_t bytes, blocks; } rows[] = {
		{ 1, 1 }, { 44, 1 }, { 45, 2 }, { 108, 2 }, { 109, 3 }, { 236, 4 },
	};
	struct vb_qp *qp = script_qp(&(struct script_qp){
		.type = IBV_QPT_RC, .pd = ibv_alloc_pd(context), .send_cq = script_cq(context, 1),
		.recv_cq = script_cq(context, 1), .depth = 8, .sges = 1, .inline_bytes = 400,
	});

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		uint32_t index = qp->sq.produced;

		page_clear(qp);
		must_post(qp, 1, IBV_SEND_INLINE, rows[i].bytes);
		check_register(qp, i % 2, index, rows[i].blocks * 64);
	}
	/* It does not fit in a buffer any more. */
	page_clear(qp);
	must_post(qp, 1, IBV_SEND_INLINE, 237);
	check_register(qp, 0, qp->sq.produced - 5, 8);
}

Test(send, a_copy_goes_over_the_end_of_the_ring)
{
	struct vb_qp *qp = script_rc(context, 4);

	while ((qp->sq.produced + 1) % qp->sq.entries) {
		must_post(qp, 1, 0, 8);
		atomic_store(&qp->sq.tail, qp->sq.head);
	}
	page_clear(qp);
	must_post(qp, 1, IBV_SEND_INLINE, 100);
	check_register(qp, (qp->sq.entries - 1) % 2, qp->sq.entries - 1, 128);
}

Test(send, without_blueflame_there_is_one_register)
{
	struct vb_qp *qp = script_rc(context, 8);

	qp->reg->bytes = 0;
	for (unsigned i = 0; i < 3; i++) {
		page_clear(qp);
		must_post(qp, 1, IBV_SEND_INLINE, 8);
		check_register(qp, 0, i, 8);
	}
}

/* Two QPs on one register take turns with its buffers together. */
Test(send, a_shared_register)
{
	struct vb_qp *a = script_rc(context, 8), *b = script_rc(context, 8);

	b->reg = a->reg;
	page_clear(a);
	must_post(a, 1, 0, 8);
	check_register(a, 0, 0, 8);
	page_clear(a);
	must_post(b, 1, 0, 8);
	check_register(b, 1, 0, 8);
}

static const struct vb_qp *watched;
static uint32_t record_when_rung;

static void page_open(int number, siginfo_t *info, void *unused)
{
	(void)number;
	(void)info;
	(void)unused;
	record_when_rung = be32toh(watched->record[1]);
	mprotect(page_of(watched), PAGE_BYTES, PROT_READ | PROT_WRITE);
}

static void check_order(struct vb_qp *qp, unsigned flags)
{
	struct sigaction action = { .sa_sigaction = page_open, .sa_flags = SA_SIGINFO }, before;
	uint32_t produced = qp->sq.produced;

	watched = qp;
	record_when_rung = 0;
	sigaction(SIGSEGV, &action, &before);
	mprotect(page_of(qp), PAGE_BYTES, PROT_NONE);
	must_post(qp, 1, flags, 8);
	sigaction(SIGSEGV, &before, NULL);
	cr_assert_eq(record_when_rung, produced + 1, "the register was written before the record");
}

Test(send, the_record_comes_before_the_register)
{
	struct vb_qp *qp = script_rc(context, 8);

	check_order(qp, 0);
	check_order(qp, IBV_SEND_INLINE);
}

/* --- fences --- */

static uint32_t fence_of(const struct vb_qp *qp, uint32_t index)
{
	struct mlx5_ctrl ctrl = ctrl_at(qp, index);

	return mlx5_ctrl_fence(&ctrl);
}

Test(send, what_follows_an_invalidation_is_fenced)
{
	struct vb_qp *qp = script_rc(context, 8);
	struct ibv_send_wr wr[5], *bad;
	struct ibv_sge sge[5];

	requests_fill(wr, sge, 5, 0);
	wr[0].opcode = IBV_WR_LOCAL_INV;
	wr[0].num_sge = 0;
	wr[3] = wr[0];
	wr[3].next = &wr[4];
	wr[4].send_flags = IBV_SEND_FENCE;
	cr_assert_eq(post(qp, wr, &bad), 0);
	cr_assert_eq(fence_of(qp, 0), MLX5_FENCE_NONE);
	cr_assert_eq(fence_of(qp, 2), MLX5_FENCE_INITIATOR_SMALL);
	cr_assert_eq(fence_of(qp, 3), MLX5_FENCE_NONE);
	cr_assert_eq(fence_of(qp, 4), MLX5_FENCE_NONE);
	cr_assert_eq(fence_of(qp, 6), MLX5_FENCE_SMALL_AND_READS);
	must_post(qp, 1, 0, 8);
	cr_assert_eq(fence_of(qp, 7), MLX5_FENCE_NONE);
}

/* The counter of blocks has 16 bits in a request, and the opcode's modifier stands above. */
Test(send, the_counter_of_blocks_wraps)
{
	struct vb_qp *qp = script_rc(context, 8);
	struct mlx5_ctrl ctrl;

	qp->sq.produced = 0xffff;
	must_post(qp, 2, 0, 8);
	ctrl = ctrl_at(qp, 0xffff);
	cr_assert_eq(be32_load(ctrl.dw[0]), 0xffffu << 8 | MLX5_OPCODE_SEND);
	ctrl = ctrl_at(qp, 0);
	cr_assert_eq(be32_load(ctrl.dw[0]), MLX5_OPCODE_SEND);
	cr_assert_eq(record(qp), 1);
}

static uint32_t completion_of(const struct vb_qp *qp, uint32_t index)
{
	struct mlx5_ctrl ctrl = ctrl_at(qp, index);

	return mlx5_ctrl_completion(&ctrl);
}

Test(send, a_queue_may_signal_all)
{
	struct ibv_cq *cq = script_cq(context, 63);
	struct vb_qp *some = script_rc(context, 8), *all = script_qp(&(struct script_qp){
		.type = IBV_QPT_RC, .pd = ibv_alloc_pd(context), .send_cq = cq, .recv_cq = cq,
		.depth = 8, .sges = 1, .signals_all = true,
	});

	must_post(some, 1, 0, 8);
	must_post(some, 1, IBV_SEND_SIGNALED, 8);
	must_post(all, 1, 0, 8);
	must_post(all, 1, IBV_SEND_SIGNALED, 8);
	cr_assert_eq(completion_of(some, 0), 0);
	cr_assert_eq(completion_of(some, 1), MLX5_COMPLETION_ALWAYS);
	cr_assert_eq(completion_of(all, 0), MLX5_COMPLETION_ALWAYS);
	cr_assert_eq(completion_of(all, 1), MLX5_COMPLETION_ALWAYS);
}

/* Not even the head that would tell of none. */
Test(send, no_bytes_inline_are_no_data)
{
	struct vb_qp *qp = script_rc(context, 8);
	struct mlx5_ctrl ctrl;

	memset(qp->sq.at, 0xa5, VB_SQ_BLOCK_BYTES);
	must_post(qp, 1, IBV_SEND_INLINE, 0);
	ctrl = ctrl_at(qp, 0);
	cr_assert_eq(mlx5_ctrl_ds(&ctrl), 1);
	cr_assert_eq(block(qp, 0)[MLX5_UNIT_BYTES], 0xa5);
}

/* The number of a shared queue has 24 bits. */
Test(send, the_receiver_of_xrc)
{
	struct ibv_cq *cq = script_cq(context, 63);
	struct vb_qp *qp = script_qp(&(struct script_qp){
		.type = IBV_QPT_XRC_SEND, .pd = ibv_alloc_pd(context), .send_cq = cq, .depth = 8,
		.sges = 1,
	});
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;
	be32_t word;

	requests_fill(&wr, &sge, 1, 0);
	wr.qp_type.xrc.remote_srqn = 0xff123456;
	cr_assert_eq(post(qp, &wr, &bad), 0);
	memcpy(&word, block(qp, 0) + MLX5_UNIT_BYTES, sizeof word);
	cr_assert_eq(be32_load(word), 0x123456);
}

Test(send, the_result_of_an_atomic_has_eight_bytes)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_ATOMIC_FETCH_AND_ADD,
						      IBV_WR_ATOMIC_CMP_AND_SWP };
	struct vb_qp *qp = script_rc(context, 8);
	struct ibv_send_wr wr, *bad;
	struct mlx5_data seg;
	struct ibv_sge sge;

	for (unsigned i = 0; i < 2; i++) {
		requests_fill(&wr, &sge, 1, 0);
		wr.opcode = opcodes[i];
		sge.length = 100;
		cr_assert_eq(post(qp, &wr, &bad), 0);
		memcpy(&seg, block(qp, i) + 3 * MLX5_UNIT_BYTES, sizeof seg);
		cr_assert_eq(be32_load(seg.dw[0]), 8);
		cr_assert_eq(be32_load(seg.dw[1]), 7);
	}
	sge.length = 0;
	cr_assert_eq(post(qp, &wr, &bad), 0);
	memcpy(&seg, block(qp, 2), sizeof seg);
	cr_assert_eq(be32_load(seg.dw[1]) & 0x3f, 3, "a place of no bytes is left out");
}

/* --- failing --- */

struct snapshot { uint32_t head, produced, record, rang, fence; };

static struct snapshot snapshot_of(const struct vb_qp *qp)
{
	return (struct snapshot){ qp->sq.head, qp->sq.produced, record(qp), script.rang,
				  qp->fence };
}

static void check_same(const struct vb_qp *qp, const struct snapshot *before)
{
	struct snapshot now = snapshot_of(qp);

	cr_assert_eq(memcmp(&now, before, sizeof now), 0);
}

static void check_refused(struct vb_qp *qp, struct ibv_send_wr *wr, int error)
{
	struct snapshot before = snapshot_of(qp);
	struct ibv_send_wr *bad = NULL;

	page_clear(qp);
	cr_assert_eq(post(qp, wr, &bad), error);
	cr_assert_eq(bad, wr);
	check_same(qp, &before);
	check_register(qp, 0, 0, 0);
}

Test(send, refusals_leave_nothing)
{
	struct vb_qp *qp = script_rc(context, 8);
	struct ibv_send_wr wr;
	struct ibv_sge sge[5] = { { (uintptr_t)data, 65, 1 } };

	must_post(qp, 1, 0, 8);
	requests_fill(&wr, sge, 1, 0);
	wr.opcode = IBV_WR_TSO;
	check_refused(qp, &wr, EINVAL);
	wr.opcode = (enum ibv_wr_opcode)99;
	check_refused(qp, &wr, EINVAL);
	wr.opcode = (enum ibv_wr_opcode)-1;
	check_refused(qp, &wr, EINVAL);
	wr.opcode = IBV_WR_SEND;
	wr.num_sge = 5;
	check_refused(qp, &wr, ENOMEM);
	wr.num_sge = -1;
	check_refused(qp, &wr, ENOMEM);
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_INLINE;
	sge[0].length = qp->max_inline_bytes + 1;
	check_refused(qp, &wr, ENOMEM);
	sge[0].length = UINT32_MAX;
	check_refused(qp, &wr, ENOMEM);
	sge[0].length = qp->max_inline_bytes;
	cr_assert_eq(post(qp, &wr, &(struct ibv_send_wr *){ NULL }), 0);
}

/* Made for SENDs only, a QP has no room for what stands in front of the data of a WRITE. */
Test(send, longer_than_what_the_qp_was_made_for)
{
	struct ibv_cq *cq = script_cq(context, 63);
	struct vb_qp *qp = script_qp(&(struct script_qp){
		.type = IBV_QPT_RC, .pd = ibv_alloc_pd(context), .send_cq = cq, .recv_cq = cq,
		.depth = 8, .sges = 3, .ops = IBV_QP_EX_WITH_SEND,
	});
	struct ibv_sge sge[3];
	struct ibv_send_wr wr, *bad;

	for (unsigned i = 0; i < 3; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)data, 8, 7 };
	wr = (struct ibv_send_wr){ .opcode = IBV_WR_SEND, .sg_list = sge, .num_sge = 3 };
	cr_assert_eq(post(qp, &wr, &bad), 0);
	wr.opcode = IBV_WR_RDMA_WRITE;
	check_refused(qp, &wr, ENOMEM);
	wr.num_sge = 2;
	cr_assert_eq(post(qp, &wr, &bad), 0);
}

Test(send, inline_pieces_are_too_long_together)
{
	struct vb_qp *qp = script_rc(context, 8);
	struct ibv_sge sge[2] = { { (uintptr_t)data, qp->max_inline_bytes, 1 },
				  { (uintptr_t)data, 1, 1 } };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE,
				  .sg_list = sge, .num_sge = 2 };

	check_refused(qp, &wr, ENOMEM);
}

/* --- longer than its place --- */

/* A QP whose places are of one block, for SENDs of three pieces, and three of four are taken. */
static struct vb_qp *nearly_full(void)
{
	struct ibv_cq *cq = script_cq(context, 63);
	struct vb_qp *qp = script_qp(&(struct script_qp){
		.type = IBV_QPT_RC, .pd = ibv_alloc_pd(context), .send_cq = cq, .recv_cq = cq,
		.depth = 4, .sges = 3, .ops = IBV_QP_EX_WITH_SEND,
	});

	cr_assert_eq(qp->sq.entries, 4);
	must_post(qp, 3, 0, 8);
	return qp;
}

/* What the device may not have read yet stays as it is. */
static void check_does_not_fit(struct ibv_send_wr wr)
{
	struct vb_qp *qp = nearly_full();
	uint8_t before[3 * VB_SQ_BLOCK_BYTES];

	memcpy(before, qp->sq.at, sizeof before);
	check_refused(qp, &wr, ENOMEM);
	cr_assert_eq(memcmp(before, qp->sq.at, sizeof before), 0, "opcode %d", wr.opcode);
	must_post(qp, 1, 0, 8);
}

Test(send, what_does_not_fit_hurts_no_other)
{
	struct vb_mr mr = { .mr = { .lkey = 0x5500 } };
	struct ibv_mw mw = { .type = IBV_MW_TYPE_2, .rkey = 0x7700, .context = context };
	struct ibv_sge sge[3] = { { (uintptr_t)data, 8, 7 }, { (uintptr_t)data, 8, 7 },
				  { (uintptr_t)data, 8, 7 } };
	struct ibv_sge most = { (uintptr_t)data, 64 - 16 - 4, 7 };

	check_does_not_fit((struct ibv_send_wr){
		.opcode = IBV_WR_RDMA_WRITE, .sg_list = sge, .num_sge = 3 });
	check_does_not_fit((struct ibv_send_wr){
		.opcode = IBV_WR_RDMA_READ, .sg_list = sge, .num_sge = 3 });
	check_does_not_fit((struct ibv_send_wr){
		.opcode = IBV_WR_ATOMIC_CMP_AND_SWP, .sg_list = sge, .num_sge = 2 });
	check_does_not_fit((struct ibv_send_wr){
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .sg_list = sge, .num_sge = 2 });
	check_does_not_fit((struct ibv_send_wr){ .opcode = IBV_WR_LOCAL_INV });
	check_does_not_fit((struct ibv_send_wr){
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = { .mw = &mw, .rkey = 0x7701, .bind_info = { &mr.mr, 0x1000, 64, 0 } },
	});
	check_does_not_fit((struct ibv_send_wr){
		.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_INLINE, .sg_list = &most,
		.num_sge = 1 });
}

Test(send, what_fits_passes_although_the_qp_was_not_made_for_it)
{
	struct ibv_sge sge[2] = { { (uintptr_t)data, 8, 7 }, { (uintptr_t)data, 8, 7 } };
	struct ibv_sge most = { (uintptr_t)data, 64 - 16 - 16 - 4, 7 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .sg_list = sge, .num_sge = 2 };

	cr_assert_eq(post(nearly_full(), &wr, &(struct ibv_send_wr *){ NULL }), 0);
	wr = (struct ibv_send_wr){ .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_INLINE,
				   .sg_list = &most, .num_sge = 1 };
	cr_assert_eq(post(nearly_full(), &wr, &(struct ibv_send_wr *){ NULL }), 0);
}

/* Its address vector fills a place, so that nothing is left for data. */
Test(send, without_room_there_is_no_inline)
{
	struct ibv_cq *cq = script_cq(context, 63);
	struct vb_qp *qp = script_qp(&(struct script_qp){
		.type = IBV_QPT_UD, .pd = ibv_alloc_pd(context), .send_cq = cq, .recv_cq = cq,
		.depth = 4,
	});

	cr_assert_eq(qp->max_inline_bytes, 0);
}

Test(send, inline_of_nothing_at_no_address)
{
	struct vb_qp *qp = script_rc(context, 8);
	struct ibv_sge sge[2] = { { 0 }, { (uintptr_t)data, 8, 7 } };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE,
				  .sg_list = sge, .num_sge = 2 };

	cr_assert_eq(post(qp, &wr, &(struct ibv_send_wr *){ NULL }), 0);
	cr_assert_eq(memcmp(block(qp, 0) + MLX5_UNIT_BYTES + MLX5_INLINE_HEADER_BYTES, data, 8),
		     0);
}

/* --- lists --- */

/* Those before it are posted, it and those behind it are not. */
Test(send, a_list_may_fail_in_the_middle)
{
	struct vb_qp *qp = script_rc(context, 8);
	struct ibv_send_wr wr[4], *bad = NULL;
	struct ibv_sge sge[4];

	requests_fill(wr, sge, 4, 0);
	wr[1].opcode = IBV_WR_LOCAL_INV;
	wr[1].num_sge = 0;
	wr[2].opcode = (enum ibv_wr_opcode)77;
	page_clear(qp);
	cr_assert_eq(post(qp, wr, &bad), EINVAL);
	cr_assert_eq(bad, &wr[2]);
	cr_assert_eq(qp->sq.head, 2);
	cr_assert_eq(record(qp), 3);
	cr_assert_eq(script.rang, 1);
	check_register(qp, 0, 1, 8);
	must_post(qp, 1, 0, 8);
	cr_assert_eq(fence_of(qp, 3), MLX5_FENCE_INITIATOR_SMALL, "it still follows the UMR");
	cr_assert_eq(record(qp), 4);
}

Test(send, a_full_ring_takes_no_more)
{
	struct vb_qp *qp = script_rc(context, 4);
	struct ibv_send_wr wr[8], *bad = NULL;
	struct ibv_sge sge[8];

	cr_assert_eq(qp->sq.max_post, 6, "the ring was rounded up");
	requests_fill(wr, sge, 8, 0);
	cr_assert_eq(post(qp, wr, &bad), ENOMEM);
	cr_assert_eq(bad, &wr[6]);
	cr_assert_eq(qp->sq.head, 6);
	check_refused(qp, wr, ENOMEM);
	/* One completion for the second request makes room for two. */
	atomic_store(&qp->sq.tail, 2);
	cr_assert_eq(post(qp, wr, &bad), ENOMEM);
	cr_assert_eq(bad, &wr[2]);
	cr_assert_eq(qp->sq.head, 8);
}

Test(send, the_counter_of_requests_wraps)
{
	struct vb_qp *qp = script_rc(context, 4);
	struct ibv_send_wr wr[8], *bad = NULL;
	struct ibv_sge sge[8];

	qp->sq.head = UINT32_MAX - 1;
	atomic_store(&qp->sq.tail, UINT32_MAX - 1);
	requests_fill(wr, sge, 8, 0);
	cr_assert_eq(post(qp, wr, &bad), ENOMEM);
	cr_assert_eq(bad, &wr[6]);
	cr_assert_eq(qp->sq.head, 4);
}

Test(send, only_states_that_send_take_requests)
{
	struct vb_qp *qp = script_rc(context, 4);
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	requests_fill(&wr, &sge, 1, 0);
	script_state(qp, IBV_QPS_RESET);
	check_refused(qp, &wr, ENOMEM);
	script_state(qp, IBV_QPS_INIT);
	check_refused(qp, &wr, ENOMEM);
	script_state(qp, IBV_QPS_RTR);
	check_refused(qp, &wr, ENOMEM);
	script_state(qp, IBV_QPS_ERR);
	must_post(qp, 1, 0, 8);
}

Test(send, a_reset_forgets)
{
	struct vb_qp *qp = script_rc(context, 4);
	struct ibv_send_wr wr = { .opcode = IBV_WR_LOCAL_INV }, *bad;

	cr_assert_eq(post(qp, &wr, &bad), 0);
	script_state(qp, IBV_QPS_RESET);
	cr_assert_eq(record(qp), 0);
	script_state(qp, IBV_QPS_RTS);
	for (unsigned i = 0; i < 4; i++)
		must_post(qp, 1, 0, 8);
	cr_assert_eq(fence_of(qp, 0), MLX5_FENCE_NONE);
	cr_assert_eq(record(qp), 4);
}

Test(send, an_empty_list_rings_nobody)
{
	struct vb_qp *qp = script_rc(context, 4);
	struct snapshot before = snapshot_of(qp);

	cr_assert_eq(post(qp, NULL, &(struct ibv_send_wr *){ NULL }), 0);
	check_same(qp, &before);
}

/* --- windows of type 1 --- */

Test(send, bind_mw_takes_the_next_key)
{
	struct vb_qp *qp = script_rc(context, 8);
	struct vb_mr mr = { .mr = { .lkey = 0x5500 } };
	struct ibv_mw mw = { .type = IBV_MW_TYPE_1, .rkey = 0x77ff, .context = context };
	struct ibv_mw_bind bind = { .bind_info = { .mr = &mr.mr, .addr = 0x1000, .length = 64 } };
	struct mlx5_ctrl ctrl;

	cr_assert_eq(context->ops.bind_mw(vb_qp_base(qp), &mw, &bind), 0);
	cr_assert_eq(mw.rkey, 0x7700);
	ctrl = ctrl_at(qp, 0);
	cr_assert_eq(mlx5_ctrl_imm(&ctrl), 0x77ff);
	bind.bind_info.length = (UINT64_C(1) << 31) + 1;
	cr_assert_eq(context->ops.bind_mw(vb_qp_base(qp), &mw, &bind), EOPNOTSUPP);
	cr_assert_eq(mw.rkey, 0x7700, "the key is as before");
	cr_assert_eq(qp->sq.head, 1);
}

/* What has no addresses of its own can't be bound by them, and what no program registered not at
 * all. */
Test(send, regions_that_bind_mw_refuses)
{
	struct vb_qp *qp = script_rc(context, 8);
	struct vb_mr mr = { .mr = { .lkey = 0x5500 }, .access = IBV_ACCESS_ZERO_BASED };
	struct ibv_mw mw = { .type = IBV_MW_TYPE_1, .rkey = 0x7700, .context = context };
	struct ibv_mw_bind bind = { .bind_info = { .mr = &mr.mr, .addr = 0x1000, .length = 64 } };

	cr_assert_eq(context->ops.bind_mw(vb_qp_base(qp), &mw, &bind), EINVAL);
	mr.access = 0;
	mr.kind = VB_MR_NULL;
	cr_assert_eq(context->ops.bind_mw(vb_qp_base(qp), &mw, &bind), ENOTSUP);
	mr.kind = VB_MR_PROGRAM;
	bind.bind_info.mw_access_flags = IBV_ACCESS_ZERO_BASED;
	cr_assert_eq(context->ops.bind_mw(vb_qp_base(qp), &mw, &bind), EINVAL);
	cr_assert_eq(mw.rkey, 0x7700);
	cr_assert_eq(qp->sq.head, 0);
}

Test(send, a_bind_to_no_region_is_refused)
{
	struct vb_qp *qp = script_rc(context, 8);
	struct ibv_mw mw = { .type = IBV_MW_TYPE_1, .rkey = 0x7700, .context = context };
	struct ibv_mw_bind bind = { .bind_info = { .addr = 0x1000, .length = 64 } };
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW,
				  .bind_mw = { .mw = &mw, .bind_info = bind.bind_info } };

	cr_assert_eq(context->ops.bind_mw(vb_qp_base(qp), &mw, &bind), EINVAL);
	check_refused(qp, &wr, EINVAL);
	bind.bind_info.length = 0;
	cr_assert_eq(context->ops.bind_mw(vb_qp_base(qp), &mw, &bind), 0, "that frees it");
}
