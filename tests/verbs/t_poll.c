/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What polling makes of completions.
 *
 * Method: entries are written by hand, as a device would; each case is tried with entries of 64 and
 * of 128 bytes.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "hw-models/mlx5_cqe.h"
#include "hw-models/mlx5_opcode.h"
#include "script.h"

#define ALL_FLAGS (IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
		   IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_FLOW_TAG)
#define CQE 7			/* 8 entries */

static struct world {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct vb_cq *cq;
	struct vb_qp *qp, *ud;
	uint32_t written;	/* completions so far */
} w;

static struct vb_qp *qp_on(struct vb_cq *cq, enum ibv_qp_type type, struct ibv_srq *srq)
{
	struct ibv_cq *base = ibv_cq_ex_to_cq(&cq->cq);

	return script_qp(&(struct script_qp){
		.type = type, .pd = w.pd, .send_cq = base, .recv_cq = base, .srq = srq, .depth = 8,
		.sges = 4, .inline_bytes = 64, .port = 1,
	});
}

static void world_open(unsigned entry_bytes)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = CQE, .wc_flags = ALL_FLAGS };

	setenv("MLX5_CQE_SIZE", entry_bytes == 128 ? "128" : "64", 1);
	script.link_layer = IBV_LINK_LAYER_ETHERNET;
	script.device_caps = IBV_DEVICE_RAW_IP_CSUM;
	w.context = script_open();
	w.pd = ibv_alloc_pd(w.context);
	w.cq = vb_cq_of(ibv_cq_ex_to_cq(ibv_create_cq_ex(w.context, &attr)));
	cr_assert_eq(w.cq->entry_bytes, entry_bytes);
	cr_assert_eq(w.cq->entries, CQE + 1);
	w.qp = qp_on(w.cq, IBV_QPT_RC, NULL);
	w.ud = qp_on(w.cq, IBV_QPT_UD, NULL);
}

static unsigned both_sizes[] = { 64, 128 };

/* A case for each size of entries. */
#define BOTH(name)                                                                   \
	static void name(void);                                                      \
	ParameterizedTestParameters(poll, name)                                      \
	{                                                                            \
		return cr_make_param_array(unsigned, both_sizes, 2);                 \
	}                                                                            \
	ParameterizedTest(unsigned *entry_bytes, poll, name)                         \
	{                                                                            \
		world_open(*entry_bytes);                                            \
		name();                                                              \
	}                                                                            \
	static void name(void)

static struct ibv_cq *cq_base(void)
{
	return ibv_cq_ex_to_cq(&w.cq->cq);
}

static void complete(struct vb_qp *qp, struct hw_cqe cqe)
{
	cqe.user_index = qp->queue.user_index;
	cqe.qpn = qp->ex.qp_base.qp_num;
	script_complete(w.cq, w.written++, &cqe);
}

static void must_post(struct vb_qp *qp, uint64_t wr_id, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = { 0x1000, 8, 1 };
	struct ibv_send_wr wr = { .wr_id = wr_id, .opcode = opcode, .sg_list = &sge,
				  .num_sge = opcode != IBV_WR_LOCAL_INV }, *bad;

	cr_assert_eq(ibv_post_send(vb_qp_base(qp), &wr, &bad), 0);
}

static void must_post_recv(struct vb_qp *qp, uint64_t wr_id, struct ibv_sge *sge, int count)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = sge, .num_sge = count }, *bad;

	cr_assert_eq(ibv_post_recv(vb_qp_base(qp), &wr, &bad), 0);
}

static struct ibv_wc must_poll(void)
{
	struct ibv_wc wc;

	memset(&wc, 0x5a, sizeof wc);
	cr_assert_eq(ibv_poll_cq(cq_base(), 1, &wc), 1);
	return wc;
}

static void check_empty(void)
{
	struct ibv_wc wc;

	cr_assert_eq(ibv_poll_cq(cq_base(), 1, &wc), 0);
}

/* --- the ring --- */

BOTH(nothing_is_found_in_a_new_queue)
{
	struct ibv_wc wc;

	check_empty();
	cr_assert_eq(script.idle, 1);
	cr_assert_eq(ibv_poll_cq(cq_base(), 0, &wc), 0);
	cr_assert_eq(script.idle, 1, "who asks for none wants none");
	cr_assert_eq(w.cq->record[0], 0);
	cr_assert_eq(w.cq->lock.is_taken, 0);
}

