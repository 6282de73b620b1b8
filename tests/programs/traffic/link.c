/* SPDX-License-Identifier: BSD-2-Clause */
/* One RC connection under mixed, checked traffic; see link.h. */
#include "link.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define GID_INDEX	3
#define CQ_ENTRIES	2048		/* of LINKS_MAX links */
#define PSN		0x123456u
#define ACCESS		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* wr_id: link [63:32], receive [31], number [30:0] */
#define WR_RECEIVE	(1u << 31)

uint64_t clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void wrong(const char *format, ...)
{
	va_list values;

	fprintf(stderr, "traffic %d: WRONG: ", (int)getpid());
	va_start(values, format);
	vfprintf(stderr, format, values);
	va_end(values);
	fputc('\n', stderr);
	_exit(EXIT_WRONG);
}

static int failed(const char *what)
{
	int error = errno ? errno : EIO;

	fprintf(stderr, "traffic %d: %s: %s\n", (int)getpid(), what, strerror(error));
	return error;
}

/* Patterns: every 8 bytes another number, made from a seed. */

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static void pattern_fill(uint8_t *at, uint32_t bytes, uint64_t seed)
{
	uint64_t value;

	for (uint32_t i = 0; i < bytes; i += 8) {
		value = mix(seed + i);
		memcpy(at + i, &value, bytes - i < 8 ? bytes - i : 8);
	}
}

static bool pattern_is(const uint8_t *at, uint32_t bytes, uint64_t seed)
{
	uint64_t value;

	for (uint32_t i = 0; i < bytes; i += 8) {
		value = mix(seed + i);
		if (memcmp(at + i, &value, bytes - i < 8 ? bytes - i : 8))
			return false;
	}
	return true;
}

uint64_t node_random(struct node *n)
{
	n->random += 0x9e3779b97f4a7c15ull;
	return mix(n->random);
}

/* The seed of message @number of the QP @tag, known to both ends. */
static uint64_t message_seed(uint64_t tag, uint64_t number)
{
	return mix(tag * 0x10001 + number);
}

/* Mostly short, sometimes many packets. */
static uint32_t random_bytes(struct node *n, uint32_t most)
{
	uint64_t r = node_random(n);

	return 1 + (uint32_t)((r >> 8) % (r % 4 ? 256 : most));
}

enum { KIND_SEND, KIND_WRITE, KIND_WRITE_IMM, KIND_READ, KIND_ADD, KIND_SWAP, KIND_COUNT };

/* The kinds of operation: what is sent, and what it must have brought when it is done. */

static uint8_t *local_at(struct link *l, const struct operation *op)
{
	return l->memory->local[op - l->operation];
}

static uint64_t remote_slot(const struct link *l, uint32_t slot)
{
	return l->peer.addr + offsetof(struct link_memory, slot) + slot * SLOT_BYTES;
}

static uint64_t remote_word(const struct link *l, unsigned word)
{
	return l->peer.addr + offsetof(struct link_memory, word) + word * 8;
}

static void send_prepare(struct link *l, struct operation *op, struct ibv_send_wr *wr)
{
	(void)wr;
	op->bytes = random_bytes(l->node, MESSAGE_BYTES);
	op->seed = message_seed(l->info.tag, l->sent++);
	pattern_fill(local_at(l, op), op->bytes, op->seed);
}

/* A WRITE may overtake an earlier READ unless it is fenced. */
static bool is_being_read(const struct link *l, uint32_t slot)
{
	for (uint32_t i = l->completed; i != l->posted; i++) {
		const struct operation *op = &l->operation[i % DEPTH];

		if (op->kind == KIND_READ && op->slot == slot)
			return true;
	}
	return false;
}

static void write_prepare(struct link *l, struct operation *op, struct ibv_send_wr *wr)
{
	op->slot = (uint32_t)(node_random(l->node) % SLOTS);
	op->bytes = random_bytes(l->node, SLOT_BYTES);
	op->seed = node_random(l->node);
	pattern_fill(local_at(l, op), op->bytes, op->seed);
	l->slot_seed[op->slot] = op->seed;
	l->slot_bytes[op->slot] = op->bytes;
	l->written++;
	if (is_being_read(l, op->slot))
		wr->send_flags |= IBV_SEND_FENCE;
	wr->wr.rdma.remote_addr = remote_slot(l, op->slot);
}

