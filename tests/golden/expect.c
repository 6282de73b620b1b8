/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the decoder must say about a work request, from the work request.
 *
 * The wording is that of hw-models/mlx5_dump.c, written down a second time on purpose: here it
 * comes from verbs, there from bytes.
 */
#include "golden.h"

#define INLINE_SHOWN_BYTES	32
#define INLINE_HEADER_BYTES	4
#define UMR_UNITS		7	/* UMR control, key context */
#define TRANSLATION_UNITS	4	/* a list of one piece, filled up */

static const struct operation {
	const char *name;
	uint8_t opcode;
	uint8_t units;			/* behind control, in front of the data */
	bool has_imm, has_remote, is_atomic;
} operations[] = {
	[IBV_WR_SEND] = { .name = "SEND", .opcode = 0x0a },
	[IBV_WR_SEND_WITH_IMM] = { .name = "SEND_IMM", .opcode = 0x0b, .has_imm = true },
	[IBV_WR_SEND_WITH_INV] = { .name = "SEND_INVAL", .opcode = 0x01 },
	[IBV_WR_RDMA_WRITE] = { .name = "RDMA_WRITE", .opcode = 0x08, .units = 1,
				.has_remote = true },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = { .name = "RDMA_WRITE_IMM", .opcode = 0x09, .units = 1,
					 .has_remote = true, .has_imm = true },
	[IBV_WR_RDMA_READ] = { .name = "RDMA_READ", .opcode = 0x10, .units = 1,
			       .has_remote = true },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = { .name = "ATOMIC_CS", .opcode = 0x11, .units = 2,
					.has_remote = true, .is_atomic = true },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { .name = "ATOMIC_FA", .opcode = 0x12, .units = 2,
					  .has_remote = true, .is_atomic = true },
	[IBV_WR_LOCAL_INV] = { .name = "UMR", .opcode = 0x25, .units = UMR_UNITS },
	[IBV_WR_BIND_MW] = { .name = "UMR", .opcode = 0x25, .units = UMR_UNITS },
};

const char *expect_name(enum ibv_wr_opcode opcode)
{
	return operations[opcode].name;
}

uint8_t expect_opcode(enum ibv_wr_opcode opcode)
{
	return operations[opcode].opcode;
}

/* ibv_post_send() asks for 8 bytes back whatever the length of an atomic's piece was. */
static uint32_t bytes_of(const struct queue *q, const struct request *r, unsigned i)
{
	uint32_t bytes = r->bytes[i % 4];
	bool is_fixed = operations[r->opcode].is_atomic && q->api == API_OLD &&
			!(r->flags & IBV_SEND_INLINE);

	return bytes && is_fixed ? 8 : bytes;
}

static uint64_t total_bytes(const struct queue *q, const struct request *r)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < r->pieces; i++)
		total += bytes_of(q, r, i);
	return total;
}

unsigned expect_units(const struct queue *q, const struct request *r)
{
	unsigned units = 1 + (r->is_foreign ? 0 : operations[r->opcode].units);
	uint64_t total = total_bytes(q, r);

	if (r->window)
		return units + (total ? TRANSLATION_UNITS : 0);
	if (r->flags & IBV_SEND_INLINE)
		return units + (total ? (unsigned)(total + INLINE_HEADER_BYTES + UNIT_BYTES - 1) /
				UNIT_BYTES : 0);
	for (unsigned i = 0; i < r->pieces; i++)
		units += bytes_of(q, r, i) != 0;
	return units;
}

static void print_inline(FILE *out, const struct request *r, uint64_t total)
{
	unsigned at = 0;

	fprintf(out, " [inline %llu:", (unsigned long long)total);
	for (unsigned i = 0; i < r->pieces; i++) {
		const uint8_t *piece = (const uint8_t *)(uintptr_t)piece_addr(i);

		for (uint32_t k = 0; k < r->bytes[i % 4] && at < INLINE_SHOWN_BYTES; k++, at++)
			fprintf(out, at % 4 ? "%02x" : " %02x", piece[k]);
	}
	fputs(total > INLINE_SHOWN_BYTES ? " ...]" : "]", out);
}

static void print_piece(FILE *out, const struct queue *q, unsigned i, uint32_t bytes)
{
	if (bytes)
		fprintf(out, " [0x%llx +%u lkey 0x%08x]", (unsigned long long)piece_addr(i),
			bytes, piece_lkey(q, i));
}

static void print_data(FILE *out, const struct queue *q, const struct request *r)
{
	uint64_t total = total_bytes(q, r);

	fprintf(out, " bytes %llu", (unsigned long long)total);
	if (r->flags & IBV_SEND_INLINE && total) {
		print_inline(out, r, total);
		return;
	}
	for (unsigned i = 0; i < r->pieces; i++)
		print_piece(out, q, i, bytes_of(q, r, i));
}

/* An invalidation may come from any tag of the key; it leaves the key free, with tag 0. */
static void print_invalidation(FILE *out)
{
	fprintf(out, " key 0x%08x if of this qp mask 0x%x becomes free tag 0x00"
		" for qp 0xffffff units 0", INVALIDATE, 1 << 29 | 1 << 14 | 1 << 13);
}

