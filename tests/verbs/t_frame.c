/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is written into the send queue of a raw packet QP, and what is refused.
 *
 * Method: each frame is posted by ibv_post_send() and by ibv_wr_*(), once from every block of a
 * small ring, with a device that wants headers within the WQE and with one that does not, and read
 * back with the device's decoder.  The ring is filled before, so that a byte written elsewhere
 * shows.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <string.h>
#include "hw-models/mlx5_wqe.h"
#include "script.h"

#define PIECES_MAX	4u
#define PIECE_BYTES	256u
#define INLINE_MAX	200u
#define POISON		0xa5
#define KEY		0x1000u
#define L2_BYTES	18u
#define TSO_HEADER_MAX	66u
#define TSO_BYTES_MAX	600u
#define MSS		1460u

static const struct frame {
	uint16_t header;		/* of TSO, 0: a plain frame */
	unsigned flags, pieces;
	uint32_t bytes[PIECES_MAX];
} frames[] = {
	{ 0, IBV_SEND_SIGNALED, 1, { 64 } },
	{ 0, IBV_SEND_IP_CSUM, 1, { 200 } },
	{ 0, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED, 4, { 64, 64, 64, 64 } },
	{ 0, 0, 2, { 18, 46 } },
	{ 0, 0, 2, { 14, 50 } },
	{ 0, IBV_SEND_IP_CSUM, 4, { 6, 6, 6, 50 } },
	{ 0, 0, 4, { 5, 0, 20, 9 } },
	{ 0, 0, 4, { 0, 1, 2, 20 } },
	{ 0, 0, 1, { 18 } },
	{ 0, IBV_SEND_INLINE, 1, { 60 } },
	{ 0, IBV_SEND_INLINE, 1, { 18 } },
	{ 0, IBV_SEND_INLINE | IBV_SEND_IP_CSUM, 4, { 10, 0, 30, 100 } },
	{ 0, IBV_SEND_INLINE, 3, { 1, 1, 16 } },
	{ 14, 0, 1, { 100 } },
	{ 15, IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM, 1, { 256 } },
	{ 34, IBV_SEND_IP_CSUM, 4, { 100, 0, 100, 100 } },
	{ 54, IBV_SEND_IP_CSUM, 4, { 150, 150, 150, 150 } },
	{ 66, IBV_SEND_IP_CSUM | IBV_SEND_SIGNALED, 2, { 1, 1 } },
	{ 66, IBV_SEND_INLINE | IBV_SEND_IP_CSUM, 2, { 7, 50 } },
	{ 54, 0, 0, { 0 } },
};
#define FRAMES (sizeof frames / sizeof *frames)

static uint8_t data[PIECES_MAX][PIECE_BYTES], tso_header[TSO_HEADER_MAX];
static struct ibv_context *context;

static void device_open(enum mlx5_user_inline_mode mode)
{
	script.link_layer = IBV_LINK_LAYER_ETHERNET;
	script.eth_inline_mode = mode;
	script.device_caps = IBV_DEVICE_RAW_IP_CSUM;
	script.tso_bytes_max = TSO_BYTES_MAX;
	context = script_open();
}

static void setup(void)
{
	for (unsigned i = 0; i < PIECES_MAX; i++)
		for (unsigned k = 0; k < PIECE_BYTES; k++)
			data[i][k] = (uint8_t)(i * 67 + k * 3);
	for (unsigned i = 0; i < sizeof tso_header; i++)
		tso_header[i] = (uint8_t)(0x80 + i);
}

TestSuite(frame, .init = setup, .timeout = 60);

static struct vb_qp *queue_with(uint64_t ops, uint8_t port, uint16_t header)
{
	struct ibv_cq *cq = script_keep(script_cq(context, 63));

	return script_qp(&(struct script_qp){
		.type = IBV_QPT_RAW_PACKET, .pd = script_keep(ibv_alloc_pd(context)),
		.send_cq = cq, .recv_cq = cq, .depth = 4, .sges = PIECES_MAX,
		.inline_bytes = INLINE_MAX, .tso_header = header, .port = port, .ops = ops,
	});
}

