/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the engine share.  Private to this folder.
 */
#ifndef EMU_ENGINE_ENGINE_LOCAL_H
#define EMU_ENGINE_ENGINE_LOCAL_H
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include "emu/engine/engine.h"
#include "emu/transport/rc.h"
#include "emu/transport/tp.h"
#include "emu/uplink/uplink.h"
#include "emu/wire/wire.h"

struct share_peer;

struct qp_list {
	struct emu_qp *first, **last;
};

struct timer_entry {
	uint64_t deadline_ns;
	struct emu_qp *qp;			/* of this QP, or NULL and */
	struct emu_cq *cq;			/* of an event that is held back */
};

#define DOORBELLS 1024			/* power of two */

/* Doorbells rung while somebody else held the lock.  Many producers; the lock holder consumes. */
struct doorbell_ring {
	_Atomic uint32_t head, tail;
	_Atomic uint32_t qpn[DOORBELLS];	/* 0: the slot is not written yet */
	_Atomic bool has_overflowed;		/* then every QP's record is looked at */
};

/* A UAR page and what was last seen in its registers (page.c). */
struct doorbell_page {
	const volatile uint8_t *at;
	uint64_t seen[8];
	uint64_t seen_arm;
};

/* The Ethernet switch, as far as this function has it (ether.c). */
#define ETHER_NODES_MAX		256		/* numbers of emulated hosts are below */
#define ETHER_TARGETS_MAX	1024		/* rules that one frame goes to */
struct ether {
	struct rules *rules;			/* NULL: no other function */
	uint32_t node;				/* the host that this one is on */
	struct steer_table *table[ETHER_NODES_MAX];	/* of other hosts; NULL: no rules */
	uint32_t node_end;			/* above every host in the table */
	unsigned target_count;
	uint64_t target[ETHER_TARGETS_MAX];	/* of the frame being sent; see flow_id() */
	bool leaves;				/* it may be for somebody who is not of this host */
};

/* What is behind the port besides the fabric (uplink.c). */
struct uplinks {
	struct uplink *outside, *host;		/* NULL: nothing */
	bool takes;				/* frames may come from one of them */
	bool has_more;				/* than one step takes */
	uint64_t due_ns;			/* look again then; UINT64_MAX: no need */
	/* from outside */
	uint32_t rules_of_host;			/* among this function's: for the host's stack */
	uint32_t rules;				/* of applications, as last seen */
	bool has_begun;
	uint64_t begin_ns;
	bool has_frame;				/* the one that was received is here */
	struct frame frame;
	unsigned ticks;				/* that it has waited */
	uint64_t tick_ns;			/* when the next one is over */
};

struct engine {
	struct emu_dev *dev;
	struct wire *wire;
	struct share *share;			/* NULL: others know nothing of us */
	bool is_direct;				/* we may move the memory of others */
	struct tp tp;
	struct ether ether;
	struct uplinks uplinks;
	struct qp_list ready;			/* qp->work is not 0 */
	struct qp_list blocked;			/* the wire had no room */
	struct emu_qp *timer_wanted;		/* by timer_next */
	struct timer_entry *heap;		/* 1-based binary heap */
	uint32_t heap_count, heap_size;
	struct doorbell_ring doorbells;
	struct doorbell_page *page;
	unsigned page_count, page_size;
	uint64_t page_rings;			/* doorbells found by looking */
	_Atomic int watched;			/* who may ring without telling */
	_Atomic bool wants_look;		/* there is something new to look at */

	bool (*look)(void *ctx);		/* see engine_look_with() */
	void *look_ctx;
	bool lingers;

	uint64_t progress;			/* packets taken and completions written, ever */
	uint64_t progress_seen;			/* at the last lend */
	unsigned idle_lends;			/* since then, one after the other */

	/* the NIC thread */
	pthread_t thread;
	bool has_thread;
	_Atomic bool must_stop;
	_Atomic uint64_t activity;		/* application threads in the engine, ever */
	_Atomic bool is_nic_asleep;		/* until a wake, a kick or its deadline */
	_Atomic uint64_t nic_until_ns;		/* when that sleep ends */
	uint64_t asleep_activity;		/* activity when it fell asleep */
	_Atomic uint64_t events;		/* raised, ever */
	_Atomic bool has_dozer;			/* an application thread sleeps for the NIC's */
	_Atomic bool is_dozer_asleep, must_not_doze;
	_Atomic int armed_cqs;			/* somebody may be sleeping on a channel */
	_Atomic int failed_qps;			/* QPs in ERR, whose receives must be flushed */
};