static void write_imm_prepare(struct link *l, struct operation *op, struct ibv_send_wr *wr)
{
	write_prepare(l, op, wr);
	wr->imm_data = htobe32((uint32_t)l->imms++);
}

/* What the last WRITE into the slot left there: they are executed in order. */
static void read_prepare(struct link *l, struct operation *op, struct ibv_send_wr *wr)
{
	op->slot = (uint32_t)(node_random(l->node) % SLOTS);
	while (!l->slot_bytes[op->slot])
		op->slot = (op->slot + 1) % SLOTS;
	op->bytes = l->slot_bytes[op->slot];
	op->seed = l->slot_seed[op->slot];
	memset(local_at(l, op), 0xee, op->bytes);
	wr->wr.rdma.remote_addr = remote_slot(l, op->slot);
}

static void read_check(struct link *l, struct operation *op)
{
	if (!pattern_is(local_at(l, op), op->bytes, op->seed))
		wrong("link %u: READ of %u bytes from slot %u is not what was written", l->index,
		      op->bytes, op->slot);
}

static void add_prepare(struct link *l, struct operation *op, struct ibv_send_wr *wr)
{
	op->bytes = 8;
	op->expected = l->added++;
	wr->wr.atomic.remote_addr = remote_word(l, 0);
	wr->wr.atomic.compare_add = 1;
}

static void swap_prepare(struct link *l, struct operation *op, struct ibv_send_wr *wr)
{
	op->bytes = 8;
	op->expected = l->swapped ? mix(l->swapped) : 0;
	wr->wr.atomic.remote_addr = remote_word(l, 1);
	wr->wr.atomic.compare_add = op->expected;
	wr->wr.atomic.swap = mix(++l->swapped);
}

static void atomic_check(struct link *l, struct operation *op)
{
	uint64_t found;

	memcpy(&found, local_at(l, op), 8);
	if (found != op->expected)
		wrong("link %u: atomic kind %u found %llx instead of %llx", l->index, op->kind,
		      (unsigned long long)found, (unsigned long long)op->expected);
}

static const struct kind {
	enum ibv_wr_opcode opcode;
	void (*prepare)(struct link *l, struct operation *op, struct ibv_send_wr *wr);
	void (*check)(struct link *l, struct operation *op);
} kinds[KIND_COUNT] = {
	[KIND_SEND] = { IBV_WR_SEND, send_prepare, NULL },
	[KIND_WRITE] = { IBV_WR_RDMA_WRITE, write_prepare, NULL },
	[KIND_WRITE_IMM] = { IBV_WR_RDMA_WRITE_WITH_IMM, write_imm_prepare, NULL },
	[KIND_READ] = { IBV_WR_RDMA_READ, read_prepare, read_check },
	[KIND_ADD] = { IBV_WR_ATOMIC_FETCH_AND_ADD, add_prepare, atomic_check },
	[KIND_SWAP] = { IBV_WR_ATOMIC_CMP_AND_SWP, swap_prepare, atomic_check },
};

static unsigned choose_kind(struct link *l)
{
	unsigned kind = (unsigned)(node_random(l->node) % KIND_COUNT);

	return kind == KIND_READ && !l->written ? KIND_WRITE : kind;
}

static bool is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool post_one(struct link *l)
{
	struct operation *op = &l->operation[l->posted % DEPTH];
	struct ibv_sge sge = { .lkey = l->mr->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };
	int error;

	*op = (struct operation){ .kind = choose_kind(l) };
	wr.opcode = kinds[op->kind].opcode;
	kinds[op->kind].prepare(l, op, &wr);
	if (is_atomic(wr.opcode))
		wr.wr.atomic.rkey = l->peer.rkey;
	else
		wr.wr.rdma.rkey = l->peer.rkey;
	sge.addr = (uintptr_t)local_at(l, op);
	sge.length = op->bytes;
	wr.wr_id = (uint64_t)l->index << 32 | (l->posted & (WR_RECEIVE - 1));
	/* The last one that fits must tell of its end, or nothing would be posted again. */
	if (node_random(l->node) % 4 || l->posted + 1 - l->completed == DEPTH)
		wr.send_flags |= IBV_SEND_SIGNALED;
	error = ibv_post_send(l->qp, &wr, &bad);
	if (error)
		wrong("link %u: ibv_post_send: %s", l->index, strerror(error));
	l->posted++;
	return wr.send_flags & IBV_SEND_SIGNALED;
}

