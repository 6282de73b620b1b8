/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Ethernet switch: from a frame that leaves a port to the queues that get it.
 *
 * Whoever sends a frame decides with the rules of all functions: a host's are ordered together.
 * The hosts are the stations; where an address is, the switch has learned from the frames that came
 * from there, and a frame for a group or for an unknown address goes to all of them.  That may be
 * the sender's own: there the adapter turns the frame round.  An adapter is promiscuous: which
 * addresses are its own only rules say.  Sniffers also see what leaves their host.
 *
 * Each function keeps a copy of the rules of every host.  Those of its own host are in
 * emu_dev.rules, with its own among them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "emu/engine/engine_local.h"
#include "emu/fabric/rules.h"
#include "emu/obj/flow.h"
#include "emu/obj/wq.h"
#include "emu/transport/raw.h"

enum { MAC_BYTES = 6, DST_AT = 0, SRC_AT = 6 };

static_assert(RULES_BLOCKS == STEER_BLOCK_COUNT && RULES_BLOCK_BYTES == STEER_BLOCK_BYTES,
	      "both layers speak of the same rules");

static bool is_group(const uint8_t mac[MAC_BYTES])
{
	return mac[0] & 1;
}

/* --- rules of others --- */

static bool is_own(const struct engine *e, unsigned member)
{
	return member == e->dev->flow_board.self;
}

/* The rules of a host; NULL: there are none. */
static struct steer_table **table_at(struct engine *e, uint32_t node)
{
	static struct steer_table *none;

	if (node == e->ether.node)
		return &e->dev->rules;
	return node < ETHER_NODES_MAX ? &e->ether.table[node] : &none;
}

static int table_make(struct engine *e, uint32_t node, struct steer_table **out)
{
	struct steer_table **table = table_at(e, node);
	int rc = 0;

	if (node >= ETHER_NODES_MAX)
		return -EINVAL;
	if (!*table)
		rc = steer_table_create(table);
	if (!rc && node != e->ether.node && node >= e->ether.node_end)
		e->ether.node_end = node + 1;
	*out = *table;
	return rc;
}

/* Blocks that are there, to their places. */
static void blocks_spread(union steer_key *key, uint32_t blocks, const uint8_t *from)
{
	memset(key, 0, sizeof *key);
	for (unsigned i = 0; i < STEER_BLOCK_COUNT; i++) {
		if (!(blocks & 1u << i))
			continue;
		memcpy(key->block[i], from, STEER_BLOCK_BYTES);
		from += STEER_BLOCK_BYTES;
	}
}

static int rule_added(void *ctx, unsigned member, uint32_t node, const struct fabric_rule *from)
{
	struct steer_rule rule = {
		.level = from->level, .continues = from->continues, .order = from->order,
		.id = flow_id(member, from->number),
	};
	struct steer_table *table;
	int rc;

	if (is_own(ctx, member) || from->level >= STEER_LEVEL_COUNT)
		return 0;
	blocks_spread(&rule.mask, from->blocks, from->mask);
	blocks_spread(&rule.value, from->blocks, from->value);
	rc = table_make(ctx, node, &table);
	return rc ? rc : steer_add(table, &rule);
}

static void rule_removed(void *ctx, unsigned member, uint32_t node, uint32_t number)
{
	struct steer_table *table = *table_at(ctx, node);

	if (table && !is_own(ctx, member))
		steer_remove(table, flow_id(member, number));
}

static void rules_gone(void *ctx, unsigned member, uint32_t node)
{
	struct steer_table *table = *table_at(ctx, node);

	if (table && !is_own(ctx, member))
		steer_remove_all(table, flow_id(member, 0), flow_id(UINT32_MAX, 0));
}

static void rules_catch_up(struct engine *e)
{
	static const struct rules_follower follower = { rule_added, rule_removed, rules_gone };

	if (e->ether.rules && rules_have_changed(e->ether.rules))
		rules_follow(e->ether.rules, &follower, e);
}

/* --- who gets it --- */

typedef unsigned lookup_fn(const struct steer_table *rules, const union steer_key *key,
			   uint64_t *id, unsigned max);

static void targets_add(struct engine *e, const struct steer_table *table, const struct frame *f,
			lookup_fn *lookup)
{
	struct ether *s = &e->ether;
	unsigned room = ETHER_TARGETS_MAX - s->target_count, found;
	union steer_key key;

	if (!table)
		return;
	frame_key(f, steer_blocks(table), &key);
	found = lookup(table, &key, s->target + s->target_count, room);
	s->target_count += found < room ? found : room;
}

