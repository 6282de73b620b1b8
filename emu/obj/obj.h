/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects of one device function, and what they remember.
 *
 * uverbs/ creates and destroys them, transport/ and engine/ work on them.  All
 * of a function's objects are guarded by its device lock (struct emu_dev.lock):
 * whoever calls a function of this folder holds it.  Nothing here calls the
 * engine; a change that makes work sets a bit in emu_qp.work.
 */
#ifndef EMU_OBJ_OBJ_H
#define EMU_OBJ_OBJ_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "emu/diag/why.h"
#include "emu/obj/abroad.h"
#include "emu/obj/clock.h"
#include "emu/obj/dc.h"
#include "emu/obj/event.h"
#include "emu/obj/home.h"
#include "emu/obj/key.h"
#include "emu/obj/mcast.h"
#include "emu/obj/numbers.h"
#include "emu/obj/port.h"
#include "emu/obj/qp_state.h"
#include "hw-models/profile.h"

struct uv_file;		/* an open device file; owned by uverbs/ */
struct emu_srq;
struct hw_work;
struct xrc_domain;
struct emu_qp_open;
struct guests;
struct xrc_far;
struct emu_rss;
struct steer_rule;
struct steer_table;

enum obj_type {
	OBJ_NONE, OBJ_PD, OBJ_MR, OBJ_CHANNEL, OBJ_CQ, OBJ_QP, OBJ_UAR, OBJ_ASYNC,
	OBJ_SRQ, OBJ_AH, OBJ_MW, OBJ_XRCD, OBJ_DM, OBJ_WQ, OBJ_RWQ_TABLE, OBJ_COUNTERS,
	OBJ_FLOW, OBJ_MATCHER,
	OBJ_QP_OPEN,			/* a handle of a target QP; stands for it */
	OBJ_TYPE_COUNT
};

/* First member of every object. */
struct emu_obj {
	enum obj_type type;
	uint32_t handle;		/* in its file; written by uverbs/ */
	uint32_t users;			/* objects that need this one: not 0 means EBUSY */
	struct uv_file *file;
	/* Of domains, regions and device memory, which can be shared; see uverbs/shared.h */
	uint32_t references;		/* of this process: who made it, and each import */
	uint32_t aliases;		/* that stand for it in other files of this function */
	uint32_t kept;			/* of the users: those that only other processes hold */
	bool is_let_go;			/* no handle any more: other processes hold it */
	struct abroad_object *told;	/* what the others see of it, or NULL */
	struct emu_proxy *proxy;	/* it stands for another one, or NULL */
	struct emu_obj *next_let_go;
};

struct emu_gid {
	uint8_t raw[16];
	uint8_t type;			/* 0 IB, 1 RoCE v1, 2 RoCE v2; as ib_uverbs_gid_entry */
	uint32_t netdev_ifindex;
	char netdev[16];
};
#define EMU_GIDS_MAX 32

/* What the environment may choose; see README.md. */
enum net_raw { NET_RAW_UNSAID, NET_RAW_ALLOW, NET_RAW_DENY };
struct dev_options {
	bool lets_bound_regions_go;	/* VERBENA_MW_BOUND_DEREG=allow */
	bool enforces_memlock;		/* VERBENA_MEMLOCK=enforce */
	enum net_raw net_raw;		/* VERBENA_NET_RAW, see uverbs/privilege.h */
	uint8_t eth_inline;		/* VERBENA_ETH_INLINE: enum mlx5_user_inline_mode, */
	uint8_t eth_inline_bytes;	/* and what it asks of each frame's request */
	bool is_steering_off;		/* VERBENA_FLOW_STEERING=off */
	bool wants_full_masks;		/* VERBENA_FLOW_MASKS=full */
};

/* What an XRC domain is known by. */
struct xrc_file {
	bool exists;
	uint64_t dev, ino;
};

/* The domains of all processes, by name.  NULL functions: there is no other process. */
struct xrc_registry {
	/* A token to drop it with, or an errno of xrcd_open(). */
	int (*hold)(void *ctx, uint64_t name, bool creates, bool is_exclusive);
	void (*drop)(void *ctx, int token);
	void *ctx;
};

/* Where flow rules are published for the other functions of the fabric; NULL functions: there is no
 * other. */
struct flow_board {
	uint32_t self;			/* this function among them */
	/* @number is its flow's.  *order_out: its age among the rules of all.  -ENOMEM */
	int (*post)(void *ctx, uint32_t number, const struct steer_rule *rule,
		    uint64_t *order_out);
	void (*withdraw)(void *ctx, uint32_t number);
	void *ctx;
};

