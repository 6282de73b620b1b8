/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * golden_record FOLDER: post the requests of requests.c through whatever libmlx5 is
 * installed, and write down the bytes that it leaves in the queues.
 *
 * Only public interfaces are used: verbs, and mlx5dv to find the queues.  For each request
 * there are NAME.hex, the bytes, and NAME.txt, what they must decode to.  Before each request
 * the ring is filled with POISON, so that what libmlx5 does not write can be seen
 * and can't be taken for zeros.  record.sh runs it on the emulated device.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "golden.h"

#define SECONDS_MAX	120
#define SHARED_RECVS	16
#define INDEX_LAST	0xffffu
#define DS_BYTE		7	/* of the control segment: units */
#define DS_MASK		0x3fu

static const char *const api_names[] = {
	[API_OLD] = "ibv_post_send()", [API_EX] = "ibv_wr_*()",
};
static const char *const api_prefixes[] = { [API_OLD] = "old", [API_EX] = "ex" };

/* ---- the device ---- */

static void buffer_map(void)
{
	uint8_t *buffer = mmap((void *)(uintptr_t)BUFFER_ADDR, BUFFER_BYTES,
			       PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (buffer == MAP_FAILED)
		fail("mmap at a fixed address");
	for (size_t i = 0; i < BUFFER_BYTES; i++)
		buffer[i] = (uint8_t)(i * 7 + i / 251 + i / PIECE_STEP * 31);
}

struct ibv_mr *mr_register(struct ibv_pd *pd)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, (void *)(uintptr_t)BUFFER_ADDR, BUFFER_BYTES,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);

	if (!mr)
		fail("ibv_reg_mr");
	return mr;
}

static void world_open(struct world *w)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list || !list[0])
		fail("no device");
	w->context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (!w->context)
		fail("ibv_open_device");
	trace_other_part(true);
	w->other = ibv_open_device(w->context->device);
	trace_other_part(false);
	if (!w->other)
		fail("ibv_open_device");
	w->pd = ibv_alloc_pd(w->context);
	if (!w->pd)
		fail("ibv_alloc_pd");
	buffer_map();
	for (unsigned i = 0; i < 2; i++)
		w->local[i] = mr_register(w->pd);
	w->remote = mr_register(w->pd);
}

/* Last, so that no region has another key than before. */
static void windows_open(struct world *w)
{
	w->window[1] = ibv_alloc_mw(w->pd, IBV_MW_TYPE_1);
	w->window[2] = ibv_alloc_mw(w->pd, IBV_MW_TYPE_2);
	if (!w->window[1] || !w->window[2])
		fail("ibv_alloc_mw");
}

static void windows_close(struct world *w)
{
	if (ibv_dealloc_mw(w->window[1]) || ibv_dealloc_mw(w->window[2]))
		fail("ibv_dealloc_mw");
}

static void world_close(struct world *w)
{
	if (ibv_dereg_mr(w->remote) || ibv_dereg_mr(w->local[1]) || ibv_dereg_mr(w->local[0]) ||
	    ibv_dealloc_pd(w->pd) || ibv_close_device(w->other) || ibv_close_device(w->context))
		fail("closing the device");
}

/* ---- send queues ---- */

static uint8_t *unit_at(const struct queue *q, uint32_t first_block, unsigned unit)
{
	size_t units = (size_t)q->dv.sq.wqe_cnt * (BLOCK_BYTES / UNIT_BYTES);
	size_t at = (size_t)(first_block % q->dv.sq.wqe_cnt) * (BLOCK_BYTES / UNIT_BYTES) + unit;

	return (uint8_t *)q->dv.sq.buf + at % units * UNIT_BYTES;
}

/* Everything has completed, so the whole ring is ours. */
static void ring_poison(const struct queue *q)
{
	memset(q->dv.sq.buf, POISON, (size_t)q->dv.sq.wqe_cnt * BLOCK_BYTES);
}

static void post_and_drain(struct queue *q, const struct request *r)
{
	post(q, r, 1);
	queue_drain(q, 1);
}

/* Long requests while the place is far, then one block at a time. */
static void go_to(struct queue *q, enum place place)
{
	static const struct request step = { .name = "step", .opcode = IBV_WR_SEND };
	static const struct request stride = { .name = "stride", .opcode = IBV_WR_SEND,
		.flags = IBV_SEND_INLINE, .pieces = 1, .bytes = { 812 } };
	uint32_t mask = place == AT_INDEX_WRAP ? INDEX_LAST : q->dv.sq.wqe_cnt - 1;

	if (place == AT_NEXT)
		return;
	while ((q->produced & mask) != mask)
		post_and_drain(q, mask - (q->produced & mask) > WQE_BLOCKS_MAX ? &stride : &step);
}

