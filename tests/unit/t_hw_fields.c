/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Layout tables: no field overlaps another, each goes where the tables say, and the
 * tables say what the specification says.
 *
 * The first two follow from the tables alone, with a byte-wise model of what a bit
 * number means.  The third is bytes typed by hand from the specification, one
 * vector for each format.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include "hw-models/mlx5_cqe.h"
#include "hw-models/mlx5_doorbell.h"
#include "hw-models/mlx5_wqe.h"

#define FORMAT_BYTES_MAX 64

struct row {
	const char *format, *name, *doc;
	unsigned format_bytes, dw, msb, lsb;
	uint64_t (*get)(const void *format);
	void (*set)(void *format, uint64_t value);
};

#define CALLS(seg, name, dw_, msb_, lsb_, doc_)                                      \
	static uint64_t get_##seg##_##name(const void *s) { return seg##_##name(s); } \
	static void set_##seg##_##name(void *s, uint64_t v)                          \
	{                                                                            \
		seg##_set_##name(s, (uint32_t)v);                                    \
	}
#define CALLS64(seg, name, dw_, doc_)                                                \
	static uint64_t get_##seg##_##name(const void *s) { return seg##_##name(s); } \
	static void set_##seg##_##name(void *s, uint64_t v) { seg##_set_##name(s, v); }

#define ROW(seg, name_, dw_, msb_, lsb_, doc_)                                       \
	{ .format = #seg, .name = #name_, .doc = doc_, .format_bytes = sizeof(struct seg), \
	  .dw = dw_, .msb = msb_, .lsb = lsb_,                                       \
	  .get = get_##seg##_##name_, .set = set_##seg##_##name_ },
#define ROW64(seg, name_, dw_, doc_) ROW(seg, name_, dw_, 63, 0, doc_)

#define ALL_FORMATS(F, W)                                                            \
	MLX5_CTRL_FIELDS(F, W) MLX5_RADDR_FIELDS(F, W) MLX5_ATOMIC_FIELDS(F, W)      \
	MLX5_DATAGRAM_FIELDS(F, W) MLX5_DATA_FIELDS(F, W) MLX5_INLINE_FIELDS(F, W)   \
	MLX5_XRC_FIELDS(F, W) MLX5_ETH_FIELDS(F, W) MLX5_UMR_CTRL_FIELDS(F, W)       \
	MLX5_MKEY_CONTEXT_FIELDS(F, W) MLX5_KLM_FIELDS(F, W)                         \
	MLX5_SRQ_NEXT_FIELDS(F, W) MLX5_CQE_FIELDS(F, W)                             \
	MLX5_CQE_ERROR_FIELDS(F, W) MLX5_DB_QP_FIELDS(F, W) MLX5_DB_CQ_FIELDS(F, W)  \
	MLX5_UAR_ARM_FIELDS(F, W)

ALL_FORMATS(CALLS, CALLS64)
static const struct row rows[] = { ALL_FORMATS(ROW, ROW64) };
#define ROW_COUNT (sizeof rows / sizeof *rows)

/* Sets or clears bit @bit of a field, counted from its least significant one. */
static void model_bit(uint8_t *format, const struct row *r, unsigned bit, bool is_set)
{
	unsigned last = r->msb == 63 ? r->dw * 4 + 7 : r->dw * 4 + 3;
	unsigned at = r->lsb + bit;
	uint8_t mask = (uint8_t)(1u << at % 8);

	if (is_set)
		format[last - at / 8] |= mask;
	else
		format[last - at / 8] &= (uint8_t)~mask;
}

static void model_set(uint8_t *format, const struct row *r, uint64_t value)
{
	for (unsigned bit = 0; bit <= r->msb - r->lsb; bit++)
		model_bit(format, r, bit, value >> bit & 1);
}

static void check_round_trip(const struct row *r, uint8_t background, uint64_t value)
{
	uint8_t format[FORMAT_BYTES_MAX + 1], model[FORMAT_BYTES_MAX + 1];

	memset(format, background, sizeof format);
	memset(model, background, sizeof model);
	/* At an odd address: queues of an application may start anywhere. */
	r->set(format + 1, value);
	model_set(model + 1, r, value);
	cr_assert(!memcmp(format, model, sizeof format), "%s.%s set to %llx over %02x", r->format,
		  r->name, (unsigned long long)value, background);
	cr_assert(r->get(format + 1) == value, "%s.%s read back", r->format, r->name);
}

Test(fields, go_where_the_table_says_and_disturb_nothing_else)
{
	static const uint64_t patterns[] = {
		0, UINT64_MAX, 0xaaaaaaaaaaaaaaaa, 0x5555555555555555, 0x0123456789abcdef,
	};

	for (size_t i = 0; i < ROW_COUNT; i++) {
		uint64_t mask = UINT64_MAX >> (63 - (rows[i].msb - rows[i].lsb));

		for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++) {
			check_round_trip(&rows[i], 0x00, patterns[p] & mask);
			check_round_trip(&rows[i], 0xff, patterns[p] & mask);
		}
	}
}

