/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-sided operations without the target: where the peer's segment and memory can be reached,
 * the requester's thread executes WRITE, READ and atomics itself.
 *
 * Here the transport's rc_remote meets the segment (emu/share).  Whatever does not go this way
 * becomes a packet as ever, and the target's engine judges it.
 */
#include <errno.h>
#include <string.h>
#include "emu/engine/engine_local.h"
#include "emu/share/share.h"

struct direct {
	struct share_peer *peer;
	uint32_t qpn;
};

/* What its owner wrote before it opened the responder, and who executed before the PSN, is read
 * after: both are loaded with acquire. */
static int direct_load(void *ctx, uint32_t psn, struct rc_resp *out)
{
	struct direct *d = ctx;
	uint32_t expected, is_open;

	if (share_load32(d->peer, SHARE_RESPONDER, d->qpn, offsetof(struct rc_resp, psn_expected),
			 &expected) || expected != psn)
		return -EAGAIN;
	if (share_load32(d->peer, SHARE_RESPONDER, d->qpn, offsetof(struct rc_resp, is_open),
			 &is_open) || !is_open)
		return -ENOTCONN;
	if (share_read(d->peer, SHARE_RESPONDER, d->qpn, 0, out, sizeof *out))
		return -ENOENT;
	return out->psn_expected == psn ? 0 : -EAGAIN;
}

static void direct_store(void *ctx, const struct rc_resp *r)
{
	struct direct *d = ctx;
	size_t from = offsetof(struct rc_resp, msn);

	share_write(d->peer, SHARE_RESPONDER, d->qpn, from, (const uint8_t *)r + from,
		    sizeof *r - from);
	share_store32(d->peer, SHARE_RESPONDER, d->qpn, offsetof(struct rc_resp, psn_expected),
		      r->psn_expected);
}

static_assert(offsetof(struct key_entry, is_valid) == 0, "in the first word");

/* is_valid first and with acquire: the rest of a key that is valid is complete. */
int direct_key_read(struct share_peer *peer, uint32_t index, struct key_entry *out)
{
	uint32_t first;
	uint8_t is_valid;

	if (share_load32(peer, SHARE_KEY, index, 0, &first))
		return -ENOENT;
	memcpy(&is_valid, &first, sizeof is_valid);
	return is_valid ? share_read(peer, SHARE_KEY, index, 0, out, sizeof *out) : -ENOENT;
}

static int direct_key(void *ctx, uint32_t index, struct key_entry *out)
{
	return direct_key_read(((struct direct *)ctx)->peer, index, out);
}

static int direct_write(void *ctx, uint64_t to, const struct iovec *from, unsigned count,
			size_t bytes)
{
	return share_memory_write(((struct direct *)ctx)->peer, to, from, count, bytes);
}

static int direct_read(void *ctx, const struct iovec *to, unsigned count, uint64_t from,
		       size_t bytes)
{
	return share_memory_read(((struct direct *)ctx)->peer, to, count, from, bytes);
}

static bool direct_atomics_lock(void *ctx)
{
	return share_peer_atomics_lock(((struct direct *)ctx)->peer);
}

static bool direct_atomics_held(void *ctx)
{
	return share_peer_atomics_held(((struct direct *)ctx)->peer);
}

static void direct_atomics_unlock(void *ctx)
{
	share_peer_atomics_unlock(((struct direct *)ctx)->peer);
}

bool direct_execute(struct engine *e, struct emu_qp *qp, const struct ib_packet *p)
{
	struct direct d = { share_peer_find(e->share, qp->dest_qpn), qp->dest_qpn };
	const struct rc_remote remote = {
		.load = direct_load, .store = direct_store, .key = direct_key,
		.write = direct_write, .read = direct_read, .atomics_lock = direct_atomics_lock,
		.atomics_held = direct_atomics_held, .atomics_unlock = direct_atomics_unlock,
		.ctx = &d,
	};
	uint64_t original;
	bool is_done;

	if (!d.peer || !share_begin(d.peer))
		return false;
	is_done = rc_execute_remotely(&e->tp, qp, &remote, p, &original);
	share_end(d.peer);
	if (is_done)
		rc_executed(&e->tp, qp, p, original);
	return is_done;
}