/* One at a time over several rounds, and bursts that cross the end. */
BOTH(the_owner_bit_tells_rounds_apart)
{
	uint32_t total = 0;
	struct ibv_wc wc[16];

	for (uint32_t burst = 1; burst <= w.cq->entries; burst++)
		for (uint32_t round = 0; round < 3; round++, total += burst) {
			for (uint32_t i = 0; i < burst; i++) {
				must_post_recv(w.qp, total + i, NULL, 0);
				complete(w.qp, (struct hw_cqe){ .kind = HW_CQE_RECV, .bytes = i });
			}
			cr_assert_eq(ibv_poll_cq(cq_base(), 16, wc), (int)burst);
			for (uint32_t i = 0; i < burst; i++) {
				cr_assert_eq(wc[i].wr_id, total + i);
				cr_assert_eq(wc[i].byte_len, i);
			}
			check_empty();
			cr_assert_eq(be32toh(w.cq->record[0]), total + burst);
		}
}

/* Its last byte hands an entry over: what a device has not finished is not there yet. */
BOTH(an_entry_of_the_round_before_is_not_new)
{
	struct hw_cqe cqe = { .kind = HW_CQE_RECV, .user_index = w.qp->queue.user_index };

	must_post_recv(w.qp, 1, NULL, 0);
	script_complete(w.cq, w.cq->entries, &cqe);
	check_empty();
	script_complete(w.cq, 0, &cqe);
	cr_assert_eq(must_poll().wr_id, 1);
	check_empty();
}

BOTH(the_index_has_24_bits_for_the_device)
{
	w.cq->consumed = w.written = 0xffffff;
	for (uint32_t i = 0; i < 3; i++) {
		must_post_recv(w.qp, i, NULL, 0);
		complete(w.qp, (struct hw_cqe){ .kind = HW_CQE_RECV });
		must_poll();
		cr_assert_eq(be32toh(w.cq->record[0]), i);
	}
}

BOTH(a_queue_that_is_gone_has_no_completions)
{
	struct hw_cqe cqe = { .kind = HW_CQE_REQ, .user_index = 0x345678 };

	script_complete(w.cq, w.written++, &cqe);
	must_post(w.qp, 3, IBV_WR_SEND);
	complete(w.qp, (struct hw_cqe){ .kind = HW_CQE_REQ, .wqe_opcode = MLX5_OPCODE_SEND });
	script_complete(w.cq, w.written++, &cqe);
	cr_assert_eq(must_poll().wr_id, 3);
	cr_assert_eq(script.idle, 0, "it is passed over at once");
	check_empty();
}

static void complete_when_idle(void)
{
	script.on_idle = NULL;
	must_post_recv(w.qp, 8, NULL, 0);
	complete(w.qp, (struct hw_cqe){ .kind = HW_CQE_RECV });
}

BOTH(who_finds_nothing_lends_time_and_looks_again)
{
	script.on_idle = complete_when_idle;
	cr_assert_eq(must_poll().wr_id, 8);
	cr_assert_eq(script.idle, 1);
}

/* --- kinds --- */

static const struct sent {
	uint8_t opcode;
	enum ibv_wc_opcode want;
	uint32_t bytes, want_bytes;
} sents[] = {
	{ MLX5_OPCODE_SEND, IBV_WC_SEND, 0, 0 },
	{ MLX5_OPCODE_SEND_IMM, IBV_WC_SEND, 5, 5 },
	{ MLX5_OPCODE_SEND_INVAL, IBV_WC_SEND, 0, 0 },
	{ MLX5_OPCODE_RDMA_WRITE, IBV_WC_RDMA_WRITE, 0, 0 },
	{ MLX5_OPCODE_RDMA_WRITE_IMM, IBV_WC_RDMA_WRITE, 0, 0 },
	{ MLX5_OPCODE_RDMA_READ, IBV_WC_RDMA_READ, 77, 77 },
	{ MLX5_OPCODE_ATOMIC_CS, IBV_WC_COMP_SWAP, 0, 8 },
	{ MLX5_OPCODE_ATOMIC_FA, IBV_WC_FETCH_ADD, 0, 8 },
	{ MLX5_OPCODE_ATOMIC_MASKED_CS, IBV_WC_COMP_SWAP, 4, 4 },
	{ MLX5_OPCODE_ATOMIC_MASKED_FA, IBV_WC_FETCH_ADD, 8, 8 },
};

