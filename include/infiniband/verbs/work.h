/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work requests, and the completions that report them.
 */
#ifndef INFINIBAND_VERBS_WORK_H
#define INFINIBAND_VERBS_WORK_H

#include <infiniband/verbs/base.h>
#include <infiniband/verbs/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- requests --------------------------------------------------------------- */

enum ibv_wr_opcode {
	IBV_WR_RDMA_WRITE = 0,
	IBV_WR_RDMA_WRITE_WITH_IMM = 1,
	IBV_WR_SEND = 2,
	IBV_WR_SEND_WITH_IMM = 3,
	IBV_WR_RDMA_READ = 4,
	IBV_WR_ATOMIC_CMP_AND_SWP = 5,
	IBV_WR_ATOMIC_FETCH_AND_ADD = 6,
	IBV_WR_LOCAL_INV = 7,
	IBV_WR_BIND_MW = 8,
	IBV_WR_SEND_WITH_INV = 9,
	IBV_WR_TSO = 10,
	IBV_WR_DRIVER1 = 11,
	IBV_WR_ATOMIC_WRITE = 15,
};

enum ibv_send_flags {
	IBV_SEND_FENCE = 1 << 0,     /* start after earlier READs and atomics have ended */
	IBV_SEND_SIGNALED = 1 << 1,  /* report success too */
	IBV_SEND_SOLICITED = 1 << 2, /* wake a peer that armed its CQ for solicited events */
	IBV_SEND_INLINE = 1 << 3,    /* take the bytes now; lkeys are not looked at */
	IBV_SEND_IP_CSUM = 1 << 4,   /* fill in checksums of IP and TCP or UDP: raw packets */
};

/* A piece of registered memory */
struct ibv_sge {
	uint64_t addr;
	uint32_t length;	/* bytes */
	uint32_t lkey;
};

/* A piece of memory to be sent inline */
struct ibv_data_buf {
	void *addr;
	size_t length;		/* bytes */
};

struct ibv_send_wr {
	uint64_t wr_id;		/* comes back in the completion */
	struct ibv_send_wr *next;
	struct ibv_sge *sg_list;
	int num_sge;
	enum ibv_wr_opcode opcode;
	unsigned int send_flags; /* enum ibv_send_flags */
	union {
		__be32 imm_data;
		uint32_t invalidate_rkey;
	};
	union {
		struct {
			uint64_t remote_addr;
			uint32_t rkey;
		} rdma;
		struct {
			uint64_t remote_addr;
			uint64_t compare_add;
			uint64_t swap;
			uint32_t rkey;
		} atomic;
		struct {
			struct ibv_ah *ah;
			uint32_t remote_qpn;
			uint32_t remote_qkey;
		} ud;
	} wr;
	union {
		struct {
			uint32_t remote_srqn;
		} xrc;
	} qp_type;
	union {
		struct {
			struct ibv_mw *mw;
			uint32_t rkey;	/* its new one: ibv_inc_rkey() */
			struct ibv_mw_bind_info bind_info;
		} bind_mw;
		struct {
			void *hdr;	 /* from the MAC addresses to TCP's end; copied */
			uint16_t hdr_sz; /* bytes; 14 to max_tso_header */
			uint16_t mss;	 /* bytes behind it in each frame */
		} tso;
	};
};

struct ibv_recv_wr {
	uint64_t wr_id;
	struct ibv_recv_wr *next;
	struct ibv_sge *sg_list;
	int num_sge;
};

/* --- requests to a shared receive queue that matches tags -------------------- */

enum ibv_ops_wr_opcode {
	IBV_WR_TAG_ADD = 0,
	IBV_WR_TAG_DEL = 1,
	IBV_WR_TAG_SYNC = 2,
};

enum ibv_ops_flags {
	IBV_OPS_SIGNALED = 1 << 0,
	IBV_OPS_TM_SYNC = 1 << 1,	/* tm.unexpected_cnt counts */
};

struct ibv_ops_wr {
	uint64_t wr_id;
	struct ibv_ops_wr *next;
	enum ibv_ops_wr_opcode opcode;
	int flags;			 /* enum ibv_ops_flags */
	struct {
		uint32_t unexpected_cnt; /* unexpected messages that the program has seen */
		uint32_t handle;	 /* out of TAG_ADD, in to TAG_DEL */
		struct {
			uint64_t recv_wr_id;
			struct ibv_sge *sg_list;
			int num_sge;
			uint64_t tag;
			uint64_t mask;
		} add;
	} tm;
};

/* --- completions ------------------------------------------------------------ */

