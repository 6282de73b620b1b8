/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dynamically connected queue pairs: an initiator (DCI) that talks to one target after the
 * other, a target (DCT) that anybody with its key may talk to, and the responder (DCR) that a
 * target keeps for each initiator.
 *
 * A conversation is a session of its initiator: all packets of it carry its number and the PSN of
 * its first packet, so that the target needs no hand-shake to begin it.  An initiator begins a new
 * one with each change of target, and when everything before was acknowledged.
 *
 * Responders are made with the first packet of an initiator.  They are queue pairs that have no
 * number of their own and that no application sees.
 * Source: device-abi H.1.  The wire format of DC is not public: this one stays in a fabric.
 */
#ifndef EMU_OBJ_DC_H
#define EMU_OBJ_DC_H
#include <stdbool.h>
#include <stdint.h>

struct emu_dev;
struct emu_qp;

#define DCR_MAX		16384u		/* responders of one target; see dcr_make() */

struct dci {
	uint64_t session;		/* 0: none yet */
	uint32_t first_psn;		/* of the session */
	uint64_t key;			/* of its target */
	/* InfiniBand: of the way there, for who receives. */
	uint16_t slid, dlid;
	uint8_t sl;
};

struct dct {
	uint64_t key;
	struct emu_qp **bucket;		/* of responders, by initiator */
	struct emu_qp *newest, *oldest;	/* by who was heard of last */
	unsigned count, count_max;
};

struct dcr {
	struct emu_qp *dct;
	uint64_t session;
	struct emu_qp *bucket_next;
	struct emu_qp *newer, *older;
};

/* @qp gets what its type needs besides; -ENOMEM. */
int dc_attach(struct emu_qp *qp, uint64_t key);
/* The same back.  Responders must be forgotten by the engine before. */
void dc_detach(struct emu_qp *qp);

/* The responder of @dct for an initiator, or NULL. */
struct emu_qp *dcr_find(const struct emu_qp *dct, uint32_t initiator_qpn,
			const uint8_t initiator_gid[16]);
/* A new one; NULL: no memory.  The caller keeps their number below count_max: who was silent for
 * longest goes.  If its session was not at an end, it ends in RETRY_EXC at the initiator. */
struct emu_qp *dcr_make(struct emu_qp *dct, uint32_t initiator_qpn,
			const uint8_t initiator_gid[16]);
/* It was heard of: it is the newest now. */
void dcr_refresh(struct emu_qp *dcr);
/* Nobody refers to it any more. */
void dcr_free(struct emu_qp *dcr);
#endif
