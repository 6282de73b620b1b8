/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rig's objects; see rig.h.
 */
#include <endian.h>
#include <sys/mman.h>
#include "emu/obj/srq.h"
#include "emu/transport/tp.h"
#include "hw-models/ib_packet.h"
#include "hw-models/mlx5_cqe.h"
#include "hw-models/mlx5_wqe.h"
#include "tests/fuzz/rig.h"

enum { ALL_REMOTE = KEY_REMOTE_WRITE | KEY_REMOTE_READ | KEY_REMOTE_ATOMIC };

struct rig rig;
struct rig_memory *rig_memory;

static struct emu_channel *async, *channel;

void rig_begin(struct wire *wire)
{
	size_t bytes = RIG_PAGES * RIG_PAGE;
	uint8_t *at = mmap(NULL, bytes + 2 * RIG_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);
	int fd, failed;

	assert(at != MAP_FAILED);
	rig_memory = (void *)(at + RIG_PAGE);
	failed = mprotect(rig_memory, bytes, PROT_READ | PROT_WRITE);
	device_begin(wire);
	failed = failed || channel_create(EVENT_ASYNC_BYTES, &async, &fd) ||
		 channel_create(EVENT_COMP_BYTES, &channel, &fd);
	assert(!failed);
}

static void cq_open(void)
{
	struct cq_init init = {
		.cqe = RIG_CQES - 1, .cqe_bytes = 64, .buf_addr = (uintptr_t)rig_memory->cqes[0],
		.db_addr = (uintptr_t)rig_memory->cq_record, .async = async, .channel = channel,
	};
	int failed = cq_create(&device, &init, &rig.cq);

	assert(!failed);
	rig.cqes_seen = rig.ring = 0;
	rig.is_lying = rig.is_broken = rig.has_other_port = false;
}

/* A list of all entries, the last of which is where it goes on. */
static void shared_open(void)
{
	struct rig_shared *s = &rig.shared;
	struct srq_init init = {
		.type = s->xrcd ? SRQ_XRC : SRQ_BASIC, .xrcd = s->xrcd,
		.cq = s->xrcd ? rig.cq : NULL,
		.pd = rig.pd[0], .async = async, .max_wr = RIG_SHARED - 1,
		.max_sge = RIG_STRIDE / 16 - 1, .user_index = SRQ_USER_INDEX_NONE,
		.buf_addr = (uintptr_t)rig_memory->shared,
		.db_addr = (uintptr_t)rig_memory->shared_record,
	};
	int failed;

	*s = (struct rig_shared){ .xrcd = s->xrcd };
	if (!rig.config.has_shared)
		return;
	failed = srq_create(&device, &init, &s->srq);
	assert(!failed && s->srq->wqe_count == RIG_SHARED && s->srq->stride == RIG_STRIDE);
	for (unsigned i = 0; i < RIG_SHARED; i++)
		s->next[i] = (uint16_t)(i + 1) % RIG_SHARED;
	s->tail = RIG_SHARED - 1;
}

static void domain_open(void)
{
	const struct xrcd_init init = { .creates = true };
	int failed;

	rig.shared.xrcd = NULL;
	if (!rig_is(QPT_XRC_INI))
		return;
	failed = xrcd_open(&device, &init, &rig.shared.xrcd);
	assert(!failed);
}

void rig_shared_renew(void)
{
	bool is_twisted = rig.is_lying;		/* completions of the old one may be unread */
	uint32_t events;
	int failed;

	rig_check(false);
	failed = srq_destroy(&device, rig.shared.srq, &events);
	assert(!failed);
	rig_write(rig_memory->shared_record, (uint32_t[1]){ 0 }, 4);
	shared_open();
	rig.shared.is_twisted = is_twisted;
}

/* What a QP of its type has not got: one of XRC or DC only sends, or only receives. */
static void init_trim(struct qp_init *init)
{
	const struct qp_parts *parts = &qp_parts[init->type];

	init->pd = parts->has_pd ? init->pd : NULL;
	if (!parts->sends) {
		init->send_cq = NULL;
		init->sq_blocks = 0;
	}
	if (!parts->receives) {
		init->recv_cq = NULL;
		init->srq = NULL;
	}
	if (parts->has_domain)
		init->xrc_domain = rig.shared.xrcd->domain;
	if (init->type == QPT_DCT)
		init->sq_blocks = 0;
	if (init->type == QPT_DCI)
		init->srq = NULL;
}

