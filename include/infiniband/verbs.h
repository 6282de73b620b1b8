/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs API: everything that a program needs to use an RDMA device, source- and
 * binary-compatible with libibverbs of rdma-core 44.  The manual page of a function is the long
 * form of what its header says.
 *
 * Types first, then the tables through which a driver is reached (context.h), then the calls.
 * Include this file, not its parts: they may be cut differently another day.
 *
 * Conventions, unless a declaration says otherwise:
 *	- a function that returns int gives 0, or an errno value (a few give -1 and set errno; they
 *	  say so);
 *	- one that returns a pointer gives NULL and sets errno;
 *	- an object belongs to the caller, who ends it with the matching destroy, dealloc, dereg,
 *	  free or close call, and before the objects that it was made from;
 *	- every call may be made from any thread;
 *	- EOPNOTSUPP says that this device or driver cannot do it at all.
 */
#ifndef INFINIBAND_VERBS_H
#define INFINIBAND_VERBS_H

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <linux/types.h>
#include <infiniband/verbs_api.h>

#include <infiniband/verbs/base.h>
#include <infiniband/verbs/device.h>
#include <infiniband/verbs/memory.h>
#include <infiniband/verbs/address.h>
#include <infiniband/verbs/work.h>
#include <infiniband/verbs/cq.h>
#include <infiniband/verbs/srq.h>
#include <infiniband/verbs/wq.h>
#include <infiniband/verbs/qp.h>
#include <infiniband/verbs/qp_ex.h>
#include <infiniband/verbs/flow.h>

#include <infiniband/verbs/context.h>

#include <infiniband/verbs/device_calls.h>
#include <infiniband/verbs/memory_calls.h>
#include <infiniband/verbs/cq_calls.h>
#include <infiniband/verbs/queue_calls.h>
#include <infiniband/verbs/flow_calls.h>
#include <infiniband/verbs/static_providers.h>

#endif