static unsigned sniffers_lookup(const struct steer_table *rules, const union steer_key *key,
				uint64_t *id, unsigned max)
{
	return steer_lookup_level(rules, STEER_LEVEL_SNIFFER, key, id, max);
}

static void targets_find(struct engine *e, const struct frame *f)
{
	const uint8_t *dst = f->at + DST_AT;
	int node = -1;

	e->ether.target_count = 0;
	if (!is_group(dst) && e->ether.rules)
		node = rules_station(e->ether.rules, dst);
	e->ether.leaves = node < 0 || (uint32_t)node != e->ether.node;
	if (node >= 0) {
		targets_add(e, *table_at(e, (uint32_t)node), f, flow_lookup);
		if (e->ether.leaves && steer_has_level(e->dev->rules, STEER_LEVEL_SNIFFER))
			targets_add(e, e->dev->rules, f, sniffers_lookup);
		return;
	}
	targets_add(e, e->dev->rules, f, flow_lookup);
	for (uint32_t other = 0; other < e->ether.node_end; other++)
		targets_add(e, e->ether.table[other], f, flow_lookup);
}

/* Others may have no room; then nobody shall have got it. */
static bool targets_have_room(struct engine *e, const struct ib_packet *p)
{
	for (unsigned i = 0; i < e->ether.target_count; i++) {
		unsigned member = flow_id_member(e->ether.target[i]);

		if (!is_own(e, member) && e->wire &&
		    e->wire->ops->has_room(e->wire, member, p) == WIRE_FULL)
			return false;
	}
	return true;
}

/* --- to a queue --- */

static void frame_why(struct engine *e, const struct frame *f, enum why why, uint32_t qpn)
{
	uint64_t dst = 0;

	for (unsigned i = 0; i < MAC_BYTES; i++)
		dst = dst << 8 | f->at[DST_AT + i];
	dev_why(e->dev, .why = why, .side = WHY_SIDE_DEVICE, .qpn = qpn, .addr = dst,
		.bytes = f->bytes);
}

/* The QP itself, or of one that spreads its frames the queue of this one. */
static struct emu_qp *queue_of(struct emu_qp *qp, struct tp_arrival *a)
{
	if (qp->type != QPT_RSS)
		return qp;
	a->rx_hash = rss_hash(&qp->rss->hash, a->frame, &a->rx_hash_type);
	return rss_queue(qp->rss, a->rx_hash);
}

/* Who sent a frame, if it is known here. */
struct origin {
	const struct emu_qp *qp;	/* NULL: no QP of this function */
	bool is_host;			/* the host's stack */
};

/* A context may not want its own multicast back. */
static bool is_blocked_loop(const struct emu_qp *qp, const struct origin *from,
			    const struct frame *f)
{
	return from->qp && qp->blocks_loopback && from->qp->obj.file == qp->obj.file &&
	       is_group(f->at + DST_AT);
}

/* Where a rule leads. */
struct landing {
	const struct flow_landing *at;	/* NULL: it went while the frame was under way */
	struct emu_qp *qp;		/* NULL: to no queue */
	struct tp_arrival a;
};

static struct landing landing_find(struct engine *e, uint32_t number, const struct frame *f)
{
	struct landing to = { .at = flow_landing_find(e->dev, number), .a = { .frame = f } };

	if (to.at && to.at->qp) {
		to.a.flow_tag = to.at->tag;
		to.qp = queue_of(to.at->qp, &to.a);
	}
	return to;
}

/* Of a rule that has no queue. */
static void deliver_elsewhere(struct engine *e, const struct flow_landing *at,
			      const struct frame *f, const struct origin *from)
{
	if (!at->is_host)
		frame_why(e, f, WHY_FRAME_DROPPED, 0);
	else if (!from->is_host)
		uplink_to_host(e, f);
}

static void deliver(struct engine *e, uint32_t number, const struct frame *f,
		    const struct origin *from)
{
	struct landing to = landing_find(e, number, f);

	if (!to.at)
		return;
	flow_count(to.at, f->bytes);
	if (!to.qp) {
		deliver_elsewhere(e, to.at, f, from);
		return;
	}
	if (to.at->is_repeat || is_blocked_loop(to.at->qp, from, f))
		return;
	if (!takes_requests(to.qp)) {
		frame_why(e, f, WHY_PACKET_QP_STATE, to.qp->qpn);
		return;
	}
	e->progress++;
	raw_take(&e->tp, to.qp, &to.a);
	engine_qp_kick(e, to.qp);
}