static struct vb_qp *queue(bool is_new)
{
	return queue_with(is_new ? IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO : 0, 1,
			  TSO_HEADER_MAX);
}

/* --- posting --- */

static int post_old(struct vb_qp *qp, const struct frame *f)
{
	struct ibv_sge sge[PIECES_MAX];
	struct ibv_send_wr *bad = NULL, wr = {
		.opcode = f->header ? IBV_WR_TSO : IBV_WR_SEND, .send_flags = f->flags,
		.sg_list = sge, .num_sge = (int)f->pieces,
	};

	for (unsigned i = 0; i < f->pieces; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)data[i], f->bytes[i], KEY + i };
	if (f->header) {
		wr.tso.hdr = tso_header;
		wr.tso.hdr_sz = f->header;
		wr.tso.mss = MSS;
	}
	return ibv_post_send(vb_qp_base(qp), &wr, &bad);
}

static void build_data(struct ibv_qp_ex *ex, const struct frame *f)
{
	struct ibv_data_buf buf[PIECES_MAX];
	struct ibv_sge sge[PIECES_MAX];

	for (unsigned i = 0; i < f->pieces; i++) {
		sge[i] = (struct ibv_sge){ (uintptr_t)data[i], f->bytes[i], KEY + i };
		buf[i] = (struct ibv_data_buf){ data[i], f->bytes[i] };
	}
	if (f->flags & IBV_SEND_INLINE && f->pieces == 1)
		ibv_wr_set_inline_data(ex, buf->addr, buf->length);
	else if (f->flags & IBV_SEND_INLINE)
		ibv_wr_set_inline_data_list(ex, f->pieces, buf);
	else if (f->pieces == 1)
		ibv_wr_set_sge(ex, sge->lkey, sge->addr, sge->length);
	else
		ibv_wr_set_sge_list(ex, f->pieces, sge);
}

static void build(struct ibv_qp_ex *ex, const struct frame *f)
{
	ex->wr_flags = f->flags & ~(unsigned)IBV_SEND_INLINE;
	if (f->header)
		ibv_wr_send_tso(ex, tso_header, f->header, MSS);
	else
		ibv_wr_send(ex);
	build_data(ex, f);
}

static int post_new(struct vb_qp *qp, const struct frame *f)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(vb_qp_base(qp));

	ibv_wr_start(ex);
	build(ex, f);
	return ibv_wr_complete(ex);
}

static int post(struct vb_qp *qp, const struct frame *f, bool is_new)
{
	return is_new ? post_new(qp, f) : post_old(qp, f);
}

/* --- reading back --- */

/* The bytes that the device would send, whether they are in the request or in memory. */
static uint32_t gather(const struct hw_work *w, uint8_t *out)
{
	uint32_t bytes = 0;

	for (unsigned i = 0; i < w->sge_count; i++) {
		const struct hw_sge *sge = &w->sge[i];
		const void *from = sge->inline_bytes ? sge->inline_bytes :
				   (const void *)(uintptr_t)sge->addr;
		size_t piece = (size_t)((uint8_t *)(uintptr_t)sge->addr - data[0]) / PIECE_BYTES;

		if (!sge->inline_bytes)
			cr_assert_eq(sge->lkey, KEY + piece);
		memcpy(out + bytes, from, sge->bytes);
		bytes += sge->bytes;
	}
	return bytes;
}

static void check_data(const struct hw_work *w, const struct frame *f)
{
	uint8_t sent[PIECES_MAX * PIECE_BYTES];
	uint32_t at = 0, bytes = gather(w, sent);

	for (unsigned i = 0; i < f->pieces; i++)
		for (uint32_t k = 0; k < f->bytes[i]; k++)
			cr_assert_eq(sent[at++], data[i][k], "piece %u byte %u", i, k);
	cr_assert_eq(bytes, at);
	cr_assert_eq(w->bytes, at);
}

