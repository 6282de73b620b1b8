/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the library knows of a device and of a context, and what every file of it uses.
 *
 * Names: ibv_* is what programs call; vb_* is ours.  A public structure is the first member of ours
 * (struct ibv_pd in struct vb_pd), except the context, which ends with the public one.
 */
#ifndef VERBS_CONTEXT_H
#define VERBS_CONTEXT_H
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include "include/seam/channel.h"
#include "verbs/lock.h"

#define VB_EXPORT	__attribute__((visibility("default")))

#define VB_CONTAINER(at, type, member) \
	((type *)(void *)((char *)(uintptr_t)(at) - offsetof(type, member)))

struct vb_device {
	struct ibv_device base;
	const struct channel_provider *provider;
	struct channel_device found;
	unsigned references;	/* lists and contexts; under the lock of device.c */
	bool is_there;		/* the provider listed it last time */
	struct vb_device *next;
};

/* What a completion leads back to: the queue of that user index. */
enum vb_kind { VB_QP, VB_SRQ, VB_WQ };
struct vb_queue { enum vb_kind kind; uint32_t user_index; };

/* A doorbell page of the device. */
struct vb_uar {
	uint8_t *page;		/* NULL: not there */
	uint32_t page_id;	/* what commands call it */
	uint64_t mmap_offset;
	uint32_t handle;
};

#define VB_UARS		8	/* for send queues, two registers each; one more arms CQs */

/* A register to ring at: a queue gets one at creation and may share it with others. */
struct vb_register {
	struct vb_lock lock;
	uint8_t *at;		/* first of two buffers of @bytes, used in turns */
	uint32_t bytes, offset;
	uint32_t page_id;
	uint64_t mmap_offset;	/* of its page */
};

/* Functions of the program's for the memory of queues; NULL: there are none. */
struct vb_allocators {
	void *(*alloc)(size_t bytes, void *data);
	void (*free)(void *at, void *data);
	void *data;
};

struct vb_context {
	/* OFED's experimental table ends here and grows towards lower addresses. */
	uint8_t experimental[1024];
	struct verbs_context base;

	/* Behind the public part. */
	struct vb_device *device;
	struct channel channel;
	struct {		/* what the device said, mlx5_ib_alloc_ucontext_resp */
		uint32_t max_sq_desc_bytes, max_rq_desc_bytes, max_send_wqebb, max_recv_wr,
			max_srq_recv_wr, bf_reg_bytes, cache_line_bytes, num_ports;
		uint32_t eth_min_inline_mode, comp_mask;
		uint8_t cqe_version, clock_info_versions;
		uint64_t core_clock_offset;
		uint64_t core_support;
		uint32_t dump_fill_mkey;
		uint32_t num_dyn_bfregs, flow_action_flags;
	} limits;
	struct ibv_device_attr_ex attr;		/* as of opening */
	struct {		/* the driver's part of them, that a verb has no member for */
		uint32_t stride_bytes_log_min, stride_bytes_log_max, strides_log_min,
			strides_log_max;
		bool limits_bursts;
	} caps;
	_Atomic uint8_t port_kind[256];		/* by port number, see ah.c; 0: not asked yet */
	struct vb_uar arm_uar, uar[VB_UARS];
	struct vb_register reg[2 * VB_UARS];
	unsigned registers, next_register;	/* under base.context.mutex */

	struct vb_lock table_lock;	/* for writing; readers need none, see table.c */
	struct vb_queue **queue_block[1024];	/* by user index, blocks of 16384 */
	uint16_t queues_in[1024];
	uint32_t table_hint;			/* where the last index was given */
	struct vb_lock record_lock;
	struct vb_record_page *record_pages;

	struct vb_allocators allocators;
	void *clock_page, *core_clock_page;	/* NULL until somebody asks */
	bool is_imported;
};

static inline struct vb_context *vb_context_of(const struct ibv_context *context)
{
	return VB_CONTAINER(context, struct vb_context, base.context);
}

static inline struct vb_device *vb_device_of(const struct ibv_device *device)
{
	return (struct vb_device *)(uintptr_t)device;
}

/* False: a device of the system's libibverbs, see foreign.h. */
bool vb_is_ours(const struct ibv_context *context);
bool vb_device_is_ours(const struct ibv_device *device);

struct vb_pd {
	struct ibv_pd pd;	/* of a parent domain: that of its protection domain too */
	uint32_t pdn;
	_Atomic unsigned users;	/* parent domains on it */
	/* Parent domains only. */
	struct vb_pd *protection;
	struct vb_td *td;
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t bytes, size_t alignment,
		       uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *at, uint64_t resource_type);
	void *pd_context;
	bool is_imported;
};