static void print_bytes(FILE *out, const uint8_t *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		fprintf(out, "%02x%s", at[i],
			i % UNIT_BYTES == UNIT_BYTES - 1 ? "\n" : i % 4 == 3 ? " " : "");
}

static void print_units(FILE *out, const struct queue *q, uint32_t first_block, unsigned units)
{
	for (unsigned unit = 0; unit < units; unit++)
		print_bytes(out, unit_at(q, first_block, unit), UNIT_BYTES);
}

void print_refusal(FILE *out, int error)
{
	fprintf(out, "refused: %s\n", strerrorname_np(error));
}

void print_request(FILE *out, const struct queue *q, uint32_t first)
{
	print_units(out, q, first, unit_at(q, first, 0)[DS_BYTE] & DS_MASK);
}

static void record(struct queue *q, const struct request *r)
{
	unsigned units = expect_units(q, r);
	uint32_t first;
	char name[128];
	FILE *out;
	int error;

	go_to(q, r->place);
	ring_poison(q);
	uar_clear(q);
	first = q->produced;
	snprintf(name, sizeof name, "%s_%s", api_prefixes[q->api], r->name);
	out = fixture_open(q->world, q->type->folder, name, "txt");
	expect_text(out, q, r);
	if (fclose(out))
		fail(name);
	error = try_post(q, r, 1);
	out = fixture_open(q->world, q->type->folder, name, "hex");
	fprintf(out, "# %s, block %u of %u\n", api_names[q->api], first % q->dv.sq.wqe_cnt,
		q->dv.sq.wqe_cnt);
	if (error)
		print_refusal(out, error);
	else
		print_units(out, q, first, units);
	if (fclose(out))
		fail(name);
	if (error)
		return;
	record_table_row(q, r->name);
	uar_table_row(q, r, r->name);
	queue_drain(q, 1);
}

/* Three in one call ring once, with the last one's control segment. */
static void record_three(struct queue *q, const char *name, const struct request *r)
{
	uar_clear(q);
	post(q, r, 3);
	record_table_row(q, name);
	uar_table_row(q, r, name);
	queue_drain(q, 3);
}

static void record_all(struct queue *q, const struct request_list *list)
{
	for (unsigned i = 0; i < list->count; i++) {
		const struct request *r = &list->requests[i];

		if (!r->apis || r->apis & q->api)
			record(q, r);
	}
}

static void tables_name(const struct world *w, const char *what, enum api api)
{
	char name[64];

	snprintf(name, sizeof name, "%s_%s", what, api_prefixes[api]);
	record_table_open(w, name);
	uar_table_open(w, name);
}

static void record_sends(struct world *w, enum api api)
{
	static const struct request one_block = { .name = "list", .opcode = IBV_WR_RDMA_WRITE,
		.pieces = 1, .bytes = { 64 } };
	static const struct request inlined = { .name = "list", .opcode = IBV_WR_SEND,
		.flags = IBV_SEND_INLINE, .pieces = 1, .bytes = { 200 } };
	struct queue *q = queue_open(w, &type_rc, api, false, 1);

	tables_name(w, "send", api);
	record_all(q, &send_requests);
	record_three(q, "3_times_1_block", &one_block);
	record_three(q, "3_times_4_blocks", &inlined);
	queue_close(q);
	q = queue_open(w, &type_rc, api, true, 1);
	record_all(q, &signal_all_requests);
	queue_close(q);
}

/* On a queue of its own, so that no other request begins elsewhere than before. */
static void record_on(struct world *w, const struct queue_type *type, enum api api,
		      const char *name, const struct request_list *list)
{
	struct queue *q = queue_open(w, type, api, false, 1);

	tables_name(w, name, api);
	record_all(q, list);
	queue_close(q);
}

/* ---- receive queues ---- */

static void record_recv(struct queue *q, const struct recv_request *r)
{
	size_t stride = q->dv.rq.stride;
	uint8_t *slot = (uint8_t *)q->dv.rq.buf + q->received % q->dv.rq.wqe_cnt * stride;
	FILE *out = fixture_open(q->world, "recv", r->name, "txt");
	int error;

	expect_recv_text(out, q, r);
	if (fclose(out))
		fail(r->name);
	memset(q->dv.rq.buf, POISON, q->dv.rq.wqe_cnt * stride);
	out = fixture_open(q->world, "recv", r->name, "hex");
	fprintf(out, "# ibv_post_recv(), slot %u of %u\n", q->received % q->dv.rq.wqe_cnt,
		q->dv.rq.wqe_cnt);
	error = try_post_recv(q, r, 1);
	if (error)
		print_refusal(out, error);
	else
		print_bytes(out, slot, stride);
	if (fclose(out))
		fail(r->name);
	if (error)
		return;
	record_table_row(q, r->name);
	queue_drain(q, 1);
}

