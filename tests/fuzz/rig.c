/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rig's objects, and what must hold of them; see rig.h.
 */
#include <endian.h>
#include <sys/mman.h>
#include "emu/transport/psn.h"
#include "hw-models/mlx5_cqe.h"
#include "hw-models/mlx5_wqe.h"
#include "tests/fuzz/rig.h"

enum { ALL_REMOTE = KEY_REMOTE_WRITE | KEY_REMOTE_READ | KEY_REMOTE_ATOMIC };

struct rig rig;
struct rig_memory *rig_memory;

static struct rig_memory known;		/* what the application knows to be in its memory */
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

/* Keys have addresses of their own, the same in every process. */
static uint64_t iova_of(unsigned key)
{
	return ((uint64_t)key + 1) << 32;
}

/* What each key covers. */
static const struct { size_t at, bytes; uint32_t access; } keys[RIG_KEYS] = {
	[KEY_OWN] = { offsetof(struct rig_memory, data[0][RIG_MARGIN]),
		      RIG_DATA_BYTES - 2 * RIG_MARGIN, KEY_LOCAL_WRITE | ALL_REMOTE },
	[KEY_OTHER] = { offsetof(struct rig_memory, data[1][RIG_MARGIN]),
			RIG_DATA_BYTES - 2 * RIG_MARGIN, KEY_LOCAL_WRITE | ALL_REMOTE },
	[KEY_FIXED] = { offsetof(struct rig_memory, fixed), RIG_PAGE, KEY_REMOTE_READ },
	[KEY_FOREIGN] = { offsetof(struct rig_memory, foreign), RIG_PAGE,
			  KEY_LOCAL_WRITE | ALL_REMOTE },
};

static void key_open(unsigned key)
{
	uint64_t at = (uintptr_t)rig_memory + keys[key].at;
	int failed = mr_create(&device, rig.pd[key == KEY_FOREIGN], at, keys[key].bytes,
			       iova_of(key) + (at & (RIG_PAGE - 1)), keys[key].access,
			       &rig.mr[key]);

	assert(!failed);
	rig.key[key] = rig.mr[key]->key;
}

static void cq_open(void)
{
	struct cq_init init = {
		.cqe = RIG_CQES - 1, .cqe_bytes = 64, .buf_addr = (uintptr_t)rig_memory->cqes,
		.db_addr = (uintptr_t)rig_memory->cq_record, .async = async, .channel = channel,
	};
	int failed = cq_create(&device, &init, &rig.cq);

	assert(!failed);
	rig.cqes_seen = 0;
	rig.is_lying = rig.is_broken = false;
}

static void side_open(unsigned i)
{
	struct side *s = &rig.side[i];
	struct qp_init init = {
		.type = QPT_RC, .pd = rig.pd[0], .send_cq = rig.cq, .recv_cq = rig.cq,
		.async = async, .sq_blocks = RIG_BLOCKS, .rq_count = RIG_RECVS,
		.rq_stride = RIG_STRIDE, .user_index = 0x100 + i,
		.buf_addr = (uintptr_t)rig_memory->queue[i],
		.db_addr = (uintptr_t)rig_memory->record[i],
	};
	int failed;

	memset(s, 0, sizeof *s);
	s->queue = rig_memory->queue[i];
	s->record = rig_memory->record[i];
	failed = qp_create(&device, &init, &s->qp);
	assert(!failed);
}

static void modify(struct side *s, struct qp_attr *attr, uint32_t mask)
{
	int failed = qp_modify(&device, s->qp, attr, mask | A_STATE);

	assert(!failed);
	engine_qp_kick(engine, s->qp);
}

static void side_connect(struct side *s)
{
	const struct rig_config *c = &rig.config;
	struct qp_attr init = { .state = QP_INIT, .port = 1, .access = c->access };
	struct qp_attr rtr = { .state = QP_RTR, .path_mtu = c->mtu, .dest_qpn = s->peer_qpn,
		.rq_psn = c->psn, .max_dest_rd_atomic = c->max_rd, .min_rnr_timer = 12,
		.path = { .is_global = 1, .port = 1 } };
	struct qp_attr rts = { .state = QP_RTS, .timeout = c->timeout, .retry_cnt = c->retry,
		.rnr_retry = c->rnr_retry, .sq_psn = c->psn, .max_rd_atomic = c->max_rd };

	memcpy(rtr.path.dgid, s->peer_gid, 16);
	modify(s, &init, A_PKEY | A_PORT | A_ACCESS);
	modify(s, &rtr, A_AV | A_MTU | A_DEST_QPN | A_RQ_PSN | A_MAX_DEST_RD | A_MIN_RNR);
	modify(s, &rts, A_TIMEOUT | A_RETRY | A_RNR | A_SQ_PSN | A_MAX_RD);
	s->psn_una = s->psn_expected = c->psn;
}

