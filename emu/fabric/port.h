/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ports of a fabric, as somebody outside set them: `verbena port down` and the like.
 *
 * What was set stands in a file of the fabric's directory, one for all hosts and one for each
 * emulated host that was named; so it also holds for processes that come later, and the directory
 * stays as long as there is anything in it that differs from a new port.  Members are told by a
 * counter in the shared segment.
 *
 * Nothing in a file is trusted: another process of the user may have written it.
 */
#ifndef EMU_FABRIC_PORT_H
#define EMU_FABRIC_PORT_H
#include <stdbool.h>
#include <stdint.h>
#include "emu/fabric/fabric.h"

#define FABRIC_PKEYS		128
#define FABRIC_GID_CHANGES_MAX	64
#define FABRIC_LMC_MAX		7

struct fabric_port {
	/* When it last happened, by CLOCK_MONOTONIC; 0: never. */
	uint64_t down_ns, reregister_ns, fatal_ns;
	uint32_t is_down;
	uint32_t lmc;			/* a LID that is set is a multiple of 2^lmc */
	uint16_t lid, sm_lid;		/* 0: not set */
	uint16_t pkey[FABRIC_PKEYS];
	/* What was done to the GID table, in order: it is another one on every host. */
	uint32_t gid_change_count;
	struct fabric_gid_change {
		uint8_t is_removal;
		uint8_t gid[16];
	} gid_change[FABRIC_GID_CHANGES_MAX];
};

void fabric_port_default(struct fabric_port *out);
/* Nothing is set; it does not matter what has happened. */
bool fabric_port_is_default(const struct fabric_port *port);

/* The port of host @node (0: hosts that have no number) of fabric @name, whether or not anybody is
 * in it.  A file that makes no sense counts as none.  -EINVAL: no name for a fabric. */
int fabric_port_read(const char *name, unsigned node, struct fabric_port *out);
/* Another number when the file has changed; 0: there is none. */
uint64_t fabric_port_stamp(const char *name, unsigned node);

/* --- members --- */

uint32_t fabric_port_changes(const struct fabric *f);
/* This member has read what there was at @changes, and will look again when it is woken. */
void fabric_port_noticed(struct fabric *f, uint32_t changes);

/* --- visitors: they have no seat, and no numbers --- */

/* 0, or -errno: nothing is changed, of no host.  Called twice for each: first to see whether. */
typedef int fabric_port_edit(void *ctx, struct fabric_port *port);
/* Edit the port of @node, or with 0 all of the fabric; no member need be there.  @out tells who is,
 * until fabric_visit_end(). */
int fabric_ports_change(const char *name, unsigned node, fabric_port_edit *edit, void *ctx,
			struct fabric **out);
/* Members that run, watch, and have not noticed yet. */
unsigned fabric_port_unnoticed(struct fabric *visitor);
void fabric_visit_end(struct fabric *visitor);
#endif