struct emu_dev {
	pthread_mutex_t lock;		/* the device lock: objects, engine, transport */
	const struct hw_profile *profile;
	char name[16];			/* "mlx5_0" */
	uint64_t node_guid;		/* host order */
	uint8_t mac[6];
	struct emu_gid gid[EMU_GIDS_MAX];	/* index is the GID index; all-zero raw: empty */
	unsigned gid_count;
	uint16_t lid;			/* 0: the port is addressed by GIDs only */
	uint8_t lmc;			/* it has the 2^lmc LIDs from that one on, a multiple */
	struct emu_port port;
	struct mcast mcast;
	_Atomic bool is_fatal;		/* broken for good: files answer EIO */
	uint64_t (*now_ns)(void);	/* the injected clock, monotonic */
	/* A cheap one that lags by up to coarse_lag_ns; NULL: none. */
	uint64_t (*coarse_now_ns)(void);
	uint64_t coarse_lag_ns;
	uint64_t wall_offset_ns;	/* wall clock less now_ns(), as the function began */
	struct clock_pages *clock_pages;
	uint64_t clock_refreshed;	/* cycles that they show at least */
	struct why_ring *why;
	struct dev_options options;
	struct home home;		/* of responders; of keys: in the table */
	struct key_table keys;
	uint64_t pinned_pages;		/* of all regions, as a kernel would count them */
	struct number_space qpns, cqns, pdns;	/* number -> object */
	struct number_space srqns;
	struct channel_list async;	/* of all open files */
	struct number_space wqns;	/* receive WQs, and tables of them */
	struct number_space flows;	/* flow rules of this function */
	/* Rules of the port this function is at: its own, see flow.h, and those of other
	 * functions, which the engine keeps up to date. */
	struct steer_table *rules;
	struct flow_landing *landings;	/* of this function's rules, by number; see flow.h */
	uint32_t landing_count;
	uint64_t rule_order;		/* without a board: the age of the newest */
	struct flow_board flow_board;
	struct xrc_domain *xrc_domains;
	struct xrc_registry xrc_registry;
	struct guests *guests;		/* targets of other processes; NULL: none yet */
	struct abroad abroad;
	struct emu_proxy *proxies;	/* what stands for something else */
	struct emu_obj *let_go;		/* kept for other processes only */
	struct uv_file *closing;	/* kept for what has aliases */
	uint64_t file_numbers[4];	/* those in use, see abroad.h */
	void *engine;			/* struct engine, for uverbs/ only */
};

/* Which of a port's LIDs: of path bits only the lowest lmc count.  IBTA volume 1, 4.1.3. */
static inline uint8_t port_path_bits(const struct emu_dev *dev, uint16_t bits)
{
	return (uint8_t)(bits & ((1u << dev->lmc) - 1));
}

static inline uint16_t port_lid(const struct emu_dev *dev, uint8_t path_bits)
{
	return dev->lid | port_path_bits(dev, path_bits);
}

static inline bool port_has_lid(const struct emu_dev *dev, uint16_t lid)
{
	return dev->lid && !((lid ^ dev->lid) >> dev->lmc);
}

/* Note a reason; values by designated initialiser: dev_why(dev, .why = WHY_KEY_PD, .qpn = 3) */
#define dev_why(dev, ...) why_note((dev)->why, &(struct why_record){ __VA_ARGS__ })

/* Payload of one TSO request; ibv_tso_caps. */
#define TSO_BYTES_MAX	(1u << 18)

struct emu_pd {
	struct emu_obj obj;
	uint32_t pdn;
};
int pd_create(struct emu_dev *dev, struct emu_pd **out);		/* -ENOMEM */
int pd_destroy(struct emu_dev *dev, struct emu_pd *pd);			/* -EBUSY */

struct emu_mr {
	struct emu_obj obj;
	struct emu_pd *pd;		/* NULL: it is of another process, and only its key is */
	uint32_t pdn;
	uint32_t key;			/* lkey and rkey */
	uint64_t start, bytes;
	uint64_t iova, asked_iova;	/* the first is 0 where the region is zero-based */
	uint32_t access;		/* IB_ACCESS bits of the uverbs ABI */
	uint64_t pinned_pages;
	struct emu_obj *backing;	/* device memory, or NULL: the application's */
	struct emu_mw *windows;		/* bound to it, by in_region */
};
/* What somebody wants a region to be. */
struct mr_ask {
	uint64_t start, bytes, iova;
	uint32_t access;
};
/* -EINVAL rights, zero length, overflow, page offsets differ; -EFAULT not mapped as needed, but
 * on demand anything may be; -ENOMEM no key left, or more than may be pinned.  On demand from 0,
 * UINT64_MAX bytes: all memory. */
