/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What happens to the network: `verbena port` and its like as somebody who pulls cables.
 *
 * Needs VERBENA_BIN, the emulator's command; without it (on a real device) such cases are skipped.
 */
#ifndef CONFORMANCE_NETWORK_H
#define CONFORMANCE_NETWORK_H
#include <infiniband/verbs.h>

/* For a suite's .init: a network as new, or the case is skipped. */
void network_begin(void);
/* The same on an InfiniBand port.  Skipped on a real device of another sort; an emulated one that
 * was asked to be InfiniBand and is not fails the case. */
void network_begin_infiniband(void);
/* verbena @words; fails the case if that does. */
void network(const char *words);

/* The next asynchronous event of @context, waited for, is this one and about the port. */
void network_expect(struct ibv_context *context, enum ibv_event_type type);
/* None is there now. */
void network_expect_none(struct ibv_context *context);
struct ibv_port_attr network_port(struct ibv_context *context);
#endif
