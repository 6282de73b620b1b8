/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv: commands to the device as the PRM has them (DEVX), and what they need: memory,
 * doorbell registers, event channels, and macros for fields of any number of bits.
 *
 * Commands need a context opened with MLX5DV_CONTEXT_FLAGS_DEVX.  In @in and @out are mailboxes in
 * network byte order; EREMOTEIO says that the device refused, and @out has its syndrome.
 */
#ifndef INFINIBAND_MLX5DV_DEVX_H
#define INFINIBAND_MLX5DV_DEVX_H

#include <infiniband/mlx5dv/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- commands --------------------------------------------------------------- */

int mlx5dv_devx_general_cmd(struct ibv_context *context, const void *in, size_t inlen, void *out,
			    size_t outlen);

struct mlx5dv_devx_obj *mlx5dv_devx_obj_create(struct ibv_context *context, const void *in,
					       size_t inlen, void *out, size_t outlen);
int mlx5dv_devx_obj_query(struct mlx5dv_devx_obj *obj, const void *in, size_t inlen, void *out,
			  size_t outlen);
int mlx5dv_devx_obj_modify(struct mlx5dv_devx_obj *obj, const void *in, size_t inlen, void *out,
			   size_t outlen);
int mlx5dv_devx_obj_destroy(struct mlx5dv_devx_obj *obj);

/* The same for objects of verbs. */
int mlx5dv_devx_cq_query(struct ibv_cq *cq, const void *in, size_t inlen, void *out,
			 size_t outlen);
int mlx5dv_devx_cq_modify(struct ibv_cq *cq, const void *in, size_t inlen, void *out,
			  size_t outlen);
int mlx5dv_devx_qp_query(struct ibv_qp *qp, const void *in, size_t inlen, void *out,
			 size_t outlen);
int mlx5dv_devx_qp_modify(struct ibv_qp *qp, const void *in, size_t inlen, void *out,
			  size_t outlen);
int mlx5dv_devx_srq_query(struct ibv_srq *srq, const void *in, size_t inlen, void *out,
			  size_t outlen);
int mlx5dv_devx_srq_modify(struct ibv_srq *srq, const void *in, size_t inlen, void *out,
			   size_t outlen);
int mlx5dv_devx_wq_query(struct ibv_wq *wq, const void *in, size_t inlen, void *out,
			 size_t outlen);
int mlx5dv_devx_wq_modify(struct ibv_wq *wq, const void *in, size_t inlen, void *out,
			  size_t outlen);
int mlx5dv_devx_ind_tbl_query(struct ibv_rwq_ind_table *ind_tbl, const void *in, size_t inlen,
			      void *out, size_t outlen);
int mlx5dv_devx_ind_tbl_modify(struct ibv_rwq_ind_table *ind_tbl, const void *in, size_t inlen,
			       void *out, size_t outlen);

/* The event queue of a completion vector. */
int mlx5dv_devx_query_eqn(struct ibv_context *context, uint32_t vector, uint32_t *eqn);

/* --- commands that are answered later ---------------------------------------- */

struct mlx5dv_devx_cmd_comp {
	int fd;			/* readable: an answer waits */
};

struct mlx5dv_devx_cmd_comp *mlx5dv_devx_create_cmd_comp(struct ibv_context *context);
void mlx5dv_devx_destroy_cmd_comp(struct mlx5dv_devx_cmd_comp *cmd_comp);
int mlx5dv_devx_obj_query_async(struct mlx5dv_devx_obj *obj, const void *in, size_t inlen,
				size_t outlen, uint64_t wr_id,
				struct mlx5dv_devx_cmd_comp *cmd_comp);
int mlx5dv_devx_get_async_cmd_comp(struct mlx5dv_devx_cmd_comp *cmd_comp,
				   struct mlx5dv_devx_async_cmd_hdr *cmd_resp,
				   size_t cmd_resp_len);