BOTH(requests)
{
	struct ibv_wc wc;

	for (unsigned i = 0; i < sizeof sents / sizeof *sents; i++) {
		uint32_t index = w.qp->sq.produced;

		must_post(w.qp, 100 + i, IBV_WR_SEND);
		complete(w.qp, (struct hw_cqe){
			.kind = HW_CQE_REQ, .wqe_opcode = sents[i].opcode,
			.wqe_counter = (uint16_t)index, .bytes = sents[i].bytes,
		});
		wc = must_poll();
		cr_assert_eq(wc.wr_id, 100 + i);
		cr_assert_eq(wc.status, IBV_WC_SUCCESS);
		cr_assert_eq(wc.opcode, sents[i].want, "opcode 0x%x", sents[i].opcode);
		cr_assert_eq(wc.byte_len, sents[i].want_bytes);
		cr_assert_eq(wc.wc_flags, 0);
		cr_assert_eq(wc.vendor_err, 0);
		cr_assert_eq(wc.qp_num, w.qp->ex.qp_base.qp_num);
		cr_assert_eq(atomic_load(&w.qp->sq.tail), i + 1);
	}
}

/* All are UMRs; what each was for is remembered. */
BOTH(keys_that_were_changed)
{
	struct ibv_mw mw = { .type = IBV_MW_TYPE_2, .rkey = 0x7700 };
	struct ibv_send_wr wr = { .wr_id = 2, .opcode = IBV_WR_BIND_MW, .bind_mw = { .mw = &mw } };
	struct ibv_send_wr *bad;

	must_post(w.qp, 1, IBV_WR_LOCAL_INV);
	complete(w.qp, (struct hw_cqe){ .kind = HW_CQE_REQ, .wqe_opcode = MLX5_OPCODE_UMR });
	cr_assert_eq(ibv_post_send(vb_qp_base(w.qp), &wr, &bad), 0);
	complete(w.qp, (struct hw_cqe){ .kind = HW_CQE_REQ, .wqe_opcode = MLX5_OPCODE_UMR,
					.wqe_counter = 2 });
	cr_assert_eq(must_poll().opcode, IBV_WC_LOCAL_INV);
	cr_assert_eq(must_poll().opcode, IBV_WC_BIND_MW);
}

/* Requests without a completion of their own are done with the next one that has. */
BOTH(one_completion_answers_for_those_before_it)
{
	for (uint32_t i = 0; i < w.qp->sq.max_post; i++)
		must_post(w.qp, i, i == 1 ? IBV_WR_LOCAL_INV : IBV_WR_SEND);
	complete(w.qp, (struct hw_cqe){ .kind = HW_CQE_REQ, .wqe_opcode = MLX5_OPCODE_SEND,
					.wqe_counter = 5 });
	cr_assert_eq(must_poll().wr_id, 4, "the fifth, for the second has two blocks");
	cr_assert_eq(atomic_load(&w.qp->sq.tail), 5);
}

BOTH(receives)
{
	static const struct {
		enum hw_cqe_kind kind;
		enum ibv_wc_opcode want;
		unsigned flags;
	} rows[] = {
		{ HW_CQE_RECV, IBV_WC_RECV, 0 },
		{ HW_CQE_RECV_IMM, IBV_WC_RECV, IBV_WC_WITH_IMM },
		{ HW_CQE_RECV_INV, IBV_WC_RECV, IBV_WC_WITH_INV },
		{ HW_CQE_RECV_WRITE_IMM, IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM },
	};
	struct ibv_wc wc;

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		must_post_recv(w.qp, 50 + i, NULL, 0);
		complete(w.qp, (struct hw_cqe){ .kind = rows[i].kind, .imm = 0x01020304,
						.bytes = 1000 });
		wc = must_poll();
		cr_assert_eq(wc.wr_id, 50 + i);
		cr_assert_eq(wc.opcode, rows[i].want);
		cr_assert_eq(wc.wc_flags, rows[i].flags);
		cr_assert_eq(wc.byte_len, 1000);
		if (rows[i].flags)
			cr_assert_eq(wc.imm_data, 0x01020304, "as on the wire; a key, as a number");
		cr_assert_eq(atomic_load(&w.qp->rq.tail), i + 1);
	}
}

static const struct hw_cqe datagram = {
	.kind = HW_CQE_RECV, .has_origin = true, .src_qpn = 0xabcdef, .slid = 0x1234,
	.path_bits = 0x55, .sl = 9, .grh = 1, .bytes = 140,
	.timestamp = 0x1122334455667788, .has_vlan = true, .vlan = 0x3021,
};