static void side_open(unsigned i)
{
	struct side *s = &rig.side[i];
	bool has_shared = rig.config.has_shared;
	struct qp_init init = {
		.type = rig.config.type[i], .pd = rig.pd[0], .send_cq = rig.cq, .recv_cq = rig.cq,
		.async = async, .sq_blocks = RIG_BLOCKS, .user_index = 0x100 + i,
		.rq_count = has_shared ? 0 : RIG_RECVS, .rq_stride = has_shared ? 0 : RIG_STRIDE,
		.srq = rig.shared.srq, .dc_key = RIG_DC_KEY,
		.blocks_loopback = rig.config.blocks_loopback,
		.buf_addr = (uintptr_t)rig_memory->queue[i] + (has_shared ? RIG_SQ_AT : 0),
		.db_addr = (uintptr_t)rig_memory->record[i],
	};
	int failed;

	memset(s, 0, sizeof *s);
	s->queue = rig_memory->queue[i];
	s->record = rig_memory->record[i];
	init_trim(&init);
	failed = qp_create(&device, &init, &s->qp);
	assert(!failed);
	if (init.type == QPT_DCT)
		s->qp->dct->count_max = RIG_RESPONDERS;
}

/* What each step of the usual life needs, by type. */
static const struct { uint32_t init, rtr, rts; } lives[QPT_COUNT] = {
	[QPT_RC] = { A_PKEY | A_PORT | A_ACCESS,
		     A_AV | A_MTU | A_DEST_QPN | A_RQ_PSN | A_MAX_DEST_RD | A_MIN_RNR,
		     A_TIMEOUT | A_RETRY | A_RNR | A_SQ_PSN | A_MAX_RD },
	[QPT_UC] = { A_PKEY | A_PORT | A_ACCESS, A_AV | A_MTU | A_DEST_QPN | A_RQ_PSN, A_SQ_PSN },
	[QPT_UD] = { A_PKEY | A_PORT | A_QKEY, 0, A_SQ_PSN },
	[QPT_XRC_INI] = { A_PKEY | A_PORT | A_ACCESS, A_AV | A_MTU | A_DEST_QPN | A_RQ_PSN,
			  A_TIMEOUT | A_RETRY | A_RNR | A_SQ_PSN | A_MAX_RD },
	[QPT_XRC_TGT] = { A_PKEY | A_PORT | A_ACCESS,
			  A_AV | A_MTU | A_DEST_QPN | A_RQ_PSN | A_MAX_DEST_RD | A_MIN_RNR,
			  A_TIMEOUT | A_SQ_PSN },
	[QPT_DCI] = { A_PKEY | A_PORT, A_MTU, A_TIMEOUT | A_RETRY | A_RNR | A_SQ_PSN | A_MAX_RD },
	[QPT_DCT] = { A_PKEY | A_PORT | A_ACCESS, A_AV | A_MTU | A_MIN_RNR, 0 },
};

/* False: the port has not got the addresses any more. */
static bool modify(struct side *s, struct qp_attr *attr, uint32_t mask)
{
	int failed = qp_modify(&device, s->qp, attr, mask | A_STATE);

	assert(!failed || rig.has_other_port);
	engine_qp_kick(engine, s->qp);
	return !failed;
}

void rig_connect(struct side *s)
{
	const struct rig_config *c = &rig.config;
	enum qp_type type = s->qp->type;
	struct qp_attr init = { .state = QP_INIT, .port = 1, .access = c->access,
		.qkey = RIG_QKEY };
	struct qp_attr rtr = { .state = QP_RTR, .path_mtu = c->mtu, .dest_qpn = s->peer_qpn,
		.rq_psn = c->psn, .max_dest_rd_atomic = c->max_rd, .min_rnr_timer = 12,
		.path = { .is_global = !c->goes_by_lid, .port = 1,
			  .dlid = qp_find(&device, s->peer_qpn) ? RIG_LID : RIG_PEER_LID } };
	struct qp_attr rts = { .state = QP_RTS, .timeout = c->timeout, .retry_cnt = c->retry,
		.rnr_retry = c->rnr_retry, .sq_psn = c->psn, .max_rd_atomic = c->max_rd };

	memcpy(rtr.path.dgid, s->peer_gid, 16);
	if (modify(s, &init, lives[type].init) && modify(s, &rtr, lives[type].rtr) &&
	    lives[type].rts)
		modify(s, &rts, lives[type].rts);
	s->psn_una = s->qp->req.psn_una;
	s->psn_expected = s->qp->resp->psn_expected;
}