static struct rig_config config_take(struct input *in)
{
	static const uint8_t rnr_retries[] = { 1, 0, 2, RIG_FOR_EVER }, retries[] = { 2, 0, 7, 1 };
	static const uint8_t mtus[] = { 3, 1, 2, 4 }, reads[] = { 4, 0, 1, 16 };
	uint8_t a = take8(in), b = take8(in);

	return (struct rig_config){
		.rnr_retry = rnr_retries[a & 3], .retry = retries[a >> 2 & 3],
		.psn = a & 16 ? 0xfffffe : 100, .is_to_itself = a & 32,
		.timeout = a & 64 ? 0 : a & 128 ? 31 : 14, .mtu = mtus[b & 3],
		.max_rd = reads[b >> 2 & 3], .access = ALL_REMOTE & ~(uint32_t)(b >> 4),
	};
}

static void memory_fill(void)
{
	memset(rig_memory, 0x5a, sizeof *rig_memory);
	memset(rig_memory->record, 0, sizeof rig_memory->record);
	memset(rig_memory->cq_record, 0, sizeof rig_memory->cq_record);
	memset(rig_memory->cqes, 0xff, sizeof rig_memory->cqes);
	memcpy(&known, rig_memory, sizeof known);
}

void rig_open(struct input *in, uint32_t peer_qpn, const uint8_t peer_gid[16])
{
	int failed;

	memory_fill();
	rig.config = config_take(in);
	failed = pd_create(&device, &rig.pd[0]) || pd_create(&device, &rig.pd[1]);
	assert(!failed);
	for (unsigned key = 0; key < RIG_KEYS; key++)
		key_open(key);
	cq_open();
	side_open(0);
	side_open(1);
	for (unsigned i = 0; i < 2; i++) {
		unsigned to = rig.config.is_to_itself ? i : !i;

		rig.side[i].peer_qpn = peer_qpn ? peer_qpn : rig.side[to].qp->qpn;
		memcpy(rig.side[i].peer_gid, peer_qpn ? peer_gid : device.gid[0].raw, 16);
		side_connect(&rig.side[i]);
	}
}

void rig_close(void)
{
	uint32_t events, more_events;
	int failed = 0;

	for (unsigned i = 0; i < 2; i++) {
		engine_qp_forget(engine, rig.side[i].qp);
		failed |= qp_destroy(&device, rig.side[i].qp, &events);
	}
	engine_cq_forget(engine, rig.cq);
	failed |= cq_destroy(&device, rig.cq, &events, &more_events);
	for (unsigned key = 0; key < RIG_KEYS; key++)
		if (rig.mr[key])
			failed |= mr_destroy(&device, rig.mr[key]);
	failed |= pd_destroy(&device, rig.pd[0]) | pd_destroy(&device, rig.pd[1]);
	assert(!failed);
	memset(rig.mr, 0, sizeof rig.mr);
	device_rewind();
}

void rig_write(void *at, const void *bytes, size_t count)
{
	size_t offset = (size_t)((uint8_t *)at - (uint8_t *)rig_memory);

	assert(offset + count <= sizeof known);
	memcpy(at, bytes, count);
	memcpy((uint8_t *)&known + offset, bytes, count);
}

/* --- keys --- */

uint32_t rig_key(struct input *in, unsigned side, uint64_t *addr_out)
{
	uint8_t choice = take8(in);
	unsigned key = (choice & 7) < 2 ? (choice & 1) ^ side : choice & 7;
	uint64_t offset = take16(in) % (RIG_DATA_BYTES + RIG_MARGIN);

	*addr_out = iova_of(key % RIG_KEYS) + keys[key % RIG_KEYS].at % RIG_PAGE + offset;
	if (choice & 8)
		*addr_out = take64(in);
	if (key < RIG_KEYS)
		return rig.key[key] + (choice & 16);
	return key == RIG_KEYS ? HW_LKEY_END : take32(in);
}

void rig_do_rekey(struct input *in)
{
	unsigned key = take8(in) % RIG_KEYS;
	int failed;

	if (!rig.mr[key]) {
		key_open(key);
		return;
	}
	failed = mr_destroy(&device, rig.mr[key]);
	assert(!failed);
	rig.mr[key] = NULL;
}

/* --- rules --- */

#define REGION(first, bytes) { offsetof(struct rig_memory, first), bytes }

/* Where the device must never write. */
static const struct { size_t at, bytes; } untouchable[] = {
	REGION(data[0][0], RIG_MARGIN),
	REGION(data[0][RIG_DATA_BYTES - RIG_MARGIN], 2 * RIG_MARGIN),	/* and of data[1] */
	REGION(data[1][RIG_DATA_BYTES - RIG_MARGIN], RIG_MARGIN),
	REGION(fixed, RIG_PAGE),
	REGION(foreign, RIG_PAGE),
	REGION(queue, 2 * RIG_QUEUE_BYTES),
	REGION(record, sizeof known.record),
	REGION(cq_record, sizeof known.cq_record),
	REGION(behind, RIG_MARGIN),
};

