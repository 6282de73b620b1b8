/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who the emulated NIC of this host is: GUID, MAC and GIDs.
 *
 * Two processes of one host must come to the same answer without talking to each
 * other, so everything here is a function of what the host says of itself.
 * Used by emu.c; the pure half is apart so that tests can give it any host.
 */
#ifndef EMU_IDENTITY_H
#define EMU_IDENTITY_H
#include <ifaddrs.h>
#include <stdint.h>
#include "emu/emu.h"
#include "emu/fabric/port.h"

#define IDENTITY_NODE_MAX 250

/* What is asked about a host.  Nothing is read but this. */
struct identity_host {
	const struct ifaddrs *addresses;	/* as getifaddrs(3) gives them; may be NULL */
	uint64_t host_id;			/* same in all processes of the host */
	unsigned node;				/* VERBENA_NODE; 0: the host itself */
};

/* Fills all of @out but the profile, which the caller has set. */
void identity_fill(const struct identity_host *host, struct emu_identity *out);
/* What was set from outside.  An Ethernet port has neither LIDs nor more than one P_Key. */
void identity_set_port(struct emu_identity *id, const struct fabric_port *set);

/* A number in 1..IDENTITY_NODE_MAX; NULL and "" are 0.  -EINVAL */
int identity_node_parse(const char *text, unsigned *out);
#endif
