/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What queue bytes mean, in host order: the language between the mlx5 formats
 * and everything that acts on them.
 *
 * mlx5_decode.c produces hw_work and hw_recv from bytes; mlx5_cqe.c turns
 * hw_cqe into bytes.  The transports see only these structures and never a
 * byte of a queue.  No policy lives here.
 */
#ifndef HW_MODELS_HW_H
#define HW_MODELS_HW_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_WQEBB_BYTES		64
#define HW_WQE_DS_MAX		63	/* 6-bit count of 16-byte units */
#define HW_WQE_BYTES_MAX	(HW_WQE_DS_MAX * 16)
#define HW_SGE_MAX		(HW_WQE_DS_MAX - 1)
#define HW_LKEY_END		0x100	/* byte_count 0 with this lkey ends a receive list */

enum hw_transport { HW_RC, HW_UC, HW_UD, HW_XRC, HW_DCI, HW_RAW, HW_TRANSPORT_COUNT };

/* What a send WQE asks for.  HW_OP_NONE: the opcode means nothing. */
enum hw_op {
	HW_OP_NONE, HW_OP_NOP,
	HW_OP_SEND, HW_OP_SEND_IMM, HW_OP_SEND_INVAL,
	HW_OP_WRITE, HW_OP_WRITE_IMM,
	HW_OP_READ,
	HW_OP_COMPARE_SWAP, HW_OP_FETCH_ADD,
	HW_OP_MASKED_COMPARE_SWAP, HW_OP_MASKED_FETCH_ADD,
	HW_OP_UMR,		/* bind a window, invalidate a key */
	HW_OP_TSO,		/* frames of one TCP message */
	HW_OP_COUNT
};

enum hw_fence {
	HW_FENCE_NONE,
	HW_FENCE_SMALL,		/* after earlier local operations (UMR)          */
	HW_FENCE_READS,		/* and after all earlier READs and atomics        */
	HW_FENCE_STRONG,	/* after everything earlier                       */
};

/* Why bytes are not a work request.  HW_OK is 0. */
enum hw_fault {
	HW_OK,
	HW_FAULT_OPCODE_UNKNOWN,	/* no opcode of the table              */
	HW_FAULT_OPCODE_TRANSPORT,	/* not on this transport                */
	HW_FAULT_OPMOD,			/* opcode modifier not defined for it    */
	HW_FAULT_DS_SHORT,		/* ends before its mandatory segments     */
	HW_FAULT_DS_LONG,		/* more units than the queue or WQE holds  */
	HW_FAULT_INLINE_LENGTH,		/* inline data runs past the end            */
	HW_FAULT_INLINE_OPCODE,		/* inline data where data must be returned   */
	HW_FAULT_QPN,			/* another QP's number                        */
	HW_FAULT_INDEX,			/* not the producer index of this slot         */
	HW_FAULT_ATOMIC_SGE,		/* atomic without exactly its bytes of result   */
	HW_FAULT_UMR_POINTER,		/* translation of a key that is not in the WQE   */
	HW_FAULT_UMR_OFFSET,		/* part of a translation, or a signature behind it */
	HW_FAULT_UMR_LENGTH,		/* translation runs past the end                   */
	HW_FAULT_UMR_INTERLEAVED,	/* translation with strides                        */
	HW_FAULT_ETH_HEADER,		/* inline header runs past the end, or is not there   */
	HW_FAULT_COUNT
};

/* One piece of a message: memory under a key, or bytes inside the WQE. */
struct hw_sge {
	uint64_t addr;
	uint32_t bytes;
	uint32_t lkey;
	const uint8_t *inline_bytes;	/* into the copy given to the decoder, else NULL */
};

/* Where a datagram or a DC request goes. */
struct hw_av {
	bool is_compact;		/* InfiniBand without GRH: what is below `sl` is 0 */
	uint32_t qkey;			/* UD; 0 for DC */
	uint64_t dc_key;		/* DC; 0 for UD */
	uint32_t dest_qpn;		/* QPN or DCTN */
	uint16_t udp_sport;		/* RoCE */
	uint16_t dlid;			/* InfiniBand; the same bits of the segment */
	uint8_t rate, path_bits;
	bool forces_loopback;
	uint8_t sl;			/* RoCE: priority << 1 */
	uint32_t flow_label;
	uint8_t traffic_class, hop_limit, sgid_index;
	bool has_grh;			/* InfiniBand; on RoCE there always is one */
	uint8_t rmac[6], rgid[16];
};

/* How a frame is to be sent.  Its inline header is the first piece of the message, but of TSO,
 * whose message is cut and gets that header in front of each part. */