int mr_create(struct emu_dev *dev, struct emu_pd *pd, uint64_t start, uint64_t bytes,
	      uint64_t iova, uint32_t access, struct emu_mr **out);
/* Device memory, which @backing keeps.  -EINVAL rights, or not zero-based; -ENOMEM */
int mr_create_device(struct emu_dev *dev, struct emu_pd *pd, struct emu_obj *backing,
		     const struct mr_ask *ask, struct emu_mr **out);

enum { MR_CHANGES_PLACE = 1, MR_CHANGES_PD = 2, MR_CHANGES_ACCESS = 4, MR_CHANGES_ALL = 7 };
/* Change what @what says; the key stays.  As mr_create(), -EINVAL device memory, -EBUSY windows are
 * bound; then the region is what it was. */
int mr_change(struct emu_dev *dev, struct emu_mr *mr, uint32_t what, struct emu_pd *pd,
	      const struct mr_ask *ask);

/* Values of the uverbs ABI. */
enum mr_advice { ADVICE_READ, ADVICE_WRITE, ADVICE_NO_FAULT, ADVICE_COUNT };
struct mr_range {
	uint64_t addr;
	uint32_t bytes, key;
};
/* Have on-demand memory at hand.  -ENOENT no such key; -EINVAL not on demand; -EPERM of another
 * domain, or not to be written; -EFAULT, only if @waits: out of the region, or not mapped. */
int mr_advise(struct emu_dev *dev, struct emu_pd *pd, enum mr_advice advice, bool waits,
	      const struct mr_range *range);

/* -EBUSY windows are bound to it, unless the options let it go */
int mr_can_go(struct emu_dev *dev, const struct emu_mr *mr);
int mr_destroy(struct emu_dev *dev, struct emu_mr *mr);

/* A place in a list of windows. */
struct mw_link {
	struct emu_mw *next, **at;
};

enum mw_type { MW_TYPE_1 = 1, MW_TYPE_2 = 2 };

/* A memory window.  What peers see of it is the entry of its key; this here decides. */
struct emu_mw {
	struct emu_obj obj;
	struct emu_pd *pd;
	uint32_t key;			/* as it was bound last */
	enum mw_type type;
	bool is_bound;
	struct emu_qp *qp;		/* type 2: that bound it */
	struct mw_link in_qp, in_region;	/* at NULL: in no list */
};
/* -EINVAL no such type; -ENOMEM */
int mw_create(struct emu_dev *dev, struct emu_pd *pd, uint32_t type, struct emu_mw **out);
int mw_destroy(struct emu_dev *dev, struct emu_mw *mw);

/* Bind or free a window, as a UMR work request of @qp says.  WHY_NONE, or the first rule that
 * refuses; then nothing has changed. */
enum why mw_umr(struct emu_dev *dev, struct emu_qp *qp, const struct hw_work *work);
/* Free the window that a peer of @qp named.  False: there is none that it may free. */
bool mw_invalidate(struct emu_dev *dev, struct emu_qp *qp, uint32_t key);
/* Their QP ends: its windows are free. */
void mw_free_of_qp(struct emu_qp *qp);
/* Their region ends: they stay bound, to nothing. */
void mw_leave_region(struct emu_mr *mr);

/* Moderation: the most that an event may be asked to wait for. */
enum { CQ_EVENT_COUNT_MAX = 65535, CQ_EVENT_PERIOD_MAX_US = 4095 };

enum cq_arm { CQ_NOT_ARMED, CQ_ARMED_NEXT, CQ_ARMED_SOLICITED };

