/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For programs linked statically with rdma-core: -DRDMA_STATIC_PROVIDERS=a,b names the drivers to
 * link (at most 19), and taking the device list refers to each, so that the linker finds it.
 * Our own library has its driver inside and does not look at them.
 */
#ifndef INFINIBAND_VERBS_STATIC_PROVIDERS_H
#define INFINIBAND_VERBS_STATIC_PROVIDERS_H

#include <infiniband/verbs/device_calls.h>

#ifdef RDMA_STATIC_PROVIDERS

#ifdef __cplusplus
extern "C" {
#endif

#define __verbs_static_declare(name) extern const struct verbs_device_ops verbs_provider_##name
__verbs_static_declare(all);
__verbs_static_declare(none);
__verbs_static_declare(bnxt_re);
__verbs_static_declare(cxgb4);
__verbs_static_declare(efa);
__verbs_static_declare(erdma);
__verbs_static_declare(hfi1verbs);
__verbs_static_declare(hns);
__verbs_static_declare(ipathverbs);
__verbs_static_declare(irdma);
__verbs_static_declare(mana);
__verbs_static_declare(mlx4);
__verbs_static_declare(mlx5);
__verbs_static_declare(mthca);
__verbs_static_declare(ocrdma);
__verbs_static_declare(qedr);
__verbs_static_declare(rxe);
__verbs_static_declare(siw);
__verbs_static_declare(vmw_pvrdma);
#undef __verbs_static_declare

/* Five at a time; the list is filled up with "none". */
#define __verbs_static_5(a, b, c, d, e)                                                        \
	&verbs_provider_##a, &verbs_provider_##b, &verbs_provider_##c, &verbs_provider_##d,    \
		&verbs_provider_##e
#define __verbs_static_20(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, ...)     \
	__verbs_static_5(a, b, c, d, e), __verbs_static_5(f, g, h, i, j),                      \
		__verbs_static_5(k, l, m, n, o), __verbs_static_5(p, q, r, s, t)
#define __verbs_static_list(...)                                                               \
	__verbs_static_20(__VA_ARGS__, none, none, none, none, none, none, none, none, none,   \
			  none, none, none, none, none, none, none, none, none, none, none)

/* The list ends with NULL. */
void ibv_static_providers(void *unused, ...);

static inline struct ibv_device **__ibv_get_device_list(int *num_devices)
{
	ibv_static_providers(NULL, __verbs_static_list(RDMA_STATIC_PROVIDERS), NULL);
	return ibv_get_device_list(num_devices);
}

#define ibv_get_device_list(num_devices) __ibv_get_device_list(num_devices)

#ifdef __cplusplus
}
#endif

#endif
#endif
