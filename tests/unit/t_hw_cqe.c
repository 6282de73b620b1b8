/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completions as bytes: what libmlx5 reads stands where it reads it, everything else
 * is zero, and the syndromes are those of the hardware.
 *
 * Bytes are compared whole, with vectors typed from the specification.
 */
#include <criterion/criterion.h>
#include <string.h>
#include "hw-models/hw.h"
#include "hw-models/mlx5_cqe.h"

#define ZERO4  0, 0, 0, 0
#define ZERO32 ZERO4, ZERO4, ZERO4, ZERO4, ZERO4, ZERO4, ZERO4, ZERO4

#define CHECK_CQE(cqe, owner, ...)                                                   \
	do {                                                                         \
		static const uint8_t golden[64] = { __VA_ARGS__ };                   \
		uint8_t out[64];                                                     \
									     \
		memset(out, 0xa5, sizeof out);	/* nothing may be left over */       \
		mlx5_cqe_write(out, cqe, owner);                                     \
		for (unsigned i = 0; i < 64; i++)                                    \
			cr_assert(out[i] == golden[i], "byte %u is %02x, not %02x",  \
				  i, out[i], golden[i]);                             \
	} while (0)

Test(cqe, requester)
{
	struct hw_cqe cqe = {
		.kind = HW_CQE_REQ, .user_index = 0x010203, .qpn = 0x11d, .wqe_opcode = 0x10,
		.wqe_counter = 0xfffe, .bytes = 0x40000000, .timestamp = 0x1122334455667788,
	};

	CHECK_CQE(&cqe, 1, ZERO32, 0x00, 0x01, 0x02, 0x03, ZERO4, ZERO4, 0x40, 0, 0, 0,
		  0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
		  0x10, 0x00, 0x01, 0x1d, 0xff, 0xfe, 0x00, 0x01);
}

Test(cqe, receive_has_no_opcode_and_may_be_solicited)
{
	struct hw_cqe cqe = {
		.kind = HW_CQE_RECV, .user_index = 5, .qpn = 0xffffff, .wqe_opcode = 0x0a,
		.wqe_counter = 1, .bytes = 7, .is_solicited = true,
	};

	CHECK_CQE(&cqe, 0, ZERO32, 0, 0, 0, 5, ZERO4, ZERO4, 0, 0, 0, 7, ZERO4, ZERO4,
		  0x00, 0xff, 0xff, 0xff, 0x00, 0x01, 0x00, 0x22);
}

Test(cqe, immediate_keeps_its_wire_bytes)
{
	struct hw_cqe cqe = { .kind = HW_CQE_RECV_IMM, .bytes = 1 };

	memcpy(&cqe.imm, (uint8_t[]){ 0xde, 0xad, 0xbe, 0xef }, 4);
	CHECK_CQE(&cqe, 0, ZERO32, ZERO4, 0xde, 0xad, 0xbe, 0xef, ZERO4, 0, 0, 0, 1,
		  ZERO4, ZERO4, ZERO4, 0, 0, 0, 0x30);
	cqe.kind = HW_CQE_RECV_WRITE_IMM;
	CHECK_CQE(&cqe, 1, ZERO32, ZERO4, 0xde, 0xad, 0xbe, 0xef, ZERO4, 0, 0, 0, 1,
		  ZERO4, ZERO4, ZERO4, 0, 0, 0, 0x11);
}

Test(cqe, invalidated_rkey_becomes_big_endian)
{
	struct hw_cqe cqe = { .kind = HW_CQE_RECV_INV, .imm = 0x00301c04 };

	CHECK_CQE(&cqe, 0, ZERO32, ZERO4, 0x00, 0x30, 0x1c, 0x04, ZERO4, ZERO4,
		  ZERO4, ZERO4, ZERO4, 0, 0, 0, 0x40);
}

Test(cqe, resize_and_invalid_are_an_opcode_and_an_owner)
{
	struct hw_cqe resize = { .kind = HW_CQE_RESIZE }, invalid = { .kind = HW_CQE_INVALID };

	CHECK_CQE(&resize, 1, ZERO32, ZERO4, ZERO4, ZERO4, ZERO4, ZERO4, ZERO4, ZERO4,
		  0, 0, 0, 0x51);
	CHECK_CQE(&invalid, 0, ZERO32, ZERO4, ZERO4, ZERO4, ZERO4, ZERO4, ZERO4, ZERO4,
		  0, 0, 0, 0xf0);
}