void ether_arrive(struct engine *e, const struct ib_packet *p)
{
	struct frame f;

	if (p->span_count == 1 && frame_read(&f, p->span->iov_base, p->payload_bytes, true))
		deliver(e, p->extra.flow_number, &f, &(struct origin){ 0 });
}

/* A packet for each rule: frames that match several are few.  Checksums are for receivers here;
 * other processes look themselves. */
static void hand_out(struct engine *e, const struct ib_packet *p, struct frame *f)
{
	bool is_checked = false;
	const struct origin from = {
		.qp = p->src_qpn ? qp_find(e->dev, p->src_qpn) : NULL, .is_host = !p->src_qpn,
	};
	struct ib_packet one = *p;

	for (unsigned i = 0; i < e->ether.target_count; i++) {
		uint64_t id = e->ether.target[i];

		if (is_own(e, flow_id_member(id))) {
			if (!is_checked)
				frame_check_l4(f);
			is_checked = true;
			deliver(e, flow_id_number(id), f, &from);
			continue;
		}
		one.extra = (struct ib_extra){ .flow_number = flow_id_number(id) };
		if (e->wire)
			e->wire->ops->frame(e->wire, flow_id_member(id), &one);
	}
}

enum wire_sent ether_send(struct engine *e, const struct ib_packet *p)
{
	struct frame f;
	bool has_left;

	if (!frame_read(&f, p->span->iov_base, p->payload_bytes, false))
		return WIRE_SENT;
	rules_catch_up(e);
	targets_find(e, &f);
	if (!targets_have_room(e, p))
		return WIRE_FULL;
	if (e->ether.rules && !is_group(f.at + SRC_AT))
		rules_learn(e->ether.rules, f.at + SRC_AT, e->ether.node);
	has_left = e->ether.leaves && uplink_leave(e, p);
	if (!e->ether.target_count && !has_left)
		frame_why(e, &f, WHY_FRAME_UNWANTED, p->src_qpn);
	hand_out(e, p, &f);
	return WIRE_SENT;
}

/* --- from outside --- */

/* Would the queue lose a frame, of which it gets @count, only because it comes too early? */
static bool is_early(struct engine *e, struct emu_qp *qp, uint32_t count)
{
	bool has_receives = takes_requests(qp) && raw_has_receives(&e->tp, qp, count);

	engine_qp_kick(e, qp);		/* its record may have been broken */
	if (has_receives)
		qp->is_starved = false;
	return !has_receives && !qp->is_starved && qp->state != QP_ERR;
}

/* The queue of this function that the rule will lead to, or NULL. */
static struct emu_qp *target_queue(struct engine *e, unsigned i, const struct frame *f)
{
	uint64_t id = e->ether.target[i];
	struct landing to = { 0 };

	if (is_own(e, flow_id_member(id)))
		to = landing_find(e, flow_id_number(id), f);
	return to.qp && !to.at->is_repeat ? to.qp : NULL;
}

/* One that is early, or NULL.  Several rules may lead to the same. */
static struct emu_qp *target_early(struct engine *e, const struct frame *f)
{
	struct emu_qp *qp;

	for (unsigned i = 0; i < e->ether.target_count; i++)
		if ((qp = target_queue(e, i, f)))
			qp->frames_due = 0;
	for (unsigned i = 0; i < e->ether.target_count; i++)
		if ((qp = target_queue(e, i, f)) && is_early(e, qp, ++qp->frames_due))
			return qp;
	return NULL;
}

bool ether_from_outside(struct engine *e, const struct frame *f, bool is_last)
{
	struct emu_qp *early;

	rules_catch_up(e);
	e->ether.target_count = 0;
	targets_add(e, e->dev->rules, f, flow_lookup);
	while ((early = target_early(e, f))) {
		if (!is_last)
			return false;
		early->is_starved = true;
	}
	if (!e->ether.target_count)
		frame_why(e, f, WHY_FRAME_UNWANTED, 0);
	for (unsigned i = 0; i < e->ether.target_count; i++)
		if (is_own(e, flow_id_member(e->ether.target[i])))
			deliver(e, flow_id_number(e->ether.target[i]), f, &(struct origin){ 0 });
	return true;
}

/* --- life --- */

void engine_switch_join(struct engine *e, struct rules *rules, uint32_t node)
{
	e->ether.rules = rules;
	e->ether.node = node;
}

void ether_end(struct engine *e)
{
	for (uint32_t node = 0; node < e->ether.node_end; node++)
		steer_table_destroy(e->ether.table[node]);
}
