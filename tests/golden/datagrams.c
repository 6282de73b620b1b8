/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that say where they go: of UD queues, of initiators of XRC, and of dynamic connections.
 *
 * They are recorded to be compared between two libraries (compare.py) and are no fixtures.  The
 * queues are in ERR, as those of queue.c; how long a request is, it says itself.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include "golden.h"

#define GID_INDEX	3
#define INLINE_MAX	200
#define SGE_MAX		4
#define REMOTE_QPN	0x654321u
#define REMOTE_QKEY	0x89abcdefu
#define ACCESS_KEY	UINT64_C(0x0102030405060708)
#define STREAM		5u

static const struct kind {
	const char *folder;
	enum ibv_qp_type type;
	uint8_t apis;
	uint64_t operations;
	int init, rtr, rts;
} kinds[] = {
	{ "wqe_ud", IBV_QPT_UD, API_BOTH, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
	  IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0, IBV_QP_SQ_PSN },
	{ "wqe_xrc", IBV_QPT_XRC_SEND, API_BOTH,
	  IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE |
	  IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
	  IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	  IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	  IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
	  IBV_QP_MAX_QP_RD_ATOMIC },
	{ "wqe_dc", IBV_QPT_DRIVER, API_EX,
	  IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE |
	  IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
	  IBV_QP_PKEY_INDEX | IBV_QP_PORT, IBV_QP_PATH_MTU,
	  IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
	  IBV_QP_MAX_QP_RD_ATOMIC },
};

#define SIG	IBV_SEND_SIGNALED
static const struct request requests[] = {
	{ .name = "send", .opcode = IBV_WR_SEND, .flags = SIG, .pieces = 1, .bytes = { 64 } },
	{ .name = "send_imm", .opcode = IBV_WR_SEND_WITH_IMM, .flags = SIG | IBV_SEND_SOLICITED,
	  .pieces = 2, .bytes = { 64, 1 } },
	{ .name = "send_0_pieces", .opcode = IBV_WR_SEND, .flags = SIG },
	{ .name = "send_4_pieces", .opcode = IBV_WR_SEND, .flags = SIG, .pieces = 4,
	  .bytes = { 1, 2, 3, 4 } },
	{ .name = "send_empty_between", .opcode = IBV_WR_SEND, .flags = SIG, .pieces = 3,
	  .bytes = { 5, 0, 6 } },
	{ .name = "send_inline_12", .opcode = IBV_WR_SEND, .flags = SIG | IBV_SEND_INLINE,
	  .pieces = 1, .bytes = { 12 } },
	{ .name = "send_inline_200", .opcode = IBV_WR_SEND, .flags = SIG | IBV_SEND_INLINE,
	  .pieces = 1, .bytes = { 200 } },
	{ .name = "send_inline_3_pieces", .opcode = IBV_WR_SEND, .flags = SIG | IBV_SEND_INLINE,
	  .pieces = 3, .bytes = { 5, 7, 11 } },
	{ .name = "send_fenced", .opcode = IBV_WR_SEND, .flags = SIG | IBV_SEND_FENCE,
	  .pieces = 1, .bytes = { 64 } },
	{ .name = "write", .opcode = IBV_WR_RDMA_WRITE, .flags = SIG, .pieces = 1,
	  .bytes = { 64 } },
	{ .name = "write_inline_8", .opcode = IBV_WR_RDMA_WRITE, .flags = SIG | IBV_SEND_INLINE,
	  .pieces = 1, .bytes = { 8 } },
	{ .name = "read", .opcode = IBV_WR_RDMA_READ, .flags = SIG, .pieces = 2,
	  .bytes = { 64, 1 } },
	{ .name = "fadd", .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .flags = SIG, .pieces = 1,
	  .bytes = { 8 } },
};

static bool is_of(const struct kind *k, const struct request *r)
{
	static const uint64_t operation[] = {
		[IBV_WR_SEND] = IBV_QP_EX_WITH_SEND,
		[IBV_WR_SEND_WITH_IMM] = IBV_QP_EX_WITH_SEND_WITH_IMM,
		[IBV_WR_RDMA_WRITE] = IBV_QP_EX_WITH_RDMA_WRITE,
		[IBV_WR_RDMA_READ] = IBV_QP_EX_WITH_RDMA_READ,
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
	};

	return k->operations & operation[r->opcode];
}

/* --- queues --- */

static void create(struct queue *q, const struct kind *k)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = q->cq, .recv_cq = k->type == IBV_QPT_XRC_SEND ? NULL : q->cq,
		.qp_type = k->type, .pd = q->world->pd, .comp_mask = IBV_QP_INIT_ATTR_PD,
		.cap = { .max_send_wr = 16, .max_send_sge = SGE_MAX,
			 .max_inline_data = INLINE_MAX },
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = k->type == IBV_QPT_DRIVER ? MLX5DV_QP_INIT_ATTR_MASK_DC : 0,
		.dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCI },
	};

	if (q->api == API_EX) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = k->operations;
	}
	q->qp = mlx5dv_create_qp(q->world->context, &attr, &dv);
	if (!q->qp)
		fail(k->folder);
}

static void modify(struct queue *q, struct ibv_qp_attr *attr, int mask, enum ibv_qp_state state)
{
	attr->qp_state = state;
	errno = ibv_modify_qp(q->qp, attr, mask | IBV_QP_STATE);
	if (errno)
		fail("ibv_modify_qp");
}

