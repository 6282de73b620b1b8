/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive work queues, the tables that spread frames over them, and the QPs that have a table.
 *
 * To the engine and the transports a work queue is a QP that only receives: it has the same ring,
 * record, completions and errors.
 *
 * Source: device-abi B.9, B.9.4, H.3.
 */
#ifndef EMU_OBJ_WQ_H
#define EMU_OBJ_WQ_H
#include "emu/obj/obj.h"
#include "emu/steer/rss.h"

enum wq_state { WQ_RESET, WQ_RDY, WQ_ERR, WQ_STATE_COUNT };	/* numbers of the uverbs ABI */

struct emu_wq {
	struct emu_obj obj;
	struct emu_qp *qp;		/* QPT_WQ */
};

struct wq_init {
	uint64_t user_handle;
	struct emu_pd *pd;
	struct emu_cq *cq;
	struct emu_channel *async;
	uint64_t buf_addr, db_addr;
	uint32_t wqe_count, stride, max_wr;
	uint32_t user_index;
	struct frame_options frames;
	struct striding striding;
};

/* -EINVAL counts not powers of two or above the profile, addresses not aligned; -EFAULT; -ENOMEM */
int wq_create(struct emu_dev *dev, const struct wq_init *init, struct emu_wq **out);
enum wq_state wq_state(const struct emu_wq *wq);
/* From the state that the caller believes in.  -EINVAL it is another one, or there is no way.  Sets
 * QP_WORK bits of its QP; the caller kicks the engine. */
int wq_modify(struct emu_dev *dev, struct emu_wq *wq, enum wq_state from, enum wq_state to);
/* -EBUSY.  The engine has forgotten its QP before. */
int wq_destroy(struct emu_dev *dev, struct emu_wq *wq, uint32_t *events_out);

/* Bytes of a stride, strides of a WQE: logarithms. */
enum { WQ_STRIDE_LOG_MIN = 6, WQ_STRIDE_LOG_MAX = 13, WQ_STRIDES_LOG_MIN = 9,
       WQ_STRIDES_LOG_MAX = 16 };

#define RWQ_TABLE_LOG_MAX	11	/* of all profiles */

struct emu_rwq_table {
	struct emu_obj obj;
	uint32_t number;
	uint32_t count;			/* power of two */
	struct emu_wq *wq[];		/* one may stand in several places */
};

/* @wq is copied.  -ENOMEM */
int rwq_table_create(struct emu_dev *dev, struct emu_wq *const *wq, uint32_t count,
		     struct emu_rwq_table **out);
int rwq_table_destroy(struct emu_dev *dev, struct emu_rwq_table *table);	/* -EBUSY */

/* What a QP of type QPT_RSS has. */
struct emu_rss {
	struct rss hash;
	struct emu_rwq_table *table;	/* it uses */
};

/* -ENOMEM */
int rss_qp_create(struct emu_dev *dev, struct emu_pd *pd, struct emu_rwq_table *table,
		  const struct rss *hash, struct emu_qp **out);
void rss_detach(struct emu_qp *qp);		/* for qp_destroy() */

/* The queue that a frame with this hash goes to. */
static inline struct emu_qp *rss_queue(const struct emu_rss *rss, uint32_t hash)
{
	return rss->table->wq[hash & (rss->table->count - 1)]->qp;
}
#endif
