/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5 completion-queue entries: layout only.
 *
 * Used by mlx5_cqe.c (writes them) and tests (read them).  In a queue of 128-byte
 * entries these are the second 64 bytes.
 *
 * Source: device-abi C.6 and C.10.
 */
#ifndef HW_MODELS_MLX5_CQE_H
#define HW_MODELS_MLX5_CQE_H
#include "hw-models/fields.h"

#define MLX5_CQE_BYTES		64
#define MLX5_CQE_INLINE_BYTES	32	/* of a message that format 1 has in front */
#define MLX5_CQE_OP_OWN_BYTE	63	/* last byte to be written: it hands the CQE over */

/*
 * A good completion.
 *
 *        31       24 23      16 15         8 7            0
 *   +0  | 0                    | wqe_id                   |
 *   +12 | rx_hash                                         |
 *   +16 | rx_hash_type | path_bits | 0                    |
 *   +20 | checksum             | slid                     |
 *   +24 |0|grh|0| sl or l3     | src_qpn                  |
 *   +28 | checks_ok | l4 l3 .. | vlan                     |
 *   +32 | lro_segments | user_index                       |
 *   +36 | imm                                             |
 *   +40 | tag matching                                    |
 *   +44 | byte_count                                      |
 *   +48 | timestamp                                    64 |
 *   +56 | wqe_opcode | qpn                                |
 *   +60 | wqe_counter          | signature  |op|fmt|s|own |
 */
#define MLX5_CQE_FIELDS(F, W)                                                        \
	/* format   field         dw msb lsb  meaning */                             \
	F(mlx5_cqe, wqe_id,        0, 15,  0, "striding and shared receive queues")  \
	F(mlx5_cqe, rx_hash,       3, 31,  0, "RSS hash")                            \
	F(mlx5_cqe, rx_hash_type,  4, 31, 24, "what was hashed")                     \
	F(mlx5_cqe, path_bits,     4, 22, 16, "destination path bits, InfiniBand")   \
	F(mlx5_cqe, checksum,      5, 31, 16, "checksum over the packet")            \
	F(mlx5_cqe, slid,          5, 15,  0, "source LID, InfiniBand")              \
	F(mlx5_cqe, grh,           6, 29, 28, "0 none, 1 in the buffer, 2 in the CQE") \
	F(mlx5_cqe, sl_l3,         6, 27, 24, "SL, or on RoCE what the GRH really is") \
	F(mlx5_cqe, src_qpn,       6, 23,  0, "sender's QPN, UD and DC")             \
	F(mlx5_cqe, checks_ok,     7, 31, 24, "L2, L3, L4 headers were good")        \
	F(mlx5_cqe, l4_type,       7, 22, 20, "TCP or UDP")                          \
	F(mlx5_cqe, l3_type,       7, 19, 18, "1 IPv6, 2 IPv4")                      \
	F(mlx5_cqe, is_fragment,   7, 17, 17, "IP fragment")                         \
	F(mlx5_cqe, has_vlan,      7, 16, 16, "a VLAN tag was there or was stripped") \
	F(mlx5_cqe, vlan,          7, 15,  0, "its TCI")                             \
	F(mlx5_cqe, lro_segments,  8, 31, 24, "LRO")                                 \
	F(mlx5_cqe, user_index,    8, 23,  0, "how libmlx5 finds the queue")         \
	F(mlx5_cqe, imm,           9, 31,  0, "immediate, invalidated rkey, P_Key index") \
	F(mlx5_cqe, byte_count,   11, 31,  0, "length of the message")               \
	W(mlx5_cqe, timestamp,    12,         "clock of the part")                   \
	F(mlx5_cqe, wqe_opcode,   14, 31, 24, "of the WQE, requester only")          \
	F(mlx5_cqe, qpn,          14, 23,  0, "local QPN; of a frame the flow tag")       \
	F(mlx5_cqe, wqe_counter,  15, 31, 16, "producer index of the WQE")           \
	F(mlx5_cqe, signature,    15, 15,  8, "xor checksum, not filled in")         \
	F(mlx5_cqe, kind,         15,  7,  4, "enum hw_cqe_kind")                    \
	F(mlx5_cqe, format,       15,  3,  2, "enum mlx5_cqe_format")                \
	F(mlx5_cqe, solicited,    15,  1,  1, "raises a solicited event")            \
	F(mlx5_cqe, owner,        15,  0,  0, "flips with each round of the ring")
FIELD_FORMAT(mlx5_cqe, MLX5_CQE_FIELDS, MLX5_CQE_BYTES);

/* Striding queues: what byte_count says besides the length, and how it says that a WQE ends before
 * its last stride. */
#define MLX5_CQE_STRIDES_SHIFT	16
#define MLX5_CQE_FILLER		(UINT32_C(1) << 31)

enum mlx5_cqe_format {
	MLX5_CQE_NO_DATA,
	MLX5_CQE_DATA_32,		/* instead of the first 32 bytes              */
	MLX5_CQE_DATA_64,		/* in the first half of a 128-byte entry       */
	MLX5_CQE_COMPRESSED,		/* never written here                           */
};

/*
 * A failed one.  Zero where nothing is listed.
 *
 *   +32 | 0          | user_index                       |
 *   +52 | hw_syndrome| hw_type  | vendor_err| syndrome  |
 *   +56 | wqe_opcode | qpn                              |
 *   +60 | wqe_counter           | signature |op| 0|1|own|
 */
#define MLX5_CQE_ERROR_FIELDS(F, W)                                                  \
	/* format         field         dw msb lsb  meaning */                       \
	F(mlx5_cqe_error, user_index,    8, 23,  0, "how libmlx5 finds the queue")   \
	F(mlx5_cqe_error, hw_syndrome,  13, 31, 24, "internal detail, 0 here")       \
	F(mlx5_cqe_error, hw_type,      13, 23, 16, "kind of hw_syndrome, 0 here")   \
	F(mlx5_cqe_error, vendor_err,   13, 15,  8, "wc.vendor_err, see mlx5_syndromes.def") \
	F(mlx5_cqe_error, syndrome,     13,  7,  0, "becomes wc.status")             \
	F(mlx5_cqe_error, wqe_opcode,   14, 31, 24, "of the WQE that failed")        \
	F(mlx5_cqe_error, qpn,          14, 23,  0, "local QPN")                     \
	F(mlx5_cqe_error, wqe_counter,  15, 31, 16, "producer index of that WQE")    \
	F(mlx5_cqe_error, signature,    15, 15,  8, "xor checksum, not filled in")   \
	F(mlx5_cqe_error, kind,         15,  7,  4, "enum hw_cqe_kind")              \
	F(mlx5_cqe_error, solicited,    15,  1,  1, "always: errors wake everybody") \
	F(mlx5_cqe_error, owner,        15,  0,  0, "flips with each round of the ring")
FIELD_FORMAT(mlx5_cqe_error, MLX5_CQE_ERROR_FIELDS, MLX5_CQE_BYTES);
#endif