Test(cqe, datagram_says_how_it_came_to_an_infiniband_port)
{
	struct hw_cqe cqe = {
		.kind = HW_CQE_RECV, .qpn = 0x11d, .bytes = 140, .has_origin = true,
		.src_qpn = 0xabcdef,
		.slid = 0x1234, .path_bits = 0x7f, .sl = 0xf, .grh = 1, .checks_ok = 7,
	};

	CHECK_CQE(&cqe, 0, ZERO4, ZERO4, ZERO4, ZERO4, 0x00, 0x7f, 0, 0, 0, 0, 0x12, 0x34,
		  0x1f, 0xab, 0xcd, 0xef, 0x07, 0, 0, 0,
		  ZERO4, ZERO4, ZERO4, 0, 0, 0, 140, ZERO4, ZERO4,
		  0x00, 0x00, 0x01, 0x1d, 0, 0, 0, 0x20);
}

Test(cqe, datagram_says_how_it_came_to_an_ethernet_port)
{
	struct hw_cqe cqe = {
		.kind = HW_CQE_RECV, .qpn = 0x11d, .bytes = 140, .has_origin = true,
		.src_qpn = 1, .l3 = 2, .grh = 2,
		.checks_ok = 3, .l4_type = 2, .l3_type = 2, .has_vlan = true, .vlan = 0xe064,
		.rx_hash = 0xaabbccdd, .rx_hash_type = 0x84,
	};

	CHECK_CQE(&cqe, 1, ZERO4, ZERO4, ZERO4, 0xaa, 0xbb, 0xcc, 0xdd, 0x84, 0, 0, 0, ZERO4,
		  0x22, 0, 0, 1, 0x03, 0x29, 0xe0, 0x64,
		  ZERO4, ZERO4, ZERO4, 0, 0, 0, 140, ZERO4, ZERO4,
		  0x00, 0x00, 0x01, 0x1d, 0, 0, 0, 0x21);
}

Test(cqe, short_message_stands_in_front)
{
	static const uint8_t data[32] = { 1, 2, 3, [31] = 32 };
	struct hw_cqe cqe = {
		.kind = HW_CQE_RECV, .qpn = 0x11d, .bytes = 3, .format = 1, .inline_bytes = data,
		.has_origin = true,
		.slid = 0xffff, .src_qpn = 0xffffff,	/* there is no room for them */
	};

	CHECK_CQE(&cqe, 0, 1, 2, 3, 0, ZERO4, ZERO4, ZERO4, ZERO4, ZERO4, ZERO4, ZERO4,
		  ZERO4, ZERO4, ZERO4, 0, 0, 0, 3, ZERO4, ZERO4,
		  0x00, 0x00, 0x01, 0x1d, 0, 0, 0, 0x24);
	cqe.kind = HW_CQE_REQ;
	cqe.wqe_opcode = 0x10;
	cqe.bytes = 32;
	CHECK_CQE(&cqe, 0, 1, 2, 3, 0, ZERO4, ZERO4, ZERO4, ZERO4, ZERO4, ZERO4, 0, 0, 0, 32,
		  ZERO4, ZERO4, ZERO4, 0, 0, 0, 32, ZERO4, ZERO4,
		  0x10, 0x00, 0x01, 0x1d, 0, 0, 0, 0x04);
}

Test(cqe, longer_message_stands_before_it)
{
	struct hw_cqe cqe = { .kind = HW_CQE_RECV, .qpn = 5, .bytes = 64, .format = 2,
			      .has_origin = true, .slid = 7 };

	CHECK_CQE(&cqe, 1, ZERO4, ZERO4, ZERO4, ZERO4, ZERO4, 0, 0, 0, 7, ZERO4, ZERO4,
		  ZERO4, ZERO4, ZERO4, 0, 0, 0, 64, ZERO4, ZERO4, 0, 0, 0, 5, 0, 0, 0, 0x29);
}