/* timer.c */
void timer_want(struct engine *e, struct emu_qp *qp);
void timer_start(struct engine *e, struct emu_qp *qp, uint64_t deadline_ns);
void timers_start(struct engine *e);		/* of all that want one */
void timers_expire(struct engine *e);
void timer_forget(struct engine *e, struct emu_qp *qp);
/* cq->event_deadline_ns was set. */
void timer_start_cq(struct engine *e, struct emu_cq *cq);
void timer_forget_cq(struct engine *e, struct emu_cq *cq);

/* complete.c: the only writer of CQEs */
void complete(struct tp *tp, struct emu_qp *qp, struct emu_cq *cq, struct hw_cqe *cqe);
/* cq->event_deadline_ns has come. */
void cq_timer(struct engine *e, struct emu_cq *cq);

/* doorbell.c */
void doorbells_take(struct engine *e);
bool doorbells_wait(struct engine *e);

void drive_and_unlock(struct engine *e);

void doorbell_serve(struct engine *e, uint32_t qpn);
void records_scan(struct engine *e);	/* of every QP: finds whatever nobody told of */

/* direct.c: true if the packet's request was executed in the peer's place */
bool direct_execute(struct engine *e, struct emu_qp *qp, const struct ib_packet *p);
/* A copy of a valid key's entry.  0 or -ENOENT */
int direct_key_read(struct share_peer *peer, uint32_t index, struct key_entry *out);

/* errand.c: what others ask us to do in our memory, and we them.  0 or -EFAULT.  @at: where the use
 * leads in the owner's memory, as far as we know. */
void errands_take(struct engine *e);
int errand_read(struct engine *e, struct share_peer *peer, const struct key_use *use, uint64_t at,
		void *to);
int errand_write(struct engine *e, struct share_peer *peer, const struct key_use *use, uint64_t at,
		 const void *from);
int errand_swap(struct engine *e, struct share_peer *peer, const struct key_use *use, uint64_t at,
		const uint64_t compare_swap[2], uint64_t *old_out);

/* abroad.c: keys of other functions */
void abroad_keys_begin(struct engine *e);
void abroad_keys_end(struct engine *e);

/* doze.c: lock held, an event was raised */
void doze_tell(struct engine *e);

/* mcast.c */
bool mcast_is_group(const struct ib_packet *p);
/* To the QPs of this function; WIRE_NOBODY: none is attached. */
enum wire_sent mcast_deliver(struct engine *e, const struct ib_packet *p);
/* To those of all functions. */
enum wire_sent mcast_send(struct engine *e, const struct ib_packet *p);

/* ether.c */
enum wire_sent ether_send(struct engine *e, const struct ib_packet *p);	/* as wire_ops.send() */
void ether_arrive(struct engine *e, const struct ib_packet *p);
/* For the queues of this function that the rules of its host name.  False: one of them has no
 * receive yet, and nobody got it; if it @is_last that one loses it, and so further frames. */
bool ether_from_outside(struct engine *e, const struct frame *f, bool is_last);
void ether_end(struct engine *e);

/* uplink.c */
void uplinks_take(struct engine *e);		/* a step */
uint64_t uplinks_deadline_ns(const struct engine *e);	/* as engine_deadline_ns() */
bool uplink_leave(struct engine *e, const struct ib_packet *p);	/* false: there is no way out */
void uplink_to_host(struct engine *e, const struct frame *f);

/* relay.c: between an XRC target QP and the receive queues of other processes */
bool relay_serve(struct engine *e, struct emu_qp *qp);		/* false: the wire is full */
void relay_arrive(struct engine *e, const struct ib_packet *p);
/* It is time to see whether who is being waited for is there at all. */
void relay_look(struct engine *e, struct emu_qp *qp, uint64_t now_ns);

/* far.c: between an XRC target QP and its handles in other processes */
void far_arrive(struct engine *e, const struct ib_packet *p);
void far_look(struct engine *e, struct emu_qp *qp, uint64_t now_ns);

/* page.c */
void pages_scan(struct engine *e);
void look_outside(struct engine *e);		/* the clock, and who set the port */

/* engine.c */
bool takes_requests(const struct emu_qp *qp);	/* by its state */
bool has_gid(const struct emu_dev *dev, const uint8_t gid[16]);
bool arrive(struct engine *e, struct emu_qp *qp, const struct ib_packet *p);
void engine_drive(struct engine *e);		/* lock held: run until quiet or out of budget */

static inline struct engine *engine_of(struct tp *tp)
{
	return (struct engine *)((char *)tp - offsetof(struct engine, tp));
}
#endif
