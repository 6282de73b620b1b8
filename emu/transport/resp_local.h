/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the responders of connected transports share: a request packet before its judges.
 * Private to this folder.
 *
 * A judge either passes a request on or pronounces a verdict; what a verdict leads to is
 * each transport's own table.
 */
#ifndef EMU_TRANSPORT_RESP_LOCAL_H
#define EMU_TRANSPORT_RESP_LOCAL_H
#include "emu/transport/rc.h"
#include "emu/transport/tp_local.h"

enum verdict {
	V_NEXT, V_DONE, V_DROP, V_DUPLICATE, V_UNREADABLE, V_RNR,
	V_NAK_SEQUENCE, V_NAK_INVALID, V_NAK_ACCESS,
	V_RECV_SHORT, V_RECV_PROTECTED, V_RECV_MALFORMED,
	V_ELSEWHERE,			/* nothing has changed: another process is to judge */
	VERDICT_COUNT
};

/* rc_resp.c: the responder hears.  What it made of the packet. */
enum verdict rc_take_request(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p,
			     bool *readable_out);

/* xrc_relay.c: is it another process that has this queue, if anybody has? */
bool xrc_is_elsewhere(const struct emu_qp *qp, uint32_t srqn);
/* A message in progress goes on in the same queue. */
bool xrc_goes_on(const struct emu_qp *qp, uint32_t srqn);

/* What another process made of a request: the protocol's part is left to do. */
void rc_executed_elsewhere(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p,
			   enum verdict verdict, uint64_t original);

struct judged { enum verdict verdict; enum why why; };
#define NEXT		((struct judged){ V_NEXT, WHY_NONE })
#define JUDGED(v, w)	((struct judged){ v, w })

enum kind { KIND_NONE, KIND_SEND, KIND_WRITE, KIND_READ, KIND_ATOMIC };

struct op_row {
	uint8_t kind;
	bool starts, ends;		/* first or only; last or only */
	bool takes_recv;		/* needs a posted receive */
	uint32_t access;		/* of the QP and the key */
};

extern const struct op_row resp_op_rows[32];	/* by operation */

/*
 * A request before its judges.  The owner of the responder works on it in place; a peer that
 * executes for it (@remote) works on a copy, has the requester for a QP, and takes no receive.
 */
struct request {
	struct tp *tp;
	struct emu_qp *qp;
	struct rc_resp *r;
	struct rc_answers *answers;
	const struct rc_remote *remote;
	const struct ib_packet *p;
	const struct op_row *op;
	struct iovec memory;		/* what the key stage found for WRITE, READ, atomics */
};

struct stage {
	const char *name;
	struct judged (*judge)(struct request *q);
};
/* The first verdict of @count stages. */
struct judged resp_judge(struct request *q, const struct stage *stage, size_t count);

struct judged xrc_queue(struct request *q);		/* which the packet names, XRC       */
struct judged resp_permitted(struct request *q);	/* QP access flags allow the opcode  */
struct judged resp_resources(struct request *q);	/* a receive or a read slot is free  */
struct judged resp_length(struct request *q);		/* payload agrees with MTU and RETH  */
struct judged resp_key(struct request *q);		/* key, range, rights, PD            */
struct judged resp_execute(struct request *q);		/* the only stage that moves data    */

/* atomic.c: an atomic, whichever way it came */
struct atomic {
	bool is_add;
	uint8_t bytes;			/* 4 or 8 */
	uint64_t operand;		/* to add, or to swap in */
	uint64_t compare;
	uint64_t mask;			/* bits to swap; of an addition where its fields end */
	uint64_t compare_mask;
};

/* Of operands: what is not 4 is 8; see resp_length(). */
static inline uint32_t atomic_bytes(const struct ib_packet *p)
{
	return ib_is_masked_atomic(ib_operation(p->opcode)) && p->dma_bytes == 4 ? 4 : 8;
}

/* False: the masks can't be read. */
bool atomic_read(const struct ib_packet *p, struct atomic *out);
/* What there is afterwards; the same if nothing is to be written. */
uint64_t atomic_result(const struct atomic *a, uint64_t old);
/* In memory.  -EFAULT; -EAGAIN somebody else never stops writing there */
int atomic_execute(const struct atomic *a, uint64_t at, uint64_t *old_out);

void resp_why(const struct request *q, enum why why);
/* The message state after an accepted packet. */
void resp_advance(struct request *q);
/* The end of a SEND with invalidate.  False: its receive has completed, and the QP has failed. */
bool resp_invalidate(struct request *q);
#endif
