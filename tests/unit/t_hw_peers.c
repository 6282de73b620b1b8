/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a transport puts between control and the opcode's own segments: address vectors of UD and
 * DC, the shared receive queue of XRC.
 *
 * Address vectors are bytes typed from the specification, all different, so that a field read from
 * a wrong place shows.
 */
#include "tests/unit/hw_build.h"

/* An address vector of 48 bytes, or its first 16. */
static void address(struct build *b, bool is_extended)
{
	static const uint8_t bytes[48] = {
		0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,	/* Q_Key or DC key */
		0x7f, 0x21, 0x22, 0x23, 0xe5, 0xb7, 0xc1, 0xc2,	/* QPN, rate sl, fl path, sport */
		0x31, 0x32, 0x33, 0x34, 0x41, 0x42, 0x43, 0x44,
		0x45, 0x46, 0x51, 0x52, 0x4a, 0xba, 0x9c, 0xde,	/* MAC, tclass, hops, grh .. flow */
		0x60, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67,
		0x68, 0x69, 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x6f,
	};
	size_t count = is_extended ? sizeof bytes : 16;

	cr_assert(b->used + count <= sizeof b->bytes);
	memcpy(b->bytes + b->used, bytes, count);
	if (is_extended)
		b->bytes[b->used + 8] |= 0x80;
	b->used += count;
}

static void check_near(const struct hw_av *av)
{
	cr_assert(av->dest_qpn == 0x212223 && av->rate == 0xe && av->sl == 5);
	cr_assert(av->forces_loopback && av->path_bits == 0x37);
	cr_assert(av->udp_sport == 0xc1c2 && av->dlid == 0xc1c2);
}

static void check_far(const struct hw_av *av)
{
	static const uint8_t mac[6] = { 0x41, 0x42, 0x43, 0x44, 0x45, 0x46 };

	check_near(av);
	cr_assert(!av->is_compact && av->has_grh && av->sgid_index == 0xab);
	cr_assert(av->flow_label == 0xa9cde && av->traffic_class == 0x51 && av->hop_limit == 0x52);
	cr_assert_arr_eq(av->rmac, mac, sizeof mac);
	for (unsigned i = 0; i < 16; i++)
		cr_assert(av->rgid[i] == 0x60 + i);
}

static void check_compact(const struct hw_av *av)
{
	static const uint8_t none[16];

	check_near(av);
	cr_assert(av->is_compact && !av->has_grh && !av->sgid_index && !av->flow_label);
	cr_assert(!av->traffic_class && !av->hop_limit);
	cr_assert_arr_eq(av->rmac, none, sizeof av->rmac);
	cr_assert_arr_eq(av->rgid, none, sizeof av->rgid);
}

Test(ud, send_has_an_address_vector)
{
	struct build b = control(0x0a, 0x08);
	struct hw_work w;

	address(&b, true);
	piece(&b, 100, 7, 0x1000);
	inlined(&b, 5);
	cr_assert(decode(&b, HW_UD, &w) == HW_OK);
	check_plain(&w, HW_OP_SEND, 6);
	check_far(&w.av);
	cr_assert(w.av.qkey == 0x11121314 && w.av.dc_key == 0);
	cr_assert(w.bytes == 105 && w.sge_count == 2 && w.is_signaled);
	check_piece(&w.sge[0], 100, 7, 0x1000);
	check_inlined(&w.sge[1], 5);
}

Test(ud, each_bit_of_the_flags_stands_alone)
{
	struct build b = control(0x0a, 0);
	struct hw_work w;

	address(&b, true);
	b.bytes[16 + 13] = 0x7f;	/* no loopback */
	b.bytes[16 + 28] = 0xbf;	/* all but GRH */
	cr_assert(decode(&b, HW_UD, &w) == HW_OK);
	cr_assert(!w.av.forces_loopback && w.av.path_bits == 0x7f && !w.av.has_grh);
	cr_assert(w.av.sgid_index == 0xfb);
}

Test(ud, compact_address_ends_after_one_unit)
{
	static const uint8_t wire[4] = { 1, 2, 3, 4 };
	struct build b = control(0x0b, 0);
	struct hw_work w;

	address(&b, false);
	piece(&b, 100, 7, 0x1000);
	cr_assert(decode(&b, HW_UD, &w) == HW_OK);
	check_plain(&w, HW_OP_SEND_IMM, 3);
	check_compact(&w.av);
	cr_assert(w.av.qkey == 0x11121314 && !memcmp(&w.imm, wire, 4));
	cr_assert(w.sge_count == 1);
	check_piece(&w.sge[0], 100, 7, 0x1000);
}

