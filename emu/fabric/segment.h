/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shared segment of a fabric: its layout, and how a seat names a process.
 *
 * Only emu/fabric includes this.  Everything is judged by the seats: a lease or a file is
 * valid if and only if its slot is seated with its generation now.  A generation is never
 * used twice, so whoever finds something invalid may remove it, at any time and without a
 * lock, and a cleaner that is killed half-way leaves only work that the next one repeats.
 */
#ifndef EMU_FABRIC_SEGMENT_H
#define EMU_FABRIC_SEGMENT_H
#include <assert.h>
#include <stdatomic.h>
#include "emu/fabric/fabric.h"

#define FABRIC_MAGIC		0x616e656272655621ull
#define FABRIC_LAYOUT		7u
#define FABRIC_SEGMENT_NAME	"segment"

/* As NUMBER_BLOCK_BITS and NUMBER_BLOCKS of emu/obj/numbers.h, which this layer may not see. */
#define FABRIC_BLOCK_BITS	10
#define FABRIC_BLOCKS		(1u << (24 - FABRIC_BLOCK_BITS))
#define FABRIC_NAMES		4096u

#define FABRIC_STATION_SETS	1024u		/* a power of two */
#define FABRIC_STATION_WAYS	8u

struct fabric_member {
	_Atomic uint32_t ready;		/* the generation that completed the fields below */
	uint32_t gid_count;
	uint64_t stack;			/* an exec() keeps pid and start time; 0: unknown */
	uint8_t gid[FABRIC_GIDS_MAX][16];
	_Atomic uint32_t exiting;	/* the generation whose process is about to end */
	_Atomic uint32_t port_noticed;	/* port_changes that it has seen, plus 1; 0: it does not
					 * watch */
	_Alignas(64) uint8_t mail[FABRIC_MAIL_BYTES];
};

/* One member of one multicast group.  The owner is a lease; who finds it and then an older group
 * sends a packet too much, which nobody waits for. */
struct fabric_group {
	_Atomic uint32_t owner;
	uint32_t unused;
	_Atomic uint64_t gid[2];
};

/* The first page is the same in every layout, so that any version can tell whether members of
 * another one live. */
struct fabric_first_page {
	uint64_t magic;
	uint32_t layout;
	_Alignas(64) _Atomic uint32_t changes;
	_Alignas(2048) _Atomic uint64_t seat[FABRIC_MEMBERS_MAX];
};
static_assert(sizeof(struct fabric_first_page) == 4096, "the first page never changes");

/* Free while the lease is not valid.  The name is stored xor-ed with what follows from the lease,
 * so that what a dead holder left is nobody's name. */
struct fabric_name {
	_Atomic uint32_t lease;
	_Atomic uint64_t salted;
};

/* Where MAC addresses were last seen: address [63:16] and host [15:0], 0: none; and when, in
 * seconds of CLOCK_MONOTONIC.  An address is in the set that follows from it; see station.c. */
struct fabric_station_set {
	_Alignas(64) _Atomic uint64_t station[FABRIC_STATION_WAYS];
	_Atomic uint32_t seen_s[FABRIC_STATION_WAYS];
};

struct fabric_segment {
	struct fabric_first_page first;
	struct fabric_member member[FABRIC_MEMBERS_MAX];
	_Alignas(64) _Atomic uint32_t port_changes;
	_Alignas(64) _Atomic uint32_t lease_next[FABRIC_SPACE_COUNT];
	_Alignas(64) _Atomic uint32_t group_changes;
	_Atomic uint32_t group_end;	/* no entry from here on has ever been used */
	_Alignas(4096) _Atomic uint32_t lease[FABRIC_SPACE_COUNT][FABRIC_BLOCKS];
	struct fabric_group group[FABRIC_GROUPS_MAX];
	struct fabric_name name[FABRIC_NAMES];
	_Alignas(64) _Atomic uint64_t rule_order;	/* of the last rule that was made */
	_Alignas(64) _Atomic uint32_t rule_changes;	/* of all members: moves last */
	_Alignas(64) _Atomic uint64_t rule_change[FABRIC_MEMBERS_MAX];	/* see rules_file.h */
	struct fabric_station_set station_set[FABRIC_STATION_SETS];
};

/* What a process knows of the fabric that it is in, or visits. */
struct fabric {
	struct fabric_segment *segment;
	unsigned self;			/* of a visitor: FABRIC_MEMBERS_MAX */
	uint64_t seat;			/* our word in segment->first.seat[self] */
	dev_t device;			/* of the segment file, to know it again */
	ino_t inode;
	atomic_bool has_leased;
	char dir[256];
};