Test(fields, do_not_overlap)
{
	uint8_t seen[FORMAT_BYTES_MAX], one[FORMAT_BYTES_MAX];

	for (size_t i = 0; i < ROW_COUNT; i++) {
		if (!i || strcmp(rows[i].format, rows[i - 1].format))
			memset(seen, 0, sizeof seen);
		memset(one, 0, sizeof one);
		model_set(one, &rows[i], UINT64_MAX);
		for (size_t b = 0; b < sizeof one; b++) {
			cr_assert(!(seen[b] & one[b]), "%s.%s at byte %zu", rows[i].format,
				  rows[i].name, b);
			seen[b] |= one[b];
		}
	}
}

Test(fields, stay_inside_their_format_and_say_what_they_are)
{
	for (size_t i = 0; i < ROW_COUNT; i++) {
		const struct row *r = &rows[i];
		unsigned end = r->dw * 4 + (r->msb == 63 ? 8 : 4);

		cr_assert(end <= r->format_bytes, "%s.%s", r->format, r->name);
		cr_assert(*r->doc, "%s.%s", r->format, r->name);
	}
}

/* One descriptor a field is what printers use; it must be the same table. */
Test(fields, descriptors_repeat_the_table)
{
	static const struct field_desc descs[] = { ALL_FORMATS(FIELD_DESC, FIELD64_DESC) };

	cr_assert(sizeof descs / sizeof *descs == ROW_COUNT);
	for (size_t i = 0; i < ROW_COUNT; i++) {
		cr_assert_str_eq(descs[i].name, rows[i].name);
		cr_assert(descs[i].dw == rows[i].dw && descs[i].msb == rows[i].msb &&
			  descs[i].lsb == rows[i].lsb, "%s.%s", rows[i].format, rows[i].name);
	}
}

Test(fields, setter_refuses_a_value_that_does_not_fit, .signal = SIGABRT)
{
	struct mlx5_ctrl ctrl = { 0 };

	mlx5_ctrl_set_ds(&ctrl, 64);
}

#define CHECK_BYTES(format, ...)                                                     \
	do {                                                                         \
		static const uint8_t golden[] = { __VA_ARGS__ };                     \
									     \
		cr_assert(sizeof golden == sizeof(format));                          \
		cr_assert_arr_eq(&(format), golden, sizeof golden);                  \
	} while (0)

#define ZERO4  0, 0, 0, 0
#define ZERO16 ZERO4, ZERO4, ZERO4, ZERO4

Test(golden, control)
{
	struct mlx5_ctrl c = { 0 };

	mlx5_ctrl_set_opmod(&c, 0x09);
	mlx5_ctrl_set_wqe_index(&c, 0x1234);
	mlx5_ctrl_set_opcode(&c, 0x0b);
	mlx5_ctrl_set_qpn(&c, 0xabcdef);
	mlx5_ctrl_set_ds(&c, 0x3f);
	mlx5_ctrl_set_signature(&c, 0x5a);
	mlx5_ctrl_set_dci_stream(&c, 0x1122);
	mlx5_ctrl_set_fence(&c, MLX5_FENCE_SMALL_AND_READS);
	mlx5_ctrl_set_completion(&c, MLX5_COMPLETION_ALWAYS);
	mlx5_ctrl_set_solicited(&c, 1);
	mlx5_ctrl_set_imm(&c, 0x01020304);
	CHECK_BYTES(c, 0x09, 0x12, 0x34, 0x0b, 0xab, 0xcd, 0xef, 0x3f,
		    0x5a, 0x11, 0x22, 0x8a, 0x01, 0x02, 0x03, 0x04);
}

Test(golden, remote_address)
{
	struct mlx5_raddr r = { 0 };

	mlx5_raddr_set_remote_addr(&r, 0x00007f123456789a);
	mlx5_raddr_set_rkey(&r, 0xdeadbeef);
	CHECK_BYTES(r, 0x00, 0x00, 0x7f, 0x12, 0x34, 0x56, 0x78, 0x9a,
		    0xde, 0xad, 0xbe, 0xef, ZERO4);
}

