/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ethernet frames on raw packet queues: with headers in memory, and for a device that wants headers
 * in the request.
 *
 * Not among them is what libmlx5 44 writes where nobody reads it: behind a header of TSO that
 * crosses the end of the ring it leaves two units, and a single piece, or data in the request,
 * behind a header that ends there it puts behind the ring.
 *
 * They are recorded to be compared between two libraries (compare.py) and are no fixtures.  The
 * queues are in ERR, as those of queue.c; how long a request is, it says itself.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include "golden.h"

#define SGE_MAX		4
#define INLINE_MAX	200
#define TSO_HEADER_MAX	80
#define MSS		1460
#define SIG		IBV_SEND_SIGNALED
#define CSUM		IBV_SEND_IP_CSUM
#define INLINE		IBV_SEND_INLINE

/* A request, and what a frame has beside it. */
static const struct frame {
	struct request r;
	uint16_t header;	/* of TSO, 0: a plain frame */
} frames[] = {
#define FRAME(name_, flags_, pieces_, ...)						\
	{ .r = { .name = name_, .opcode = IBV_WR_SEND, .flags = flags_, .pieces = pieces_,	\
		 .bytes = { __VA_ARGS__ } } }
#define OLD(name_, flags_, pieces_, ...)						\
	{ .r = { .name = name_, .opcode = IBV_WR_SEND, .flags = flags_, .pieces = pieces_,	\
		 .apis = API_OLD, .bytes = { __VA_ARGS__ } } }
#define LAST(name_, flags_, pieces_, ...)						\
	{ .r = { .name = name_, .opcode = IBV_WR_SEND, .flags = flags_, .pieces = pieces_,	\
		 .place = AT_LAST_BLOCK, .bytes = { __VA_ARGS__ } } }
#define TSO(name_, header_, place_, flags_, pieces_, ...)				\
	{ .r = { .name = name_, .opcode = IBV_WR_TSO, .flags = flags_, .pieces = pieces_,	\
		 .place = place_, .bytes = { __VA_ARGS__ } }, .header = header_ }
	FRAME("send", SIG, 1, 64),
	FRAME("send_unsignaled", 0, 1, 1514),
	FRAME("send_solicited_fenced", SIG | IBV_SEND_SOLICITED | IBV_SEND_FENCE, 1, 64),
	FRAME("send_checksums", SIG | CSUM, 1, 64),
	FRAME("send_0_pieces", SIG, 0, 0),
	FRAME("send_4_pieces", SIG | CSUM, 4, 64, 1, 1000, 7),
	FRAME("send_empty_between", SIG, 3, 64, 0, 8),
	FRAME("send_14_and_50", SIG, 2, 14, 50),
	FRAME("send_18_and_46", SIG, 2, 18, 46),
	FRAME("send_6_6_6_46", SIG, 4, 6, 6, 6, 46),
	FRAME("send_5_0_20_9", SIG, 4, 5, 0, 20, 9),
	FRAME("send_17", SIG, 1, 17),
	FRAME("send_18", SIG, 1, 18),
	FRAME("send_9_8", SIG, 2, 9, 8),
	OLD("send_inline_18", SIG | INLINE, 1, 18),
	FRAME("send_inline_60", SIG | INLINE, 1, 60),
	FRAME("send_inline_checksums", SIG | INLINE | CSUM, 1, 200),
	FRAME("send_inline_3_pieces", SIG | INLINE, 3, 5, 7, 50),
	FRAME("send_inline_empty_between", SIG | INLINE, 4, 20, 0, 40, 0),
	LAST("send_wraps", SIG, 4, 64, 64, 64, 64),
	LAST("send_fills_last_block", SIG, 1, 64),
	LAST("send_inline_wraps", SIG | INLINE, 1, 150),
	LAST("send_inline_3_pieces_wraps", SIG | INLINE, 3, 20, 30, 60),
	TSO("tso_14", 14, AT_NEXT, SIG, 1, 100),
	TSO("tso_15", 15, AT_NEXT, SIG | CSUM, 1, 100),
	TSO("tso_18", 18, AT_NEXT, SIG | CSUM, 1, 100),
	TSO("tso_34", 34, AT_NEXT, SIG | CSUM, 1, 100),
	TSO("tso_54", 54, AT_NEXT, SIG | CSUM, 4, 4000, 1, 20000, 3),
	TSO("tso_80_unsignaled", 80, AT_NEXT, CSUM, 2, 1, 2),
	TSO("tso_54_0_pieces", 54, AT_NEXT, SIG, 0, 0),
	TSO("tso_54_empty_between", 54, AT_NEXT, SIG | CSUM, 3, 64, 0, 64),
	TSO("tso_13", 13, AT_NEXT, SIG, 1, 100),
	TSO("tso_81", 81, AT_NEXT, SIG, 1, 100),
	TSO("tso_2gib", 54, AT_NEXT, SIG, 1, 0x7fffffff),
	TSO("tso_14_wraps", 14, AT_LAST_BLOCK, SIG | CSUM, 4, 1, 2, 3, 4),
	TSO("tso_34_header_fills", 34, AT_LAST_BLOCK, SIG | CSUM, 2, 100, 100),
#undef TSO
#undef LAST
#undef OLD
#undef FRAME
};

/* --- queues --- */

