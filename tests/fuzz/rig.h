/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two QPs of one transport, their memory, and an application that posts to them what the input
 * says.
 *
 * For f_wqe.c, where they are each other's peers, and f_packet.c, where the fuzzer is the peer of
 * both.  The rules that must hold whatever the input is are in rig_check().
 */
#ifndef TESTS_FUZZ_RIG_H
#define TESTS_FUZZ_RIG_H
#include <sys/uio.h>
#include "hw-models/hw.h"
#include "tests/fuzz/world.h"

enum {
	RIG_PAGE = 4096,
	RIG_BLOCKS = 16, RIG_RECVS = 8, RIG_STRIDE = 64, RIG_CQES = 64,
	RIG_DATA_BYTES = 2 * RIG_PAGE, RIG_MARGIN = 64,
	RIG_SQ_AT = RIG_RECVS * RIG_STRIDE,
	RIG_QUEUE_BYTES = RIG_SQ_AT + RIG_BLOCKS * HW_WQEBB_BYTES,
	RIG_SHARED = 16, RIG_WINDOWS = 4,
	RIG_FOR_EVER = 7,		/* this rnr_retry is no number */
	RIG_QKEY = 0x11111111, RIG_MLID = 0xc001,
	RIG_RESPONDERS = 2,		/* that a DC target keeps */
	RIG_LID = 7, RIG_PEER_LID = 9,	/* on InfiniBand */
};

/* All that the application has.  Keys cover data without its margins, fixed for reading, foreign in
 * another protection domain, and device, which stands for memory of the device. */
struct rig_memory {
	uint8_t data[2][RIG_DATA_BYTES];
	uint8_t fixed[RIG_PAGE];
	uint8_t foreign[RIG_PAGE];
	uint8_t device[RIG_PAGE];
	uint8_t queue[2][RIG_QUEUE_BYTES];	/* receive ring, then send ring */
	uint8_t shared[RIG_SHARED][RIG_STRIDE];	/* of both QPs, if they share one */
	uint32_t record[2][16];
	uint32_t shared_record[16];
	uint32_t cq_record[16];
	uint8_t cqes[2][RIG_CQES * HW_WQEBB_BYTES];	/* the ring, and the next one */
	uint8_t behind[RIG_MARGIN];
};
#define RIG_DC_KEY ((uint64_t)RIG_QKEY << 32)	/* stands where a Q_Key would */
#define RIG_PAGES ((unsigned)((sizeof(struct rig_memory) + RIG_PAGE - 1) / RIG_PAGE))

struct side {
	struct emu_qp *qp;
	uint8_t *queue;
	uint32_t *record;
	uint32_t peer_qpn;
	uint8_t peer_gid[16];		/* or its LID, as packets carry it */
	uint16_t posted_blocks, posted_recvs;
	uint16_t sent_from, recv_next;		/* counters that a completion may have now */
	uint32_t psn_una, psn_expected;		/* as last seen */
};

/* What the connection is like, from the input. */
struct rig_config {
	enum qp_type type[2];		/* of each side */
	uint32_t psn, access;
	bool is_to_itself;		/* the first QP, if the peers are not given */
	bool has_shared;		/* receives come from a shared queue */
	bool goes_by_lid;		/* InfiniBand without GRHs */
	bool blocks_loopback;
	uint8_t mtu, retry, rnr_retry, timeout, max_rd;
};

/* Regions by what they cover; the last two are those of the first again, to be paged on demand,
 * and of the device. */
enum { KEY_OWN, KEY_OTHER, KEY_FIXED, KEY_FOREIGN, KEY_DEMAND, KEY_DEVICE, RIG_KEYS };

/* The application's part of a shared queue: a list of entries, whose last is never posted. */
struct rig_shared {
	struct emu_xrcd *xrcd;		/* of XRC only */
	struct emu_srq *srq;
	uint16_t next[RIG_SHARED], head, tail, posted;
	bool is_posted[RIG_SHARED];
	bool is_twisted;		/* the list is not what it should be */
};

struct rig {
	struct side side[2];
	struct rig_config config;
	struct emu_pd *pd[2];
	struct emu_mr *mr[RIG_KEYS];	/* NULL: deregistered */
	uint32_t key[RIG_KEYS];		/* of each, also when it has become stale */
	struct emu_mw *mw[RIG_WINDOWS];	/* NULL: deallocated */
	uint32_t window[RIG_WINDOWS];	/* key of each, as bound last */
	struct rig_shared shared;
	struct emu_cq *cq;
	uint32_t cqes_seen;
	unsigned ring;			/* of the two, where the CQ is now */
	bool is_lying;			/* the application claims to have read what is to come */
	bool has_other_port;		/* its addresses are others now */
	bool is_broken;			/* a peer wrote numbers that no packet can carry */
};
extern struct rig rig;
extern struct rig_memory *rig_memory;
extern struct rig_memory rig_known;	/* what the application knows to be in its memory */

static inline bool rig_is(enum qp_type type)
{
	return rig.config.type[0] == type;
}

/* Once a process. */
void rig_begin(struct wire *wire);
/* For one input: both QPs in RTS.  @peer_qpn 0: they are connected to each other. */
void rig_open(struct input *in, uint32_t peer_qpn, const uint8_t peer_gid[16]);
void rig_close(void);

/* The application writes: to its memory and to what is known of it. */
void rig_write(void *at, const void *bytes, size_t count);
/* A key of the rig and an address under it, or anything. */
uint32_t rig_key(struct input *in, unsigned side, uint64_t *addr_out);
/* The key of a window, or anything. */
uint32_t rig_window(struct input *in, unsigned side, struct emu_mw **out);
void rig_keys_open(void);
void rig_keys_close(void);
/* Some of @bytes become what the input says. */
void rig_twist(struct input *in, void *bytes, size_t count);

/* What never goes back has not, and nothing is fuller than it can be.  After each step. */
void rig_watch(void);
/* Everything must hold now.  @is_quiet: nothing will ever happen again. */
void rig_check(bool is_quiet);
bool rig_owns(const struct iovec *span);	/* it lies where a key allows reading */
/* How packets name a port: by GID, or by LID. */
void rig_address(uint16_t lid, const uint8_t gid[16], uint8_t out[16]);
/* One of the few groups that QPs join. */
void rig_group(struct input *in, uint8_t gid[16]);
/* A QP that was reset is as new to the application, too. */
void rig_connect(struct side *s);

/* What both fuzzers let the application do. */
void rig_do_post(struct input *in);
void rig_do_recv(struct input *in);
void rig_do_ring(struct input *in);
void rig_do_record(struct input *in);
void rig_do_scribble(struct input *in);
void rig_do_clock(struct input *in);
void rig_do_poll(struct input *in);
void rig_do_arm(struct input *in);
void rig_do_modify(struct input *in);
void rig_do_rekey(struct input *in);
void rig_do_hide(struct input *in);
void rig_do_cq(struct input *in);
/* The shared queue ends, and another begins; a target QP may be in the middle of a message. */
void rig_shared_renew(void);
void rig_do_shared(struct input *in);
void rig_do_port(struct input *in);
void rig_do_group(struct input *in);
#endif
