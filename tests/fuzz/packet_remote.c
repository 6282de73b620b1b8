/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-sided requests that the device executes in the peer's memory, where the fuzzer is that
 * memory: responder and keys are what the input makes of right ones.  See packet.h.
 */
#include "emu/engine/engine_local.h"
#include "emu/mem/mem.h"
#include "tests/fuzz/packet.h"

struct remote {
	struct input *in;
	const struct emu_qp *qp;	/* the requester */
	const struct ib_packet *p;
};

/* A responder that takes the request. */
static int remote_load(void *ctx, uint32_t psn, struct rc_resp *out)
{
	const struct remote *m = ctx;
	uint8_t choice = take8(m->in);
	struct rc_resp r = {
		.is_open = 1, .peer_qpn = m->qp->qpn, .pdn = 1, .access = 0xe, .pkey = 0xffff,
		.mtu_bytes = m->qp->mtu_bytes, .resource_limit = 16, .psn_expected = psn,
	};

	memcpy(r.sgid, m->p->dgid, sizeof r.sgid);
	memcpy(r.dgid, m->p->sgid, sizeof r.dgid);
	if (choice & 2)
		rig_twist(m->in, &r, sizeof r);
	memcpy(out, &r, sizeof r);
	return choice & 1 ? -1 : 0;
}

static void remote_store(void *ctx, const struct rc_resp *r)
{
	(void)ctx;
	assert(r->psn_expected <= 0xffffff && r->msn <= 0xffffff);
}

static int remote_key(void *ctx, uint32_t index, struct key_entry *out)
{
	const struct remote *m = ctx;
	uint8_t choice = take8(m->in);

	(void)index;
	memset(out, 0, sizeof *out);
	out->is_valid = 1;
	out->tag = (uint8_t)m->p->rkey;
	out->access = 0xf;
	out->pdn = 1;
	out->start = m->p->va & ~UINT64_C(0xfff);
	out->bytes = 1u << 20;
	out->memory = 0x7000;
	if (choice & 2)
		rig_twist(m->in, out, sizeof *out);
	return choice & 1 ? -1 : 0;
}

/* What leaves us: bytes that a key allows to read, or that stand in the work request. */
static int remote_write(void *ctx, uint64_t to, const struct iovec *from, unsigned count,
			size_t bytes)
{
	const struct remote *m = ctx;
	size_t sum = 0;

	(void)to;
	for (unsigned i = 0; i < count; i++)
		sum += from[i].iov_len;
	assert(sum == bytes);
	return take8(m->in) & 1 ? -1 : 0;
}

/* What comes to us; rig_check() sees if a byte went anywhere else than a key allows. */
static int remote_read(void *ctx, const struct iovec *to, unsigned count, uint64_t from,
		       size_t bytes)
{
	const struct remote *m = ctx;
	static uint8_t data[1 << 20];
	const struct iovec src = { data, sizeof data };

	(void)from;
	assert(bytes <= sizeof data);
	if (take8(m->in) & 1)
		return -1;
	memset(data, 0x77, bytes);
	return mem_copy_spans(to, count, 0, &src, 1, 0, bytes) == MEM_SIDE_NONE ? 0 : -1;
}

static bool remote_lock(void *ctx)
{
	return !(take8(((const struct remote *)ctx)->in) & 1);
}

static void remote_unlock(void *ctx)
{
	(void)ctx;
}

/* The next request of a QP, as the engine takes it: executed, or sent after all. */
void packet_do_execute(struct input *in)
{
	struct emu_qp *qp = rig.side[take8(in) & 1].qp;
	struct ib_packet p;
	struct remote m = { in, qp, &p };
	uint64_t original = 0;
	const struct rc_remote remote = {
		.load = remote_load, .store = remote_store, .key = remote_key,
		.write = remote_write, .read = remote_read, .atomics_lock = remote_lock,
		.atomics_held = remote_lock, .atomics_unlock = remote_unlock, .ctx = &m,
	};

	if (!transport_of(qp)->is_direct || qp->state != QP_RTS)
		return;
	pthread_mutex_lock(&device.lock);
	tp_doorbell(&engine->tp, qp);
	if (rc_req_next(&engine->tp, qp, 1 << 20, &p)) {
		packet_check(&p);
		if (rc_execute_remotely(&engine->tp, qp, &remote, &p, &original))
			rc_executed(&engine->tp, qp, &p, original);
		else
			rc_req_sent(&engine->tp, qp, &p);
	}
	engine_qp_kick(engine, qp);
	pthread_mutex_unlock(&device.lock);
}

/* A peer that is broken writes into what of our responder it may change. */
void packet_do_break(struct input *in)
{
	struct side *s = &rig.side[take8(in) & 1];
	struct rc_resp *r = s->qp->resp;
	size_t from = offsetof(struct rc_resp, psn_expected);

	if (take8(in) & 1)
		r->mtu_bytes = take16(in);
	rig_twist(in, (uint8_t *)r + from, sizeof *r - from);
	s->psn_expected = r->psn_expected;
	rig.is_broken = true;
}