/* --- memory and registers --------------------------------------------------- */

struct mlx5dv_devx_umem {
	uint32_t umem_id;
};

enum mlx5dv_devx_umem_in_mask {
	MLX5DV_UMEM_MASK_DMABUF = 1 << 0,
};

struct mlx5dv_devx_umem_in {
	void *addr;
	size_t size;		/* bytes */
	uint32_t access;	/* enum ibv_access_flags */
	uint64_t pgsz_bitmap;	/* page sizes that will do, each its own bit */
	uint64_t comp_mask;	/* enum mlx5dv_devx_umem_in_mask */
	int dmabuf_fd;
};

/* Memory that commands can name. */
struct mlx5dv_devx_umem *mlx5dv_devx_umem_reg(struct ibv_context *ctx, void *addr, size_t size,
					      uint32_t access);
struct mlx5dv_devx_umem *mlx5dv_devx_umem_reg_ex(struct ibv_context *ctx,
						 struct mlx5dv_devx_umem_in *umem_in);
int mlx5dv_devx_umem_dereg(struct mlx5dv_devx_umem *umem);

struct mlx5dv_devx_uar {
	void *reg_addr;		/* the first register */
	void *base_addr;	/* the page */
	uint32_t page_id;
	off_t mmap_off;
	uint64_t comp_mask;
};

/* @flags: MLX5DV_UAR_ALLOC_TYPE_BF or _NC. */
struct mlx5dv_devx_uar *mlx5dv_devx_alloc_uar(struct ibv_context *context, uint32_t flags);
void mlx5dv_devx_free_uar(struct mlx5dv_devx_uar *devx_uar);

/* A doorbell page for a virtio device. */
struct mlx5dv_var {
	uint32_t page_id;
	uint32_t length;	/* bytes */
	off_t mmap_off;
	uint64_t comp_mask;
};

struct mlx5dv_var *mlx5dv_alloc_var(struct ibv_context *context, uint32_t flags);
void mlx5dv_free_var(struct mlx5dv_var *dv_var);

/* --- events ----------------------------------------------------------------- */

struct mlx5dv_devx_event_channel {
	int fd;			/* readable: an event waits */
};

struct mlx5dv_devx_event_channel *
mlx5dv_devx_create_event_channel(struct ibv_context *context,
				 enum mlx5dv_devx_create_event_channel_flags flags);
void mlx5dv_devx_destroy_event_channel(struct mlx5dv_devx_event_channel *event_channel);

/* @obj NULL: events of the device; @events_sz in bytes. */
int mlx5dv_devx_subscribe_devx_event(struct mlx5dv_devx_event_channel *event_channel,
				     struct mlx5dv_devx_obj *obj, uint16_t events_sz,
				     uint16_t events_num[], uint64_t cookie);

/* They go to the eventfd @fd. */
int mlx5dv_devx_subscribe_devx_event_fd(struct mlx5dv_devx_event_channel *event_channel, int fd,
					struct mlx5dv_devx_obj *obj, uint16_t event_num);

/* Bytes read, or -1 with errno set. */
ssize_t mlx5dv_devx_get_event(struct mlx5dv_devx_event_channel *event_channel,
			      struct mlx5dv_devx_async_event_hdr *event_data,
			      size_t event_resp_len);

/* --- event queues of one's own (VFIO) ---------------------------------------- */

struct mlx5dv_devx_msi_vector {
	int vector;
	int fd;
};

struct mlx5dv_devx_msi_vector *mlx5dv_devx_alloc_msi_vector(struct ibv_context *ibctx);
int mlx5dv_devx_free_msi_vector(struct mlx5dv_devx_msi_vector *msi);

struct mlx5dv_devx_eq {
	void *vaddr;
};

struct mlx5dv_devx_eq *mlx5dv_devx_create_eq(struct ibv_context *ibctx, const void *in,
					     size_t inlen, void *out, size_t outlen);
