/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One line that says what a send WQE is: for people, and for tests that compare it.
 *
 * The text is stable: fixtures hold it.  It has everything that the decoder found
 * and nothing that the application left in the ring by chance.
 */
#include <stdarg.h>
#include <stdio.h>
#include "hw-models/hw.h"
#include "hw-models/mlx5_opcode.h"

#define INLINE_SHOWN_BYTES 32

struct text {
	char *out;
	size_t bytes;		/* of out */
	size_t used;		/* characters of the full text, even those that did not fit */
};

static void __attribute__((format(printf, 2, 3))) text_add(struct text *t, const char *format, ...)
{
	size_t at = t->used < t->bytes ? t->used : t->bytes;
	va_list values;
	int added;

	va_start(values, format);
	added = vsnprintf(t->bytes ? t->out + at : NULL, t->bytes - at, format, values);
	va_end(values);
	if (added > 0)
		t->used += (size_t)added;
}

static void add_control(struct text *t, const struct hw_work *work)
{
	const char *name = mlx5_opcodes[work->opcode].name;

	if (name)
		text_add(t, "%s", name);
	else
		text_add(t, "opcode 0x%02x", work->opcode);
	text_add(t, " qp 0x%x index 0x%04x ds %u", work->qpn, work->index, work->ds);
	if (work->is_signaled)
		text_add(t, " signaled");
}

static const char *const fence_texts[] = {
	[HW_FENCE_NONE] = "",
	[HW_FENCE_SMALL] = " fence small",
	[HW_FENCE_READS] = " fence reads",
	[HW_FENCE_STRONG] = " fence strong",
};

/* What belongs to each operation besides its data. */
enum shows {
	SHOWS_IMM = 1, SHOWS_INVALIDATE = 2, SHOWS_REMOTE = 4, SHOWS_ADD = 8, SHOWS_SWAP = 16,
};

static const uint8_t op_shows[HW_OP_COUNT] = {
	[HW_OP_SEND_IMM] = SHOWS_IMM,
	[HW_OP_SEND_INVAL] = SHOWS_INVALIDATE,
	[HW_OP_WRITE] = SHOWS_REMOTE,
	[HW_OP_WRITE_IMM] = SHOWS_REMOTE | SHOWS_IMM,
	[HW_OP_READ] = SHOWS_REMOTE,
	[HW_OP_COMPARE_SWAP] = SHOWS_REMOTE | SHOWS_SWAP,
	[HW_OP_FETCH_ADD] = SHOWS_REMOTE | SHOWS_ADD,
};

/* The immediate is shown as its bytes stand in the packet. */
static void add_imm(struct text *t, uint32_t imm)
{
	const uint8_t *byte = (const void *)&imm;

	text_add(t, " imm %02x%02x%02x%02x", byte[0], byte[1], byte[2], byte[3]);
}

static void add_operands(struct text *t, const struct hw_work *work)
{
	uint8_t shows = op_shows[work->op];

	if (shows & SHOWS_IMM)
		add_imm(t, work->imm);
	if (shows & SHOWS_INVALIDATE)
		text_add(t, " inval 0x%08x", work->imm);
	if (shows & SHOWS_REMOTE)
		text_add(t, " raddr 0x%llx rkey 0x%08x", (unsigned long long)work->remote_addr,
			 work->rkey);
	if (shows & SHOWS_ADD)
		text_add(t, " add 0x%llx", (unsigned long long)work->swap_add);
	if (shows & SHOWS_SWAP)
		text_add(t, " compare 0x%llx swap 0x%llx", (unsigned long long)work->compare,
			 (unsigned long long)work->swap_add);
}

static void add_inline(struct text *t, const struct hw_sge *sge)
{
	uint32_t shown = sge->bytes < INLINE_SHOWN_BYTES ? sge->bytes : INLINE_SHOWN_BYTES;

	text_add(t, " [inline %u:", sge->bytes);
	for (uint32_t i = 0; i < shown; i++)
		text_add(t, i % 4 ? "%02x" : " %02x", sge->inline_bytes[i]);
	text_add(t, shown < sge->bytes ? " ...]" : "]");
}

static void add_data(struct text *t, const struct hw_work *work)
{
	text_add(t, " bytes %llu", (unsigned long long)work->bytes);
	for (unsigned i = 0; i < work->sge_count; i++) {
		const struct hw_sge *sge = &work->sge[i];

		if (sge->inline_bytes)
			add_inline(t, sge);
		else
			text_add(t, " [0x%llx +%u lkey 0x%08x]", (unsigned long long)sge->addr,
				 sge->bytes, sge->lkey);
	}
}

int mlx5_dump(const uint8_t *wqe, unsigned units_max, enum hw_transport transport,
	      char *out, size_t bytes)
{
	struct text t = { .out = out, .bytes = bytes };
	struct hw_work work;
	enum hw_fault fault = mlx5_work_read(wqe, units_max, transport, &work);

	add_control(&t, &work);
	if (fault) {
		text_add(&t, ": %s", hw_fault_name(fault));
		return (int)t.used;
	}
	text_add(&t, "%s%s", work.is_solicited ? " solicited" : "", fence_texts[work.fence]);
	add_operands(&t, &work);
	if (work.op != HW_OP_NOP)
		add_data(&t, &work);
	return (int)t.used;
}
