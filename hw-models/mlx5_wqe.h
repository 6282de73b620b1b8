/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5 work-queue entries: layout only.
 *
 * Used by mlx5_decode.c (reads them), mlx5_dump.c (prints them) and tests (write
 * them).  No policy lives here: which segments an opcode has is in
 * mlx5_opcodes.def.  Offsets in the pictures are bytes, bit numbers are of the
 * big-endian 32-bit word.
 *
 * Source: device-abi C.3.
 */
#ifndef HW_MODELS_MLX5_WQE_H
#define HW_MODELS_MLX5_WQE_H
#include "hw-models/fields.h"

#define MLX5_UNIT_BYTES		16	/* segments are whole units, ds counts them */
#define MLX5_INLINE_HEADER_BYTES 4	/* inline data starts behind its length      */

/*
 * Control: the first 16 bytes of every send WQE.
 *
 *        31      24 23              8 7        0
 *   +0  | opmod    | wqe_index       | opcode   |
 *   +4  | qpn                        | 0  | ds  |
 *   +8  | signature| dci_stream      |fm|0|ce|s0|
 *   +12 | imm, rkey to invalidate, or mkey      |
 */
#define MLX5_CTRL_FIELDS(F, W)                                                       \
	/* segment   field       dw msb lsb  meaning */                              \
	F(mlx5_ctrl, opmod,       0, 31, 24, "opcode modifier")                      \
	F(mlx5_ctrl, wqe_index,   0, 23,  8, "producer index of its first block")    \
	F(mlx5_ctrl, opcode,      0,  7,  0, "a value of mlx5_opcodes.def")          \
	F(mlx5_ctrl, qpn,         1, 31,  8, "QP that owns the send queue")          \
	F(mlx5_ctrl, ds,          1,  5,  0, "length in 16-byte units, this one too") \
	F(mlx5_ctrl, signature,   2, 31, 24, "xor checksum, 0 when off")             \
	F(mlx5_ctrl, dci_stream,  2, 23,  8, "DCI stream channel")                   \
	F(mlx5_ctrl, fence,       2,  7,  5, "enum mlx5_fence")                      \
	F(mlx5_ctrl, completion,  2,  3,  2, "enum mlx5_completion")                 \
	F(mlx5_ctrl, solicited,   2,  1,  1, "raise a solicited event at the peer")  \
	F(mlx5_ctrl, imm,         3, 31,  0, "immediate, or rkey to invalidate, or mkey")
FIELD_FORMAT(mlx5_ctrl, MLX5_CTRL_FIELDS, 16);

enum mlx5_fence {
	MLX5_FENCE_NONE,
	MLX5_FENCE_INITIATOR_SMALL,
	MLX5_FENCE_READS,
	MLX5_FENCE_STRONG,
	MLX5_FENCE_SMALL_AND_READS,	/* what IBV_SEND_FENCE becomes */
};

enum mlx5_completion {
	MLX5_COMPLETION_ON_ERROR,
	MLX5_COMPLETION_ON_FIRST_ERROR,
	MLX5_COMPLETION_ALWAYS,
	MLX5_COMPLETION_ALWAYS_EVENT,
};

/*
 * Remote address.
 *
 *   +0  | remote_addr                       64 |
 *   +8  | rkey               | 0               |
 */
#define MLX5_RADDR_FIELDS(F, W)                                                      \
	/* segment    field        dw msb lsb  meaning */                            \
	W(mlx5_raddr, remote_addr,  0,         "address in the peer's region")       \
	F(mlx5_raddr, rkey,         2, 31,  0, "the peer's key")
FIELD_FORMAT(mlx5_raddr, MLX5_RADDR_FIELDS, 16);

/*
 * Atomic operands.  libmlx5 leaves `compare` as it was for fetch-and-add.
 *
 *   +0  | swap_add                          64 |
 *   +8  | compare                           64 |
 */
#define MLX5_ATOMIC_FIELDS(F, W)                                                     \
	/* segment     field     dw  meaning */                                      \
	W(mlx5_atomic, swap_add,  0, "new value, or what to add")                    \
	W(mlx5_atomic, compare,   2, "value to compare with, compare-and-swap only")
FIELD_FORMAT(mlx5_atomic, MLX5_ATOMIC_FIELDS, 16);

/*
 * Operands of a masked atomic, each as wide as what it works on (4 or 8 bytes, see the opcode
 * modifier), one after the other and then up to a whole unit:
 *
 *   compare-and-swap   | swap | compare | swap_mask | compare_mask |
 *   fetch-and-add      | add | field_boundary |
 */
