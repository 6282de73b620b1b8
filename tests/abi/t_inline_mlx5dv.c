/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the inline functions and macros of mlx5dv.h do; see t_inline.c for how it is built.
 * Method: bytes, written out, as the PRM has them.
 */
#include <criterion/criterion.h>
#include <infiniband/mlx5dv.h>

static const uint8_t control[16] = { 0x0c, 0x12, 0x34, 0x0a, 0xab, 0xcd, 0xef, 0x03,
				     0x5a, 0,	 0,    0x08, 0x11, 0x22, 0x33, 0x44 };
static const uint8_t data[16] = { 0x00, 0x00, 0x01, 0x02, 0x80, 0x00, 0x00, 0x07,
				  0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef };

struct words {
	uint8_t bytes[64];
} __attribute__((aligned(64)));

Test(segment, of_control)
{
	struct words w = { { 0 } };

	mlx5dv_set_ctrl_seg((struct mlx5_wqe_ctrl_seg *)(void *)w.bytes, 0x1234, MLX5_OPCODE_SEND,
			    0x0c, 0xabcdef, MLX5_WQE_CTRL_CQ_UPDATE, 3, 0x5a,
			    htobe32(0x11223344));
	cr_assert_arr_eq(w.bytes, control, sizeof(control));
}

Test(segment, of_data)
{
	struct words w = { { 0 } };

	mlx5dv_set_data_seg((struct mlx5_wqe_data_seg *)(void *)w.bytes, 0x102, 0x80000007,
			    (uintptr_t)0x0123456789abcdef);
	cr_assert_arr_eq(w.bytes, data, sizeof(data));
}

#if defined(__SSE3__)
Test(segment, of_control_in_one_store)
{
	struct words w;

	memset(&w, 0xff, sizeof(w));
	mlx5dv_x86_set_ctrl_seg((struct mlx5_wqe_ctrl_seg *)(void *)w.bytes, 0x1234,
				MLX5_OPCODE_SEND, 0x0c, 0xabcdef, MLX5_WQE_CTRL_CQ_UPDATE, 3,
				0x5a, htobe32(0x11223344));
	cr_assert_arr_eq(w.bytes, control, sizeof(control));
	cr_assert_eq(w.bytes[16], 0xff);
}

Test(segment, of_data_in_one_store)
{
	struct words w;

	memset(&w, 0xff, sizeof(w));
	mlx5dv_x86_set_data_seg((struct mlx5_wqe_data_seg *)(void *)w.bytes, 0x102, 0x80000007,
				(uintptr_t)0x0123456789abcdef);
	cr_assert_arr_eq(w.bytes, data, sizeof(data));
	cr_assert_eq(w.bytes[16], 0xff);
}
#endif

Test(segment, of_an_address)
{
	static const uint8_t want[48] = {
		0, 0, 0, 0, 0x11, 0x22, 0x33, 0x44, 0x80, 0x00, 0x01, 0x23, 0x0f, 0x7f, 0x12, 0x34,
		0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 0x60, 0x40, 0x40, 0x03, 0x00, 0x01,
		0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9,
	};
	uint8_t mac[6] = { 1, 2, 3, 4, 5, 6 }, gid[16] = { 0xfe, 0x80, [15] = 9 };
	struct words w = { { 0 } };

	mlx5dv_set_dgram_seg((struct mlx5_wqe_datagram_seg *)(void *)w.bytes, 0x11223344, 0x123, 1,
			     0x0f, 0x7f, 0x1234, mac, 0x60, 0x40, 0x40030001, gid);
	cr_assert_arr_eq(w.bytes, want, sizeof(want));
}

Test(segment, of_a_packet)
{
	static const uint8_t want[32] = { [4] = 0xc0, [6] = 0x05, [7] = 0xb4, [13] = 4,
					  [14] = 1,   [15] = 2,   [16] = 3,   [17] = 4 };
	uint8_t header[4] = { 1, 2, 3, 4 };
	struct words w = { { 0 } };

	mlx5dv_set_eth_seg((struct mlx5_wqe_eth_seg *)(void *)w.bytes,
			   MLX5_ETH_WQE_L3_CSUM | MLX5_ETH_WQE_L4_CSUM, 1460, 4, header);
	cr_assert_arr_eq(w.bytes, want, sizeof(want));
}

