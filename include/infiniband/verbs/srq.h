/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues, and the XRC domains through which processes share them.
 */
#ifndef INFINIBAND_VERBS_SRQ_H
#define INFINIBAND_VERBS_SRQ_H

#include <infiniband/verbs/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- XRC domains ------------------------------------------------------------ */

enum ibv_xrcd_init_attr_mask {
	IBV_XRCD_INIT_ATTR_FD = 1 << 0,
	IBV_XRCD_INIT_ATTR_OFLAGS = 1 << 1,
	IBV_XRCD_INIT_ATTR_RESERVED = 1 << 2,
};

/* Both members must be given; a file names the domain for other processes, -1 for none. */
struct ibv_xrcd_init_attr {
	uint32_t comp_mask;	/* enum ibv_xrcd_init_attr_mask */
	int fd;
	int oflags;		/* O_CREAT, O_EXCL */
};

struct ibv_xrcd {
	struct ibv_context *context;
};

/* --- queues ----------------------------------------------------------------- */

enum ibv_srq_attr_mask {
	IBV_SRQ_MAX_WR = 1 << 0,
	IBV_SRQ_LIMIT = 1 << 1,
};

struct ibv_srq_attr {
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t srq_limit;	/* fewer requests than this: one event, then it is 0 */
};

/* The attributes come back as they are, at least as large as asked. */
struct ibv_srq_init_attr {
	void *srq_context;
	struct ibv_srq_attr attr;
};

enum ibv_srq_type {
	IBV_SRQT_BASIC = 0,
	IBV_SRQT_XRC = 1,
	IBV_SRQT_TM = 2,	/* matches tags */
};

enum ibv_srq_init_attr_mask {
	IBV_SRQ_INIT_ATTR_TYPE = 1 << 0,
	IBV_SRQ_INIT_ATTR_PD = 1 << 1,
	IBV_SRQ_INIT_ATTR_XRCD = 1 << 2,
	IBV_SRQ_INIT_ATTR_CQ = 1 << 3,
	IBV_SRQ_INIT_ATTR_TM = 1 << 4,
	IBV_SRQ_INIT_ATTR_RESERVED = 1 << 5,
};

struct ibv_tm_cap {
	uint32_t max_num_tags;
	uint32_t max_ops;
};

/* Begins as struct ibv_srq_init_attr does. */
struct ibv_srq_init_attr_ex {
	void *srq_context;
	struct ibv_srq_attr attr;
	uint32_t comp_mask;	/* enum ibv_srq_init_attr_mask */
	enum ibv_srq_type srq_type;
	struct ibv_pd *pd;
	struct ibv_xrcd *xrcd;
	struct ibv_cq *cq;
	struct ibv_tm_cap tm_cap;
};

struct ibv_srq {
	struct ibv_context *context;
	void *srq_context;
	struct ibv_pd *pd;
	uint32_t handle;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	uint32_t events_completed;
};

#ifdef __cplusplus
}
#endif
#endif