BOTH(where_a_datagram_came_from)
{
	struct hw_cqe cqe = datagram;
	struct ibv_wc wc;

	cqe.imm = htobe32(0x00070002);
	must_post_recv(w.ud, 1, NULL, 0);
	complete(w.ud, cqe);
	wc = must_poll();
	cr_assert_eq(wc.src_qp, 0xabcdef);
	cr_assert_eq(wc.slid, 0x1234);
	cr_assert_eq(wc.dlid_path_bits, 0x55);
	cr_assert_eq(wc.sl, 9);
	cr_assert_eq(wc.pkey_index, 2);
	cr_assert_eq(wc.wc_flags, IBV_WC_GRH);
	cr_assert_eq(wc.byte_len, 140);
}

/* Both headers, and only those of IPv4. */
BOTH(checksums_of_frames)
{
	enum { L3 = 2, L4 = 4, IPV6 = 1, IPV4 = 2 };
	struct vb_qp *raw = qp_on(w.cq, IBV_QPT_RAW_PACKET, NULL);
	static const struct { uint8_t ok, type; bool is_good; } rows[] = {
		{ L3 | L4, IPV4, true }, { L3, IPV4, false }, { L4, IPV4, false },
		{ L3 | L4, IPV6, false }, { 0, 0, false },
	};

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		must_post_recv(raw, i, NULL, 0);
		complete(raw, (struct hw_cqe){
			.kind = HW_CQE_RECV, .has_origin = true, .checks_ok = rows[i].ok,
			.l3_type = rows[i].type,
		});
		cr_assert_eq(must_poll().wc_flags, rows[i].is_good ? IBV_WC_IP_CSUM_OK : 0);
	}
}

/* Datagrams have no checksums that a program could ask for, whatever their entries say. */
BOTH(checksums_of_others)
{
	struct hw_cqe good = { .kind = HW_CQE_RECV, .has_origin = true, .checks_ok = 6,
			       .l3_type = 2 };

	must_post_recv(w.ud, 1, NULL, 0);
	complete(w.ud, good);
	cr_assert_eq(must_poll().wc_flags, 0);
}

BOTH(checksums_that_the_device_does_not_check)
{
	struct hw_cqe good = { .kind = HW_CQE_RECV, .has_origin = true, .checks_ok = 6,
			       .l3_type = 2 };
	struct vb_qp *raw;

	vb_context_of(w.context)->attr.orig_attr.device_cap_flags = 0;
	raw = qp_on(w.cq, IBV_QPT_RAW_PACKET, NULL);
	must_post_recv(raw, 1, NULL, 0);
	complete(raw, good);
	cr_assert_eq(must_poll().wc_flags, 0);
}

/* The tag of the rule stands where others have the number of their QP. */
BOTH(tag_and_vlan_of_a_frame)
{
	struct vb_qp *raw = qp_on(w.cq, IBV_QPT_RAW_PACKET, NULL);
	struct ibv_poll_cq_attr none = { 0 };

	must_post_recv(raw, 7, NULL, 0);
	complete(raw, (struct hw_cqe){
		.kind = HW_CQE_RECV, .has_origin = true, .is_frame = true, .flow_tag = 0xfedcba,
		.has_vlan = true, .vlan = 0xa123, .bytes = 64,
	});
	cr_assert_eq(ibv_start_poll(&w.cq->cq, &none), 0);
	cr_assert_eq(w.cq->cq.wr_id, 7);
	cr_assert_eq(ibv_wc_read_flow_tag(&w.cq->cq), 0xfedcba);
	cr_assert_eq(ibv_wc_read_cvlan(&w.cq->cq), 0xa123);
	cr_assert_eq(ibv_wc_read_byte_len(&w.cq->cq), 64);
	ibv_end_poll(&w.cq->cq);
}

/* --- errors --- */