int mlx5dv_devx_destroy_eq(struct mlx5dv_devx_eq *eq);

/* --- fields ----------------------------------------------------------------- */

/*
 * A format is a structure mlx5_ifc_NAME_bits in which one byte stands for one bit, so that the
 * offset and the size of a member are the bits of a field.  Fields of up to 32 bits lie within a
 * big-endian word, those of 64 bits are aligned to them.
 */
#define __devx_bit_off(typ, fld) offsetof(struct mlx5_ifc_##typ##_bits, fld)
#define __devx_bit_sz(typ, fld)	 sizeof(((struct mlx5_ifc_##typ##_bits *)NULL)->fld)

#define DEVX_FLD_SZ_BYTES(typ, fld) (__devx_bit_sz(typ, fld) / 8)
#define DEVX_ST_SZ_BYTES(typ)	    (sizeof(struct mlx5_ifc_##typ##_bits) / 8)
#define DEVX_ST_SZ_DW(typ)	    (sizeof(struct mlx5_ifc_##typ##_bits) / 32)
#define DEVX_ST_SZ_QW(typ)	    (sizeof(struct mlx5_ifc_##typ##_bits) / 64)
#define DEVX_UN_SZ_BYTES(typ)	    (sizeof(union mlx5_ifc_##typ##_bits) / 8)
#define DEVX_UN_SZ_DW(typ)	    (sizeof(union mlx5_ifc_##typ##_bits) / 32)
#define DEVX_BYTE_OFF(typ, fld)	    (__devx_bit_off(typ, fld) / 8)
#define DEVX_ADDR_OF(typ, p, fld)   ((unsigned char *)(p) + DEVX_BYTE_OFF(typ, fld))

#define DEVX_SET(typ, p, fld, v)                                                               \
	_devx_set(p, v, __devx_bit_off(typ, fld), __devx_bit_sz(typ, fld))
#define DEVX_GET(typ, p, fld)                                                                  \
	_devx_get(p, __devx_bit_off(typ, fld), __devx_bit_sz(typ, fld))
#define DEVX_SET64(typ, p, fld, v) _devx_set64(p, v, __devx_bit_off(typ, fld))
#define DEVX_GET64(typ, p, fld)	   _devx_get64(p, __devx_bit_off(typ, fld))
#define DEVX_ARRAY_SET64(typ, p, fld, idx, v)                                                  \
	do {                                                                                   \
		DEVX_SET64(typ, p, fld[idx], v);                                               \
	} while (0)

/* How far from the right of its word a field ends. */
static inline unsigned int __devx_shift(size_t bit_off, size_t bit_sz)
{
	return (unsigned int)(32 - bit_sz - bit_off % 32);
}

static inline uint32_t __devx_ones(size_t bit_sz)
{
	return (uint32_t)((1ull << bit_sz) - 1);
}

static inline void _devx_set(void *p, uint32_t value, size_t bit_off, size_t bit_sz)
{
	__be32 *word = (__be32 *)p + bit_off / 32;
	unsigned int shift = __devx_shift(bit_off, bit_sz);
	uint32_t ones = __devx_ones(bit_sz);

	*word = htobe32((be32toh(*word) & ~(ones << shift)) | (value & ones) << shift);
}

static inline uint32_t _devx_get(const void *p, size_t bit_off, size_t bit_sz)
{
	const __be32 *word = (const __be32 *)p + bit_off / 32;

	return be32toh(*word) >> __devx_shift(bit_off, bit_sz) & __devx_ones(bit_sz);
}

static inline void _devx_set64(void *p, uint64_t v, size_t bit_off)
{
	((__be64 *)p)[bit_off / 64] = htobe64(v);
}

static inline uint64_t _devx_get64(const void *p, size_t bit_off)
{
	return be64toh(((const __be64 *)p)[bit_off / 64]);
}

#ifdef __cplusplus
}
#endif
#endif
