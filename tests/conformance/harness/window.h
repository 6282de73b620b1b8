/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows of an end: allocated, bound and freed here or, through peer.h, at the other end.
 *
 * A bind is only posted; its completion is waited for like any other.
 */
#ifndef CONFORMANCE_WINDOW_H
#define CONFORMANCE_WINDOW_H
#include "end.h"

enum window_verb { WINDOW_ALLOC, WINDOW_BIND, WINDOW_FREE };

struct window_ask {
	enum window_verb verb;
	int slot;			/* set by WINDOW_ALLOC */
	uint32_t rkey;			/* set: by ALLOC; by BIND to the key after the bind */
	/* ALLOC */
	int type;
	bool other_pd;
	/* BIND */
	int region;			/* a slot of end_register(); -1: the end's own region */
	uint64_t addr, bytes, wr_id;
	unsigned access, flags;
	uint32_t tag_step;		/* type 2: from the last key to the new one */
};

/* 0 or errno */
int end_window(struct end *e, struct window_ask *ask);
void end_windows_close(struct end *e);
#endif
