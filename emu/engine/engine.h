/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine: feeds the transports with doorbells, packets and timers, and
 * carries out what they produce.
 *
 * Whoever holds the device lock runs it.  A thread that rang or polled lends its
 * time; the NIC thread is the fallback and sleeps otherwise.  A step is bounded:
 * engine_run() returns after a budget even if work is left.
 */
#ifndef EMU_ENGINE_ENGINE_H
#define EMU_ENGINE_ENGINE_H
#include <stdbool.h>
#include <stdint.h>
#include "emu/obj/xrcd.h"

struct share;
struct wire;
struct engine;
struct rules;
struct uplink;

/* @wire may be NULL: a device without peers; @share too: peers get packets only.  The engine owns
 * neither. */
int engine_create(struct emu_dev *dev, struct wire *wire, struct share *share,
		  struct engine **out);
void engine_destroy(struct engine *e);

/* The function is on host @node of a fabric, whose Ethernet switch @rules is.  The engine does not
 * own it. */
void engine_switch_join(struct engine *e, struct rules *rules, uint32_t node);

/*
 * Lock held, or no thread runs.  What is behind the port besides the fabric: the outside, and the
 * host's network stack, for which this function has made all rules that it has.  Either may be
 * NULL.  The engine does not own them; it must have left before they are closed.
 */
void engine_uplinks_join(struct engine *e, struct uplink *outside, struct uplink *host);
void engine_uplinks_leave(struct engine *e);

/* Lock held.  One bounded step; true if work is left.  Tests call it with a virtual clock. */
bool engine_run(struct engine *e);
/* Lock held.  When engine_run() must be called again at the latest; UINT64_MAX: never. */
uint64_t engine_deadline_ns(const struct engine *e);

/* Lock held.  qp->work has bits: serve it in the next step. */
void engine_qp_kick(struct engine *e, struct emu_qp *qp);
/* Lock held.  The QP is about to go away. */
void engine_qp_forget(struct engine *e, struct emu_qp *qp);
/* Lock held.  As mcast_attach() and mcast_detach(), and the fabric is told. */
int engine_mcast_attach(struct engine *e, struct emu_qp *qp, const uint8_t gid[16], uint16_t mlid);
int engine_mcast_detach(struct engine *e, struct emu_qp *qp, const uint8_t gid[16], uint16_t mlid);
/* Lock held.  Out of all groups. */
void engine_mcast_forget(struct engine *e, struct emu_qp *qp);
/* Lock held.  Look at a CQ's arm record and raise the event if it is due. */
void engine_cq_arm(struct engine *e, struct emu_cq *cq);
/* Lock held.  Events of a CQ wait for @count completions, but no longer than @period_us; 0 of
 * either: for none. */
void engine_cq_moderate(struct engine *e, struct emu_cq *cq, uint32_t count, uint32_t period_us);
/* Lock held.  @qp stands for a target QP of another process, which is asked to do this.  What it
 * answers; or -ESRCH there is none any more; -ETIMEDOUT its process is stopped. */
int engine_far_ask(struct engine *e, struct emu_qp *qp, enum far_op op,
		   const struct qp_attr *attr, uint32_t mask);
/* Lock held.  A handle of this target is gone: if the others are elsewhere, see to their deaths.
 * It may be destroyed then. */
void engine_far_watch(struct engine *e, struct emu_qp *qp);
/* No thread runs.  The function ends, and with it the targets that have handles elsewhere. */
void engine_far_abandon(struct engine *e);
/* Lock held.  The CQ is about to go away. */
void engine_cq_forget(struct engine *e, struct emu_cq *cq);

/* No lock held; any thread.  The doorbell of @qpn was rung: run, or leave it to the owner. */
void engine_rang(struct engine *e, uint32_t qpn);
/* No lock held; a CQ was found empty. */
void engine_lend(struct engine *e);
/* No lock held; the arm record of a CQ changed. */
void engine_armed(struct engine *e, uint32_t cqn);

/* No lock held; cheap.  A receive was posted to @qpn: only a QP in ERR cares. */
void engine_posted_recv(struct engine *e, uint32_t qpn);

/*
 * Lock held.  A doorbell page: programs that ring it themselves, past the patched operations,
 * are found by looking at it (nic.c says when).  @page stays mapped until removed.
 */
int engine_page_add(struct engine *e, const volatile void *page);	/* -ENOMEM */
void engine_page_remove(struct engine *e, const volatile void *page);

/* No lock held; any thread.  Somebody may ring by himself from now on (@by 1), or no longer (-1):
 * as long as there are any, looking never ends. */
void engine_watch(struct engine *e, int by);

/*
 * No lock held.  The caller is about to read an event from the channel @fd: sleep here until there
 * is one, and run the device in the NIC thread's place meanwhile.  Returns 0: go on and read, which
 * may yet block; -EINTR: a signal came; -EBADF: the channel was closed.  A cancellation point.
 */
int engine_doze(struct engine *e, int fd);
/* No lock held.  Nobody sleeps there any more. */
void engine_doze_stop(struct engine *e);

/*
 * Lock held.  @look is called, with the lock, by every command and whenever the NIC thread or a
 * sleeper in its place has woken up: something outside may have changed.  It returns true if it
 * raised events.  If it @lingers, the NIC thread looks for some time after the last thing that
 * happened, too.
 */
void engine_look_with(struct engine *e, bool (*look)(void *ctx), void *ctx, bool lingers);
/* Lock held.  The device has broken: every QP fails, and what was posted is flushed. */
void engine_fail(struct engine *e);

/* No lock held; around control commands: lock, and unlock after running what they left. */
void engine_enter(struct engine *e);
void engine_leave(struct engine *e);

/* The NIC thread.  Lock held for starting; again does nothing.  0 or -errno */
int engine_nic_start(struct engine *e);
bool engine_nic_runs(const struct engine *e);
void engine_nic_stop(struct engine *e);
#endif