static void check(const struct hw_work *w, const struct frame *f, uint32_t header)
{
	cr_assert_eq(w->op, f->header ? HW_OP_TSO : HW_OP_SEND);
	cr_assert_eq(w->is_signaled, !!(f->flags & IBV_SEND_SIGNALED));
	cr_assert_eq(w->eth.checksums, f->flags & IBV_SEND_IP_CSUM ? MLX5_ETH_L3 | MLX5_ETH_L4 : 0);
	cr_assert_not(w->eth.inserts_vlan);
	cr_assert_eq(w->eth.mss, f->header ? MSS : 0);
	cr_assert_eq(w->eth.header_bytes, f->header ? f->header : header);
	if (f->header)
		cr_assert_arr_eq(w->eth.header, tso_header, f->header);
	check_data(w, f);
}

static uint8_t *block(const struct vb_qp *qp, uint32_t index)
{
	return qp->sq.at + (size_t)(index & (qp->sq.entries - 1)) * VB_SQ_BLOCK_BYTES;
}

static void poison(struct vb_qp *qp)
{
	memset(qp->sq.at, POISON, (size_t)qp->sq.entries * VB_SQ_BLOCK_BYTES);
}

static void check_untouched(const struct vb_qp *qp, uint32_t from, uint32_t blocks)
{
	for (uint32_t i = 0; i < blocks; i++)
		for (unsigned k = 0; k < VB_SQ_BLOCK_BYTES; k++)
			cr_assert_eq(block(qp, from + i)[k], POISON);
}

static void try_one(struct vb_qp *qp, const struct frame *f, uint32_t header, bool is_new)
{
	uint8_t wqe[1024 + 64] = { 0 };
	uint32_t index = qp->sq.produced, blocks;
	struct hw_work work;
	enum hw_fault fault;

	poison(qp);
	cr_assert_eq(post(qp, f, is_new), 0);
	blocks = (mlx5_work_units(block(qp, index)) * 16 + 63) / 64;
	for (uint32_t i = 0; i < blocks; i++)
		memcpy(wqe + (size_t)i * 64, block(qp, index + i), 64);
	cr_assert_eq(qp->sq.produced, index + blocks);
	fault = mlx5_work_read(wqe, 64, HW_RAW, &work);
	cr_assert_eq(fault, HW_OK, "frame %zu: %s", (size_t)(f - frames), hw_fault_name(fault));
	check(&work, f, header);
	check_untouched(qp, index + blocks, qp->sq.entries - blocks);
	atomic_store(&qp->sq.tail, qp->sq.head);
}

static void try_everywhere(enum mlx5_user_inline_mode mode, uint32_t header)
{
	device_open(mode);
	for (int is_new = 0; is_new < 2; is_new++) {
		struct vb_qp *qp = queue(is_new);

		for (unsigned i = 0; i < FRAMES; i++)
			for (uint32_t at = 0; at < qp->sq.entries; at++) {
				qp->sq.produced = 0x10000 - qp->sq.entries + at;
				try_one(qp, &frames[i], header, is_new);
			}
	}
}

Test(frame, headers_stay_in_memory_where_the_device_needs_none)
{
	try_everywhere(MLX5_USER_INLINE_MODE_NONE, 0);
}

Test(frame, headers_are_within_where_the_device_wants_the_link_layer)
{
	try_everywhere(MLX5_USER_INLINE_MODE_L2, L2_BYTES);
}

/* More is never copied: it is the kernel's to ask for less. */
Test(frame, other_modes_are_taken_for_the_link_layer)
{
	static const enum mlx5_user_inline_mode modes[] = {
		MLX5_USER_INLINE_MODE_NA, MLX5_USER_INLINE_MODE_IP, MLX5_USER_INLINE_MODE_TCP_UDP,
	};

	for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++) {
		device_open(modes[i]);
		try_one(queue(false), &frames[0], L2_BYTES, false);
		try_one(queue(true), &frames[0], L2_BYTES, true);
	}
}