static void to_error(struct queue *q, const struct kind *k, const struct ibv_ah_attr *path)
{
	struct ibv_qp_attr attr = {
		.port_num = 1, .qkey = 1, .path_mtu = IBV_MTU_1024, .dest_qp_num = 1,
		.timeout = 14, .max_rd_atomic = 1, .ah_attr = *path,
	};

	modify(q, &attr, k->init, IBV_QPS_INIT);
	modify(q, &attr, k->rtr, IBV_QPS_RTR);
	modify(q, &attr, k->rts, IBV_QPS_RTS);
	modify(q, &attr, 0, IBV_QPS_ERR);
}

/* --- requests --- */

static int post_one_old(struct queue *q, const struct kind *k, const struct request *r,
			struct ibv_ah *ah, struct ibv_sge *sge)
{
	struct ibv_send_wr wr = { .opcode = r->opcode, .send_flags = r->flags, .sg_list = sge,
				  .num_sge = (int)r->pieces, .imm_data = htobe32(IMM) }, *bad;

	if (k->type == IBV_QPT_UD) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = REMOTE_QPN;
		wr.wr.ud.remote_qkey = REMOTE_QKEY;
	} else if (r->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = REMOTE_ADDR;
		wr.wr.atomic.rkey = q->world->remote->rkey;
		wr.wr.atomic.compare_add = ADD;
	} else {
		wr.wr.rdma.remote_addr = REMOTE_ADDR;
		wr.wr.rdma.rkey = q->world->remote->rkey;
	}
	if (k->type == IBV_QPT_XRC_SEND)
		wr.qp_type.xrc.remote_srqn = REMOTE_QPN;
	return ibv_post_send(q->qp, &wr, &bad);
}

static int post_one_ex(struct queue *q, const struct kind *k, const struct request *r,
		       struct ibv_ah *ah, const struct ibv_sge *sge)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(q->qp);

	ibv_wr_start(qp);
	qp->wr_flags = r->flags & ~(unsigned)IBV_SEND_INLINE;
	post_ex_operation(q, qp, r);
	if (k->type == IBV_QPT_UD)
		ibv_wr_set_ud_addr(qp, ah, REMOTE_QPN, REMOTE_QKEY);
	else if (k->type == IBV_QPT_XRC_SEND)
		ibv_wr_set_xrc_srqn(qp, REMOTE_QPN);
	else if (r->opcode == IBV_WR_RDMA_READ)
		mlx5dv_wr_set_dc_addr_stream(mlx5dv_qp_ex_from_ibv_qp_ex(qp), ah, REMOTE_QPN,
					     ACCESS_KEY, STREAM);
	else
		mlx5dv_wr_set_dc_addr(mlx5dv_qp_ex_from_ibv_qp_ex(qp), ah, REMOTE_QPN, ACCESS_KEY);
	post_ex_data(qp, r, sge);
	return ibv_wr_complete(qp);
}

/* --- the record --- */

static void record(struct queue *q, const struct kind *k, const struct request *r,
		   struct ibv_ah *ah)
{
	struct ibv_sge sge[SGE_MAX];
	char name[64];
	FILE *out;
	int error;

	post_pieces(q, r->pieces, r->bytes, sge);
	memset(q->dv.sq.buf, POISON, (size_t)q->dv.sq.wqe_cnt * BLOCK_BYTES);
	error = q->api == API_OLD ? post_one_old(q, k, r, ah, sge) :
		post_one_ex(q, k, r, ah, sge);
	if (error) {
		errno = error;
		fail(r->name);
	}
	snprintf(name, sizeof name, "%s_%s", q->api == API_OLD ? "old" : "ex", r->name);
	out = fixture_open(q->world, k->folder, name, "txt");
	fprintf(out, "%s\n", expect_name(r->opcode));
	fclose(out);
	out = fixture_open(q->world, k->folder, name, "hex");
	print_request(out, q, q->produced);
	fclose(out);
	q->produced = be32toh(q->dv.dbrec[MLX5_SND_DBR]);
	queue_drain(q, 1);
}

static void record_kind(struct world *w, const struct kind *k, enum api api)
{
	struct queue q = { .world = w, .api = api };
	struct mlx5dv_obj obj = { .qp = { .out = &q.dv } };
	struct ibv_ah_attr path = {
		.is_global = 1, .port_num = 1, .sl = 3,
		.grh = { .sgid_index = GID_INDEX, .hop_limit = 64, .traffic_class = 0x20,
			 .flow_label = 0x12345 },
	};
	struct ibv_ah *ah;

	q.cq = ibv_create_cq(w->context, 16, NULL, NULL, 0);
	if (!q.cq || ibv_query_gid(w->context, 1, GID_INDEX, &path.grh.dgid))
		fail(k->folder);
	ah = ibv_create_ah(w->pd, &path);
	if (!ah)
		fail("ibv_create_ah");
	create(&q, k);
	obj.qp.in = q.qp;
	if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP))
		fail("mlx5dv_init_obj");
	to_error(&q, k, &path);
	for (unsigned i = 0; i < sizeof requests / sizeof *requests; i++)
		if (is_of(k, &requests[i]))
			record(&q, k, &requests[i], ah);
	if (ibv_destroy_qp(q.qp) || ibv_destroy_ah(ah) || ibv_destroy_cq(q.cq))
		fail(k->folder);
}

void datagrams_record(struct world *w)
{
	for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
		for (int api = API_OLD; api <= API_EX; api++)
			if (kinds[i].apis & api)
				record_kind(w, &kinds[i], (enum api)api);
}
