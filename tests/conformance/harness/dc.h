/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dynamically connected ends: initiators here, a host of targets wherever it lives.
 *
 * As end.h and peer.h: functions of initiators return 0 or an errno; calls to the far side assert
 * that it answered.  Each side opens a device of its own.  Made with mlx5dv, so programs that use
 * this are linked with libmlx5.
 */
#ifndef CONFORMANCE_DC_H
#define CONFORMANCE_DC_H
#include <infiniband/mlx5dv.h>
#include "peer.h"

#define DC_KEY		UINT64_C(0x0badc0de12345678)
#define DC_BYTES	(4u << 20)	/* of each side's buffer */
enum { DC_TARGETS_MAX = 4 };

/* One host of targets: they share a receive queue, a completion queue and memory. */
struct dc_host {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *target[DC_TARGETS_MAX];
	uint8_t *buf;
	struct ibv_mr *mr;
};

/* What initiators know of it. */
struct dc_info {
	union ibv_gid gid;		/* or its LID, as end_path() takes it */
	uint32_t dctn[DC_TARGETS_MAX];
	uint32_t rkey;
	uint64_t addr;
};

struct dc_far {
	enum placement placement;
	struct dc_host here;		/* ONE_THREAD */
	struct dc_info info;
	int socket;
	pid_t pid;
	pthread_t thread;
};

/* Before any device is opened: a process is forked. */
void dc_far_open(struct dc_far *f, enum placement placement, unsigned targets);
void dc_far_close(struct dc_far *f);
/* Its errno. */
int dc_far_destroy(struct dc_far *f, unsigned target);
int dc_far_make(struct dc_far *f, unsigned target);	/* with a new number, in f->info */
void dc_far_recv(struct dc_far *f, uint64_t wr_id, size_t offset, uint32_t bytes);
void dc_far_await(struct dc_far *f, struct done *out);
void dc_far_glance(struct dc_far *f, struct done *out);
void dc_far_fill(struct dc_far *f, size_t offset, size_t bytes, uint64_t seed);
int64_t dc_far_differs(struct dc_far *f, size_t offset, size_t bytes, uint64_t seed);
uint64_t dc_far_word(struct dc_far *f, size_t offset);

/* What its peers call the port. */
union ibv_gid dc_address(struct ibv_context *context);

/* A host in this thread, for cases about commands. */
int dc_host_open(struct dc_host *h, unsigned targets);
void dc_host_close(struct dc_host *h);
/* A target in RESET, or NULL with errno. */
struct ibv_qp *dct_create(struct dc_host *h, struct ibv_srq *srq);
int dct_to_init(struct ibv_qp *qp);
int dct_to_rtr(struct ibv_qp *qp);

struct dc_opts {
	uint8_t timeout, retry, rnr_retry;
	bool has_streams;
	uint32_t depth;			/* of the send queue */
};

struct dci {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;
	struct mlx5dv_qp_ex *dv;
	struct ibv_ah *ah;		/* one path: all targets are behind one address */
	uint8_t *buf;
	struct ibv_mr *mr;
	struct dc_opts opts;
};

struct dc_work {
	enum ibv_wr_opcode opcode;
	uint64_t wr_id;
	unsigned target;
	uint32_t bytes;
	size_t offset, remote_offset;
	uint32_t imm;
	uint64_t compare_add, swap;
	bool is_inline, is_unsignaled;
	uint32_t qpn_error, rkey_error;	/* xor-ed to what is right */
	uint64_t key_error;
	uint16_t stream;		/* 0: posted without one */
};

void dc_defaults(struct dc_opts *opts);
int dci_open(struct dci *i, const struct dc_opts *opts, const struct dc_info *info);
void dci_close(struct dci *i);
int dci_to_rts(struct dci *i);
int dci_reset(struct dci *i);		/* and to RTS again */
int dci_post(struct dci *i, const struct dc_info *info, const struct dc_work *work);
void dci_await(struct dci *i, struct done *out);
void dci_glance(struct dci *i, struct done *out);
#endif