static void record_recv_counter(struct queue *q)
{
	static const struct recv_request step = { "step", 1, 1, { 64 }, NULL };

	while ((q->received & INDEX_LAST) != INDEX_LAST - 1) {
		post_recv(q, &step, 1);
		queue_drain(q, 1);
	}
	post_recv(q, &step, 1);
	record_table_row(q, "receive_ffff");
	queue_drain(q, 1);
	post_recv(q, &step, 3);
	record_table_row(q, "3_more");
	queue_drain(q, 3);
}

static void record_recvs(struct world *w)
{
	static const unsigned rooms[] = { 1, 4, 30 };

	record_table_open(w, "recv");
	for (unsigned room = 0; room < sizeof rooms / sizeof *rooms; room++) {
		struct queue *q = queue_open(w, &type_rc, API_OLD, false,
					     rooms[room]);

		for (unsigned i = 0; i < recv_request_count; i++)
			if (recv_requests[i].room == rooms[room])
				record_recv(q, &recv_requests[i]);
		if (rooms[room] == 1)
			record_recv_counter(q);
		queue_close(q);
	}
	tables_close();
}

/* ---- shared receive queues ---- */

static struct ibv_srq *srq_create(struct world *w, unsigned room)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = SHARED_RECVS, .max_sge = room } };
	struct ibv_srq *srq = ibv_create_srq(w->pd, &attr);

	if (!srq)
		fail("ibv_create_srq");
	return srq;
}

/* Nothing takes receives out of it, so each has an entry that was never used. */
static void record_shared(const struct queue *q, struct ibv_srq *srq,
			  const struct recv_request *r)
{
	struct mlx5dv_srq dv = { 0 };
	struct mlx5dv_obj obj = { .srq = { .in = srq, .out = &dv } };
	uint8_t *slot;
	FILE *out;
	int error;

	if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_SRQ))
		fail("mlx5dv_init_obj");
	slot = (uint8_t *)dv.buf + (size_t)dv.head * dv.stride;
	memset(slot + UNIT_BYTES, POISON, dv.stride - UNIT_BYTES);
	out = fixture_open(q->world, "srq", r->name, "txt");
	expect_shared_text(out, q, r, dv.head + 1);
	if (fclose(out))
		fail(r->name);
	error = try_post_shared(srq, q, r);
	out = fixture_open(q->world, "srq", r->name, "hex");
	fprintf(out, "# ibv_post_srq_recv(), entry %u\n", dv.head);
	if (error)
		print_refusal(out, error);
	else
		print_bytes(out, slot, dv.stride);
	if (fclose(out))
		fail(r->name);
}

static void record_shareds(struct world *w)
{
	static const unsigned rooms[] = { 1, 3, 31 };
	const struct queue any = { .world = w };	/* for the keys of the pieces */

	for (unsigned room = 0; room < sizeof rooms / sizeof *rooms; room++) {
		struct ibv_srq *srq = srq_create(w, rooms[room]);

		for (unsigned i = 0; i < shared_request_count; i++)
			if (shared_requests[i].room == rooms[room])
				record_shared(&any, srq, &shared_requests[i]);
		if (ibv_destroy_srq(srq))
			fail("ibv_destroy_srq");
	}
}

int main(int argc, char **argv)
{
	struct world world = { .folder = argc == 2 ? argv[1] : NULL };

	if (!world.folder) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	if (mkdir(world.folder, 0777) && errno != EEXIST)
		fail(world.folder);
	alarm(SECONDS_MAX);
	world_open(&world);
	record_sends(&world, API_OLD);
	record_sends(&world, API_EX);
	record_recvs(&world);
	arm_record(&world);
	windows_open(&world);
	for (enum api api = API_OLD; api <= API_EX; api++) {
		record_on(&world, &type_rc, api, "window", &window_requests);
		record_on(&world, &type_uc, api, "uc", &uc_requests);
	}
	tables_close();
	windows_close(&world);
	record_shareds(&world);
	commands_record(&world);
	datagrams_record(&world);
	frames_record(&world);
	world_close(&world);
	return 0;
}