struct hw_eth {
	uint8_t checksums;		/* enum mlx5_eth_checksum */
	bool inserts_vlan;
	uint16_t vlan;			/* its TCI */
	uint16_t header_bytes;		/* inline */
	uint16_t mss;			/* TSO only */
	const uint8_t *header;		/* into the copy given to the decoder */
};

/* Bits of hw_umr.mask: what of the key is changed.  Values are those of mkey_mask. */
enum umr_bit {
	UMR_LEN = 1 << 0, UMR_START = 1 << 6, UMR_PD = 1 << 7, UMR_TAG = 1 << 13,
	UMR_QPN = 1 << 14, UMR_LOCAL_READ = 1 << 17, UMR_LOCAL_WRITE = 1 << 18,
	UMR_REMOTE_READ = 1 << 19, UMR_REMOTE_WRITE = 1 << 20, UMR_ATOMIC = 1 << 21,
	UMR_FREE = 1 << 29,
};

/* Bits of hw_umr.access: those of the uverbs ABI, and local read, which has none there. */
enum umr_access {
	UMR_GIVES_LOCAL_WRITE = 1, UMR_GIVES_REMOTE_WRITE = 2, UMR_GIVES_REMOTE_READ = 4,
	UMR_GIVES_ATOMIC = 8, UMR_GIVES_LOCAL_READ = INT32_MIN,
};

/*
 * What a UMR work request does to a key.  A field that `mask` does not name is 0: libmlx5 leaves
 * there what the ring held before.  The translation (KLMs) is in hw_work.sge, whose sum need not
 * be `bytes`.
 */
struct hw_umr {
	uint32_t key;			/* only its index says which */
	bool needs_free;		/* fails unless the key is free */
	bool needs_qpn;			/* fails unless the key is bound to this QP */
	uint64_t mask;			/* UMR_ bits; others are as in the WQE */
	bool frees;			/* makes the key free; else UMR_FREE makes it valid */
	uint8_t tag;			/* new low byte */
	uint32_t qpn;			/* to be bound to; 0xffffff: any */
	uint32_t access;		/* UMR_GIVES_ bits */
	uint64_t start, bytes;
	unsigned translation_units;	/* 16-byte units announced; 0: it stays as it is */
};

/* What every RC message needs stands in one cache line; what is rare, behind the pieces. */
struct hw_work {
	enum hw_op op;
	enum hw_fence fence;
	uint8_t opcode;			/* as in the WQE, for CQEs */
	uint8_t ds;			/* 16-byte units           */
	uint16_t index;			/* producer index of its first 64-byte block */
	uint32_t qpn;
	bool is_signaled;		/* CQE also on success */
	bool is_solicited;
	uint8_t atomic_bytes;		/* atomics only: 8; masked ones 4 or 8 */
	uint32_t imm;			/* immediate: bytes as on the wire; rkey to invalidate:
					 * host order; 0 if the opcode has neither */
	uint32_t rkey;
	unsigned sge_count;
	uint64_t bytes;			/* whole message; for atomics atomic_bytes */
	uint64_t remote_addr;
	uint64_t swap_add, compare;	/* host order */
	struct hw_sge sge[HW_SGE_MAX];
	uint64_t swap_mask, compare_mask;	/* masked atomics only; fetch-and-add: swap_mask
						 * has the field boundaries */
	uint32_t srqn;			/* XRC only, and not for HW_OP_UMR and HW_OP_NOP */
	struct hw_av av;		/* UD and DCI only, and not for those two either */
	struct hw_umr umr;		/* HW_OP_UMR only */
	struct hw_eth eth;		/* HW_RAW only, and not for HW_OP_NOP */
};
_Static_assert(offsetof(struct hw_work, sge) <= 64, "an RC message starts in one cache line");

struct hw_recv {
	uint64_t bytes;			/* room in all pieces */
	unsigned sge_count;
	struct hw_sge sge[HW_SGE_MAX];
};

/*
 * Decode a send WQE.
 * @wqe:       a private copy, contiguous, at least HW_WQE_BYTES_MAX readable bytes;
 *             hw_sge.inline_bytes points into it
 * @units_max: 16-byte units that the queue can hold in one WQE
 * Returns HW_OK, or the first fault; then only opcode, ds, index, qpn and
 * is_signaled of @out are valid.
 */
enum hw_fault mlx5_work_read(const uint8_t *wqe, unsigned units_max,
			     enum hw_transport transport, struct hw_work *out);