/* Setters may be called one after the other: the header goes on in the next piece. */
Test(frame, a_header_may_come_in_several_calls)
{
	static const struct frame whole = { 0, 0, 3, { 4, 20, 30 } };
	struct ibv_qp_ex *ex;
	struct hw_work work;
	struct vb_qp *qp;

	device_open(MLX5_USER_INLINE_MODE_L2);
	qp = queue(true);
	ex = ibv_qp_to_qp_ex(vb_qp_base(qp));
	ibv_wr_start(ex);
	ex->wr_flags = 0;
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, data[0], 4);
	ibv_wr_set_sge(ex, KEY + 1, (uintptr_t)data[1], 20);
	ibv_wr_set_inline_data(ex, data[2], 30);
	cr_assert_eq(ibv_wr_complete(ex), 0);
	cr_assert_eq(mlx5_work_read(block(qp, 0), 64, HW_RAW, &work), HW_OK);
	check(&work, &whole, L2_BYTES);
}

/* --- what is refused --- */

/* Nothing is posted, and the ring outside of the request's place is as before. */
static void check_refused(struct vb_qp *qp, const struct frame *f, bool is_new, int error)
{
	uint32_t most = qp->wqe_units_max / 4, head = qp->sq.head, produced = qp->sq.produced;

	poison(qp);
	cr_assert_eq(post(qp, f, is_new), error);
	cr_assert_eq(qp->sq.head, head);
	cr_assert_eq(qp->sq.produced, produced);
	check_untouched(qp, produced + most, qp->sq.entries - most);
}

static void check_both_refuse(const struct frame *f, int error)
{
	for (int is_new = 0; is_new < 2; is_new++)
		check_refused(queue(is_new), f, is_new, error);
}

Test(frame, frames_that_are_shorter_than_their_header)
{
	device_open(MLX5_USER_INLINE_MODE_L2);
	check_both_refuse(&(struct frame){ 0, 0, 1, { 17 } }, EINVAL);
	check_both_refuse(&(struct frame){ 0, 0, 4, { 5, 5, 5, 2 } }, EINVAL);
	check_both_refuse(&(struct frame){ 0, IBV_SEND_INLINE, 2, { 9, 8 } }, EINVAL);
	check_both_refuse(&(struct frame){ 0, 0, 0, { 0 } }, EINVAL);
}

Test(frame, a_list_of_no_pieces)
{
	device_open(MLX5_USER_INLINE_MODE_NONE);
	check_refused(queue(false), &(struct frame){ 0, 0, 0, { 0 } }, false, EINVAL);
}

/* The one before it is complete, and goes with it. */
Test(frame, a_short_frame_takes_its_batch_with_it)
{
	static const struct frame cut = { 0, 0, 1, { 17 } };
	struct ibv_qp_ex *ex;
	struct vb_qp *qp;

	device_open(MLX5_USER_INLINE_MODE_L2);
	qp = queue(true);
	ex = ibv_qp_to_qp_ex(vb_qp_base(qp));
	ibv_wr_start(ex);
	build(ex, &frames[0]);
	build(ex, &cut);
	build(ex, &frames[0]);
	cr_assert_eq(ibv_wr_complete(ex), EINVAL);
	cr_assert_eq(qp->sq.head, 0);
	cr_assert_eq(script.rang, 0);
	try_one(qp, &frames[0], L2_BYTES, true);
}

Test(frame, headers_of_tso_have_bounds)
{
	device_open(MLX5_USER_INLINE_MODE_NONE);
	check_both_refuse(&(struct frame){ 13, 0, 1, { 100 } }, EINVAL);
	check_both_refuse(&(struct frame){ TSO_HEADER_MAX + 1, 0, 1, { 100 } }, EINVAL);
}