struct emu_cq {
	struct emu_obj obj;
	struct emu_channel *channel;	/* completion channel, or NULL */
	struct emu_channel *async;	/* of its context */
	uint64_t user_handle;
	uint32_t cqn;
	uint64_t buf_addr, db_addr;	/* in the application */
	uint32_t cqe_count;		/* ring size, power of two */
	uint32_t cqe_bytes;		/* 64 or 128 */
	uint32_t produced;		/* CQEs written so far, free running */
	uint32_t consumed;		/* consumer index last read from the record, widened */
	uint32_t told_of;		/* `produced` when the last event was raised */
	uint32_t solicited_at;		/* `produced` after the newest solicited or error CQE */
	enum cq_arm arm;
	uint8_t arm_sn;			/* the device's two-bit sequence number */
	bool ignores_overrun;
	bool wants_stamps;		/* CQEs carry the device's time */
	/* moderation */
	uint32_t event_count;		/* CQEs that an event waits for, 0: for none */
	uint64_t event_period_ns;	/* how long at most */
	uint64_t event_deadline_ns;	/* an event waits until then; 0: none does */
	uint32_t timer_slot;		/* in the engine's heap; 0: none */
	bool has_failed;		/* overrun or memory gone: writes no more */
};

struct cq_init {
	uint64_t user_handle, buf_addr, db_addr;
	uint32_t cqe;			/* as asked; the ring is pow2(cqe + 1) */
	uint32_t cqe_bytes;
	uint32_t comp_vector;
	bool ignores_overrun;
	bool wants_stamps;
	struct emu_channel *channel, *async;
};
/* -EINVAL cqe 0 or above the profile's max_cqe, comp_vector, cqe_bytes, db not 8-aligned;
 * -EFAULT buffers not writable; -ENOMEM */
int cq_create(struct emu_dev *dev, const struct cq_init *init, struct emu_cq **out);
/* New ring at buf_addr.  Writes the RESIZE CQE.  -EINVAL too small for what is unread, or out
 * of range; -EFAULT.  The same size changes nothing and returns 0. */
int cq_resize(struct emu_dev *dev, struct emu_cq *cq, uint32_t cqe, uint64_t buf_addr,
	      uint32_t cqe_bytes);
/* Events that were read and so will be acknowledged; -EBUSY */
int cq_destroy(struct emu_dev *dev, struct emu_cq *cq, uint32_t *comp_events_out,
	       uint32_t *async_events_out);

/* What is to be done for a QP; bits of emu_qp.work. */
enum {
	QP_WORK_DOORBELL = 1,		/* look at the send doorbell record      */
	QP_WORK_REQUEST = 2,		/* the requester may have packets to send */
	QP_WORK_RESPOND = 4,		/* the responder has answers to send       */
	QP_WORK_FLUSH = 8,		/* entered ERR: flush what is posted         */
	QP_WORK_RELAY = 16,		/* something for another process, see relay.h */
};

/* One outstanding send work request, by ring slot. */
struct rc_sent {
	uint32_t psn;			/* first */
	uint32_t psn_count;		/* how many PSNs it spans */
	uint32_t bytes;
	uint16_t index;			/* producer index */
	uint8_t opcode, op;		/* WQE opcode, enum hw_op */
	uint8_t blocks;			/* 64-byte blocks it occupies */
	uint8_t is_signaled, fence;
	uint8_t is_done;		/* a local operation that has taken effect */
	bool begins_session;		/* DCI: waits for all before, then connects */
	uint8_t status;			/* enum hw_status decided locally before sending */
};

/* Requester half of an RC QP.  Counters of blocks run freely in 32 bits. */
struct rc_req {
	uint32_t sq_produced;		/* from the doorbell record, widened        */
	uint32_t sq_next;		/* first block not decoded yet               */
	uint32_t sq_done;		/* first block not completed yet              */
	struct rc_sent *sent;		/* ring of sent_count, one per block           */
	uint32_t sent_head, sent_tail;	/* head: oldest outstanding; free running       */
	uint32_t send_at;		/* index into sent: the one being sent           */
	uint32_t send_bytes;		/* bytes of it already sent                       */
	uint32_t psn_next;		/* of the next work request to be decoded          */
	uint32_t psn_una;		/* oldest not acknowledged                          */
	uint32_t psn_out;		/* PSNs from psn_una on that have been sent          */
	uint32_t reads_out;		/* READs and atomics outstanding                     */
	uint32_t read_bytes;		/* bytes of the oldest outstanding READ received       */
	uint8_t retries_left, rnr_left;
	bool is_waiting_rnr;
	uint8_t rnr_code;		/* timer code of the last RNR NAK                       */
	bool wants_timer;		/* something is outstanding and no timer runs yet      */
	uint64_t deadline_ns;		/* ack or RNR timer; 0: off */
};