/*
 * A seat is one word, so that it is taken and freed by one compare-and-swap with the whole
 * identity in it: generation [63:40], low bits of the start time [39:22], pid [21:0] (Linux
 * has no larger ones).  pid 0: empty, the generation is that of the last member.
 */
#define SEAT_PID_BITS		22
#define SEAT_START_BITS		18
#define SEAT_GENERATION_SHIFT	(SEAT_PID_BITS + SEAT_START_BITS)
#define GENERATION_MASK		0xffffffu

static inline uint64_t seat_make(uint32_t generation, uint32_t start, pid_t pid)
{
	return (uint64_t)generation << SEAT_GENERATION_SHIFT |
	       (uint64_t)start << SEAT_PID_BITS | (uint64_t)pid;
}

static inline pid_t seat_pid(uint64_t seat)
{
	return (pid_t)(seat & ((1u << SEAT_PID_BITS) - 1));
}

static inline uint32_t seat_start(uint64_t seat)
{
	return (uint32_t)(seat >> SEAT_PID_BITS) & ((1u << SEAT_START_BITS) - 1);
}

static inline uint32_t seat_generation(uint64_t seat)
{
	return (uint32_t)(seat >> SEAT_GENERATION_SHIFT);
}

/* The generation that sits there now, 0: nobody. */
static inline uint32_t seated_generation(const struct fabric_segment *s, unsigned slot)
{
	uint64_t seat = atomic_load_explicit(&s->first.seat[slot], memory_order_acquire);

	return seat_pid(seat) ? seat_generation(seat) : 0;
}

/* A lease is slot [31:24] and generation [23:0], 0: free. */
static inline uint32_t lease_make(unsigned slot, uint32_t generation)
{
	return (uint32_t)slot << 24 | generation;
}

static inline bool lease_is_valid(const struct fabric_segment *s, uint32_t lease)
{
	return lease && seated_generation(s, lease >> 24) == (lease & GENERATION_MASK);
}

/* What /proc says of a process, reduced to what identifies it. */
struct fabric_process {
	uint32_t start;			/* 1 to 2^SEAT_START_BITS - 1; 0: unknown */
	uint64_t stack;			/* 0: unknown */
	unsigned threads;
	char state;
};

int fabric_process_read(pid_t pid, struct fabric_process *out);
/* Is the process that had this identity still there?  start, stack 0: not known, not compared. */
enum fabric_life fabric_process_life(pid_t pid, uint32_t start, uint64_t stack);

/* Who sits at @slot: alive, stopped or dead.  An empty seat is dead. */
enum fabric_life fabric_seat_life(const struct fabric_segment *s, unsigned slot,
				  uint64_t *seat_out);
/* Empty the seats of the dead and drop everything that is invalid.  No lock needed. */
void fabric_sweep(struct fabric_segment *s, const char *dir);
void fabric_sweep_leases(struct fabric_segment *s);	/* of numbers and in groups */
void fabric_sweep_files(struct fabric_segment *s, const char *dir);
/* The files of members, also of those that are there. */
void fabric_remove_files(const char *dir);
/* Of ports as new; while members are there they may still have to read when things happened. */
void fabric_remove_default_ports(const char *dir);
/* fabric_name_hold() and _drop() for the member with this lease. */
int fabric_names_hold(struct fabric_segment *s, uint32_t mine, uint64_t name, bool creates,
		      bool is_exclusive);
void fabric_names_drop(struct fabric_segment *s, uint32_t mine, int token);
bool fabric_is_empty(const struct fabric_segment *s);
/* Nobody sits here, or only members who have said that their process ends. */
bool fabric_all_exit(const struct fabric_segment *s);

/* The directory of fabric @name; creates nothing.  -EINVAL: no name for a fabric. */
int fabric_place_name(const char *name, char *dir, size_t bytes);
/*
 * Open the segment of @dir, locked against others who join or leave, and create what is missing.
 * Returns a file descriptor; closing it unlocks.  Between fabric_gate_enter and _leave only:
 * the lock does not keep threads of one process apart.
 */
int fabric_place_open(const char *dir);
/* The same for a segment that must be there; -ENOENT. */
int fabric_place_reopen(const char *dir);
void fabric_place_remove(const char *dir);	/* locked; what can't be removed stays */
/* Map the segment behind @fd into @f.  0 or -errno */
int fabric_map(struct fabric *f, int fd);
/* Locked.  Clean up after the dead; if nobody is left but who is about to end, remove it all. */
void fabric_clean_or_remove(const struct fabric *f);
void fabric_gate_enter(void);
void fabric_gate_leave(void);
#endif