Test(frame, more_than_the_device_cuts_up)
{
	static const struct frame most = { 54, 0, 4, { 150, 150, 150, 150 } };
	static const struct frame more = { 54, 0, 4, { 150, 150, 150, 151 } };

	device_open(MLX5_USER_INLINE_MODE_NONE);
	try_one(queue(false), &most, 0, false);
	check_refused(queue(false), &more, false, EINVAL);
}

Test(frame, tso_where_the_device_has_none)
{
	device_open(MLX5_USER_INLINE_MODE_NONE);
	vb_context_of(context)->attr.tso_caps.supported_qpts = 1 << IBV_QPT_UD;
	check_refused(queue(false), &(struct frame){ 54, 0, 1, { 1 } }, false, EINVAL);
}

/* Without a header in the attributes there is no room for one. */
Test(frame, tso_on_a_queue_that_was_not_made_for_it)
{
	device_open(MLX5_USER_INLINE_MODE_NONE);
	check_refused(queue_with(0, 1, 0), &(struct frame){ 14, 0, 1, { 1 } }, false, EINVAL);
	check_refused(queue_with(IBV_QP_EX_WITH_TSO, 1, 0), &(struct frame){ 14, 0, 1, { 1 } },
		      true, EINVAL);
}

/* The room of a header counts as room for data, but never twice. */
Test(frame, inline_data_beside_a_long_header)
{
	device_open(MLX5_USER_INLINE_MODE_NONE);
	for (int is_new = 0; is_new < 2; is_new++) {
		struct vb_qp *qp = queue(is_new);
		struct frame f = { TSO_HEADER_MAX, IBV_SEND_INLINE, 2, { 0 } };

		f.bytes[0] = 200;
		f.bytes[1] = qp->max_inline_bytes - 200;
		check_refused(qp, &f, is_new, ENOMEM);
		f.header = 0;
		try_one(qp, &f, 0, is_new);
		f.bytes[1]++;
		check_refused(qp, &f, is_new, ENOMEM);
	}
}

static void check_no_checksums(uint8_t port)
{
	static const struct frame plain = { 0, IBV_SEND_IP_CSUM, 1, { 64 } };
	static const struct frame large = { 54, IBV_SEND_IP_CSUM, 1, { 64 } };
	const uint64_t ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO;

	check_refused(queue_with(0, port, TSO_HEADER_MAX), &plain, false, EINVAL);
	check_refused(queue_with(ops, port, TSO_HEADER_MAX), &plain, true, EINVAL);
	check_refused(queue_with(0, port, TSO_HEADER_MAX), &large, false, EINVAL);
	check_refused(queue_with(ops, port, TSO_HEADER_MAX), &large, true, EINVAL);
}

Test(frame, checksums_where_the_device_computes_none)
{
	device_open(MLX5_USER_INLINE_MODE_NONE);
	vb_context_of(context)->attr.orig_attr.device_cap_flags = 0;
	check_no_checksums(1);
}

Test(frame, checksums_on_infiniband)
{
	device_open(MLX5_USER_INLINE_MODE_NONE);
	script.link_layer = IBV_LINK_LAYER_INFINIBAND;
	check_no_checksums(1);
}

Test(frame, checksums_before_there_is_a_port)
{
	device_open(MLX5_USER_INLINE_MODE_NONE);
	check_no_checksums(0);
}

Test(frame, operations_of_others)
{
	static const enum ibv_wr_opcode other[] = {
		IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_LOCAL_INV,
		IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_BIND_MW, IBV_WR_SEND_WITH_INV,
	};
	struct ibv_send_wr wr = { .num_sge = 0 }, *bad;
	struct vb_qp *qp;

	device_open(MLX5_USER_INLINE_MODE_NONE);
	qp = queue(false);
	for (unsigned i = 0; i < sizeof other / sizeof *other; i++) {
		wr.opcode = other[i];
		cr_assert_eq(ibv_post_send(vb_qp_base(qp), &wr, &bad), EINVAL);
	}
	qp = script_rc(context, 4);
	wr.opcode = IBV_WR_TSO;
	cr_assert_eq(ibv_post_send(vb_qp_base(qp), &wr, &bad), EINVAL);
}