/* A log of a real part ends 00008813 110818b2 000001d0.  Its signature byte and the
 * solicited bit are not compared: we leave the first 0 and set the second. */
Test(cqe, error_agrees_with_a_dump_of_a_real_part)
{
	static const uint8_t dump[12] = {
		0x00, 0x00, 0x88, 0x13, 0x11, 0x08, 0x18, 0xb2, 0x00, 0x00, 0x01, 0xd0,
	};
	const struct hw_syndrome *why = &hw_syndromes[HW_REM_ACCESS];
	struct hw_cqe cqe = {
		.kind = HW_CQE_REQ_ERR, .qpn = 0x0818b2, .wqe_opcode = 0x11,
		.syndrome = why->syndrome, .vendor_err = why->vendor_err,
	};
	uint8_t out[64];

	mlx5_cqe_write(out, &cqe, 0);
	cr_assert_arr_eq(out + 52, dump, 10);
	cr_assert(out[63] >> 4 == dump[11] >> 4 && (out[63] & 1) == (dump[11] & 1));
}

Test(cqe, error_is_solicited_and_zero_elsewhere)
{
	struct hw_cqe cqe = {
		.kind = HW_CQE_RECV_ERR, .user_index = 0xabcdef, .qpn = 0x11d, .wqe_opcode = 0,
		.wqe_counter = 0x1234, .bytes = 99, .imm = 99, .timestamp = 99,
		.syndrome = 0x05, .vendor_err = 0xf9,
	};

	CHECK_CQE(&cqe, 1, ZERO32, 0x00, 0xab, 0xcd, 0xef, ZERO4, ZERO4, ZERO4, ZERO4,
		  0x00, 0x00, 0xf9, 0x05, 0x00, 0x00, 0x01, 0x1d, 0x12, 0x34, 0x00, 0xe3);
	cqe.kind = HW_CQE_REQ_ERR;
	cqe.wqe_opcode = 0x08;
	CHECK_CQE(&cqe, 0, ZERO32, 0x00, 0xab, 0xcd, 0xef, ZERO4, ZERO4, ZERO4, ZERO4,
		  0x00, 0x00, 0xf9, 0x05, 0x08, 0x00, 0x01, 0x1d, 0x12, 0x34, 0x00, 0xd2);
}

Test(layout, matches_bytes_typed_from_the_specification)
{
	static const uint8_t golden[64] = {
		0, 0, 0x12, 0x34, ZERO4, ZERO4, 0xaa, 0xbb, 0xcc, 0xdd,
		0x84, 0x7f, 0, 0, 0xbe, 0xef, 0x00, 0x17, 0x12, 0x00, 0x01, 0x02,
		0x07, 0x2b, 0x00, 0x64, 0x01, 0, 0, 0x09, 0x01, 0x02, 0x03, 0x04,
		ZERO4, 0, 0, 0, 0x40, 1, 2, 3, 4, 5, 6, 7, 8,
		0x88, 0x00, 0x01, 0x1d, 0x12, 0x34, 0x5a, 0x27,
	};
	const struct mlx5_cqe *cqe = (const void *)golden;

	cr_assert(mlx5_cqe_wqe_id(cqe) == 0x1234 && mlx5_cqe_rx_hash(cqe) == 0xaabbccdd);
	cr_assert(mlx5_cqe_rx_hash_type(cqe) == 0x84 && mlx5_cqe_path_bits(cqe) == 0x7f);
	cr_assert(mlx5_cqe_checksum(cqe) == 0xbeef && mlx5_cqe_slid(cqe) == 0x17);
	cr_assert(mlx5_cqe_grh(cqe) == 1 && mlx5_cqe_sl_l3(cqe) == 2);
	cr_assert(mlx5_cqe_src_qpn(cqe) == 0x102 && mlx5_cqe_checks_ok(cqe) == 7);
	cr_assert(mlx5_cqe_l4_type(cqe) == 2 && mlx5_cqe_l3_type(cqe) == 2);
	cr_assert(mlx5_cqe_is_fragment(cqe) && mlx5_cqe_has_vlan(cqe) && mlx5_cqe_vlan(cqe) == 100);
	cr_assert(mlx5_cqe_lro_segments(cqe) == 1 && mlx5_cqe_user_index(cqe) == 9);
	cr_assert(mlx5_cqe_imm(cqe) == 0x01020304 && mlx5_cqe_byte_count(cqe) == 64);
	cr_assert(mlx5_cqe_timestamp(cqe) == 0x0102030405060708);
	cr_assert(mlx5_cqe_wqe_opcode(cqe) == 0x88 && mlx5_cqe_qpn(cqe) == 0x11d);
	cr_assert(mlx5_cqe_wqe_counter(cqe) == 0x1234 && mlx5_cqe_signature(cqe) == 0x5a);
	cr_assert(mlx5_cqe_kind(cqe) == HW_CQE_RECV && mlx5_cqe_format(cqe) == 1);
	cr_assert(mlx5_cqe_solicited(cqe) && mlx5_cqe_owner(cqe));
}