static enum ibv_wc_status status_of(unsigned syndrome)
{
	switch (syndrome) {
	case 0x01: return IBV_WC_LOC_LEN_ERR;
	case 0x02: return IBV_WC_LOC_QP_OP_ERR;
	case 0x04: return IBV_WC_LOC_PROT_ERR;
	case 0x05: return IBV_WC_WR_FLUSH_ERR;
	case 0x06: return IBV_WC_MW_BIND_ERR;
	case 0x10: return IBV_WC_BAD_RESP_ERR;
	case 0x11: return IBV_WC_LOC_ACCESS_ERR;
	case 0x12: return IBV_WC_REM_INV_REQ_ERR;
	case 0x13: return IBV_WC_REM_ACCESS_ERR;
	case 0x14: return IBV_WC_REM_OP_ERR;
	case 0x15: return IBV_WC_RETRY_EXC_ERR;
	case 0x16: return IBV_WC_RNR_RETRY_EXC_ERR;
	case 0x22: return IBV_WC_REM_ABORT_ERR;
	default: return IBV_WC_GENERAL_ERR;
	}
}

BOTH(syndromes)
{
	struct ibv_wc wc;

	for (unsigned syndrome = 0; syndrome < 256; syndrome++)
		for (unsigned is_send = 0; is_send < 2; is_send++) {
			uint32_t index = w.qp->sq.produced;

			if (is_send)
				must_post(w.qp, syndrome, IBV_WR_SEND);
			else
				must_post_recv(w.qp, syndrome, NULL, 0);
			complete(w.qp, (struct hw_cqe){
				.kind = is_send ? HW_CQE_REQ_ERR : HW_CQE_RECV_ERR,
				.wqe_opcode = MLX5_OPCODE_SEND, .wqe_counter = (uint16_t)index,
				.syndrome = (uint8_t)syndrome, .vendor_err = 0x88,
			});
			wc = must_poll();
			cr_assert_eq(wc.status, status_of(syndrome), "syndrome 0x%x", syndrome);
			cr_assert_eq(wc.vendor_err, 0x88);
			cr_assert_eq(wc.wr_id, syndrome);
			cr_assert_eq(wc.qp_num, w.qp->ex.qp_base.qp_num);
			cr_assert_eq(wc.wc_flags, 0);
		}
	cr_assert_eq(atomic_load(&w.qp->sq.tail), 256);
	cr_assert_eq(atomic_load(&w.qp->rq.tail), 256);
}

/* --- extended --- */

BOTH(readers_tell_the_same)
{
	struct ibv_cq_ex *ex = &w.cq->cq;
	struct ibv_poll_cq_attr attr = { 0 };
	struct hw_cqe cqe = datagram;

	must_post_recv(w.ud, 9, NULL, 0);
	complete(w.ud, cqe);
	cr_assert_eq(ibv_start_poll(ex, &attr), 0);
	cr_assert_eq(ex->wr_id, 9);
	cr_assert_eq(ex->status, IBV_WC_SUCCESS);
	cr_assert_eq(ibv_wc_read_opcode(ex), IBV_WC_RECV);
	cr_assert_eq(ibv_wc_read_byte_len(ex), 140);
	cr_assert_eq(ibv_wc_read_wc_flags(ex), IBV_WC_GRH);
	cr_assert_eq(ibv_wc_read_qp_num(ex), w.ud->ex.qp_base.qp_num);
	cr_assert_eq(ibv_wc_read_src_qp(ex), 0xabcdef);
	cr_assert_eq(ibv_wc_read_slid(ex), 0x1234);
	cr_assert_eq(ibv_wc_read_sl(ex), 9);
	cr_assert_eq(ibv_wc_read_dlid_path_bits(ex), 0x55);
	cr_assert_eq(ibv_wc_read_completion_ts(ex), 0x1122334455667788);
	cr_assert_eq(ibv_wc_read_cvlan(ex), 0x3021);
	ibv_end_poll(ex);
}

BOTH(readers_tell_of_errors)
{
	struct ibv_cq_ex *ex = &w.cq->cq;
	struct ibv_poll_cq_attr attr = { 0 };

	must_post(w.qp, 4, IBV_WR_SEND);
	complete(w.qp, (struct hw_cqe){ .kind = HW_CQE_REQ_ERR, .syndrome = 0x13,
					.vendor_err = 0x89 });
	cr_assert_eq(ibv_start_poll(ex, &attr), 0);
	cr_assert_eq(ex->wr_id, 4);
	cr_assert_eq(ex->status, IBV_WC_REM_ACCESS_ERR);
	cr_assert_eq(ibv_wc_read_vendor_err(ex), 0x89);
	ibv_end_poll(ex);
}

