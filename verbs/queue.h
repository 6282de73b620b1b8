/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues of work requests and completions, as the library keeps them: rings in memory that the
 * device reads and writes, and what is remembered for each entry.
 *
 * A ring's lock is held by who posts; what a completion gives back (`tail`) is written under the
 * CQ's lock and read under the ring's: a post that sees an old tail finds the ring full a moment
 * longer, never overwrites.
 *
 * Source: device-abi C.1, C.4, C.6, C.9.
 */
#ifndef VERBS_QUEUE_H
#define VERBS_QUEUE_H
#include <rdma/ib_user_ioctl_verbs.h>
#include "verbs/context.h"

#define VB_SQ_BLOCK_BYTES	64u	/* send WQEs are whole blocks, doorbells count them */

struct vb_ring {
	struct vb_lock lock;
	uint8_t *at;
	uint32_t entries;		/* blocks of a send queue, WQEs of a receive queue; 2^n */
	uint32_t entry_shift;		/* log2 of an entry's bytes */
	uint32_t max_post;		/* WQEs that may be outstanding */
	uint32_t max_sge;
	uint32_t list_at;		/* units of a receive before its list */
	uint32_t head;			/* requests posted so far; modulo 2^32 */
	uint32_t produced;		/* entries filled so far; send queues only */
	_Atomic uint32_t tail;		/* requests completed so far */
	uint64_t *wr_id;		/* by index of the first entry */
	uint32_t *head_at;		/* send queues: `head` when that WQE was posted */
	uint8_t *meaning; /* and an enum ibv_wc_opcode where the WQE's does not tell, or 0 */
};

struct vb_srq {
	struct ibv_srq srq;
	uint8_t legacy_xrc[48];		/* OFED's structure is 176 bytes long */
	struct vb_queue queue;
	struct vb_ring ring;		/* entries is also max_post + 1 */
	struct vb_buf buf;
	uint32_t *record;
	uint32_t srqn;			/* the device's */
	uint32_t free_first, free_last;	/* list through the WQEs' own next_wqe_index */
	uint32_t posted;		/* what the record says */
	bool is_xrc;
	struct vb_cq *cq;		/* XRC only */
};

/* What an allocator of a parent domain is asked for, as mlx5dv names it. */
#define VB_RESOURCE(n)	((uint64_t)RDMA_DRIVER_MLX5 << 32 | (n))
#define VB_RESOURCE_QP	VB_RESOURCE(1)
#define VB_RESOURCE_RWQ	VB_RESOURCE(2)
#define VB_RESOURCE_SRQ	VB_RESOURCE(4)
#define VB_RESOURCE_CQ	VB_RESOURCE(5)

struct vb_cq {
	struct ibv_cq_ex cq;
	struct vb_lock lock;
	struct vb_buf buf;
	uint8_t *at;
	uint32_t entries;		/* 2^n; cq.cqe is one less */
	uint32_t entry_bytes;		/* 64 or 128 */
	uint32_t consumed;
	uint32_t cqn;
	uint32_t arm_sn;
	uint32_t *record;
	struct vb_context *context;
	struct vb_uar *arm_uar;
	/* The completion that was read last. */
	const uint8_t *current;		/* the last 64 bytes of its entry */
	struct vb_queue *current_queue;
	uint32_t current_at;		/* the entry of that queue's ring which it completes */
	/* The queue that the last CQE belonged to; most often the next one does, too. */
	struct vb_queue *last_queue;
	uint64_t wc_flags;
	bool ignores_overrun;
	bool is_raw;			/* the program reads it itself: hands off */
	struct ibv_pd *parent_domain;
};

/* Which end of a dynamic connection a QP of type DRIVER is. */
enum vb_dc { VB_DC_NONE, VB_DC_INITIATOR, VB_DC_TARGET };

/* What a port does to the frames of a raw packet QP. */
struct vb_eth {
	uint16_t header_bytes;		/* of each frame, that must be within its WQE */
	uint16_t tso_header_max;	/* as the QP was made */
	uint32_t tso_bytes_max;		/* behind that header; 0: frames are not cut up */
	bool has_checksums;
};