static void create(struct queue *q)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = q->cq, .recv_cq = q->cq, .qp_type = IBV_QPT_RAW_PACKET,
		.pd = q->world->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER,
		.cap = { .max_send_wr = 10, .max_send_sge = SGE_MAX, .max_recv_wr = 1,
			 .max_recv_sge = 1, .max_inline_data = INLINE_MAX },
		.max_tso_header = TSO_HEADER_MAX,
	};

	if (q->api == API_EX) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO;
	}
	q->qp = ibv_create_qp_ex(q->world->context, &attr);
	if (!q->qp)
		fail("a raw packet queue");
}

static void modify(struct queue *q, enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = 1 };

	errno = ibv_modify_qp(q->qp, &attr, IBV_QP_STATE | mask);
	if (errno)
		fail("ibv_modify_qp");
}

static void queue_begin(struct queue *q)
{
	struct mlx5dv_obj obj = { .qp = { .out = &q->dv } };

	q->cq = ibv_create_cq(q->world->context, 64, NULL, NULL, 0);
	if (!q->cq)
		fail("ibv_create_cq");
	create(q);
	obj.qp.in = q->qp;
	if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP))
		fail("mlx5dv_init_obj");
	modify(q, IBV_QPS_INIT, IBV_QP_PORT);
	modify(q, IBV_QPS_RTR, 0);
	modify(q, IBV_QPS_RTS, 0);
	modify(q, IBV_QPS_ERR, 0);
}

/* --- requests --- */

static void header_fill(uint8_t *out, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		out[i] = (uint8_t)(0x80 + i);
}

static int post_one_old(struct queue *q, const struct frame *f, struct ibv_sge *sge,
			uint8_t *header)
{
	struct ibv_send_wr wr = { .opcode = f->r.opcode, .send_flags = f->r.flags, .sg_list = sge,
				  .num_sge = (int)f->r.pieces }, *bad;

	if (f->header) {
		wr.tso.hdr = header;
		wr.tso.hdr_sz = f->header;
		wr.tso.mss = MSS;
	}
	return ibv_post_send(q->qp, &wr, &bad);
}

static int post_one_ex(struct queue *q, const struct frame *f, const struct ibv_sge *sge,
		       uint8_t *header)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(q->qp);

	ibv_wr_start(qp);
	qp->wr_flags = f->r.flags & ~(unsigned)IBV_SEND_INLINE;
	if (f->header)
		ibv_wr_send_tso(qp, header, f->header, MSS);
	else
		ibv_wr_send(qp);
	post_ex_data(qp, &f->r, sge);
	return ibv_wr_complete(qp);
}

static int post_one(struct queue *q, const struct frame *f)
{
	struct ibv_sge sge[SGE_MAX];
	uint8_t header[TSO_HEADER_MAX + 1];
	int error;

	post_pieces(q, f->r.pieces, f->r.bytes, sge);
	header_fill(header, sizeof header);
	error = q->api == API_OLD ? post_one_old(q, f, sge, header) :
		post_one_ex(q, f, sge, header);
	if (!error)
		q->produced = be32toh(q->dv.dbrec[MLX5_SND_DBR]);
	return error;
}

/* One block at a time. */
static void go_to_last_block(struct queue *q)
{
	static const struct frame step = { .r = { .name = "step", .opcode = IBV_WR_SEND,
						  .pieces = 1, .bytes = { 64 } } };

	while (q->produced % q->dv.sq.wqe_cnt != q->dv.sq.wqe_cnt - 1) {
		errno = post_one(q, &step);
		if (errno)
			fail("a step");
		queue_drain(q, 1);
	}
}

/* --- the record --- */

static void record(struct queue *q, const struct frame *f, const char *folder)
{
	uint32_t first;
	char name[64];
	FILE *out;
	int error;

	if (f->r.place == AT_LAST_BLOCK)
		go_to_last_block(q);
	first = q->produced;
	memset(q->dv.sq.buf, POISON, (size_t)q->dv.sq.wqe_cnt * BLOCK_BYTES);
	error = post_one(q, f);
	snprintf(name, sizeof name, "%s_%s", q->api == API_OLD ? "old" : "ex", f->r.name);
	out = fixture_open(q->world, folder, name, "txt");
	fputs(f->header ? "TSO\n" : "SEND\n", out);
	fclose(out);
	out = fixture_open(q->world, folder, name, "hex");
	if (error)
		print_refusal(out, error);
	else
		print_request(out, q, first);
	fclose(out);
	if (!error)
		queue_drain(q, 1);
}

static void record_all(struct world *w, enum api api, const char *folder)
{
	struct queue q = { .world = w, .api = api };

	queue_begin(&q);
	for (unsigned i = 0; i < sizeof frames / sizeof *frames; i++)
		if (!frames[i].r.apis || frames[i].r.apis & api)
			record(&q, &frames[i], folder);
	if (ibv_destroy_qp(q.qp) || ibv_destroy_cq(q.cq))
		fail(folder);
}

/* With the other part's context it has objects of its own. */
static void record_other(const struct world *w)
{
	struct world other = *w;

	other.context = w->other;
	other.pd = ibv_alloc_pd(other.context);
	if (!other.pd)
		fail("ibv_alloc_pd");
	for (unsigned i = 0; i < 2; i++)
		other.local[i] = mr_register(other.pd);
	record_all(&other, API_OLD, "wqe_raw_l2");
	record_all(&other, API_EX, "wqe_raw_l2");
	if (ibv_dereg_mr(other.local[1]) || ibv_dereg_mr(other.local[0]) ||
	    ibv_dealloc_pd(other.pd))
		fail("closing the other part's objects");
}

void frames_record(struct world *w)
{
	record_all(w, API_OLD, "wqe_raw");
	record_all(w, API_EX, "wqe_raw");
	record_other(w);
}