/* The device learns of it at the end, and the lock is held until then. */
BOTH(a_batch_is_told_at_its_end)
{
	struct ibv_cq_ex *ex = &w.cq->cq;
	struct ibv_poll_cq_attr attr = { 0 };

	for (unsigned i = 0; i < 2; i++) {
		must_post_recv(w.qp, i, NULL, 0);
		complete(w.qp, (struct hw_cqe){ .kind = HW_CQE_RECV_IMM, .imm = i });
	}
	cr_assert_eq(ibv_start_poll(ex, &attr), 0);
	cr_assert_eq(ibv_wc_read_imm_data(ex), 0);
	cr_assert_eq(w.cq->lock.is_taken, 1);
	cr_assert_eq(ibv_next_poll(ex), 0);
	cr_assert_eq(ibv_wc_read_imm_data(ex), 1);
	cr_assert_eq(ibv_next_poll(ex), ENOENT);
	cr_assert_eq(w.cq->record[0], 0);
	ibv_end_poll(ex);
	cr_assert_eq(be32toh(w.cq->record[0]), 2);
	cr_assert_eq(w.cq->lock.is_taken, 0);
}

BOTH(starting_may_find_nothing)
{
	struct ibv_cq_ex *ex = &w.cq->cq;
	struct ibv_poll_cq_attr attr = { 0 }, unknown = { .comp_mask = 1 };

	cr_assert_eq(ibv_start_poll(ex, &attr), ENOENT);
	cr_assert_eq(w.cq->lock.is_taken, 0);
	cr_assert_eq(ibv_start_poll(ex, &unknown), EINVAL);
	cr_assert_eq(w.cq->lock.is_taken, 0);
	script.on_idle = complete_when_idle;
	cr_assert_eq(ibv_start_poll(ex, &attr), 0);
	cr_assert_eq(ex->wr_id, 8);
	ibv_end_poll(ex);
}

Test(poll, readers_are_there_when_asked_for)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 1, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN };
	struct ibv_cq_ex *ex;

	ex = ibv_create_cq_ex(script_open(), &attr);
	cr_assert(ex);
	cr_assert(ex->read_byte_len && ex->read_opcode && ex->read_vendor_err && ex->read_wc_flags);
	cr_assert_null(ex->read_imm_data);
	cr_assert_null(ex->read_completion_ts);
	cr_assert_null(ex->read_slid);
}

/* --- data within the completion --- */

static uint8_t target[4][64];

static void targets_fill(struct ibv_sge *sge, uint32_t a, uint32_t b, uint32_t c)
{
	const uint32_t bytes[] = { a, b, c };

	memset(target, 0xa5, sizeof target);
	for (unsigned i = 0; i < 3; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)target[i], bytes[i], 1 };
}

/* The message counts up from 1; it fills the targets in turn and not a byte more. */
static void check_targets(const struct ibv_sge *sge, uint32_t bytes)
{
	uint32_t at = 0;

	for (unsigned i = 0; i < 3; i++)
		for (uint32_t k = 0; k < sizeof target[i]; k++) {
			uint8_t want = k < sge[i].length && at < bytes ? (uint8_t)++at : 0xa5;

			cr_assert_eq(target[i][k], want, "piece %u byte %u", i, k);
		}
}

/* Writes a completion with @bytes of message, within it or in front of it. */
static void complete_with_data(struct vb_qp *qp, struct hw_cqe cqe, uint32_t bytes, uint8_t format)
{
	uint8_t message[64], *entry;

	for (unsigned i = 0; i < sizeof message; i++)
		message[i] = (uint8_t)(i + 1);
	cqe.format = format;
	cqe.bytes = bytes;
	cqe.inline_bytes = message;
	entry = w.cq->at + (size_t)(w.written % w.cq->entries) * w.cq->entry_bytes;
	if (format == MLX5_CQE_DATA_64)
		memcpy(entry, message, bytes);
	complete(qp, cqe);
}

static struct mlx5_cqe *entry_of_last(void)
{
	uint8_t *entry = w.cq->at + (size_t)((w.written - 1) % w.cq->entries) * w.cq->entry_bytes;

	return (void *)(entry + w.cq->entry_bytes - MLX5_CQE_BYTES);
}

static uint32_t data_max(uint8_t format)
{
	return format == MLX5_CQE_DATA_32 ? 32 : 64;
}

static uint8_t format_last(void)
{
	return w.cq->entry_bytes == 128 ? MLX5_CQE_DATA_64 : MLX5_CQE_DATA_32;
}