struct vb_qp {
	struct ibv_qp_ex ex;		/* begins with struct ibv_qp */
	struct vb_queue queue;
	struct vb_ring sq, rq;
	struct vb_buf buf, sq_buf;	/* the latter: raw packet QPs have it apart */
	uint32_t *record;		/* word 0 receives, word 1 sends; big-endian */
	struct vb_register *reg;
	struct vb_context *context;
	uint32_t max_inline_bytes;
	uint32_t wqe_units_max;		/* the ring has room for so many of each request */
	uint8_t fence;			/* of the next WQE, after a LOCAL_INV or a bind */
	bool signals_all;
	bool is_listed;			/* its queue has a user index */
	bool only_spreads;		/* packets over a table: it has no rings and no state */
	enum ibv_qp_type type;
	enum vb_dc dc;
	struct vb_pd *pd;
	struct vb_srq *srq;
	uint32_t scatters_inline;	/* bytes of a receive that may come within the CQE */
	uint32_t prefix_units;		/* of a send WQE: address vector or XRC segment */
	uint8_t on_transport;		/* which requests it takes, see send.c */
	bool may_send, may_receive;	/* the state allows posting */
	struct vb_eth eth;		/* raw packets only */
	bool hides_receives;		/* raw packets before RTR: the record does not count yet */
	void (*rang)(uint32_t qpn);	/* of the channel, or NULL */
	struct vb_build *build; /* ibv_wr_*: the WQE that is being built; NULL: has no such */
};

static inline struct vb_cq *vb_cq_of(const struct ibv_cq *cq)
{
	return (struct vb_cq *)(uintptr_t)cq;
}

static inline struct vb_qp *vb_qp_of(const struct ibv_qp *qp)
{
	return (struct vb_qp *)(uintptr_t)qp;
}

static inline struct vb_srq *vb_srq_of(const struct ibv_srq *srq)
{
	return (struct vb_srq *)(uintptr_t)srq;
}

static inline struct ibv_qp *vb_qp_base(struct vb_qp *qp)
{
	return &qp->ex.qp_base;
}

static inline struct vb_srq *vb_srq_of_queue(const struct vb_queue *queue)
{
	return VB_CONTAINER(queue, struct vb_srq, queue);
}

/* --- ring.c --- */
/* Room for the memories of @entries entries.  ENOMEM */
int vb_ring_alloc(struct vb_ring *r, bool is_send);
void vb_ring_free(struct vb_ring *r);
void vb_ring_reset(struct vb_ring *r);
/* Is there no room for @more requests? */
static inline bool vb_ring_is_full(const struct vb_ring *r, uint32_t more)
{
	return r->head - atomic_load_explicit(&r->tail, memory_order_acquire) + more > r->max_post;
}

/*
 * What is remembered of a request is written before the device is told of it, and read when it says
 * that the request is done.  That order passes through the device, where the thread sanitizer does
 * not look; for everybody else the record and the owner bit are enough.
 */
#ifdef __SANITIZE_THREAD__
void __tsan_acquire(void *at);
void __tsan_release(void *at);
#define vb_order_before_device(ring)	__tsan_release(ring)
#define vb_order_behind_device(ring)	__tsan_acquire(ring)
#else
#define vb_order_before_device(ring)	((void)(ring))
#define vb_order_behind_device(ring)	((void)(ring))
#endif

/* --- send.c --- */
void vb_send_begin(struct vb_qp *qp);	/* once the QP is made */

/* --- recv.c: entries of a shared queue --- */
void vb_srq_list_begin(struct vb_srq *srq);
/* The receive in entry @index is done. */
void vb_srq_give_back(struct vb_srq *srq, uint32_t index);

/* --- cq.c --- */
/* What the driver's own interface adds to the attributes of a new CQ. */
struct vb_cq_extra {
	uint32_t entry_bytes;		/* 0: as usual */
	uint16_t flags;			/* MLX5_IB_CREATE_CQ_FLAGS_* */
};
/* vb_create_cq_ex() with @extra. */
struct ibv_cq_ex *vb_cq_create_ex(struct ibv_context *context,
				  const struct ibv_cq_init_attr_ex *attr,
				  const struct vb_cq_extra *extra);

/* --- cq.c, for queues that go away or are reset --- */
/* Takes the completions of @queue out of @cq; receives of @srq are given back to it. */
void vb_cq_clean(struct vb_cq *cq, const struct vb_queue *queue, struct vb_srq *srq);
/* Both CQs of a QP, locked in one order; the same one twice is locked once. */
void vb_cq_lock_two(struct vb_cq *a, struct vb_cq *b);
void vb_cq_unlock_two(struct vb_cq *a, struct vb_cq *b);

#endif
