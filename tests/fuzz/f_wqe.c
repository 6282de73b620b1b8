/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Can queue bytes hurt the device?
 *
 * The first byte chooses.  Odd: one WQE's bytes through the decoders and the printer, in a buffer
 * that ends where they may read to.  Even: an application that posts, scribbles, rings, polls and
 * takes its memory away, with two QPs that are each other's peers.
 */
#include <stdlib.h>
#include "hw-models/mlx5_wqe.h"
#include "tests/fuzz/rig.h"

enum { TEXT_BYTES = 8192, DEADLINES_MAX = 2000, DEADLINES_FOR_EVER = 50 };

/* --- one work request --- */

static void sges_compare(const struct hw_sge *a, const struct hw_sge *b, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		assert(a[i].addr == b[i].addr && a[i].bytes == b[i].bytes &&
		       a[i].lkey == b[i].lkey && a[i].inline_bytes == b[i].inline_bytes);
}

static void avs_compare(const struct hw_av *a, const struct hw_av *b)
{
	assert(a->is_compact == b->is_compact && a->qkey == b->qkey && a->dc_key == b->dc_key &&
	       a->dest_qpn == b->dest_qpn && a->udp_sport == b->udp_sport && a->dlid == b->dlid &&
	       a->rate == b->rate && a->path_bits == b->path_bits && a->sl == b->sl &&
	       a->forces_loopback == b->forces_loopback && a->flow_label == b->flow_label &&
	       a->traffic_class == b->traffic_class && a->hop_limit == b->hop_limit &&
	       a->sgid_index == b->sgid_index && a->has_grh == b->has_grh);
	assert(!memcmp(a->rmac, b->rmac, sizeof a->rmac) &&
	       !memcmp(a->rgid, b->rgid, sizeof a->rgid));
}

static void umrs_compare(const struct hw_umr *a, const struct hw_umr *b)
{
	assert(a->key == b->key && a->needs_free == b->needs_free &&
	       a->needs_qpn == b->needs_qpn && a->mask == b->mask && a->frees == b->frees &&
	       a->tag == b->tag && a->qpn == b->qpn && a->access == b->access &&
	       a->start == b->start && a->bytes == b->bytes &&
	       a->translation_units == b->translation_units);
}

/* What hw.h calls valid for some operations or transports only. */
static void rare_compare(const struct hw_work *a, const struct hw_work *b,
			 enum hw_transport transport)
{
	bool is_masked = a->op == HW_OP_MASKED_COMPARE_SWAP || a->op == HW_OP_MASKED_FETCH_ADD;

	if (is_masked || a->op == HW_OP_COMPARE_SWAP || a->op == HW_OP_FETCH_ADD)
		assert(a->atomic_bytes == b->atomic_bytes && a->bytes == a->atomic_bytes);
	if (is_masked)
		assert(a->swap_mask == b->swap_mask && a->compare_mask == b->compare_mask);
	if (a->op == HW_OP_UMR)
		umrs_compare(&a->umr, &b->umr);
	if (a->op == HW_OP_UMR || a->op == HW_OP_NOP)
		return;
	if (transport == HW_XRC)
		assert(a->srqn == b->srqn);
	if (transport == HW_UD || transport == HW_DCI)
		avs_compare(&a->av, &b->av);
	if (transport == HW_RAW)
		assert(a->eth.checksums == b->eth.checksums && a->eth.mss == b->eth.mss &&
		       a->eth.inserts_vlan == b->eth.inserts_vlan && a->eth.vlan == b->eth.vlan &&
		       a->eth.header_bytes == b->eth.header_bytes &&
		       !memcmp(a->eth.header, b->eth.header, a->eth.header_bytes));
}

/* As hw.h says: after a fault only what identifies the work request is valid. */
static void works_compare(const struct hw_work *a, const struct hw_work *b, enum hw_fault fault)
{
	assert(a->opcode == b->opcode && a->ds == b->ds && a->index == b->index &&
	       a->qpn == b->qpn && a->is_signaled == b->is_signaled);
	if (fault != HW_OK)
		return;
	assert(a->op == b->op && a->fence == b->fence && a->is_solicited == b->is_solicited &&
	       a->imm == b->imm && a->remote_addr == b->remote_addr && a->rkey == b->rkey &&
	       a->swap_add == b->swap_add && a->compare == b->compare && a->bytes == b->bytes &&
	       a->sge_count == b->sge_count);
	sges_compare(a->sge, b->sge, a->sge_count);
}