BOTH(a_small_message_comes_with_its_completion)
{
	struct ibv_sge sge[3];

	for (uint8_t format = MLX5_CQE_DATA_32; format <= format_last(); format++)
		for (uint32_t bytes = 0; bytes <= data_max(format); bytes++) {
			targets_fill(sge, 5, 20, 64);
			must_post_recv(w.qp, bytes, sge, 3);
			complete_with_data(w.qp, (struct hw_cqe){ .kind = HW_CQE_RECV }, bytes,
					   format);
			cr_assert_eq(must_poll().byte_len, bytes);
			check_targets(sge, bytes);
		}
}

/* A list that is shorter than its entry ends before what an older one left there. */
BOTH(a_message_stops_at_the_end_of_the_list)
{
	struct ibv_sge sge[3];

	for (uint32_t i = 0; i < w.qp->rq.entries; i++) {
		targets_fill(sge, 9, 9, 9);
		must_post_recv(w.qp, i, sge, 3);
		complete_with_data(w.qp, (struct hw_cqe){ .kind = HW_CQE_RECV }, 27,
				   MLX5_CQE_DATA_32);
		must_poll();
	}
	targets_fill(sge, 9, 9, 9);
	must_post_recv(w.qp, 1, sge, 1);
	complete_with_data(w.qp, (struct hw_cqe){ .kind = HW_CQE_RECV }, 27, MLX5_CQE_DATA_32);
	must_poll();
	sge[1].length = sge[2].length = 0;
	check_targets(sge, 9);
}

/* Out of order: the entry is named by the completion. */
BOTH(a_small_message_of_a_shared_queue)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 3 } };
	struct ibv_srq *srq = ibv_create_srq(w.pd, &init);
	struct vb_qp *qp = qp_on(w.cq, IBV_QPT_RC, srq);
	struct ibv_sge sge[2][3];
	struct ibv_recv_wr wr[2], *bad;

	targets_fill(sge[0], 64, 0, 0);
	targets_fill(sge[1], 3, 11, 64);
	for (unsigned i = 0; i < 2; i++)
		wr[i] = (struct ibv_recv_wr){ .wr_id = 20 + i, .sg_list = sge[i], .num_sge = 3,
					      .next = i ? NULL : &wr[1] };
	cr_assert_eq(ibv_post_srq_recv(srq, wr, &bad), 0);
	complete_with_data(qp, (struct hw_cqe){ .kind = HW_CQE_RECV_IMM, .wqe_counter = 1 }, 30,
			   MLX5_CQE_DATA_32);
	cr_assert_eq(must_poll().wr_id, 21);
	check_targets(sge[1], 30);
	cr_assert_eq(vb_srq_of(srq)->free_last, 1);
}

static void post_read(enum ibv_wr_opcode opcode, const struct ibv_sge *sge, int count)
{
	struct ibv_send_wr wr = { .opcode = opcode, .sg_list = (struct ibv_sge *)sge,
				  .num_sge = count }, *bad;

	cr_assert_eq(ibv_post_send(vb_qp_base(w.qp), &wr, &bad), 0);
}

/* Whatever the bits say that tell of data: in errors something else stands there. */
BOTH(an_error_brings_no_data)
{
	struct ibv_sge sge[3];

	targets_fill(sge, 64, 0, 0);
	for (unsigned is_send = 0; is_send < 2; is_send++) {
		struct hw_cqe cqe = { .kind = is_send ? HW_CQE_REQ_ERR : HW_CQE_RECV_ERR,
				      .syndrome = 0x13 };
		uint8_t *last = w.cq->at + (size_t)(w.written % w.cq->entries + 1) *
					   w.cq->entry_bytes - 1;

		if (is_send)
			post_read(IBV_WR_RDMA_READ, sge, 3);
		else
			must_post_recv(w.qp, 1, sge, 3);
		complete(w.qp, cqe);
		mlx5_cqe_set_byte_count(entry_of_last(), 32);
		*last = (uint8_t)((*last & ~0xcu) | MLX5_CQE_DATA_32 << 2);
		cr_assert_eq(must_poll().status, IBV_WC_REM_ACCESS_ERR);
		check_targets(sge, 0);
	}
}

