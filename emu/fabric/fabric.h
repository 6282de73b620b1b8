/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Membership in a fabric: who is there, and which numbers are whose.
 *
 * A fabric is a 0700 directory of the user (in /dev/shm, else $XDG_RUNTIME_DIR, else
 * $TMPDIR or /tmp) that holds one small shared segment: member slots, and leases of number
 * blocks so that a QPN names its process.  A member that died is cleaned up by the next one
 * that joins or looks.  Nothing in the segment is trusted: another process of the same user
 * may be broken, and indices read from it are bounded before use.
 *
 * Threads: any, unless said otherwise.  After fork() the child must call fabric_abandon()
 * and not fabric_leave().
 */
#ifndef EMU_FABRIC_FABRIC_H
#define EMU_FABRIC_FABRIC_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FABRIC_MEMBERS_MAX	256
#define FABRIC_GIDS_MAX		32
#define FABRIC_GROUPS_MAX	4096		/* memberships of all members together */

enum fabric_space { FABRIC_QPN, FABRIC_KEY, FABRIC_SRQN, FABRIC_PDN, FABRIC_SPACE_COUNT };

struct fabric;

struct fabric_config {
	const char *name;		/* letters, digits, '-', '_', '.'; NULL: "default" */
	const uint8_t (*gid)[16];	/* the GIDs this member answers to; LIDs as ib_lids_as_gid()
					 * makes them one */
	unsigned gid_count;
};

/* -EINVAL bad name; -ENOSPC no member slot or no space in the file system; -EACCES the directory
 * is not ours or not 0700; -EPROTONOSUPPORT live members use another layout; -ETIMEDOUT another
 * member is stopped in the middle of joining; other errno of open, mmap, fallocate. */
int fabric_join(const struct fabric_config *config, struct fabric **out);
void fabric_leave(struct fabric *f);
/* The process is about to end without leaving: nothing changes for it and its peers, but the
 * last one to say so takes the names of the fabric away. */
void fabric_exit(struct fabric *f);
void fabric_abandon(struct fabric *f);		/* in a forked child: unmap, touch nothing shared */

unsigned fabric_self(const struct fabric *f);	/* own slot */

/* Lease a block of NUMBER_BLOCK numbers; its index, or -ENOMEM.  Block 0 is never leased, and of
 * QPNs the last one neither: its last number is that of all multicast groups. */
int fabric_lease(struct fabric *f, enum fabric_space space);

/* The live member that owns @number, or -1.  Constant time, no system call when it is alive. */
int fabric_owner(struct fabric *f, enum fabric_space space, uint32_t number);

bool fabric_has_gid(struct fabric *f, unsigned member, const uint8_t gid[16]);
/* The GIDs that this member answers to from now on; at most FABRIC_GIDS_MAX. */
void fabric_gids_set(struct fabric *f, const uint8_t (*gid)[16], unsigned count);

/*
 * Multicast: this member wants what is sent to the group, once however many want it here.
 * -ENOSPC.  Death and departure end a membership too.
 */
int fabric_group_join(struct fabric *f, const uint8_t gid[16]);
void fabric_group_leave(struct fabric *f, const uint8_t gid[16]);

/* A set of members, by slot. */
struct fabric_members { uint64_t bit[FABRIC_MEMBERS_MAX / 64]; };

/* Who is in the group; a search, so callers keep it until fabric_group_changes() moves, which
 * they read before. */
void fabric_group_members(const struct fabric *f, const uint8_t gid[16],
			  struct fabric_members *out);
uint32_t fabric_group_changes(const struct fabric *f);

/*
 * A name that members hold together, until the last of them drops it or dies; what it means is
 * the callers' business.  Returns a token for fabric_name_drop(), or -ENOENT nobody holds it and
 * it is not to be created; -EEXIST somebody does, and it must not be; -ENOSPC.  0 is no name.
 */
int fabric_name_hold(struct fabric *f, uint64_t name, bool creates, bool is_exclusive);
void fabric_name_drop(struct fabric *f, int token);

enum fabric_life { FABRIC_ALIVE, FABRIC_STOPPED, FABRIC_DEAD };
/* A system call or two: for timeouts, not for packets.  A dead member is cleaned up. */
enum fabric_life fabric_life(struct fabric *f, unsigned member);

/* Changes each time a slot gets a new member, and is 0 while it has none; for users that cache
 * per-member state. */
uint32_t fabric_generation(struct fabric *f, unsigned member);

/* Is the member that had the slot in this generation there, and not dead? */
static inline bool fabric_lives(struct fabric *f, unsigned member, uint32_t generation)
{
	return generation && fabric_generation(f, member) == generation &&
	       fabric_life(f, member) != FABRIC_DEAD;
}

/* The process of a live member, 0: none. */
pid_t fabric_pid(const struct fabric *f, unsigned member);

/* Counts joins, departures and deaths that were noticed: look again when it has moved. */
uint32_t fabric_changes(const struct fabric *f);

/* A few shared bytes of each slot, aligned to a cache line, that belong to the wire.  Zero when
 * a member joins, except for what a peer with an old view writes late. */
#define FABRIC_MAIL_BYTES	128
void *fabric_mail(struct fabric *f, unsigned member);

/* The directory, for wires that put files of their own there (named with slot and
 * generation, so that cleaning up a member finds them: "<slot>-<generation>-..."). */
const char *fabric_dir(const struct fabric *f);

/* Give a file of that directory exactly @bytes, all of them backed now, so that no later store into
 * a mapping dies of a full file system.  -ENOSPC, -EFBIG (without the signal), -errno. */
int fabric_file_reserve(int fd, size_t bytes);
/* The same for one that has @from bytes, which it keeps. */
int fabric_file_grow(int fd, size_t from, size_t bytes);
#endif