static void sges_check(const struct hw_sge *sge, unsigned count, uint64_t bytes,
		       const uint8_t *from, const uint8_t *end)
{
	uint64_t sum = 0;

	assert(count <= HW_SGE_MAX);
	for (unsigned i = 0; i < count; i++) {
		sum += sge[i].bytes;
		assert(sge[i].bytes);
		if (sge[i].inline_bytes)
			assert(sge[i].inline_bytes > from &&
			       sge[i].inline_bytes + sge[i].bytes <= end);
	}
	assert(sum == bytes);
}

static void dump_check(const uint8_t *wqe, unsigned units_max, enum hw_transport transport)
{
	static char text[TEXT_BYTES], again[TEXT_BYTES];
	int length = mlx5_dump(wqe, units_max, transport, text, sizeof text);
	size_t cut = (size_t)length / 2;

	assert(length > 0 && length < TEXT_BYTES && strlen(text) == (size_t)length);
	assert(mlx5_dump(wqe, units_max, transport, NULL, 0) == length);
	assert(mlx5_dump(wqe, units_max, transport, again, cut + 1) == length);
	assert(strlen(again) == cut && !memcmp(text, again, cut));
}

static void decode_send(struct input *in)
{
	static struct hw_work work, again;	/* not cleared: that is part of the test */
	enum hw_transport transport = take8(in) % HW_TRANSPORT_COUNT;
	unsigned units_max = take8(in) % (HW_WQE_DS_MAX + 1), units;
	uint8_t claim[16], *wqe;
	enum hw_fault fault;
	size_t bytes;

	take(in, claim, sizeof claim);
	units = mlx5_work_units(claim);
	bytes = units && units <= units_max ? units * 16 : sizeof claim;
	wqe = malloc(bytes);
	assert(wqe);
	memcpy(wqe, claim, sizeof claim);
	take(in, wqe + sizeof claim, bytes - sizeof claim);
	fault = mlx5_work_read(wqe, units_max, transport, &work);
	assert(mlx5_work_read(wqe, units_max, transport, &again) == fault);
	works_compare(&work, &again, fault);
	assert(fault < HW_FAULT_COUNT && hw_fault_name(fault));
	if (fault == HW_OK) {
		rare_compare(&work, &again, transport);
		sges_check(work.sge, work.sge_count, work.bytes, wqe, wqe + bytes);
	}
	dump_check(wqe, units_max, transport);
	free(wqe);
}

/* An entry of a shared queue has the same list behind 16 bytes of its own. */
static enum hw_fault list_decode(const uint8_t *wqe, size_t stride, bool is_shared,
				 struct hw_recv *out)
{
	uint16_t next;

	return is_shared ? mlx5_srq_read(wqe, stride, out, &next) :
			   mlx5_recv_read(wqe, stride, out);
}

static void decode_recv(struct input *in)
{
	static struct hw_recv recv, again;
	uint16_t choice = take16(in);
	bool is_shared = choice & 0x8000;
	size_t stride = 16 + ((choice & 0x7fff) % (HW_WQE_BYTES_MAX - 15)) + 16u * is_shared;
	uint8_t *wqe = malloc(stride);
	enum hw_fault fault;

	assert(wqe);
	take(in, wqe, stride);
	fault = list_decode(wqe, stride, is_shared, &recv);
	assert(list_decode(wqe, stride, is_shared, &again) == fault && fault < HW_FAULT_COUNT);
	if (fault == HW_OK) {
		assert(recv.bytes == again.bytes && recv.sge_count == again.sge_count);
		sges_compare(recv.sge, again.sge, recv.sge_count);
		sges_check(recv.sge, recv.sge_count, recv.bytes, NULL, NULL);
	}
	free(wqe);
}

/* --- an application --- */

static void (*const steps[])(struct input *) = {
	rig_do_post, rig_do_recv, rig_do_ring, rig_do_record, rig_do_scribble, rig_do_clock,
	rig_do_poll, rig_do_arm, rig_do_modify, rig_do_rekey, rig_do_hide, rig_do_cq,
	rig_do_shared, rig_do_port, rig_do_group,
};

static void run_rings(struct input *in)
{
	bool is_for_ever, is_quiet;

	rig_open(in, 0, NULL);
	is_for_ever = rig.config.rnr_retry == RIG_FOR_EVER;
	while (input_has_more(in)) {
		steps[take8(in) % (sizeof steps / sizeof *steps)](in);
		rig_watch();
	}
	is_quiet = device_settle(is_for_ever ? DEADLINES_FOR_EVER : DEADLINES_MAX);
	assert(is_quiet || is_for_ever);
	rig_check(is_quiet);
	rig_close();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct input in = { bytes, bytes + size };
	uint8_t mode = take8(&in);

	if (!rig_memory)
		rig_begin(NULL);
	if (!(mode & 1))
		run_rings(&in);
	else if (mode & 2)
		decode_recv(&in);
	else
		decode_send(&in);
	return 0;
}