/* Without bytes it makes the window free; type 2 then has to be this QP's, else a free one. */
static void print_window(FILE *out, const struct queue *q, const struct request *r)
{
	const struct ibv_mw *window = q->world->window[r->window];
	bool is_type_2 = r->window == 2, binds = total_bytes(q, r);
	unsigned mask = 1 << 29 | 1 << 13 | (is_type_2 ? 1 << 14 : 0) |
			(binds ? 0xf << 18 | 1 << 6 | 1 << 0 : 0);

	fprintf(out, " key 0x%08x%s mask 0x%x becomes %s tag 0x%02x", window->rkey,
		!is_type_2 ? "" : binds ? " if free" : " if of this qp", mask,
		binds ? "valid" : "free", window_new_rkey(window, r) & 0xff);
	if (is_type_2)
		fprintf(out, " for qp 0x%x", binds ? q->qp->qp_num : 0xffffff);
	if (!binds) {
		fputs(" units 0", out);
		return;
	}
	fprintf(out, " access %c%c%c%c", r->access & IBV_ACCESS_LOCAL_WRITE ? 'w' : '-',
		r->access & IBV_ACCESS_REMOTE_READ ? 'R' : '-',
		r->access & IBV_ACCESS_REMOTE_WRITE ? 'W' : '-',
		r->access & IBV_ACCESS_REMOTE_ATOMIC ? 'A' : '-');
	fprintf(out, " start 0x%llx length %u units %u", r->access & IBV_ACCESS_ZERO_BASED ? 0 :
		(unsigned long long)piece_addr(0), r->bytes[0], TRANSLATION_UNITS);
}

static void print_operands(FILE *out, const struct queue *q, const struct request *r)
{
	const struct operation *op = &operations[r->opcode];

	if (op->has_imm)
		fprintf(out, " imm %08x", IMM);
	if (r->opcode == IBV_WR_SEND_WITH_INV)
		fprintf(out, " inval 0x%08x", INVALIDATE);
	if (r->opcode == IBV_WR_LOCAL_INV)
		print_invalidation(out);
	if (r->window)
		print_window(out, q, r);
	if (op->has_remote)
		fprintf(out, " raddr 0x%llx rkey 0x%08x",
			(unsigned long long)(r->remote_addr ? r->remote_addr : REMOTE_ADDR),
			q->world->remote->rkey);
	if (r->opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
		fprintf(out, " compare 0x%llx swap 0x%llx", (unsigned long long)COMPARE,
			(unsigned long long)SWAP);
	if (r->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		fprintf(out, " add 0x%llx", (unsigned long long)ADD);
}

static const char *fence_text(const struct queue *q, const struct request *r)
{
	if (r->flags & IBV_SEND_FENCE)
		return " fence reads";
	return q->follows_umr ? " fence small" : "";
}

/* All the bytes that the line above it cuts short. */
static void print_inline_line(FILE *out, const struct request *r)
{
	fputs("inline ", out);
	for (unsigned i = 0; i < r->pieces; i++) {
		const uint8_t *piece = (const uint8_t *)(uintptr_t)piece_addr(i);

		for (uint32_t k = 0; k < r->bytes[i % 4]; k++)
			fprintf(out, "%02x", piece[k]);
	}
	fputc('\n', out);
}

/* To be called before the request is posted: @q counts what was posted before. */
void expect_text(FILE *out, const struct queue *q, const struct request *r)
{
	bool is_fault = r->outcome && *r->outcome == ':';

	fprintf(out, "%s qp 0x%x index 0x%04x ds %u", expect_name(r->opcode), q->qp->qp_num,
		q->produced & 0xffff, expect_units(q, r));
	if (q->signals_all || r->flags & IBV_SEND_SIGNALED)
		fputs(" signaled", out);
	if (!is_fault) {
		fputs(r->flags & IBV_SEND_SOLICITED ? " solicited" : "", out);
		fputs(fence_text(q, r), out);
		print_operands(out, q, r);
	}
	if (r->outcome)
		fputs(r->outcome, out);
	else
		print_data(out, q, r);
	fputc('\n', out);
	if (!r->outcome && r->flags & IBV_SEND_INLINE && total_bytes(q, r))
		print_inline_line(out, r);
}

void expect_recv_text(FILE *out, const struct queue *q, const struct recv_request *r)
{
	uint64_t total = 0;

	if (r->outcome) {
		fprintf(out, "%s\n", r->outcome);
		return;
	}
	for (unsigned i = 0; i < r->pieces; i++)
		total += r->bytes[i % 4];
	fprintf(out, "bytes %llu", (unsigned long long)total);
	for (unsigned i = 0; i < r->pieces; i++)
		print_piece(out, q, i, r->bytes[i % 4]);
	fputc('\n', out);
}

/* @next: the entry after this one, of a queue that was never used. */
void expect_shared_text(FILE *out, const struct queue *q, const struct recv_request *r,
			unsigned next)
{
	fprintf(out, "next %u ", next);
	expect_recv_text(out, q, r);
}
