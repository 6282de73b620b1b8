/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow steering: rules of this function, what they do with a frame, and the counters they count
 * into.
 *
 * What is legal to ask is uverbs/'s (on_flow.c); here a rule is a mask, a value and a level.  Rules
 * of all functions of a host are ordered together, so each is also published, through the
 * functions of struct flow_board.
 *
 * Source: device-abi H.2; inventory FL-1 to FL-10.
 */
#ifndef EMU_OBJ_FLOW_H
#define EMU_OBJ_FLOW_H
#include "emu/obj/obj.h"
#include "emu/steer/match.h"

/* In a rule's number, so that every function knows: who comes to it goes on with what is behind the
 * rules of applications, as if none had matched. */
#define FLOW_MISSES	(1u << 31)

/* What rules of all functions are known by in a table: whose, and its number there. */
static inline uint64_t flow_id(uint32_t member, uint32_t number)
{
	return (uint64_t)member << 32 | number;
}

static inline uint32_t flow_id_member(uint64_t id)
{
	return (uint32_t)(id >> 32);
}

static inline uint32_t flow_id_number(uint64_t id)
{
	return (uint32_t)id;
}

/* May applications make rules? */
static inline bool flow_steering_is_on(const struct emu_dev *dev)
{
	return dev->profile->has_flow_steering && !dev->options.is_steering_off;
}

/* May a rule be for this QP?  Those of mlx5dv may not be for datagrams. */
static inline bool flow_can_reach_raw(const struct emu_qp *qp)
{
	return qp->type == QPT_RAW || qp->type == QPT_RSS;
}

static inline bool flow_can_reach(const struct emu_qp *qp)
{
	return qp->type == QPT_UD || flow_can_reach_raw(qp);
}

/* -ENOMEM.  flow_steering_end(): no flow is left. */
int flow_steering_begin(struct emu_dev *dev);
void flow_steering_end(struct emu_dev *dev);

/* One number of ibv_read_counters(). */
enum counted { COUNTED_PACKETS, COUNTED_BYTES, COUNTED_COUNT };
struct counters_item {
	uint32_t what, index;
};

struct emu_counters {
	struct emu_obj obj;		/* users: rules that count into it */
	uint64_t counted[COUNTED_COUNT];
	struct counters_item *item;	/* told with the first rule, gone with the last */
	uint32_t item_count;
	uint64_t index_end;		/* above every index; 0: nothing to read was told of */
};

/* A matcher of mlx5dv: a mask that rules share.  Numbers of the uverbs ABI. */
struct matcher_init {
	uint8_t flow_type, table;
	uint16_t priority;
	uint8_t criteria;		/* blocks of the mask, see enum steer_block */
	bool is_beyond;			/* it asks for something that there is not */
	union steer_key mask;
};

struct emu_matcher {
	struct emu_obj obj;		/* users: its rules */
	struct matcher_init init;
};

/*
 * All that a frame needs of the rule that it has come to.  Close together and apart from the rest:
 * among a hundred thousand rules whatever is touched is another cache miss.
 */
struct flow_landing {
	struct emu_qp *qp;		/* NULL: frames end here, unless it misses */
	struct emu_counters *counters;	/* NULL: none */
	uint32_t tag;			/* for CQEs; 0: none */
	bool is_there;			/* false: there is no rule with this number */
	bool is_host;			/* to the host's network stack; no `qp` */
	bool is_repeat;			/* an equal rule that is older leads to the same QP, which
					 * gets each frame once */
};

struct emu_flow {
	struct emu_obj obj;
	struct emu_dev *dev;
	uint32_t number;		/* of its landing; and FLOW_MISSES */
	struct emu_qp *kept_qp;		/* of a rule that drops: it was made for this one */
	struct emu_matcher *matcher;	/* NULL: made from specs */
	struct steer_rule rule;
	struct emu_flow *next;		/* made by the same command, goes with it; or NULL */
};

/* Good until a rule is made. */
static inline struct flow_landing *flow_landing_of(const struct emu_flow *flow)
{
	return &flow->dev->landings[flow->number & ~FLOW_MISSES];
}

/* Of a number that others say; NULL: there is no such rule. */
static inline struct flow_landing *flow_landing_find(const struct emu_dev *dev, uint32_t number)
{
	uint32_t at = number & ~FLOW_MISSES;

	return at < dev->landing_count && dev->landings[at].is_there ? &dev->landings[at] : NULL;
}

struct flow_init {
	uint32_t level;
	bool continues, misses;
	union steer_key mask, value;
	struct emu_qp *qp, *kept_qp;
	bool is_host;
	struct emu_counters *counters;
	struct emu_matcher *matcher;
	bool has_tag;			/* false: that of an equal rule, or 0 */
	uint32_t tag;
};

/* From now on frames go there.  Its QPs, counters and matcher have one user more.  -ENOMEM; -EEXIST
 * an equal rule of this function is there, and has another tag, or one drops and the other not. */
int flow_create(struct emu_dev *dev, const struct flow_init *init, struct emu_flow **out);
/* And all that come behind it by `next`. */
void flow_destroy(struct emu_flow *flow);
/* steer_lookup(), of rules that are published; none of the ids misses. */
unsigned flow_lookup(const struct steer_table *rules, const union steer_key *key, uint64_t *id,
		     unsigned max);
/* A frame of @bytes has come to the rule. */
static inline void flow_count(const struct flow_landing *landing, uint32_t bytes)
{
	if (!landing->counters)
		return;
	landing->counters->counted[COUNTED_PACKETS]++;
	landing->counters->counted[COUNTED_BYTES] += bytes;
}

int matcher_create(struct emu_dev *dev, const struct matcher_init *init,
		   struct emu_matcher **out);					/* -ENOMEM */
int matcher_destroy(struct emu_dev *dev, struct emu_matcher *matcher);		/* -EBUSY */
int counters_create(struct emu_dev *dev, struct emu_counters **out);		/* -ENOMEM */
int counters_destroy(struct emu_dev *dev, struct emu_counters *counters);	/* -EBUSY */
/* Say what can be read; @item was allocated, and is the counters' if this works.  -EINVAL that was
 * said before, or no such thing is counted. */
int counters_describe(struct emu_counters *counters, struct counters_item *item, uint32_t count);
/* A rule that counts there has gone, or not come.  What was counted stays. */
void counters_settle(struct emu_counters *counters);
#endif