/* --- making --- */

/* 0 or the errno. */
static int try_create(struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp;

	attr->pd = script_keep(ibv_alloc_pd(context));
	attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
	attr->send_cq = attr->recv_cq = script_keep(script_cq(context, 8));
	errno = 0;
	qp = ibv_create_qp_ex(context, attr);
	if (!qp)
		return errno;
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	return 0;
}

/* Control, Ethernet, and the header's whole units; the header is no part of the overhead. */
Test(frame, room_for_a_header)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET, .cap = { 10, 10, 2, 1, 0 },
		.comp_mask = IBV_QP_INIT_ATTR_MAX_TSO_HEADER, .max_tso_header = 54,
	};

	device_open(MLX5_USER_INLINE_MODE_NONE);
	cr_assert_eq(try_create(&attr), 0);
	cr_assert_eq(attr.cap.max_send_wr, 2048 / 192);
	cr_assert_eq(attr.cap.max_inline_data, 192 - 48 - 4);
	cr_assert_eq(attr.cap.max_send_sge, 2);
	attr.max_tso_header = 0;
	attr.cap = (struct ibv_qp_cap){ 10, 10, 2, 1, 0 };
	cr_assert_eq(try_create(&attr), 0);
	cr_assert_eq(attr.cap.max_send_wr, 2048 / 128);
}

Test(frame, headers_that_no_request_has_room_for)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET, .cap = { 1, 1, 1, 1, 0 },
		.comp_mask = IBV_QP_INIT_ATTR_MAX_TSO_HEADER,
		.max_tso_header = 1008 - 48 - 16,
	};

	device_open(MLX5_USER_INLINE_MODE_NONE);
	cr_assert_eq(try_create(&attr), 0);
	attr.max_tso_header++;
	attr.cap = (struct ibv_qp_cap){ 1, 1, 1, 1, 0 };
	cr_assert_eq(try_create(&attr), EINVAL);
	attr.max_tso_header = UINT16_MAX;
	cr_assert_eq(try_create(&attr), EINVAL);
}

Test(frame, headers_for_others)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };

	device_open(MLX5_USER_INLINE_MODE_NONE);
	for (unsigned i = 0; i < sizeof types / sizeof *types; i++) {
		struct ibv_qp_init_attr_ex attr = {
			.qp_type = types[i], .cap = { 1, 1, 1, 1, 0 },
			.comp_mask = IBV_QP_INIT_ATTR_MAX_TSO_HEADER,
		};

		cr_assert_eq(try_create(&attr), EINVAL);
	}
}

/* Receives only: no memory is told of that is not there. */
Test(frame, queues_of_one_kind_only)
{
	struct ibv_qp_init_attr_ex attr = { .qp_type = IBV_QPT_RAW_PACKET,
					    .cap = { 4, 0, 1, 0, 0 } };

	device_open(MLX5_USER_INLINE_MODE_NONE);
	cr_assert_eq(try_create(&attr), 0);
	attr.cap = (struct ibv_qp_cap){ 0, 4, 0, 1, 0 };
	cr_assert_eq(try_create(&attr), 0);
}

static uint32_t flags_asked;

static void look(struct ib_uverbs_ioctl_hdr *header)
{
	if (script_is(header, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE))
		flags_asked = (uint32_t)script_value(header, UVERBS_ATTR_CREATE_QP_FLAGS);
}