static void memory_check(void)
{
	for (size_t i = 0; i < sizeof untouchable / sizeof *untouchable; i++)
		assert(!memcmp((uint8_t *)rig_memory + untouchable[i].at,
			       (uint8_t *)&known + untouchable[i].at, untouchable[i].bytes));
}

bool rig_owns(const struct iovec *span)
{
	uintptr_t at = (uintptr_t)span->iov_base - (uintptr_t)rig_memory, end = at + span->iov_len;

	for (unsigned key = 0; key < KEY_FOREIGN; key++)
		if (at >= keys[key].at && end >= at && end <= keys[key].at + keys[key].bytes)
			return true;
	return false;
}

static struct side *side_of(uint32_t qpn)
{
	for (unsigned i = 0; i < 2; i++)
		if (rig.side[i].qp->qpn == qpn)
			return &rig.side[i];
	return NULL;
}

static void syndrome_check(const struct mlx5_cqe_error *cqe)
{
	bool is_known = false;

	for (unsigned i = 1; i < HW_STATUS_COUNT; i++)
		is_known |= hw_syndromes[i].syndrome == mlx5_cqe_error_syndrome(cqe);
	assert(is_known);
}

/* In the order of posting, each once: of receives all of them, of sends those that asked. */
static void cqe_check(const void *bytes)
{
	const struct mlx5_cqe *cqe = bytes;
	uint32_t kind = mlx5_cqe_kind(cqe);
	struct side *s = side_of(mlx5_cqe_qpn(cqe));
	uint16_t counter = (uint16_t)mlx5_cqe_wqe_counter(cqe);

	assert(s && mlx5_cqe_user_index(cqe) == s->qp->user_index);
	assert(kind <= HW_CQE_RECV_INV || kind == HW_CQE_REQ_ERR || kind == HW_CQE_RECV_ERR);
	assert(!mlx5_cqe_format(cqe));
	if (kind == HW_CQE_REQ_ERR || kind == HW_CQE_RECV_ERR)
		syndrome_check(bytes);
	if (kind == HW_CQE_REQ || kind == HW_CQE_REQ_ERR) {
		assert((uint16_t)(counter - s->sent_from) <
		       (uint16_t)(s->qp->req.sq_done - s->sent_from));
		s->sent_from = counter + 1;
	} else {
		assert(counter == s->recv_next);
		s->recv_next = counter + 1;
	}
}

/* Ownership by the rule of the driver. */
static void cqes_check(void)
{
	for (;;) {
		const uint8_t *cqe = rig_memory->cqes[rig.cqes_seen % RIG_CQES];
		unsigned owner = rig.cqes_seen / RIG_CQES & 1;

		if (cqe[63] >> 4 == HW_CQE_INVALID || (cqe[63] & 1) != owner)
			break;
		cqe_check(cqe);
		rig.cqes_seen++;
	}
	assert(rig.cqes_seen == rig.cq->produced);
}

static void side_check(const struct side *s)
{
	const struct rc_req *r = &s->qp->req;
	const struct rc_answers *p = &s->qp->answers;
	bool is_sent = r->sent_head == r->sent_tail && r->sq_next == r->sq_produced &&
		       r->sq_done == r->sq_produced;

	if (s->qp->state == QP_ERR)
		assert(is_sent && p->rq_consumed == p->rq_produced);
	else if (s->qp->state == QP_RTS && rig.config.timeout)
		assert(is_sent);
}

static void side_watch(struct side *s)
{
	const struct rc_req *r = &s->qp->req;
	const struct rc_resp *p = s->qp->resp;

	assert(r->sq_produced - r->sq_done <= RIG_BLOCKS);
	assert(r->sq_next - r->sq_done <= r->sq_produced - r->sq_done);
	assert(r->sent_tail - r->sent_head <= RIG_BLOCKS);
	assert(r->send_at - r->sent_head <= r->sent_tail - r->sent_head);
	assert(s->qp->answers.rq_produced - s->qp->answers.rq_consumed <= RIG_RECVS);
	if (s->qp->state != QP_RTS)
		return;
	assert(psn_diff(r->psn_una, s->psn_una) >= 0);
	assert(psn_diff(p->psn_expected, s->psn_expected) >= 0);
	s->psn_una = r->psn_una;
	s->psn_expected = p->psn_expected;
}

void rig_watch(void)
{
	side_watch(&rig.side[0]);
	side_watch(&rig.side[1]);
}

void rig_check(bool is_quiet)
{
	device_check_lock();
	memory_check();
	if (!rig.is_lying)
		cqes_check();
	for (unsigned i = 0; is_quiet && i < 2; i++)
		side_check(&rig.side[i]);
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
		side_connect(s);
}