Test(golden, atomic)
{
	struct mlx5_atomic a = { 0 };

	mlx5_atomic_set_swap_add(&a, 0x0102030405060708);
	mlx5_atomic_set_compare(&a, 0x1112131415161718);
	CHECK_BYTES(a, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
		    0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18);
}

Test(golden, datagram)
{
	struct mlx5_datagram d = { 0 };

	mlx5_datagram_set_qkey(&d, 0x11111111);
	mlx5_datagram_set_is_extended(&d, 1);
	mlx5_datagram_set_dest_qpn(&d, 0x000203);
	mlx5_datagram_set_rate(&d, 3);
	mlx5_datagram_set_sl(&d, 5 << 1);
	mlx5_datagram_set_force_loopback(&d, 1);
	mlx5_datagram_set_path_bits(&d, 2);
	mlx5_datagram_set_udp_sport(&d, 0xc001);
	mlx5_datagram_set_rmac_high(&d, 0x02aabbcc);
	mlx5_datagram_set_rmac_low(&d, 0xddee);
	mlx5_datagram_set_tclass(&d, 0x68);
	mlx5_datagram_set_hop_limit(&d, 64);
	mlx5_datagram_set_has_grh(&d, 1);
	mlx5_datagram_set_sgid_index(&d, 3);
	mlx5_datagram_set_flow_label(&d, 0xabcde);
	mlx5_datagram_set_rgid_high(&d, 0xfe80000000000000);
	mlx5_datagram_set_rgid_low(&d, 0x0000ffffc0a80001);
	CHECK_BYTES(d, 0x11, 0x11, 0x11, 0x11, ZERO4,
		    0x80, 0x00, 0x02, 0x03, 0x3a, 0x82, 0xc0, 0x01,
		    ZERO4, 0x02, 0xaa, 0xbb, 0xcc,
		    0xdd, 0xee, 0x68, 0x40, 0x40, 0x3a, 0xbc, 0xde,
		    0xfe, 0x80, 0, 0, ZERO4, 0, 0, 0xff, 0xff, 0xc0, 0xa8, 0x00, 0x01);
}

Test(golden, data_and_inline)
{
	struct mlx5_data d = { 0 };
	struct mlx5_inline i = { 0 };

	mlx5_data_set_byte_count(&d, 0x00010000);
	mlx5_data_set_lkey(&d, 0x00301c04);
	mlx5_data_set_addr(&d, 0x00007f0000001000);
	CHECK_BYTES(d, 0x00, 0x01, 0x00, 0x00, 0x00, 0x30, 0x1c, 0x04,
		    0x00, 0x00, 0x7f, 0x00, 0x00, 0x00, 0x10, 0x00);
	mlx5_inline_set_is_inline(&i, 1);
	mlx5_inline_set_byte_count(&i, 0x3ff);
	CHECK_BYTES(i, 0x80, 0x00, 0x03, 0xff);
}

Test(golden, xrc_and_srq_next)
{
	struct mlx5_xrc x = { 0 };
	struct mlx5_srq_next n = { 0 };

	mlx5_xrc_set_srqn(&x, 0x123456);
	CHECK_BYTES(x, 0x00, 0x12, 0x34, 0x56, ZERO4, ZERO4, ZERO4);
	mlx5_srq_next_set_next_wqe_index(&n, 0xbeef);
	mlx5_srq_next_set_signature(&n, 0x5a);
	CHECK_BYTES(n, 0x00, 0x00, 0xbe, 0xef, 0x5a, 0, 0, 0, ZERO4, ZERO4);
}

Test(golden, ethernet)
{
	struct mlx5_eth e = { 0 };

	mlx5_eth_set_cs_flags(&e, MLX5_ETH_L3 | MLX5_ETH_L4);
	mlx5_eth_set_mss(&e, 0x05b4);
	mlx5_eth_set_inserts_vlan(&e, 1);
	mlx5_eth_set_header_bytes(&e, 18);
	mlx5_eth_set_header_start(&e, 0x0a0b);
	CHECK_BYTES(e, ZERO4, 0xc0, 0x00, 0x05, 0xb4, ZERO4, 0x80, 0x12, 0x0a, 0x0b);
}