static struct rig_config config_take(struct input *in)
{
	static const uint8_t rnr_retries[] = { 1, 0, 2, RIG_FOR_EVER }, retries[] = { 2, 0, 7, 1 };
	static const uint8_t mtus[] = { 3, 1, 2, 4 }, reads[] = { 4, 0, 1, 16 };
	static const uint8_t types[][2] = {
		{ QPT_RC, QPT_RC }, { QPT_UC, QPT_UC }, { QPT_UD, QPT_UD },
		{ QPT_XRC_INI, QPT_XRC_TGT }, { QPT_DCI, QPT_DCT },
	};
	uint8_t a = take8(in), b = take8(in), c = take8(in);
	unsigned type = c & 0x80 ? 4 : c & 3;

	device.options.lets_bound_regions_go = c & 8;
	if (c & 0x30) {
		device.profile = hw_profile_find("connectx-6");
		device.lid = RIG_LID;
	}
	return (struct rig_config){
		.type = { types[type][0], types[type][1] }, .has_shared = c & 4 || type >= 3,
		.goes_by_lid = c & 0x20, .blocks_loopback = c & 0x40,
		.rnr_retry = rnr_retries[a & 3], .retry = retries[a >> 2 & 3],
		.psn = a & 16 ? 0xfffffe : 100, .is_to_itself = a & 32 && type < 3,
		.timeout = a & 64 ? 0 : a & 128 ? 31 : 14, .mtu = mtus[b & 3],
		.max_rd = reads[b >> 2 & 3], .access = ALL_REMOTE & ~(uint32_t)(b >> 4),
	};
}

static void memory_fill(void)
{
	memset(rig_memory, 0x5a, sizeof *rig_memory);
	memset(rig_memory->record, 0, sizeof rig_memory->record);
	memset(rig_memory->shared_record, 0, sizeof rig_memory->shared_record);
	memset(rig_memory->cq_record, 0, sizeof rig_memory->cq_record);
	memset(rig_memory->cqes, 0xff, sizeof rig_memory->cqes);
	memcpy(&rig_known, rig_memory, sizeof rig_known);
}

void rig_address(uint16_t lid, const uint8_t gid[16], uint8_t out[16])
{
	if (rig.config.goes_by_lid)
		ib_lid_as_gid(lid, out);
	else
		memcpy(out, gid, 16);
}

void rig_open(struct input *in, uint32_t peer_qpn, const uint8_t peer_gid[16])
{
	int failed;

	memory_fill();
	rig.config = config_take(in);
	failed = pd_create(&device, &rig.pd[0]) || pd_create(&device, &rig.pd[1]);
	assert(!failed);
	rig_keys_open();
	cq_open();
	domain_open();
	shared_open();
	side_open(0);
	side_open(1);
	for (unsigned i = 0; i < 2; i++) {
		unsigned to = rig.config.is_to_itself ? i : !i;

		rig.side[i].peer_qpn = peer_qpn ? peer_qpn : rig.side[to].qp->qpn;
		rig_address(peer_qpn ? RIG_PEER_LID : RIG_LID,
			    peer_qpn ? peer_gid : device.gid[0].raw, rig.side[i].peer_gid);
		rig_connect(&rig.side[i]);
	}
}

void rig_close(void)
{
	uint32_t events, more_events;
	int failed = 0;

	for (unsigned i = 0; i < 2; i++) {
		engine_mcast_forget(engine, rig.side[i].qp);
		engine_qp_forget(engine, rig.side[i].qp);
		failed |= qp_destroy(&device, rig.side[i].qp, &events);
	}
	if (rig.shared.srq)
		failed |= srq_destroy(&device, rig.shared.srq, &events);
	if (rig.shared.xrcd)
		failed |= xrcd_close(&device, rig.shared.xrcd);
	engine_cq_forget(engine, rig.cq);
	failed |= cq_destroy(&device, rig.cq, &events, &more_events);
	rig_keys_close();
	failed |= pd_destroy(&device, rig.pd[0]) | pd_destroy(&device, rig.pd[1]);
	assert(!failed);
	device_rewind();
}