/* 16-byte units the control segment claims; needs 16 bytes of @wqe. */
unsigned mlx5_work_units(const uint8_t *wqe);

/* Decode a receive WQE of @stride bytes (16 to 1008).  A list ends at
 * byte_count 0 with lkey HW_LKEY_END, or at the stride's end. */
enum hw_fault mlx5_recv_read(const uint8_t *wqe, size_t stride, struct hw_recv *out);

/* The entry of a shared receive queue that comes after this one.  16 bytes of @wqe are read; the
 * index is the application's, so it may be any. */
uint16_t mlx5_srq_next(const uint8_t *wqe);

/* Decode a WQE of a shared receive queue, of @stride bytes (32 to 1024).  As mlx5_recv_read(),
 * but pieces of no bytes are left out.  @next_out is written in any case. */
enum hw_fault mlx5_srq_read(const uint8_t *wqe, size_t stride, struct hw_recv *out,
			    uint16_t *next_out);

const char *hw_fault_name(enum hw_fault fault);	/* "inline data runs past the end" */
const char *hw_op_name(enum hw_op op);		/* "RDMA_WRITE" */

/* One line that says what a WQE is; returns as snprintf does. */
int mlx5_dump(const uint8_t *wqe, unsigned units_max, enum hw_transport transport,
	      char *out, size_t bytes);

enum hw_cqe_kind {		/* values are the CQE opcodes */
	HW_CQE_REQ = 0, HW_CQE_RECV_WRITE_IMM = 1, HW_CQE_RECV = 2, HW_CQE_RECV_IMM = 3,
	HW_CQE_RECV_INV = 4, HW_CQE_RESIZE = 5, HW_CQE_REQ_ERR = 13, HW_CQE_RECV_ERR = 14,
	HW_CQE_INVALID = 15,
};

struct hw_cqe {
	enum hw_cqe_kind kind;
	uint32_t user_index;
	uint32_t qpn;
	uint8_t wqe_opcode;		/* requester and error CQEs */
	uint16_t wqe_counter;
	uint32_t bytes;
	uint32_t imm;			/* immediate: bytes as on the wire; invalidated rkey:
					 * host order */
	bool is_solicited;
	uint8_t syndrome, vendor_err;	/* error CQEs */
	uint64_t timestamp;
	bool has_origin;		/* what follows up to flow_tag counts; never on RC */
	uint32_t src_qpn;		/* UD and DC receives */
	uint16_t slid;			/* InfiniBand */
	uint8_t path_bits;		/* InfiniBand: low 7 bits of the DLID */
	uint8_t sl;			/* InfiniBand */
	uint8_t l3;			/* RoCE: 0 GRH (v1), 1 IPv6, 2 IPv4 */
	uint8_t grh;			/* 0 none, 1 in the buffer, 2 in the CQE */
	uint8_t checks_ok;		/* bits L2 1, L3 2, L4 4 */
	uint8_t l4_type, l3_type;
	uint16_t vlan;
	bool has_vlan;
	uint32_t rx_hash;		/* RSS */
	uint8_t rx_hash_type;
	bool is_frame;			/* receives of Ethernet: */
	uint32_t flow_tag;		/* of the rule, stands where the QPN would */
	uint16_t wqe_id;		/* striding queues: the WQE; wqe_counter is the stride */
	uint8_t format;			/* 1: the message, at most 32 bytes, is in the CQE, where
					 * src_qpn to rx_hash_type would be; 2: it stands before
					 * the CQE, and the caller writes those 64 bytes */
	const uint8_t *inline_bytes;	/* format 1: `bytes` of them */
};

/* The 64 bytes of a CQE with owner bit @owner (0 or 1) already in the last byte. */
void mlx5_cqe_write(uint8_t out[64], const struct hw_cqe *cqe, unsigned owner);

/* A failed work request as the hardware names it; see mlx5_syndromes.def. */
enum hw_status {
	HW_SUCCESS, HW_LOC_LEN, HW_LOC_QP_OP, HW_LOC_QP_OP_RECV, HW_LOC_PROT, HW_LOC_PROT_RECV,
	HW_FLUSHED, HW_MW_BIND, HW_BAD_RESP, HW_LOC_ACCESS, HW_REM_INV_REQ, HW_REM_ACCESS,
	HW_REM_OP, HW_RETRY_EXC, HW_RNR_RETRY_EXC, HW_REM_ABORT,
	HW_STATUS_COUNT
};
struct hw_syndrome { uint8_t syndrome, vendor_err; const char *name; };
extern const struct hw_syndrome hw_syndromes[HW_STATUS_COUNT];
#endif