Test(golden, umr_control)
{
	struct mlx5_umr_ctrl u = { 0 };

	/* A type 2 bind: FREE, MKEY, LEN, START, LW, RR, RW, A and QPN. */
	mlx5_umr_ctrl_set_flags(&u, MLX5_UMR_INLINE | MLX5_UMR_TRANSLATION_OFFSET |
				MLX5_UMR_CHECK_FREE);
	mlx5_umr_ctrl_set_klm_octowords(&u, 4);
	mlx5_umr_ctrl_set_translation_offset(&u, 0x0102);
	mlx5_umr_ctrl_set_mkey_mask(&u, 1ull << MLX5_MKEY_BIT_FREE | 1ull << MLX5_MKEY_BIT_MKEY |
		1ull << MLX5_MKEY_BIT_LEN | 1ull << MLX5_MKEY_BIT_START_ADDR |
		1ull << MLX5_MKEY_BIT_LOCAL_WRITE | 1ull << MLX5_MKEY_BIT_REMOTE_READ |
		1ull << MLX5_MKEY_BIT_REMOTE_WRITE | 1ull << MLX5_MKEY_BIT_ATOMIC |
		1ull << MLX5_MKEY_BIT_QPN);
	CHECK_BYTES(u, 0xb0, 0, 0, 0, 0x00, 0x04, 0x01, 0x02, 0, 0, 0, 0, 0x20, 0x3c, 0x60, 0x41,
		    ZERO16, ZERO16);
}

Test(golden, mkey_context_and_klm)
{
	struct mlx5_mkey_context m = { 0 };
	struct mlx5_klm k = { 0 };

	mlx5_mkey_context_set_free(&m, 1);
	mlx5_mkey_context_set_access(&m, MLX5_MKEY_LOCAL_WRITE | MLX5_MKEY_REMOTE_READ);
	mlx5_mkey_context_set_sf(&m, 0x01);
	mlx5_mkey_context_set_qpn(&m, 0x00011d);
	mlx5_mkey_context_set_variant(&m, 0x07);
	mlx5_mkey_context_set_bsf_enable(&m, 1);
	mlx5_mkey_context_set_remote_invalidate(&m, 1);
	mlx5_mkey_context_set_pd(&m, 0x030201);
	mlx5_mkey_context_set_start_addr(&m, 0x00007f0000001000);
	mlx5_mkey_context_set_len(&m, 0x0000000080000000);
	mlx5_mkey_context_set_bsf_octowords(&m, 0x0a0b0c0d);
	mlx5_mkey_context_set_translation_octowords(&m, 0x01020304);
	mlx5_mkey_context_set_log_page_size(&m, 12);
	CHECK_BYTES(m, 0x40, 0x00, 0x18, 0x01, 0x00, 0x01, 0x1d, 0x07, ZERO4, 0x41, 3, 2, 1,
		    0, 0, 0x7f, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0x80, 0, 0, 0,
		    0x0a, 0x0b, 0x0c, 0x0d, ZERO16, 1, 2, 3, 4, 0, 0, 0, 12, ZERO4);
	mlx5_klm_set_byte_count(&k, 0x80000000);
	mlx5_klm_set_mkey(&k, 0x00301c04);
	mlx5_klm_set_addr(&k, 0x0102030405060708);
	CHECK_BYTES(k, 0x80, 0, 0, 0, 0x00, 0x30, 0x1c, 0x04, 1, 2, 3, 4, 5, 6, 7, 8);
}

Test(golden, doorbells)
{
	struct mlx5_db_qp qp = { 0 };
	struct mlx5_db_cq cq = { 0 };
	struct mlx5_uar_arm arm = { 0 };

	mlx5_db_qp_set_rq_produced(&qp, 0x1234);
	mlx5_db_qp_set_sq_produced(&qp, 0xfffe);
	CHECK_BYTES(qp, 0x00, 0x00, 0x12, 0x34, 0x00, 0x00, 0xff, 0xfe);
	mlx5_db_cq_set_consumed(&cq, 0xabcdef);
	mlx5_db_cq_set_arm_sn(&cq, 2);
	mlx5_db_cq_set_arm_solicited(&cq, 1);
	mlx5_db_cq_set_arm_consumed(&cq, 0xabcdee);
	CHECK_BYTES(cq, 0x00, 0xab, 0xcd, 0xef, 0x21, 0xab, 0xcd, 0xee);
	mlx5_uar_arm_set_arm_sn(&arm, 3);
	mlx5_uar_arm_set_arm_solicited(&arm, 1);
	mlx5_uar_arm_set_arm_consumed(&arm, 0x000010);
	mlx5_uar_arm_set_cqn(&arm, 0x000402);
	CHECK_BYTES(arm, 0x31, 0x00, 0x00, 0x10, 0x00, 0x00, 0x04, 0x02);
}
