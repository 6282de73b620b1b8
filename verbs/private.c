/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What rdma-core's providers import from its libibverbs, as far as programs meet it: perftest,
 * libfabric and pyverbs link libefa for its public functions, and none of them starts if one of
 * these is missing.
 *
 * No provider is ever asked to drive a device here, so that registering is all that may happen.
 *
 * Source: binary-compat "Symbols".
 */
#include <errno.h>
#include <stddef.h>
#include "verbs/context.h"

struct verbs_device_ops;

void verbs_register_driver_34(const struct verbs_device_ops *ops);
void verbs_set_ops(void *context, const void *ops);
void *_verbs_init_and_alloc_context(void *device, int cmd_fd, size_t bytes, void *offset,
				    uint32_t driver_id);
void verbs_uninit_context(void *context);
void __verbs_log(void *context, uint32_t level, const char *format, ...);

/* Called while the provider is loaded. */
VB_EXPORT void verbs_register_driver_34(const struct verbs_device_ops *ops)
{
	(void)ops;
}

VB_EXPORT void verbs_set_ops(void *context, const void *ops)
{
	(void)context;
	(void)ops;
}

VB_EXPORT void *_verbs_init_and_alloc_context(void *device, int cmd_fd, size_t bytes, void *offset,
					      uint32_t driver_id)
{
	(void)device;
	(void)cmd_fd;
	(void)bytes;
	(void)offset;
	(void)driver_id;
	errno = EOPNOTSUPP;
	return NULL;
}

VB_EXPORT void verbs_uninit_context(void *context)
{
	(void)context;
}

VB_EXPORT void __verbs_log(void *context, uint32_t level, const char *format, ...)
{
	(void)context;
	(void)level;
	(void)format;
}

/* Whatever their parameters are, these look at none. */
#define REFUSED(command)			\
	int command(void);			\
	VB_EXPORT int command(void)		\
	{					\
		return vb_fail(EOPNOTSUPP);	\
	}

REFUSED(ibv_cmd_alloc_pd)
REFUSED(ibv_cmd_create_ah)
REFUSED(ibv_cmd_create_cq_ex)
REFUSED(ibv_cmd_create_qp_ex)
REFUSED(ibv_cmd_dealloc_pd)
REFUSED(ibv_cmd_dereg_mr)
REFUSED(ibv_cmd_destroy_ah)
REFUSED(ibv_cmd_destroy_cq)
REFUSED(ibv_cmd_destroy_qp)
REFUSED(ibv_cmd_get_context)
REFUSED(ibv_cmd_modify_qp)
REFUSED(ibv_cmd_query_device_any)
REFUSED(ibv_cmd_query_port)
REFUSED(ibv_cmd_query_qp)
REFUSED(ibv_cmd_reg_dmabuf_mr)
REFUSED(ibv_cmd_reg_mr)