void rig_do_modify(struct input *in)
{
	static const uint8_t states[] = { QP_ERR, QP_RESET, QP_RTS, QP_SQD };
	uint8_t choice = take8(in);
	struct side *s = &rig.side[choice & 1];
	struct qp_attr attr = { .state = states[choice >> 1 & 3] };

	rig_check(false);		/* what a reset forgets is looked at before */
	if (qp_modify(&device, s->qp, &attr, A_STATE))
		return;
	engine_qp_kick(engine, s->qp);
	if (attr.state != QP_RESET)
		return;
	s->posted_blocks = s->posted_recvs = s->sent_from = s->recv_next = 0;
	rig_write(s->record, (uint32_t[2]){ 0 }, 8);
	if (!(choice & 8))
		rig_connect(s);
}

/* --- the completion queue --- */

/* Entries and bytes of the next ring; it has room for the most of them. */
static const struct { uint8_t count, cqe_bytes; } rings[] = {
	{ 32, 64 }, { 64, 64 }, { 16, 64 }, { 32, 128 },
};

static void cq_resize_to(struct input *in, uint8_t choice)
{
	unsigned next = !rig.ring, row = choice & 3;
	uint8_t *ring = rig_memory->cqes[next];
	uint64_t old = rig.cq->buf_addr, at = (uintptr_t)ring;

	if (choice & 0x10)
		at = take8(in);			/* never mapped */
	memset(ring, 0xff, sizeof rig_memory->cqes[next]);
	cq_resize(&device, rig.cq, choice & 0x20 ? take8(in) % rings[row].count :
		  rings[row].count - 1u, at, choice & 0x40 ? take8(in) : rings[row].cqe_bytes);
	if (rig.cq->buf_addr == old)
		return;
	rig.ring = next;
	rig.cqes_seen++;		/* that of the change */
}

/* Another ring, or another moderation; all that is in the old one is taken before. */
void rig_do_cq(struct input *in)
{
	uint8_t choice = take8(in);

	rig_check(false);
	if (choice & 0x80)
		engine_cq_moderate(engine, rig.cq, take8(in), take8(in));
	else
		cq_resize_to(in, choice);
}

/* --- the port --- */

void rig_group(struct input *in, uint8_t gid[16])
{
	uint8_t choice = take8(in);
	const uint8_t groups[2][16] = {
		{ 0xff, 0x0e, [15] = choice >> 1 & 1 },
		{ [10] = 0xff, [11] = 0xff, 0xe0, [15] = choice >> 1 & 1 },
	};

	memcpy(gid, groups[choice & 1], 16);
	if (choice & 4)
		rig_twist(in, gid, 16);
}

/* A QP joins a group, or leaves it. */
void rig_do_group(struct input *in)
{
	uint8_t choice = take8(in), gid[16];
	struct emu_qp *qp = rig.side[choice & 1].qp;
	uint16_t mlid = RIG_MLID ^ (choice & 2 ? take16(in) : 0);

	rig_group(in, gid);
	if (choice & 4)
		engine_mcast_detach(engine, qp, gid, mlid);
	else
		engine_mcast_attach(engine, qp, gid, mlid);
}

/* A base LID is a multiple of how many there are. */
static void port_lids(uint16_t choice, struct port_change *to)
{
	to->lmc = choice & PORT_LMC_MAX;
	to->lid = choice & ~((1u << to->lmc) - 1) & 0xffff;
}

/* Somebody outside pulls the cable, changes addresses, or breaks the device. */
void rig_do_port(struct input *in)
{
	uint8_t choice = take8(in);
	struct emu_gid gid[EMU_GIDS_MAX];
	struct port_change to = {
		.is_down = choice & 1, .was_down = choice & 3, .is_reregistered = choice & 4,
		.lid = device.lid, .lmc = device.lmc, .sm_lid = device.port.sm_lid, .gid = gid,
		.gid_count = choice & 8 ? take8(in) % EMU_GIDS_MAX : device.gid_count,
	};

	if (choice & 16 && device.lid)
		port_lids(take16(in), &to);
	memcpy(to.pkey, device.port.pkey, sizeof to.pkey);
	if (choice & 32)
		to.pkey[0] = take16(in);
	memcpy(gid, device.gid, sizeof gid);
	if (choice & 64)
		rig_twist(in, gid, 3 * sizeof *gid);
	port_change(&device, &to, true);
	if (choice & 128)
		engine_fail(engine);
	rig.has_other_port = true;
	engine_lend(engine);
}