enum mlx5_atomic_opmod { MLX5_OPMOD_ATOMIC_4 = 0x08, MLX5_OPMOD_ATOMIC_8 = 0x09 };

/*
 * Datagram: the address vector of a UD or DC work request.  For a DC target the
 * first 8 bytes are its access key.  Without `x` it ends after 16 bytes.
 *
 *        31 30 29 28 27     20 19 16 15         8 7         0
 *   +0  | qkey                                              |
 *   +4  | 0                                                 |
 *   +8  |x| 0      |  dest_qpn                              |
 *   +12 | rate | sl   |fl| mlid    | udp_sport              |
 *   +16 | 0                                                 |
 *   +20 | rmac 47..16                                       |
 *   +24 | rmac 15..0               | tclass    | hop_limit  |
 *   +28 |0|g|0  | sgid_index | flow_label                   |
 *   +32 | rgid                                         128  |
 */
#define MLX5_DATAGRAM_FIELDS(F, W)                                                   \
	/* segment       field        dw msb lsb  meaning */                         \
	F(mlx5_datagram, qkey,         0, 31,  0, "Q_Key; high half of a DC key")    \
	F(mlx5_datagram, key_low,      1, 31,  0, "0; low half of a DC key")         \
	F(mlx5_datagram, is_extended,  2, 31, 31, "48 bytes, not the compact 16")    \
	F(mlx5_datagram, dest_qpn,     2, 23,  0, "peer's QPN or DCTN")              \
	F(mlx5_datagram, rate,         3, 31, 28, "static rate")                     \
	F(mlx5_datagram, sl,           3, 27, 24, "SL; RoCE: priority << 1")         \
	F(mlx5_datagram, force_loopback, 3, 23, 23, "do not leave the port")         \
	F(mlx5_datagram, path_bits,    3, 22, 16, "source path bits, InfiniBand")    \
	F(mlx5_datagram, udp_sport,    3, 15,  0, "RoCE: UDP source port; else DLID") \
	F(mlx5_datagram, rmac_high,    5, 31,  0, "destination MAC, first 4 bytes")  \
	F(mlx5_datagram, rmac_low,     6, 31, 16, "destination MAC, last 2 bytes")   \
	F(mlx5_datagram, tclass,       6, 15,  8, "traffic class")                   \
	F(mlx5_datagram, hop_limit,    6,  7,  0, "hop limit")                       \
	F(mlx5_datagram, has_grh,      7, 30, 30, "GRH present, InfiniBand only")    \
	F(mlx5_datagram, sgid_index,   7, 27, 20, "index of the source GID")         \
	F(mlx5_datagram, flow_label,   7, 19,  0, "flow label")                      \
	W(mlx5_datagram, rgid_high,    8,         "destination GID, first half")     \
	W(mlx5_datagram, rgid_low,    10,         "destination GID, second half")
FIELD_FORMAT(mlx5_datagram, MLX5_DATAGRAM_FIELDS, 48);
#define MLX5_DATAGRAM_COMPACT_BYTES 16

/*
 * Data: one piece of memory, in send and in receive WQEs.  byte_count 0 means 2^31
 * bytes, except that with lkey HW_LKEY_END it ends a receive list.
 *
 *        31 30                                  0
 *   +0  |0| byte_count                          |
 *   +4  | lkey                                  |
 *   +8  | addr                               64 |
 */
#define MLX5_DATA_FIELDS(F, W)                                                       \
	/* segment   field       dw msb lsb  meaning */                              \
	F(mlx5_data, is_inline,   0, 31, 31, "this is an mlx5_inline segment instead") \
	F(mlx5_data, byte_count,  0, 30,  0, "bytes, 0 for 2^31")                    \
	F(mlx5_data, lkey,        1, 31,  0, "local key")                            \
	W(mlx5_data, addr,        2,         "address in the local region")
FIELD_FORMAT(mlx5_data, MLX5_DATA_FIELDS, 16);

/*
 * Inline data: this word, byte_count bytes, zero to 15 bytes up to a whole unit.
 *
 *        31 30                  10 9            0
 *   +0  |1| 0                     | byte_count  |
 *
 * The field is read with all 31 bits: anything in the upper ones is a length that
 * no WQE can hold and so is found out by the check that any length needs.
 */
#define MLX5_INLINE_FIELDS(F, W)                                                     \
	/* segment     field       dw msb lsb  meaning */                            \
	F(mlx5_inline, is_inline,   0, 31, 31, "1, or it is an mlx5_data segment")   \
	F(mlx5_inline, byte_count,  0, 30,  0, "bytes that follow, at most 0x3ff")
