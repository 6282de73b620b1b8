/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the environment and the host say about this process.
 *
 * Threads: any.  Used by the files at this level.
 */
#ifndef EMU_SELF_H
#define EMU_SELF_H
#include <stdbool.h>
#include "emu/emu.h"
#include "emu/fabric/port.h"

/* A variable; NULL also if it is empty. */
const char *self_env(const char *name);
bool self_env_is_set(const char *name);			/* and is not "0" */
bool self_env_says(const char *name, const char *word);

/* Say once on stderr that the NIC is emulated. */
void self_say_emulated(const struct hw_profile *profile);

/* emu_identity() before anybody changed anything. */
int self_identity(struct emu_identity *out);
/* What was set of this host's port. */
void self_port(struct fabric_port *out);
#endif