/* What is remembered of a READ or atomic, to answer duplicates.  No pointers. */
struct rc_resource {
	uint8_t opcode;
	uint32_t psn, psn_count;
	uint32_t rkey, bytes;
	uint32_t pdn;			/* of the rkey */
	uint32_t srqn;			/* XRC: its process has the memory; 0: it is here */
	uint64_t va;
	uint64_t original;		/* atomic result */
	uint32_t msn;
	bool is_done;			/* answer completely sent */
	bool is_repeat;			/* it was before, and the peer asked again */
	uint32_t start_bytes;		/* of a READ: where the (repeated) request began */
	uint32_t sent_bytes;		/* of a READ: how far the answer has come        */
};
#define RC_RESOURCES_MAX 16

/*
 * Responder half of an RC QP.  No pointers: it lives where the peer's process can execute
 * one-sided requests in it, without a lock.  The gate is the PSN: whoever finds psn_expected
 * to be its own packet's knows that everything before is complete, and nobody else has that
 * packet; so psn_expected is written last, and with release.
 *
 * A peer that is broken may leave any bytes here, so no member is a bool.
 */
struct rc_resp {
	/* changed by the owner only, while is_open is 0 or by ibv_modify_qp() */
	_Atomic uint32_t is_open;	/* requests may be executed now */
	uint32_t peer_qpn;		/* the only QP whose packets count */
	uint32_t pdn;
	uint32_t access;		/* qp_access_flags */
	uint32_t mtu_bytes;
	uint16_t pkey;
	uint8_t resource_limit;		/* max_dest_rd_atomic */
	uint8_t sgid[16], dgid[16];
	/* changed by whoever executes */
	_Atomic uint32_t psn_expected;
	uint32_t msn;
	uint8_t is_in_message;
	uint8_t message_kind;		/* of the message in progress; rc_resp.c        */
	uint32_t message_bytes;		/* received so far                               */
	uint64_t write_va;		/* WRITE: where the message begins                */
	uint32_t write_rkey, write_bytes;
};

/* What only the owner of a responder needs.  Not where others could write. */
struct rc_answers {
	uint32_t rq_consumed, rq_produced;	/* receive WQEs, free running              */
	bool is_holding;		/* a WQE of the SRQ, for the message in progress    */
	uint32_t held_index;
	bool is_silent;			/* RC: until psn_expected comes; UC: for one message */
	bool ack_is_due;
	uint8_t ack_syndrome;
	uint32_t ack_psn;
	uint8_t resource_made;		/* entries ever made, free running                   */
	uint8_t resource_answer;	/* the oldest not answered; == made: none             */
	struct rc_resource resource[RC_RESOURCES_MAX];
};

/* What is done to frames on their way in. */
struct frame_options {
	bool strips_vlan;
	bool scatters_fcs;		/* the check sequence stands behind the frame */
	bool looks_inside;		/* of tunnels */
	bool has_flow_tags;		/* completions tell them; else the number of the QP */
};

/* A WQE that many frames go into, one behind the other, each at the beginning of a stride. */
struct striding {
	uint8_t stride_log;		/* bytes; 0: it is none */
	uint8_t strides_log;		/* in a WQE */
	bool shifts_2;			/* 2 bytes are left in front of each frame */
	uint32_t used;			/* strides of the oldest WQE */
};

/*
 * A context is in as few cache lines as can be, for who has thousands of QPs active: what a request
 * needs is in front, and the lines begin where comments say.
 */
#define QP_LINE_BYTES	64