Test(frame, flags_are_handed_on)
{
	static const uint32_t flags[] = {
		IBV_QP_CREATE_BLOCK_SELF_MCAST_LB, IBV_QP_CREATE_SCATTER_FCS,
		IBV_QP_CREATE_CVLAN_STRIPPING, IBV_QP_CREATE_PCI_WRITE_END_PADDING,
	};
	struct ibv_qp_init_attr_ex attr = { .qp_type = IBV_QPT_RAW_PACKET,
					    .cap = { 1, 1, 1, 1, 0 },
					    .comp_mask = IBV_QP_INIT_ATTR_CREATE_FLAGS };

	script.on_command = look;
	device_open(MLX5_USER_INLINE_MODE_NONE);
	for (unsigned i = 0; i < sizeof flags / sizeof *flags; i++) {
		attr.create_flags = flags[i];
		cr_assert_eq(try_create(&attr), 0);
		cr_assert_eq(flags_asked, flags[i]);
	}
	attr.create_flags = 1 << 12;	/* which to the kernel means something else */
	cr_assert_eq(try_create(&attr), EINVAL);
	attr.create_flags = IBV_QP_CREATE_SOURCE_QPN;
	cr_assert_eq(try_create(&attr), EINVAL);
	attr.qp_type = IBV_QPT_UD;
	cr_assert_eq(try_create(&attr), EOPNOTSUPP);
}

/* --- rates --- */

static struct mlx5_ib_modify_qp modify_asked;
static uint32_t rate_asked;
static bool limits_bursts;

static void look_at_rates(struct ib_uverbs_ioctl_hdr *header)
{
	uint64_t command = script_value(header, UVERBS_ATTR_WRITE_CMD);
	const struct ib_uverbs_ex_modify_qp *modify = script_memory(header, UVERBS_ATTR_CORE_IN);
	struct mlx5_ib_query_device_resp *device;

	if (command == (0x80000000 | IB_USER_VERBS_EX_CMD_QUERY_DEVICE)) {
		device = script_memory(header, UVERBS_ATTR_UHW_OUT);
		device->packet_pacing_caps.cap_flags = limits_bursts ? MLX5_IB_PP_SUPPORT_BURST : 0;
	} else if (command == (0x80000000 | IB_USER_VERBS_EX_CMD_MODIFY_QP)) {
		rate_asked = modify->rate_limit;
		cr_assert_eq(modify->base.attr_mask, IBV_QP_RATE_LIMIT);
		memcpy(&modify_asked, script_memory(header, UVERBS_ATTR_UHW_IN),
		       sizeof modify_asked);
	}
}

static int limit(struct vb_qp *qp, uint32_t rate, uint32_t burst, uint16_t packet)
{
	struct ibv_qp_rate_limit_attr attr = { .rate_limit = rate, .max_burst_sz = burst,
					       .typical_pkt_sz = packet };

	memset(&modify_asked, 0xff, sizeof modify_asked);
	return ibv_modify_qp_rate_limit(vb_qp_base(qp), &attr);
}

Test(frame, rates_and_bursts)
{
	struct vb_qp *qp;

	limits_bursts = true;
	script.on_command = look_at_rates;
	device_open(MLX5_USER_INLINE_MODE_NONE);
	qp = queue(false);
	cr_assert_eq(limit(qp, 1000, 4096, 1500), 0);
	cr_assert_eq(rate_asked, 1000);
	cr_assert_eq(modify_asked.burst_info.max_burst_sz, 4096);
	cr_assert_eq(modify_asked.burst_info.typical_pkt_sz, 1500);
	cr_assert_eq(limit(qp, 0, 0, 0), 0);
	cr_assert_eq(rate_asked, 0);
	cr_assert_eq(modify_asked.burst_info.max_burst_sz, 0);
	cr_assert_eq(limit(qp, 0, 4096, 0), EINVAL, "of no rate there is no burst");
	cr_assert_eq(limit(qp, 0, 0, 1500), EINVAL);
}

Test(frame, bursts_where_the_device_limits_none)
{
	script.on_command = look_at_rates;
	device_open(MLX5_USER_INLINE_MODE_NONE);
	cr_assert_eq(limit(queue(false), 1000, 4096, 0), EINVAL);
	cr_assert_eq(limit(queue(false), 1000, 0, 1), EINVAL);
	cr_assert_eq(limit(queue(false), 1000, 0, 0), 0);
}