Test(dci, address_has_a_key_of_64_bits_and_every_operation_follows_it)
{
	struct build send = control(0x01, 0), swap = control(0x11, 0), near = control(0x10, 0);
	struct hw_work w;

	address(&send, true);
	cr_assert(decode(&send, HW_DCI, &w) == HW_OK);
	check_plain(&w, HW_OP_SEND_INVAL, 4);
	check_far(&w.av);
	cr_assert(w.av.dc_key == 0x1112131415161718 && w.av.qkey == 0 && w.imm == IMM);
	address(&swap, true);
	remote(&swap);
	operands(&swap);
	piece(&swap, 8, 7, 0x2000);
	cr_assert(decode(&swap, HW_DCI, &w) == HW_OK);
	check_plain(&w, HW_OP_COMPARE_SWAP, 7);
	check_remote(&w);
	check_far(&w.av);
	cr_assert(w.compare == 0x1112131415161718 && w.bytes == 8 && w.atomic_bytes == 8);
	address(&near, false);
	remote(&near);
	piece(&near, 100, 7, 0x2000);
	cr_assert(decode(&near, HW_DCI, &w) == HW_OK);
	check_plain(&w, HW_OP_READ, 4);
	check_compact(&w.av);
	check_remote(&w);
}

Test(xrc, every_operation_names_its_shared_queue)
{
	struct build send = control(0x0a, 0), write = control(0x09, 0);
	struct hw_work w;

	word(&send, 0xaa123456);	/* 24 bits are the number */
	for (unsigned i = 0; i < 3; i++)
		word(&send, 0xffffffff);
	piece(&send, 100, 7, 0x1000);
	cr_assert(decode(&send, HW_XRC, &w) == HW_OK);
	check_plain(&w, HW_OP_SEND, 3);
	cr_assert(w.srqn == 0x123456 && w.bytes == 100);
	word(&write, 5);
	for (unsigned i = 0; i < 3; i++)
		word(&write, 0);
	remote(&write);
	inlined(&write, 20);
	cr_assert(decode(&write, HW_XRC, &w) == HW_OK);
	check_plain(&w, HW_OP_WRITE_IMM, 5);
	check_remote(&w);
	cr_assert(w.srqn == 5 && w.bytes == 20);
}

/* libmlx5 puts nothing in front of what concerns no peer. */
Test(all, nop_and_umr_have_no_address)
{
	for (enum hw_transport t = HW_RC; t < HW_TRANSPORT_COUNT; t++) {
		struct build nop = control(0x00, 0), umr = control(0x25, 0);
		struct hw_work w;

		cr_assert(decode(&nop, t, &w) == HW_OK, "transport %d", t);
		check_plain(&w, HW_OP_NOP, 1);
		if (t == HW_UD || t == HW_RAW)
			continue;
		umr_control(&umr, 0x90, 0, 1 << 13);
		for (unsigned i = 0; i < 16; i++)
			word(&umr, 0x1000 + i);
		cr_assert(decode(&umr, t, &w) == HW_OK, "transport %d", t);
		check_plain(&w, HW_OP_UMR, 8);
		cr_assert(w.umr.key == IMM && w.umr.tag == 0x01);
	}
}

Test(fault, ends_inside_its_address)
{
	static const struct {
		enum hw_transport transport;
		bool is_extended;
		unsigned units;
	} need[] = {
		{ HW_UD, true, 4 }, { HW_UD, false, 2 }, { HW_DCI, true, 4 }, { HW_DCI, false, 2 },
		{ HW_XRC, true, 2 },
	};

	for (unsigned i = 0; i < sizeof need / sizeof *need; i++) {
		for (unsigned ds = 1; ds <= need[i].units; ds++) {
			struct build b = control(0x0a, 0);
			struct hw_work w;
			enum hw_fault fault;

			address(&b, need[i].is_extended);
			set_ds(&b, ds);
			fault = mlx5_work_read(guarded(b.bytes, ds * 16), HW_WQE_DS_MAX,
					       need[i].transport, &w);
			cr_assert(fault == (ds < need[i].units ? HW_FAULT_DS_SHORT : HW_OK),
				  "row %u ds %u: %s", i, ds, hw_fault_name(fault));
		}
	}
}

Test(fault, ends_between_its_address_and_its_mandatory_segments)
{
	struct build ud = control(0x09, 0), dci = control(0x10, 0), xrc = control(0x12, 0);

	address(&ud, true);
	check_fault(&ud, HW_UD, HW_FAULT_OPCODE_TRANSPORT);
	address(&dci, true);
	check_fault(&dci, HW_DCI, HW_FAULT_DS_SHORT);
	address(&xrc, false);
	remote(&xrc);
	check_fault(&xrc, HW_XRC, HW_FAULT_DS_SHORT);
}