struct emu_qp {
	/* line 0: what and where it is */
	struct emu_dev *dev;
	uint32_t qpn, dest_qpn;
	enum qp_state state;
	enum qp_type type;
	uint32_t work;			/* QP_WORK bits */
	uint32_t user_index;
	uint32_t pdn;
	uint32_t mtu_bytes;
	uint64_t sq_addr, rq_addr, db_addr;	/* in the application */
	/* line 1: its queues */
	uint32_t sq_blocks;		/* ring size in 64-byte blocks, power of two, 0 none */
	uint32_t rq_count, rq_stride;	/* receive WQEs, power of two; bytes of one */
	uint32_t timer_slot;		/* in the engine's heap; 0: none */
	struct emu_cq *send_cq, *recv_cq;	/* NULL: a type without that queue */
	struct emu_srq *srq;		/* receives come from it, or NULL; of an XRC target: that
					 * of the last packet */
	struct rc_resp *resp;		/* where peers can execute */
	union {				/* by type; of an XRC target NULL until it is needed */
		struct dci *dci;
		struct dct *dct;
		struct dcr *dcr;
		struct relay *relay;
		struct xrc_far *far;
		struct emu_rss *rss;
	};
	struct emu_channel *async;	/* NULL: nobody hears, or see `opens` */
	/* line 2: the engine's, and the peer's address */
	struct emu_qp *ready_next, **ready_link;	/* what points to it */
	struct emu_qp *timer_next;	/* of those whose timer is to be started */
	bool is_ready;
	bool is_blocked;		/* the wire had no room */
	bool is_counted_failed;		/* in the engine's count of QPs in ERR */
	bool is_timer_listed;
	bool signals_all;
	bool blocks_loopback;		/* its own multicast does not come back to it */
	uint16_t pkey;
	uint8_t sgid[16], dgid[16];
	/* line 3: requests; then answers */
	struct rc_req req;
	struct rc_answers answers;
	/* cold */
	bool is_armed_fatal;		/* QP_FATAL was raised */
	bool is_established;		/* COMM_EST was raised */
	bool is_last_wqe_told;		/* QP_LAST_WQE was raised */
	bool is_starved;		/* a frame from outside waited in vain for a receive */
	uint32_t frames_due;		/* of the one that comes: copies, as far as was counted */
	struct emu_obj obj;
	struct emu_pd *pd;		/* NULL: an XRC target */
	struct emu_mw *windows;		/* type 2, bound by it; by in_qp */
	struct xrc_domain *xrc_domain;	/* of an XRC target */
	struct emu_qp_open *opens;	/* its handles */
	struct frame_options frames;
	struct striding striding;
	uint64_t user_handle;
	struct qp_attr attr;		/* as given by modify_qp, for query_qp */
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline;
};

struct qp_init {
	enum qp_type type;
	uint64_t user_handle;
	struct emu_pd *pd;
	struct emu_cq *send_cq, *recv_cq;
	struct emu_srq *srq;
	struct xrc_domain *xrc_domain;
	struct emu_channel *async;
	uint64_t buf_addr, db_addr;
	uint64_t sq_buf_addr;		/* 0: the send ring comes behind the receive ring */
	uint32_t sq_blocks, rq_count, rq_stride;
	uint32_t user_index;
	struct frame_options frames;
	struct striding striding;
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline;
	bool signals_all, blocks_loopback;
	uint64_t dc_key;		/* DCT */
};
/* What a QP of each type stands on: -EINVAL if something is missing or too much. */
struct qp_parts { bool has_pd, sends, receives, has_domain; };
extern const struct qp_parts qp_parts[QPT_COUNT];

/* -EINVAL counts not powers of two or above the profile, db not 8-aligned; -EFAULT; -ENOMEM */
int qp_create(struct emu_dev *dev, const struct qp_init *init, struct emu_qp **out);
/* The whole of ibv_modify_qp(): edge, mask, values, then the change; see qp_state.h.
 * Sets QP_WORK bits; the caller kicks the engine. */
int qp_modify(struct emu_dev *dev, struct emu_qp *qp, const struct qp_attr *attr, uint32_t mask);
/* Into a state, without asking; sets QP_WORK bits too. */
void qp_enter_state(struct emu_qp *qp, enum qp_state to);
/* The source address of its path is what the port's tables say now. */
void qp_source_apply(struct emu_qp *qp);
/* The engine has forgotten the QP before. */
int qp_destroy(struct emu_dev *dev, struct emu_qp *qp, uint32_t *events_out);

/* May peers execute one-sided requests in it? */
static inline bool qp_is_open(const struct emu_qp *qp)
{
	return qp->type == QPT_RC && !qp->dev->port.is_down &&
	       (qp->state == QP_RTS || (qp->state == QP_RTR && qp->is_established));
}

/* The only writer of qp->state: peers see at once whether they may execute.  As with packets,
 * nothing arrives any more when a QP has left the states in which it takes requests. */
static inline void qp_state_set(struct emu_qp *qp, enum qp_state state)
{
	bool is_open;

	qp->state = state;
	is_open = qp_is_open(qp);
	if (atomic_exchange(&qp->resp->is_open, is_open) && !is_open)
		home_quiesce(&qp->dev->home);
}

struct emu_qp *qp_find(struct emu_dev *dev, uint32_t qpn);

/* An affiliated asynchronous event; `type` is an IB_EVENT number of the uverbs ABI. */
void qp_event(struct emu_qp *qp, uint32_t type);
void cq_event(struct emu_cq *cq, uint32_t type);
#endif