FIELD_FORMAT(mlx5_inline, MLX5_INLINE_FIELDS, 4);

/*
 * XRC: directly after control on an XRC send queue.
 *
 *   +0  | 0       | srqn                       |
 *   +4  | 0                                 96 |
 */
#define MLX5_XRC_FIELDS(F, W)                                                        \
	/* segment  field  dw msb lsb  meaning */                                    \
	F(mlx5_xrc, srqn,   0, 23,  0, "the peer's XRC SRQ")
FIELD_FORMAT(mlx5_xrc, MLX5_XRC_FIELDS, 16);

/*
 * Ethernet: checksum offload and the headers that must be inline.  Headers go on
 * behind these 16 bytes when they are longer than 2.
 *
 *        31       24 23      16 15            0
 *   +0  | 0                                   |
 *   +4  | cs_flags  | 0        | mss          |
 *   +8  | 0                                   |
 *   +12 |v| header_bytes       | header_start |
 */
#define MLX5_ETH_FIELDS(F, W)                                                        \
	/* segment  field         dw msb lsb  meaning */                             \
	F(mlx5_eth, cs_flags,      1, 31, 24, "enum mlx5_eth_checksum")              \
	F(mlx5_eth, mss,           1, 15,  0, "TSO segment size")                    \
	F(mlx5_eth, inserts_vlan,  3, 31, 31, "header_start is a VLAN tag to insert") \
	F(mlx5_eth, header_bytes,  3, 30, 16, "inline header bytes")                 \
	F(mlx5_eth, header_start,  3, 15,  0, "first two of them")
FIELD_FORMAT(mlx5_eth, MLX5_ETH_FIELDS, 16);
#define MLX5_ETH_START_BYTES	2	/* of the header, in this segment */

enum mlx5_eth_checksum {
	MLX5_ETH_INNER_L3 = 0x10, MLX5_ETH_INNER_L4 = 0x20,
	MLX5_ETH_L3 = 0x40, MLX5_ETH_L4 = 0x80,
};

/*
 * UMR control: change a memory key from the send queue.
 *
 *        31       24 23      16 15                   0
 *   +0  | flags     | 0                              |
 *   +4  | klm_octowords        | translation_offset  |
 *   +8  | mkey_mask                               64 |
 *   +16 | 0                                      256 |
 */
#define MLX5_UMR_CTRL_FIELDS(F, W)                                                   \
	/* segment       field               dw msb lsb  meaning */                  \
	F(mlx5_umr_ctrl, flags,               0, 31, 24, "enum mlx5_umr_flag")       \
	F(mlx5_umr_ctrl, klm_octowords,       1, 31, 16, "16-byte units of translation") \
	F(mlx5_umr_ctrl, translation_offset,  1, 15,  0, "or BSF units")             \
	W(mlx5_umr_ctrl, mkey_mask,           2,         "bits 1 << enum mlx5_mkey_bit")
FIELD_FORMAT(mlx5_umr_ctrl, MLX5_UMR_CTRL_FIELDS, 48);

enum mlx5_umr_flag {
	MLX5_UMR_CHECK_QPN = 0x08,	/* the key must belong to this QP        */
	MLX5_UMR_TRANSLATION_OFFSET = 0x10,
	MLX5_UMR_CHECK_FREE = 0x20,	/* the key must be free                   */
	MLX5_UMR_INLINE = 0x80,		/* the translation follows in the WQE      */
};

/* Which parts of a key a UMR takes from its mkey context segment. */
enum mlx5_mkey_bit {
	MLX5_MKEY_BIT_LEN = 0, MLX5_MKEY_BIT_PAGE_SIZE = 1, MLX5_MKEY_BIT_START_ADDR = 6,
	MLX5_MKEY_BIT_PD = 7, MLX5_MKEY_BIT_REMOTE_INVALIDATE = 8, MLX5_MKEY_BIT_SIG_ERR = 9,
	MLX5_MKEY_BIT_BSF = 12, MLX5_MKEY_BIT_MKEY = 13, MLX5_MKEY_BIT_QPN = 14,
	MLX5_MKEY_BIT_LOCAL_READ = 17, MLX5_MKEY_BIT_LOCAL_WRITE = 18,
	MLX5_MKEY_BIT_REMOTE_READ = 19, MLX5_MKEY_BIT_REMOTE_WRITE = 20,
	MLX5_MKEY_BIT_ATOMIC = 21, MLX5_MKEY_BIT_SMALL_FENCE = 23,
	MLX5_MKEY_BIT_RELAXED_WRITE = 25, MLX5_MKEY_BIT_FREE = 29,
	MLX5_MKEY_BIT_RELAXED_READ = 47,
};

