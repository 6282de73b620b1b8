/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection domains, and the memory that belongs to them: regions, windows, device memory.
 */
#ifndef INFINIBAND_VERBS_MEMORY_H
#define INFINIBAND_VERBS_MEMORY_H

#include <infiniband/verbs/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- domains ---------------------------------------------------------------- */

/* Objects work together only if they are of one protection domain. */
struct ibv_pd {
	struct ibv_context *context;
	uint32_t handle;
};

struct ibv_td_init_attr {
	uint32_t comp_mask;	/* 0 */
};

/* A promise that its objects are used by one thread at a time. */
struct ibv_td {
	struct ibv_context *context;
};

enum ibv_parent_domain_init_attr_mask {
	IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS = 1 << 0,
	IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT = 1 << 1,
};

/* What an allocator returns to leave the buffer to the driver. */
#define IBV_ALLOCATOR_USE_DEFAULT ((void *)-1)

/*
 * A domain that looks like a pd and adds a thread domain, or allocators for the queue buffers
 * of what is created in it.
 */
struct ibv_parent_domain_init_attr {
	struct ibv_pd *pd;	/* needed */
	struct ibv_td *td;	/* or NULL */
	uint32_t comp_mask;
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
		       uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type);
	void *pd_context;
};

/* --- regions ---------------------------------------------------------------- */

/* Bits of IBV_ACCESS_OPTIONAL_RANGE are hints: a device that does not know one ignores it. */
enum ibv_access_flags {
	IBV_ACCESS_LOCAL_WRITE = 1 << 0,
	IBV_ACCESS_REMOTE_WRITE = 1 << 1,  /* needs LOCAL_WRITE */
	IBV_ACCESS_REMOTE_READ = 1 << 2,
	IBV_ACCESS_REMOTE_ATOMIC = 1 << 3, /* needs LOCAL_WRITE */
	IBV_ACCESS_MW_BIND = 1 << 4,
	IBV_ACCESS_ZERO_BASED = 1 << 5,	   /* addresses count from the start of the region */
	IBV_ACCESS_ON_DEMAND = 1 << 6,	   /* pages are not pinned, but fetched when used */
	IBV_ACCESS_HUGETLB = 1 << 7,
	IBV_ACCESS_RELAXED_ORDERING = IBV_ACCESS_OPTIONAL_FIRST,
};

struct ibv_mr {
	struct ibv_context *context;
	struct ibv_pd *pd;
	void *addr;
	size_t length;	/* bytes */
	uint32_t handle;
	uint32_t lkey;
	uint32_t rkey;
};

/* What ibv_rereg_mr() shall change */
enum ibv_rereg_mr_flags {
	IBV_REREG_MR_CHANGE_TRANSLATION = 1 << 0,
	IBV_REREG_MR_CHANGE_PD = 1 << 1,
	IBV_REREG_MR_CHANGE_ACCESS = 1 << 2,
	IBV_REREG_MR_FLAGS_SUPPORTED = (IBV_REREG_MR_CHANGE_ACCESS << 1) - 1,
};

/* What ibv_rereg_mr() returns.  After one of the CMD values the region must be deregistered. */
enum ibv_rereg_mr_err_code {
	IBV_REREG_MR_ERR_INPUT = -1,		   /* refused; the region is as before */
	IBV_REREG_MR_ERR_DONT_FORK_NEW = -2,	   /* new range not protected; as before */
	IBV_REREG_MR_ERR_DO_FORK_OLD = -3,	   /* changed; the old range is still protected */
	IBV_REREG_MR_ERR_CMD = -4,		   /* the kernel refused */
	IBV_REREG_MR_ERR_CMD_AND_DO_FORK_NEW = -5, /* and the new range is still protected */
};

/* --- windows ---------------------------------------------------------------- */

enum ibv_mw_type {
	IBV_MW_TYPE_1 = 1, /* bound by ibv_bind_mw() */
	IBV_MW_TYPE_2 = 2, /* bound by a work request, IBV_WR_BIND_MW */
};

struct ibv_mw {
	struct ibv_context *context;
	struct ibv_pd *pd;
	uint32_t rkey;
	uint32_t handle;
	enum ibv_mw_type type;
};

/* The part of a region that a window opens; length 0 closes the window. */
struct ibv_mw_bind_info {
	struct ibv_mr *mr;
	uint64_t addr;
	uint64_t length;	      /* bytes */
	unsigned int mw_access_flags; /* enum ibv_access_flags */
};

struct ibv_mw_bind {
	uint64_t wr_id;
	unsigned int send_flags; /* enum ibv_send_flags */
	struct ibv_mw_bind_info bind_info;
};

/* --- memory on the device --------------------------------------------------- */

struct ibv_alloc_dm_attr {
	size_t length;		/* bytes */
	uint32_t log_align_req;
	uint32_t comp_mask;	/* 0 */
};

enum ibv_dm_mask {
	IBV_DM_MASK_HANDLE = 1 << 0,
};

struct ibv_dm {
	struct ibv_context *context;
	int (*memcpy_to_dm)(struct ibv_dm *dm, uint64_t dm_offset, const void *host_addr,
			    size_t length);
	int (*memcpy_from_dm)(void *host_addr, struct ibv_dm *dm, uint64_t dm_offset,
			      size_t length);
	uint32_t comp_mask;	/* enum ibv_dm_mask: which members below count */
	uint32_t handle;
};

#ifdef __cplusplus
}
#endif
#endif