void link_post(struct link *l, unsigned depth)
{
	bool is_signaled = true;

	if (depth > DEPTH)
		depth = DEPTH;
	while (l->posted - l->completed < depth)
		is_signaled = post_one(l);
	/* Whoever stops here waits for the end of them all. */
	while (!is_signaled && l->posted - l->completed < DEPTH)
		is_signaled = post_one(l);
}

static void receive_post(struct link *l, unsigned slot)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)l->memory->receive[slot], .length = MESSAGE_BYTES,
		.lkey = l->mr->lkey,
	};
	struct ibv_recv_wr *bad, wr = {
		.wr_id = (uint64_t)l->index << 32 | WR_RECEIVE | slot,
		.sg_list = &sge, .num_sge = 1,
	};
	int error = ibv_post_recv(l->qp, &wr, &bad);

	if (error)
		wrong("link %u: ibv_post_recv: %s", l->index, strerror(error));
	l->receives_out++;
}

/* Completions */

static void note_failure(struct link *l, const struct ibv_wc *wc)
{
	if (!l->has_failed)
		l->first_error = wc->status;
	l->has_failed = true;
}

static void receive_done(struct link *l, const struct ibv_wc *wc)
{
	unsigned slot = (uint32_t)wc->wr_id & (WR_RECEIVE - 1);
	uint64_t seed;

	l->receives_out--;
	if (wc->status != IBV_WC_SUCCESS) {
		note_failure(l, wc);
		return;
	}
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
		if (be32toh(wc->imm_data) != (uint32_t)l->imms_received++)
			wrong("link %u: immediate %u out of order", l->index,
			      be32toh(wc->imm_data));
	} else {
		seed = message_seed(l->peer.tag, l->received++);
		if (!pattern_is(l->memory->receive[slot], wc->byte_len, seed))
			wrong("link %u: message %llu of %u bytes is not what was sent", l->index,
			      (unsigned long long)l->received - 1, wc->byte_len);
	}
	receive_post(l, slot);
}

/* Earlier ones that were not signalled are done too. */
static void send_done(struct link *l, const struct ibv_wc *wc)
{
	uint32_t number = (uint32_t)wc->wr_id, ahead;

	ahead = (number - l->completed) & (WR_RECEIVE - 1);
	if (ahead >= l->posted - l->completed)
		wrong("link %u: completion of %u, which is not under way", l->index, number);
	if (wc->status != IBV_WC_SUCCESS)
		note_failure(l, wc);
	for (uint32_t i = 0; i <= ahead; i++) {
		struct operation *op = &l->operation[l->completed++ % DEPTH];

		if (wc->status == IBV_WC_SUCCESS && kinds[op->kind].check)
			kinds[op->kind].check(l, op);
		l->done += wc->status == IBV_WC_SUCCESS;
	}
}

int node_poll(struct node *n)
{
	struct ibv_wc wc[16];
	int found = ibv_poll_cq(n->cq, 16, wc);

	if (found < 0)
		wrong("ibv_poll_cq: %d", found);
	for (int i = 0; i < found; i++) {
		struct link *l = wc[i].wr_id >> 32 < LINKS_MAX ? n->link[wc[i].wr_id >> 32] : NULL;

		if (!l || !l->qp || wc[i].qp_num != l->qp->qp_num)
			wrong("completion %llx of QP %x, which is not here",
			      (unsigned long long)wc[i].wr_id, wc[i].qp_num);
		if (wc[i].wr_id & WR_RECEIVE)
			receive_done(l, &wc[i]);
		else
			send_done(l, &wc[i]);
	}
	return found;
}

void node_wait(struct node *n, int ms)
{
	struct pollfd poll_fd = { .fd = n->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (ibv_req_notify_cq(n->cq, 0))
		wrong("ibv_req_notify_cq: %s", strerror(errno));
	if (node_poll(n) || poll(&poll_fd, 1, ms) != 1)
		return;
	if (ibv_get_cq_event(n->channel, &cq, &context) == 0)
		n->events_seen++;
}

/* Opening and closing */

static struct ibv_context *device_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	errno = list && !list[0] ? ENODEV : errno;
	if (list && list[0])
		context = ibv_open_device(list[0]);
	if (list) {
		int error = errno;

		ibv_free_device_list(list);
		errno = error;
	}
	return context;
}

