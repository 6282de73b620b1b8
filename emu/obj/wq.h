/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive work queues without a QP, and the tables that spread packets over them.
 *
 * What arrives for a table comes through steering and a RAW_PACKET QP, and neither is here yet:
 * so nothing is ever received, and these objects only keep the rules of their own lives.
 *
 * Source: device-abi B.9, B.9.4, H.3.
 */
#ifndef EMU_OBJ_WQ_H
#define EMU_OBJ_WQ_H
#include "emu/obj/obj.h"

enum wq_state { WQ_RESET, WQ_RDY, WQ_ERR, WQ_STATE_COUNT };	/* numbers of the uverbs ABI */

struct emu_wq {
	struct emu_obj obj;
	enum wq_state state;
	uint32_t wqn;
	uint64_t buf_addr, db_addr;	/* in the application */
	uint32_t wqe_count, stride;	/* powers of two; bytes of a WQE */
	uint32_t user_index;
	struct emu_pd *pd;
	struct emu_cq *cq;
	struct emu_channel *async;
	uint64_t user_handle;
};

struct wq_init {
	uint64_t user_handle;
	struct emu_pd *pd;
	struct emu_cq *cq;
	struct emu_channel *async;
	uint64_t buf_addr, db_addr;
	uint32_t wqe_count, stride, max_wr;
	uint32_t user_index;
};

/* -EINVAL counts not powers of two or above the profile, addresses not aligned; -EFAULT; -ENOMEM */
int wq_create(struct emu_dev *dev, const struct wq_init *init, struct emu_wq **out);
/* From the state that the caller believes in.  -EINVAL it is another one, or there is no way */
int wq_modify(struct emu_dev *dev, struct emu_wq *wq, enum wq_state from, enum wq_state to);
int wq_destroy(struct emu_dev *dev, struct emu_wq *wq, uint32_t *events_out);	/* -EBUSY */

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
#endif