struct vb_td {
	struct ibv_td td;
	_Atomic unsigned users;
	bool is_shared;		/* several threads after all */
	struct vb_uar uar;
	struct vb_register reg;
};

static inline struct vb_pd *vb_pd_of(const struct ibv_pd *pd)
{
	return (struct vb_pd *)(uintptr_t)pd;
}

/* The thread domain that @pd gives its queues, or NULL. */
static inline struct vb_td *vb_td_of(const struct ibv_pd *pd)
{
	return vb_pd_of(pd)->td;
}

/* A queue is on @pd, or no longer: a parent domain outlives its queues.  NULL does nothing. */
static inline void vb_parent_count(struct ibv_pd *pd, int by)
{
	if (pd && vb_pd_of(pd)->protection)
		vb_pd_of(pd)->users += (unsigned)by;
}

static inline void vb_parent_hold(struct ibv_pd *pd)
{
	vb_parent_count(pd, 1);
}

static inline void vb_parent_release(struct ibv_pd *pd)
{
	vb_parent_count(pd, -1);
}

/* --- table.c: user indexes --- */
/* Gives @queue an index.  ENOMEM */
int vb_queue_add(struct vb_context *c, struct vb_queue *queue);
void vb_queue_remove(struct vb_context *c, struct vb_queue *queue);
void vb_table_end(struct vb_context *c);
/* NULL: none has that index. */
static inline struct vb_queue *vb_queue_find(const struct vb_context *c, uint32_t user_index)
{
	struct vb_queue **block = __atomic_load_n(&c->queue_block[user_index >> 14 & 1023],
						  __ATOMIC_ACQUIRE);

	return block ? __atomic_load_n(&block[user_index & 16383], __ATOMIC_ACQUIRE) : NULL;
}

/* --- buf.c: memory of queues, and doorbell records --- */
struct vb_buf {
	void *at;
	size_t bytes;
	struct vb_context *context;	/* whose allocators gave it, or NULL */
	struct ibv_pd *owner;	/* parent domain whose allocator gave it, or NULL */
	uint64_t resource_type;
	bool is_huge;
};
/* Zeroed, aligned to a page, kept from forked children if the program asked for that.
 * @pd may be NULL; its own allocator is asked if it has one, then that of the context.  Huge pages
 * of our own: if MLX_QP_ALLOC_TYPE and the like say HUGE or PREFER_HUGE.  ENOMEM */
int vb_buf_alloc(struct vb_buf *b, struct vb_context *c, struct ibv_pd *pd, size_t bytes,
		 uint64_t resource_type);
void vb_buf_free(struct vb_buf *b);
/* Two zeroed words in a cache line of their own.  NULL: no memory. */
uint32_t *vb_record_alloc(struct vb_context *c);
void vb_record_free(struct vb_context *c, uint32_t *record);

/* --- uar.c --- */
int vb_uar_alloc(struct vb_context *c, struct vb_uar *uar, bool is_noncached);
void vb_uar_free(struct vb_context *c, struct vb_uar *uar);
int vb_registers_begin(struct vb_context *c);	/* at opening */
void vb_registers_end(struct vb_context *c);
int vb_td_uar_alloc(struct vb_context *c, struct vb_td *td);
/* The register that a new queue of @td (or NULL) rings.  NULL: the device has no page left. */
struct vb_register *vb_register_for(struct vb_context *c, struct vb_td *td);

/* --- device.c --- */
struct mlx5_ib_alloc_ucontext_resp;
/* Takes over what the device said of itself.  EOPNOTSUPP: its completions know no user index. */
int vb_context_answer(struct vb_context *c, const struct mlx5_ib_alloc_ucontext_resp *answer,
		      uint32_t vectors);
/* The file @path below the folder of a device that is known, wherever that folder is; its length.
 * -ENOENT */
/* An import ends, which no command tells of. */
void vb_unimport(struct ibv_context *context, enum channel_kind kind, uint32_t handle);
ssize_t vb_read_attribute_by_path(const char *path, char *text, size_t bytes);

/* --- query.c --- */
int vb_query_context(struct vb_context *c);	/* of an imported one, for get_context() */
int vb_device_attributes(struct vb_context *c);	/* fills c->attr */
struct mlx5_ib_query_device_resp;
int vb_driver_attributes(struct ibv_context *context, struct mlx5_ib_query_device_resp *out);

/* --- lending time to a device that has none of its own --- */
static inline void vb_idle(const struct vb_context *c)
{
	if (c->channel.ops->idle)
		c->channel.ops->idle();
}

/* --- the tables of a context, filled by ops.c from what the files below export --- */
void vb_context_fill_ops(struct vb_context *c);

/* Sets errno, returns it. */
int vb_fail(int error);

unsigned vb_log2_ceil(uint64_t value);		/* smallest n with 1 << n >= value */
#endif