Test(layout, of_errors_matches_too)
{
	static const uint8_t golden[64] = {
		ZERO32, 0xff, 0x01, 0x02, 0x03, ZERO4, ZERO4, ZERO4, ZERO4,
		0x9d, 0x01, 0x88, 0x13, 0x91, 0x08, 0x18, 0xb2, 0x12, 0x34, 0x5a, 0xe2,
	};
	const struct mlx5_cqe_error *cqe = (const void *)golden;

	cr_assert(mlx5_cqe_error_user_index(cqe) == 0x010203);
	cr_assert(mlx5_cqe_error_hw_syndrome(cqe) == 0x9d && mlx5_cqe_error_hw_type(cqe) == 1);
	cr_assert(mlx5_cqe_error_vendor_err(cqe) == 0x88);
	cr_assert(mlx5_cqe_error_syndrome(cqe) == 0x13);
	cr_assert(mlx5_cqe_error_wqe_opcode(cqe) == 0x91 && mlx5_cqe_error_qpn(cqe) == 0x0818b2);
	cr_assert(mlx5_cqe_error_wqe_counter(cqe) == 0x1234);
	cr_assert(mlx5_cqe_error_signature(cqe) == 0x5a);
	cr_assert(mlx5_cqe_error_kind(cqe) == HW_CQE_RECV_ERR);
	cr_assert(mlx5_cqe_error_solicited(cqe) && !mlx5_cqe_error_owner(cqe));
}

Test(syndromes, are_those_of_the_hardware)
{
	static const struct { enum hw_status status; uint8_t syndrome, vendor_err; } want[] = {
		{ HW_SUCCESS, 0x00, 0x00 }, { HW_LOC_LEN, 0x01, 0x69 },
		{ HW_LOC_QP_OP, 0x02, 0x68 }, { HW_LOC_QP_OP_RECV, 0x02, 0xd6 },
		{ HW_LOC_PROT, 0x04, 0x51 }, { HW_LOC_PROT_RECV, 0x04, 0x32 },
		{ HW_FLUSHED, 0x05, 0xf9 }, { HW_MW_BIND, 0x06, 0x25 },
		{ HW_BAD_RESP, 0x10, 0x00 }, { HW_LOC_ACCESS, 0x11, 0x00 },
		{ HW_REM_INV_REQ, 0x12, 0x8a }, { HW_REM_ACCESS, 0x13, 0x88 },
		{ HW_REM_OP, 0x14, 0x89 }, { HW_RETRY_EXC, 0x15, 0x81 },
		{ HW_RNR_RETRY_EXC, 0x16, 0x87 }, { HW_REM_ABORT, 0x22, 0x93 },
	};

	cr_assert(sizeof want / sizeof *want == HW_STATUS_COUNT);
	for (unsigned i = 0; i < HW_STATUS_COUNT; i++) {
		const struct hw_syndrome *s = &hw_syndromes[want[i].status];

		cr_assert(s->name && *s->name, "status %u", i);
		cr_assert(s->syndrome == want[i].syndrome && s->vendor_err == want[i].vendor_err,
			  "%s is %02x/%02x", s->name, s->syndrome, s->vendor_err);
	}
}
