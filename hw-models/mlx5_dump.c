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
	SHOWS_SWAP_MASKS = 32, SHOWS_ADD_MASK = 64, SHOWS_KEY = 128,
};

static const uint8_t op_shows[HW_OP_COUNT] = {
	[HW_OP_SEND_IMM] = SHOWS_IMM,
	[HW_OP_SEND_INVAL] = SHOWS_INVALIDATE,
	[HW_OP_WRITE] = SHOWS_REMOTE,
	[HW_OP_WRITE_IMM] = SHOWS_REMOTE | SHOWS_IMM,
	[HW_OP_READ] = SHOWS_REMOTE,
	[HW_OP_COMPARE_SWAP] = SHOWS_REMOTE | SHOWS_SWAP,
	[HW_OP_FETCH_ADD] = SHOWS_REMOTE | SHOWS_ADD,
	[HW_OP_MASKED_COMPARE_SWAP] = SHOWS_REMOTE | SHOWS_SWAP | SHOWS_SWAP_MASKS,
	[HW_OP_MASKED_FETCH_ADD] = SHOWS_REMOTE | SHOWS_ADD | SHOWS_ADD_MASK,
	[HW_OP_UMR] = SHOWS_KEY,
};

static void add_hex(struct text *t, const char *name, const uint8_t *from, unsigned bytes)
{
	text_add(t, " %s ", name);
	for (unsigned i = 0; i < bytes; i++)
		text_add(t, "%02x", from[i]);
}

static void add_av(struct text *t, const struct hw_av *av)
{
	text_add(t, " to 0x%x rate %u sl %u path %u lid 0x%04x%s", av->dest_qpn, av->rate, av->sl,
		 av->path_bits, av->dlid, av->forces_loopback ? " loopback" : "");
	if (av->is_compact)
		return;
	text_add(t, "%s sgid_index %u hop_limit %u tclass %u flow 0x%x", av->has_grh ? " grh" : "",
		 av->sgid_index, av->hop_limit, av->traffic_class, av->flow_label);
	add_hex(t, "rmac", av->rmac, sizeof av->rmac);
	add_hex(t, "rgid", av->rgid, sizeof av->rgid);
}

static void add_ud(struct text *t, const struct hw_work *work)
{
	add_av(t, &work->av);
	text_add(t, " qkey 0x%x", work->av.qkey);
}

static void add_dci(struct text *t, const struct hw_work *work)
{
	add_av(t, &work->av);
	text_add(t, " key 0x%llx", (unsigned long long)work->av.dc_key);
}

static void add_xrc(struct text *t, const struct hw_work *work)
{
	text_add(t, " srq 0x%x", work->srqn);
}

static void add_eth(struct text *t, const struct hw_work *work)
{
	const struct hw_eth *eth = &work->eth;

	if (eth->checksums)
		text_add(t, " checksums 0x%02x", eth->checksums);
	if (eth->inserts_vlan)
		text_add(t, " vlan 0x%04x", eth->vlan);
	if (work->op != HW_OP_TSO)
		return;
	text_add(t, " mss %u", eth->mss);
	add_hex(t, "header", eth->header, eth->header_bytes);
}

static void (*const add_peer[HW_TRANSPORT_COUNT])(struct text *t, const struct hw_work *work) = {
	[HW_UD] = add_ud,
	[HW_XRC] = add_xrc,
	[HW_DCI] = add_dci,
	[HW_RAW] = add_eth,
};

static void add_rights(struct text *t, uint64_t mask, uint32_t access)
{
	static const struct { enum umr_bit mask; uint32_t access; char letter; } rights[] = {
		{ UMR_LOCAL_READ, UMR_GIVES_LOCAL_READ, 'r' },
		{ UMR_LOCAL_WRITE, UMR_GIVES_LOCAL_WRITE, 'w' },
		{ UMR_REMOTE_READ, UMR_GIVES_REMOTE_READ, 'R' },
		{ UMR_REMOTE_WRITE, UMR_GIVES_REMOTE_WRITE, 'W' },
		{ UMR_ATOMIC, UMR_GIVES_ATOMIC, 'A' },
	};
	const char *before = " access ";

	for (unsigned i = 0; i < sizeof rights / sizeof *rights; i++) {
		if (!(mask & rights[i].mask))
			continue;
		text_add(t, "%s%c", before, access & rights[i].access ? rights[i].letter : '-');
		before = "";
	}
}

/* Only what changes is shown; `mask` also has what no field here is for. */
static void add_key(struct text *t, const struct hw_umr *umr)
{
	text_add(t, " key 0x%08x%s%s mask 0x%llx", umr->key, umr->needs_free ? " if free" : "",
		 umr->needs_qpn ? " if of this qp" : "", (unsigned long long)umr->mask);
	if (umr->mask & UMR_FREE)
		text_add(t, umr->frees ? " becomes free" : " becomes valid");
	if (umr->mask & UMR_TAG)
		text_add(t, " tag 0x%02x", umr->tag);
	if (umr->mask & UMR_QPN)
		text_add(t, " for qp 0x%x", umr->qpn);
	add_rights(t, umr->mask, umr->access);
	if (umr->mask & UMR_START)
		text_add(t, " start 0x%llx", (unsigned long long)umr->start);
	if (umr->mask & UMR_LEN)
		text_add(t, " length %llu", (unsigned long long)umr->bytes);
	text_add(t, " units %u", umr->translation_units);
}

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
	if (shows & SHOWS_ADD_MASK)
		text_add(t, " boundary 0x%llx", (unsigned long long)work->swap_mask);
	if (shows & SHOWS_SWAP_MASKS)
		text_add(t, " compare_mask 0x%llx swap_mask 0x%llx",
			 (unsigned long long)work->compare_mask,
			 (unsigned long long)work->swap_mask);
	if (shows & SHOWS_KEY)
		add_key(t, &work->umr);
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
	if (add_peer[transport] && work.op != HW_OP_NOP && work.op != HW_OP_UMR)
		add_peer[transport](&t, &work);
	add_operands(&t, &work);
	if (work.op != HW_OP_NOP)
		add_data(&t, &work);
	return (int)t.used;
}