/* From every block of the ring, so that the list of pieces crosses its end. */
BOTH(what_a_read_brought)
{
	struct ibv_sge sge[3];
	uint32_t index;

	for (uint8_t format = MLX5_CQE_DATA_32; format <= format_last(); format++)
		for (uint32_t i = 0; i < w.qp->sq.entries; i++) {
			index = w.qp->sq.produced = i;
			targets_fill(sge, 3, 17, 64);
			post_read(IBV_WR_RDMA_READ, sge, 3);
			complete_with_data(w.qp, (struct hw_cqe){
				.kind = HW_CQE_REQ, .wqe_opcode = MLX5_OPCODE_RDMA_READ,
				.wqe_counter = (uint16_t)index,
			}, data_max(format), format);
			cr_assert_eq(must_poll().byte_len, data_max(format));
			check_targets(sge, data_max(format));
		}
}

/* The pieces stand behind what says whose queue receives. */
BOTH(what_a_read_of_xrc_brought)
{
	struct vb_qp *qp = script_qp(&(struct script_qp){
		.type = IBV_QPT_XRC_SEND, .pd = w.pd, .send_cq = cq_base(), .depth = 8, .sges = 4,
	});
	struct ibv_sge sge[3];
	/* Taken for a piece, this address would have a length. */
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_READ, .sg_list = sge, .num_sge = 3,
				  .wr.rdma.remote_addr = 0x1000000000 };
	struct ibv_send_wr *bad;

	targets_fill(sge, 3, 17, 64);
	cr_assert_eq(ibv_post_send(vb_qp_base(qp), &wr, &bad), 0);
	complete_with_data(qp, (struct hw_cqe){ .kind = HW_CQE_REQ,
						.wqe_opcode = MLX5_OPCODE_RDMA_READ },
			   30, MLX5_CQE_DATA_32);
	cr_assert_eq(must_poll().byte_len, 30);
	check_targets(sge, 30);
}

/* A completion can't bring more than it has room for, whatever it says. */
BOTH(more_data_than_there_is_room_for)
{
	struct ibv_sge sge[3];

	targets_fill(sge, 64, 64, 64);
	must_post_recv(w.qp, 1, sge, 3);
	complete_with_data(w.qp, (struct hw_cqe){ .kind = HW_CQE_RECV }, 32, MLX5_CQE_DATA_32);
	mlx5_cqe_set_byte_count(entry_of_last(), 1000);
	cr_assert_eq(must_poll().byte_len, 1000);
	check_targets(sge, 32);
}

/* What does not fit is left out, and goes into no request or receive behind it. */
BOTH(more_data_than_was_asked_for)
{
	struct ibv_sge sge[4], behind = { (uintptr_t)target[3], 64, 1 };

	targets_fill(sge, 5, 6, 7);
	sge[3] = (struct ibv_sge){ (uintptr_t)target[2] + 7, 1, 1 };
	post_read(IBV_WR_RDMA_READ, sge, 3);
	post_read(IBV_WR_RDMA_READ, &behind, 1);
	complete_with_data(w.qp, (struct hw_cqe){ .kind = HW_CQE_REQ,
						  .wqe_opcode = MLX5_OPCODE_RDMA_READ },
			   32, MLX5_CQE_DATA_32);
	must_poll();
	check_targets(sge, 18);
	targets_fill(sge, 5, 6, 7);
	must_post_recv(w.qp, 1, sge, 4);
	must_post_recv(w.qp, 2, &behind, 1);
	complete_with_data(w.qp, (struct hw_cqe){ .kind = HW_CQE_RECV }, 32, MLX5_CQE_DATA_32);
	must_poll();
	sge[2].length++;
	check_targets(sge, 19);
	cr_assert_eq(target[3][0], 0xa5);
}

BOTH(what_an_atomic_found)
{
	static const struct { enum ibv_wr_opcode opcode; uint8_t code; } rows[] = {
		{ IBV_WR_ATOMIC_CMP_AND_SWP, MLX5_OPCODE_ATOMIC_CS },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, MLX5_OPCODE_ATOMIC_FA },
	};
	struct ibv_sge sge[3];

	for (unsigned row = 0; row < 2; row++)
		for (uint32_t i = 0; i < w.qp->sq.entries; i++) {
			w.qp->sq.produced = i;
			targets_fill(sge, 8, 0, 0);
			post_read(rows[row].opcode, sge, 1);
			complete_with_data(w.qp, (struct hw_cqe){
				.kind = HW_CQE_REQ, .wqe_opcode = rows[row].code,
				.wqe_counter = (uint16_t)i,
			}, 8, MLX5_CQE_DATA_32);
			cr_assert_eq(must_poll().byte_len, 8);
			check_targets(sge, 8);
		}
}