/*
 * Memory key context, as a UMR carries it.
 *
 *        31 30 29    24 23      16 15         8 7            0
 *   +0  |0|free| 0     | 0        | access     | sf          |
 *   +4  | qpn                                  | variant     |
 *   +8  | 0                                                  |
 *   +12 |0|bsf|0 |rinv | pd                                  |
 *   +16 | start_addr                                      64 |
 *   +24 | len                                             64 |
 *   +32 | bsf_octowords                                      |
 *   +36 | 0                                              128 |
 *   +52 | translation_octowords                              |
 *   +56 | 0                                    |log_page_size|
 *   +60 | 0                                                  |
 */
#define MLX5_MKEY_CONTEXT_FIELDS(F, W)                                               \
	/* segment           field             dw msb lsb  meaning */                \
	F(mlx5_mkey_context, free,              0, 30, 30, "the key grants nothing") \
	F(mlx5_mkey_context, access,            0, 15,  8, "enum mlx5_mkey_access")  \
	F(mlx5_mkey_context, sf,                0,  7,  0, "small fence")            \
	F(mlx5_mkey_context, qpn,               1, 31,  8, "QP it is bound to, 0xffffff any") \
	F(mlx5_mkey_context, variant,           1,  7,  0, "low byte of the key")    \
	F(mlx5_mkey_context, bsf_enable,        3, 30, 30, "signature or crypto on") \
	F(mlx5_mkey_context, remote_invalidate, 3, 24, 24, "SEND_INVAL may free it") \
	F(mlx5_mkey_context, pd,                3, 23,  0, "protection domain")      \
	W(mlx5_mkey_context, start_addr,        4,         "first address it covers") \
	W(mlx5_mkey_context, len,               6,         "bytes it covers")        \
	F(mlx5_mkey_context, bsf_octowords,     8, 31,  0, "16-byte units of BSF")   \
	F(mlx5_mkey_context, translation_octowords, 13, 31, 0, "16-byte units of translation") \
	F(mlx5_mkey_context, log_page_size,    14,  7,  0, "page size")
FIELD_FORMAT(mlx5_mkey_context, MLX5_MKEY_CONTEXT_FIELDS, 64);

/* The low two bits are the access mode: 0 PA, 1 MTT, 2 KLM, 3 KSM. */
enum mlx5_mkey_access {
	MLX5_MKEY_LOCAL_READ = 0x04, MLX5_MKEY_LOCAL_WRITE = 0x08,
	MLX5_MKEY_REMOTE_READ = 0x10, MLX5_MKEY_REMOTE_WRITE = 0x20,
	MLX5_MKEY_ATOMIC = 0x40, MLX5_MKEY_UMR = 0x80,
};

/*
 * KLM: one piece of what an indirect key covers.
 *
 *   +0  | byte_count, 0 for 2^31               |
 *   +4  | mkey                                 |
 *   +8  | addr                              64 |
 */
#define MLX5_KLM_FIELDS(F, W)                                                        \
	/* segment  field       dw msb lsb  meaning */                               \
	F(mlx5_klm, byte_count,  0, 31,  0, "bytes, 0 for 2^31")                     \
	F(mlx5_klm, mkey,        1, 31,  0, "key of the region it points into")      \
	W(mlx5_klm, addr,        2,         "address there")
FIELD_FORMAT(mlx5_klm, MLX5_KLM_FIELDS, 16);

/* Where a KLM has its mkey, the head of an interleaved translation has this. */
#define MLX5_KLM_INTERLEAVED 0x400

/*
 * Head of a shared receive queue's WQE; data segments follow.
 *
 *        31       24 23      16 15                   0
 *   +0  | 0                    | next_wqe_index      |
 *   +4  | signature | 0                              |
 *   +8  | 0                                       64 |
 */
#define MLX5_SRQ_NEXT_FIELDS(F, W)                                                   \
	/* segment       field           dw msb lsb  meaning */                      \
	F(mlx5_srq_next, next_wqe_index,  0, 15,  0, "WQE to use after this one")    \
	F(mlx5_srq_next, signature,       1, 31, 24, "xor checksum, 0 when off")
FIELD_FORMAT(mlx5_srq_next, MLX5_SRQ_NEXT_FIELDS, 16);
#endif
