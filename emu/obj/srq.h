/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues: receives that belong to no QP until a message comes.
 *
 * The WQEs are a linked list in the application's memory.  Each names its successor, and the
 * application goes on linking while we read, so a link is read with its WQE and never before.
 * A WQE is posted, then held by the QP whose message goes there, then completed on that QP.
 *
 * Source: device-abi B.9.2, C.4, F.4; IBTA volume 1, 10.2.9.
 */
#ifndef EMU_OBJ_SRQ_H
#define EMU_OBJ_SRQ_H
#include "emu/obj/xrcd.h"

enum srq_type { SRQ_BASIC, SRQ_XRC };

struct emu_srq {
	struct emu_obj obj;
	struct emu_dev *dev;
	/* hot */
	uint64_t buf_addr, db_addr;	/* in the application */
	uint32_t wqe_count, stride;	/* power of two; bytes of a WQE */
	uint32_t produced, taken;	/* WQEs, free running */
	uint32_t next;			/* the one to be taken next: as its predecessor said */
	uint32_t limit;			/* SRQ_LIMIT when fewer are posted; 0: not armed */
	uint8_t *is_held;		/* [wqe_count]: a QP has it */
	uint32_t pdn;			/* of its lkeys: the QP's own does not count */
	uint32_t user_index;
	enum srq_type type;
	bool names_itself;		/* its CQEs carry its user_index and not the QP's */
	bool has_failed;
	/* cold */
	uint32_t srqn;
	struct emu_pd *pd;
	struct emu_cq *cq;		/* of all its completions; NULL: those of the QPs */
	struct emu_xrcd *xrcd;		/* NULL: basic */
	struct emu_channel *async;
	uint64_t user_handle;
};

struct srq_init {
	enum srq_type type;
	uint64_t user_handle;
	struct emu_pd *pd;
	struct emu_cq *cq;
	struct emu_xrcd *xrcd;
	struct emu_channel *async;
	uint64_t buf_addr, db_addr;
	uint32_t max_wr, max_sge;	/* as asked: both say what the ring is */
	uint32_t user_index;
	bool names_itself;		/* with its number, if there is no user_index */
};

#define SRQ_USER_INDEX_NONE	0xffffffu

/* -EINVAL above the profile's limits, addresses not aligned; -EFAULT; -ENOMEM */
int srq_create(struct emu_dev *dev, const struct srq_init *init, struct emu_srq **out);
int srq_destroy(struct emu_dev *dev, struct emu_srq *srq, uint32_t *events_out); /* -EBUSY */

enum { SRQ_MAX_WR = 1, SRQ_LIMIT = 2 };		/* attr_mask of the uverbs ABI */
/* -EINVAL another attribute than the limit, or one that is never reached */
int srq_modify(struct emu_dev *dev, struct emu_srq *srq, uint32_t limit, uint32_t mask);

static inline uint32_t srq_max_wr(const struct emu_srq *srq)
{
	return srq->wqe_count - 1;	/* the last one is where the list goes on */
}

static inline uint32_t srq_max_sge(const struct emu_srq *srq)
{
	return srq->stride / 16 - 1;
}

static inline uint32_t srq_posted(const struct emu_srq *srq)
{
	return srq->produced - srq->taken;
}

/* Take over what the record announces.  WHY_NONE, or the reason why it can't be believed. */
enum why srq_doorbell(struct emu_srq *srq);

/* WQE @index goes to a QP, and @next is its successor. */
void srq_hold(struct emu_srq *srq, uint32_t index, uint32_t next);

static inline void srq_let_go(struct emu_srq *srq, uint32_t index)
{
	srq->is_held[index] = 0;
}

/* The XRC queue with this number that a target QP of @domain may deliver to, or NULL. */
struct emu_srq *srq_find_xrc(struct emu_dev *dev, uint32_t srqn, const struct xrc_domain *domain);
/* The same for a target QP of another process. */
struct emu_srq *srq_find_named(struct emu_dev *dev, uint32_t srqn, uint64_t domain_name);

/* The QP is reset or destroyed: a WQE that it holds is never completed. */
void srq_qp_forget(struct emu_qp *qp);

/* The queue is unusable; the caller has noted why. */
void srq_fail(struct emu_srq *srq);
#endif
