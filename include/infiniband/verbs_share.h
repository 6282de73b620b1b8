/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handing a protection domain or a memory region to another process, one object at a time.
 *
 * The exporter opens the device a second time, exports into that context what it wants to give
 * away, and passes the context's descriptor over a Unix socket (SCM_RIGHTS) with the handles it
 * got. The importer brings the objects into a context of its own.  They end with ibv_dealloc_pd()
 * and ibv_dereg_mr(), on each side for itself: the object lives until its last reference is gone.
 *
 * These were proposed for rdma-core in 2019, where in the end the whole context was shared instead:
 * ibv_import_device().  Only the emulated device can do this.
 */
#ifndef INFINIBAND_VERBS_SHARE_H
#define INFINIBAND_VERBS_SHARE_H
#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers of the kernel's enum uverbs_default_objects. */
enum ibv_export_type { IBV_EXPORT_PD = 1, IBV_EXPORT_MR = 7 };

/* What is passed to the other process: the descriptor stays the context's. */
uint32_t ibv_context_to_fd(struct ibv_context *context);
uint32_t ibv_pd_to_handle(struct ibv_pd *pd);
uint32_t ibv_mr_to_handle(struct ibv_mr *mr);

/*
 * Give an object of @context a handle in the context behind @fd, which this process has opened; it
 * is good with that descriptor only.  0, or an errno: EBADF @fd is no command descriptor of this
 * process; ENOENT, EINVAL no such object; EOPNOTSUPP the device can't; ENOMEM.
 */
int ibv_export_pd(uint32_t fd, uint32_t *new_handle, struct ibv_context *context,
		  struct ibv_pd *pd);
int ibv_export_mr(uint32_t fd, uint32_t *new_handle, struct ibv_context *context,
		  struct ibv_mr *mr);
/* The same by type and handle. */
int ibv_export_to_fd(uint32_t fd, uint32_t *new_handle, struct ibv_context *context,
		     enum ibv_export_type type, uint32_t handle);

/*
 * Bring what has @handle in the context behind @fd, which stays the caller's, into @context.  NULL
 * and errno: EBADF, EINVAL no descriptor that was passed, or another kind of object; ENOENT no such
 * handle; EIO the exporter has ended; EOPNOTSUPP; ENOMEM.  An imported region has no address and no
 * domain of its own: its pd is NULL.
 */
struct ibv_pd *ibv_import_pd_from_fd(struct ibv_context *context, uint32_t fd, uint32_t handle);
struct ibv_mr *ibv_import_mr_from_fd(struct ibv_context *context, uint32_t fd, uint32_t handle);

/* The names of the proposal.  With two arguments they are verbs.h's. */
#ifdef IBV_SHARE_PROPOSED_NAMES
#define __IBV_SHARE_PICK(one, two, three, function, ...) function
#define ibv_import_pd(...) \
	__IBV_SHARE_PICK(__VA_ARGS__, ibv_import_pd_from_fd, ibv_import_pd, )(__VA_ARGS__)
#define ibv_import_mr(...) \
	__IBV_SHARE_PICK(__VA_ARGS__, ibv_import_mr_from_fd, ibv_import_mr, )(__VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