int node_open(struct node *n)
{
	errno = 0;
	n->context = device_open();
	if (!n->context)
		return failed("ibv_open_device");
	n->pd = ibv_alloc_pd(n->context);
	if (!n->pd)
		return failed("ibv_alloc_pd");
	n->channel = ibv_create_comp_channel(n->context);
	if (!n->channel)
		return failed("ibv_create_comp_channel");
	if (fcntl(n->channel->fd, F_SETFL, O_NONBLOCK))
		return failed("fcntl");
	n->cq = ibv_create_cq(n->context, CQ_ENTRIES, NULL, n->channel, 0);
	return n->cq ? 0 : failed("ibv_create_cq");
}

void node_close(struct node *n)
{
	if (n->events_seen)
		ibv_ack_cq_events(n->cq, n->events_seen);
	if (ibv_destroy_cq(n->cq))
		failed("ibv_destroy_cq");
	if (ibv_destroy_comp_channel(n->channel))
		failed("ibv_destroy_comp_channel");
	if (ibv_dealloc_pd(n->pd))
		failed("ibv_dealloc_pd");
	if (ibv_close_device(n->context))
		failed("ibv_close_device");
}

static int memory_open(struct link *l)
{
	l->memory = mmap(NULL, sizeof *l->memory, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (l->memory == MAP_FAILED) {
		l->memory = NULL;
		return failed("mmap");
	}
	l->mr = ibv_reg_mr(l->node->pd, l->memory, sizeof *l->memory, ACCESS);
	return l->mr ? 0 : failed("ibv_reg_mr");
}

static int qp_open(struct link *l)
{
	struct ibv_qp_init_attr init = {
		.send_cq = l->node->cq, .recv_cq = l->node->cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = DEPTH * 2, .max_recv_wr = RECEIVES, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS,
	};

	l->qp = ibv_create_qp(l->node->pd, &init);
	if (!l->qp)
		return failed("ibv_create_qp");
	if (ibv_modify_qp(l->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			  IBV_QP_ACCESS_FLAGS))
		return failed("ibv_modify_qp to INIT");
	return 0;
}

int link_open(struct link *l, struct node *n, unsigned index, uint64_t tag)
{
	uint64_t done = l->done;
	int error;

	*l = (struct link){ .node = n, .index = index, .done = done };
	n->link[index] = l;
	error = memory_open(l);
	if (!error)
		error = qp_open(l);
	if (error)
		return error;
	for (unsigned slot = 0; slot < RECEIVES; slot++)
		receive_post(l, slot);
	l->info = (struct link_info){
		.tag = tag, .addr = (uintptr_t)l->memory, .rkey = l->mr->rkey,
		.qpn = l->qp->qp_num, .psn = PSN + index,
	};
	return ibv_query_gid(n->context, 1, GID_INDEX, &l->info.gid) ? failed("ibv_query_gid") : 0;
}

int link_connect(struct link *l, const struct link_info *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .rq_psn = peer->psn,
		.dest_qp_num = peer->qpn, .max_dest_rd_atomic = 4, .min_rnr_timer = 1,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = peer->gid, .sgid_index = GID_INDEX,
				      .hop_limit = 64 } },
		.timeout = l->node->timeout, .retry_cnt = l->node->retry, .rnr_retry = 7,
		.sq_psn = l->info.psn, .max_rd_atomic = 4,
	};

	l->peer = *peer;
	if (ibv_modify_qp(l->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			  IBV_QP_MIN_RNR_TIMER))
		return failed("ibv_modify_qp to RTR");
	attr.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(l->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			  IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		return failed("ibv_modify_qp to RTS");
	l->info.peer_tag = peer->tag;
	return 0;
}

void link_fail(struct link *l)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (ibv_modify_qp(l->qp, &attr, IBV_QP_STATE))
		wrong("link %u: ibv_modify_qp to ERR: %s", l->index, strerror(errno));
}

void link_close(struct link *l)
{
	if (l->qp && ibv_destroy_qp(l->qp))
		failed("ibv_destroy_qp");
	if (l->mr && ibv_dereg_mr(l->mr))
		failed("ibv_dereg_mr");
	if (l->memory)
		munmap(l->memory, sizeof *l->memory);
	l->qp = NULL;
	l->mr = NULL;
	l->memory = NULL;
}