enum ibv_wc_status {
	IBV_WC_SUCCESS = 0,
	IBV_WC_LOC_LEN_ERR = 1,
	IBV_WC_LOC_QP_OP_ERR = 2,
	IBV_WC_LOC_EEC_OP_ERR = 3,
	IBV_WC_LOC_PROT_ERR = 4,
	IBV_WC_WR_FLUSH_ERR = 5,
	IBV_WC_MW_BIND_ERR = 6,
	IBV_WC_BAD_RESP_ERR = 7,
	IBV_WC_LOC_ACCESS_ERR = 8,
	IBV_WC_REM_INV_REQ_ERR = 9,
	IBV_WC_REM_ACCESS_ERR = 10,
	IBV_WC_REM_OP_ERR = 11,
	IBV_WC_RETRY_EXC_ERR = 12,
	IBV_WC_RNR_RETRY_EXC_ERR = 13,
	IBV_WC_LOC_RDD_VIOL_ERR = 14,
	IBV_WC_REM_INV_RD_REQ_ERR = 15,
	IBV_WC_REM_ABORT_ERR = 16,
	IBV_WC_INV_EECN_ERR = 17,
	IBV_WC_INV_EEC_STATE_ERR = 18,
	IBV_WC_FATAL_ERR = 19,
	IBV_WC_RESP_TIMEOUT_ERR = 20,
	IBV_WC_GENERAL_ERR = 21,
	IBV_WC_TM_ERR = 22,
	IBV_WC_TM_RNDV_INCOMPLETE = 23,
};

/* A receive has the bit IBV_WC_RECV, a request of the send queue has not. */
enum ibv_wc_opcode {
	IBV_WC_SEND = 0,
	IBV_WC_RDMA_WRITE = 1,
	IBV_WC_RDMA_READ = 2,
	IBV_WC_COMP_SWAP = 3,
	IBV_WC_FETCH_ADD = 4,
	IBV_WC_BIND_MW = 5,
	IBV_WC_LOCAL_INV = 6,
	IBV_WC_TSO = 7,
	IBV_WC_ATOMIC_WRITE = 9,

	IBV_WC_RECV = 1 << 7,
	IBV_WC_RECV_RDMA_WITH_IMM = IBV_WC_RECV + 1,
	IBV_WC_TM_ADD = IBV_WC_RECV + 2,
	IBV_WC_TM_DEL = IBV_WC_RECV + 3,
	IBV_WC_TM_SYNC = IBV_WC_RECV + 4,
	IBV_WC_TM_RECV = IBV_WC_RECV + 5,
	IBV_WC_TM_NO_TAG = IBV_WC_RECV + 6,
	IBV_WC_DRIVER1 = IBV_WC_RECV + 7,
	IBV_WC_DRIVER2 = IBV_WC_RECV + 8,
	IBV_WC_DRIVER3 = IBV_WC_RECV + 9,
};

enum {
	IBV_WC_IP_CSUM_OK_SHIFT = 2,
};

enum ibv_wc_flags {
	IBV_WC_GRH = 1 << 0,		/* a GRH lies in front of the payload (UD) */
	IBV_WC_WITH_IMM = 1 << 1,
	IBV_WC_IP_CSUM_OK = 1 << IBV_WC_IP_CSUM_OK_SHIFT, /* of a frame with IPv4, and TCP or UDP */
	IBV_WC_WITH_INV = 1 << 3,
	IBV_WC_TM_SYNC_REQ = 1 << 4,	/* an IBV_WR_TAG_SYNC is wanted */
	IBV_WC_TM_MATCH = 1 << 5,
	IBV_WC_TM_DATA_VALID = 1 << 6,	/* the whole message is in the buffer */
};

/* After an error only wr_id, status, qp_num and vendor_err say anything. */
struct ibv_wc {
	uint64_t wr_id;
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	uint32_t vendor_err;
	uint32_t byte_len;
	union {
		__be32 imm_data;	   /* if IBV_WC_WITH_IMM */
		uint32_t invalidated_rkey; /* if IBV_WC_WITH_INV */
	};
	uint32_t qp_num;
	uint32_t src_qp;		   /* UD */
	unsigned int wc_flags;		   /* enum ibv_wc_flags */
	uint16_t pkey_index;
	uint16_t slid;
	uint8_t sl;
	uint8_t dlid_path_bits;
};

/* Never NULL; for a value out of range it says so. */
const char *ibv_wc_status_str(enum ibv_wc_status status);

#ifdef __cplusplus
}
#endif
#endif
