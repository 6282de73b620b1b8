/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls: protection domains, memory regions and windows, device memory.
 */
#ifndef INFINIBAND_VERBS_MEMORY_CALLS_H
#define INFINIBAND_VERBS_MEMORY_CALLS_H

#include <infiniband/verbs/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- domains ---------------------------------------------------------------- */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context);

/* EBUSY: something is still in it. */
int ibv_dealloc_pd(struct ibv_pd *pd);

/* The domain that another process made through the same file.  It is unimported, or deallocated by
 * whoever is last; ibv_import_device(3) says how long it lives. */
struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle);
void ibv_unimport_pd(struct ibv_pd *pd);

static inline struct ibv_td *ibv_alloc_td(struct ibv_context *context,
					  struct ibv_td_init_attr *init_attr)
{
	return __verbs_call_object(context, alloc_td, context, init_attr);
}

/* EBUSY: a parent domain still has it. */
static inline int ibv_dealloc_td(struct ibv_td *td)
{
	return __verbs_call_int(td->context, dealloc_td, td);
}

/* Ended by ibv_dealloc_pd(). */
static inline struct ibv_pd *ibv_alloc_parent_domain(struct ibv_context *context,
						     struct ibv_parent_domain_init_attr *attr)
{
	return __verbs_call_object(context, alloc_parent_domain, context, attr);
}

/* --- regions ---------------------------------------------------------------- */

/*
 * Three functions of the library register memory.  The oldest two take an int and know no
 * optional rights; the third knows them.  The macros below choose: a constant @access without
 * optional rights goes to the old one, so that the program also runs on an old library.
 */
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access);
struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			       int access);
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access);

__attribute__((__always_inline__)) static inline struct ibv_mr *
__ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, unsigned int access,
	     int is_access_const)
{
	if (!is_access_const || (access & IBV_ACCESS_OPTIONAL_RANGE))
		return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, access);
	return ibv_reg_mr(pd, addr, length, (int)access);
}

__attribute__((__always_inline__)) static inline struct ibv_mr *
__ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
		  unsigned int access, int is_access_const)
{
	if (!is_access_const || (access & IBV_ACCESS_OPTIONAL_RANGE))
		return ibv_reg_mr_iova2(pd, addr, length, iova, access);
	return ibv_reg_mr_iova(pd, addr, length, iova, (int)access);
}

/*
 * Registers @length bytes at @addr, with rights of enum ibv_access_flags.  EINVAL: rights that
 * exclude each other; EFAULT: no such memory; ENOMEM: more than may be locked.
 */
#define ibv_reg_mr(pd, addr, length, access)                                                   \
	__ibv_reg_mr(pd, addr, length, access,                                                 \
		     __builtin_constant_p(((access) & IBV_ACCESS_OPTIONAL_RANGE) == 0))

/* The same, but work requests and peers call its first byte @iova. */
#define ibv_reg_mr_iova(pd, addr, length, iova, access)                                        \
	__ibv_reg_mr_iova(pd, addr, length, iova, access,                                      \
			  __builtin_constant_p(((access) & IBV_ACCESS_OPTIONAL_RANGE) == 0))

/* Memory of another device, exported as the dma-buf @fd, from @offset on. */
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
				 uint64_t iova, int fd, int access);

/* A region that reads as zeros and swallows what is written. */
static inline struct ibv_mr *ibv_alloc_null_mr(struct ibv_pd *pd)
{
	return __verbs_call_object(pd->context, alloc_null_mr, pd);
}

/* Changes what @flags (enum ibv_rereg_mr_flags) says.  0, or enum ibv_rereg_mr_err_code. */
int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		 int access);

/* EBUSY: a memory window is bound to it. */
int ibv_dereg_mr(struct ibv_mr *mr);

/* Tells what ranges on demand will be used; IBV_ADVISE_MR_FLAG_FLUSH: done when it returns. */
static inline int ibv_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
				uint32_t flags, struct ibv_sge *sg_list, uint32_t num_sge)
{
	return __verbs_call_int(pd->context, advise_mr, pd, advice, flags, sg_list, num_sge);
}

/* A region of an imported domain; its addr is unknown (NULL).  Unimported, or deregistered by
 * whoever is last. */
struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle);
void ibv_unimport_mr(struct ibv_mr *mr);

/* --- windows ---------------------------------------------------------------- */

static inline struct ibv_mw *ibv_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	if (pd->context->ops.alloc_mw)
		return pd->context->ops.alloc_mw(pd, type);
	errno = EOPNOTSUPP;
	return NULL;
}

/* Also closes it, if it is bound. */
static inline int ibv_dealloc_mw(struct ibv_mw *mw)
{
	return mw->context->ops.dealloc_mw(mw);
}

/* Of an rkey the last 8 bits belong to the program, which counts them at each new binding. */
static inline uint32_t ibv_inc_rkey(uint32_t rkey)
{
	return (rkey & ~0xffu) | ((rkey + 1) & 0xffu);
}

/*
 * Posts the binding of a window of type 1 to @qp, whose peer may then use it.  EINVAL: another
 * type, or a range without region; EPERM: window and region are of different domains.
 */
static inline int ibv_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *mw_bind)
{
	const struct ibv_mw_bind_info *info = &mw_bind->bind_info;

	if (mw->type != IBV_MW_TYPE_1)
		return EINVAL;
	if (info->mr && info->mr->pd != mw->pd)
		return EPERM;
	if (!info->mr && (info->addr || info->length))
		return EINVAL;
	return mw->context->ops.bind_mw(qp, mw, mw_bind);
}

/* --- memory on the device --------------------------------------------------- */

static inline struct ibv_dm *ibv_alloc_dm(struct ibv_context *context,
					  struct ibv_alloc_dm_attr *attr)
{
	return __verbs_call_object(context, alloc_dm, context, attr);
}

/* EBUSY: a region still uses it. */
static inline int ibv_free_dm(struct ibv_dm *dm)
{
	return __verbs_call_int(dm->context, free_dm, dm);
}

/* Offset and length in bytes, in multiples of 4.  EFAULT: beyond the end. */
static inline int ibv_memcpy_to_dm(struct ibv_dm *dm, uint64_t dm_offset, const void *host_addr,
				   size_t length)
{
	return dm->memcpy_to_dm(dm, dm_offset, host_addr, length);
}

static inline int ibv_memcpy_from_dm(void *host_addr, struct ibv_dm *dm, uint64_t dm_offset,
				     size_t length)
{
	return dm->memcpy_from_dm(host_addr, dm, dm_offset, length);
}

/* @access must have IBV_ACCESS_ZERO_BASED: addresses count from @dm_offset. */
static inline struct ibv_mr *ibv_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm,
					   uint64_t dm_offset, size_t length,
					   unsigned int access)
{
	return __verbs_call_object(pd->context, reg_dm_mr, pd, dm, dm_offset, length, access);
}

/* As ibv_import_mr(). */
struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle);
void ibv_unimport_dm(struct ibv_dm *dm);

#ifdef __cplusplus
}
#endif
#endif