Test(completion, last_byte_is_four_fields)
{
	struct mlx5_cqe64 cqe = { .op_own = 0xde };	/* 13, 3, 1, 0 */

	cr_assert_eq(mlx5dv_get_cqe_opcode(&cqe), MLX5_CQE_REQ_ERR);
	cr_assert_eq(mlx5dv_get_cqe_format(&cqe), 3);
	cr_assert_eq(mlx5dv_get_cqe_se(&cqe), 1);
	cr_assert_eq(mlx5dv_get_cqe_owner(&cqe), 0);
	mlx5dv_set_cqe_owner(&cqe, 3);
	cr_assert_eq(cqe.op_own, 0xdf);
	mlx5dv_set_cqe_owner(&cqe, 2);
	cr_assert_eq(cqe.op_own, 0xde);
}

Test(clock, counts_from_its_reference_both_ways)
{
	struct mlx5dv_clock_info clock = { .nsec = 1000000, .last_cycles = 10, .frac = 1,
					   .mult = 4, .shift = 1, .mask = 0xffff };

	cr_assert_eq(mlx5dv_ts_to_ns(&clock, 10), 1000000u);
	cr_assert_eq(mlx5dv_ts_to_ns(&clock, 20), 1000020u);
	cr_assert_eq(mlx5dv_ts_to_ns(&clock, 5), 1000000u - 9);
	cr_assert_eq(mlx5dv_ts_to_ns(&clock, 0xfffb), 1000000u - 29);
	cr_assert_eq(mlx5dv_ts_to_ns(&clock, 10 + 0x7fff), 1000000u + 2 * 0x7fff);
}

/* A format as the PRM's are written: a byte for each bit. */
struct mlx5_ifc_sample_bits {
	uint8_t head[8];
	uint8_t middle[20];
	uint8_t tail[4];
	uint8_t whole[32];
	uint8_t wide[2][64];
};

Test(field, is_set_and_got_in_its_word)
{
	static const uint8_t want[24] = { 0xaa, 0x12, 0x34, 0x5a, 0xde, 0xad, 0xbe, 0xef,
					  1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 9 };
	struct words w = { { 0xaa, 0xff, 0xff, 0xfa } };

	DEVX_SET(sample, w.bytes, middle, 0xf12345);	/* its upper 4 bits do not fit */
	DEVX_SET(sample, w.bytes, whole, 0xdeadbeef);
	DEVX_SET64(sample, w.bytes, wide, 0x0102030405060708);
	DEVX_ARRAY_SET64(sample, w.bytes, wide, 1, 9);
	cr_assert_arr_eq(w.bytes, want, sizeof(want));
	cr_assert_eq(DEVX_GET(sample, w.bytes, head), 0xaau);
	cr_assert_eq(DEVX_GET(sample, w.bytes, middle), 0x12345u);
	cr_assert_eq(DEVX_GET(sample, w.bytes, tail), 0xau);
	cr_assert_eq(DEVX_GET(sample, w.bytes, whole), 0xdeadbeefu);
	cr_assert_eq(DEVX_GET64(sample, w.bytes, wide[1]), 9u);
}

Test(field, sizes_are_counted_from_bits)
{
	uint8_t at[24];

	cr_assert_eq(DEVX_ST_SZ_BYTES(sample), 24u);
	cr_assert_eq(DEVX_ST_SZ_DW(sample), 6u);
	cr_assert_eq(DEVX_ST_SZ_QW(sample), 3u);
	cr_assert_eq(DEVX_FLD_SZ_BYTES(sample, whole), 4u);
	cr_assert_eq(DEVX_BYTE_OFF(sample, wide), 8u);
	cr_assert_eq(DEVX_ADDR_OF(sample, at, whole), at + 4);
}
