/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes of another process that only its own engine may move: what is asked, and doing it for
 * others.  How it gets there and back is in emu/share/errand.h.
 *
 * The owner judges by its own keys at the moment of the move.
 */
#include <errno.h>
#include <string.h>
#include "emu/engine/engine_local.h"
#include "emu/mem/mem.h"
#include "emu/share/errand.h"

enum errand_op { ERRAND_READ, ERRAND_WRITE, ERRAND_SWAP };

struct request {
	uint32_t op;			/* enum errand_op */
	struct key_use use;
	uint64_t at;
	uint64_t compare, swap;
};

static_assert(sizeof(struct request) <= SHARE_ASK_BYTES, "fits on a desk");

/* --- for others --- */

static int move(const struct iovec *to, const struct iovec *from, size_t bytes)
{
	return mem_copy_spans(to, 1, 0, from, 1, 0, bytes) == MEM_SIDE_NONE ? 0 : -EFAULT;
}

static int swap(struct engine *e, const struct request *r, uint64_t *old_out)
{
	uint32_t old32;
	int rc = -EFAULT;

	home_atomics_lock(&e->dev->home);
	if (r->use.bytes == sizeof *old_out) {
		rc = mem_compare_swap(r->at, r->compare, r->swap, old_out);
	} else if (r->use.bytes == sizeof old32) {
		rc = mem_compare_swap32(r->at, (uint32_t)r->compare, (uint32_t)r->swap, &old32);
		*old_out = rc ? 0 : old32;
	}
	home_atomics_unlock(&e->dev->home);
	return rc;
}

static int errand(void *ctx, struct share_errand *errand)
{
	struct engine *e = ctx;
	struct request r;
	struct iovec memory;

	memcpy(&r, errand->request, sizeof r);
	if (r.use.bytes > errand->bytes.iov_len ||
	    key_own_check(&e->dev->keys, &r.use, &memory) != WHY_NONE ||
	    (uintptr_t)memory.iov_base != r.at)		/* registered elsewhere meanwhile */
		return -EFAULT;
	switch (r.op) {
	case ERRAND_READ:
		return move(&errand->bytes, &memory, r.use.bytes);
	case ERRAND_WRITE:
		return move(&memory, &errand->bytes, r.use.bytes);
	case ERRAND_SWAP:
		return swap(e, &r, &errand->value);
	}
	return -EFAULT;
}

static void errands_do(struct engine *e)
{
	atomic_store(e->wire->called, 0);
	share_errands_do(e->share, errand, e);
}

void errands_take(struct engine *e)
{
	if (e->share && e->wire && e->wire->called &&
	    __builtin_expect(atomic_load_explicit(e->wire->called, memory_order_relaxed), 0))
		errands_do(e);
}

/* --- of others --- */

struct asker {
	struct engine *e;
	unsigned slot;
};

static void owner_call(void *ctx)
{
	const struct asker *asker = ctx;
	struct wire *wire = asker->e->wire;

	wire->ops->call(wire, asker->slot);
}

static void others_serve(void *ctx)
{
	errands_take(((struct asker *)ctx)->e);
}

static int ask(struct engine *e, struct share_peer *peer, const struct request *r, const void *in,
	       void *out, uint64_t *value_out)
{
	struct asker asker = { e, share_peer_slot(peer) };
	const struct share_ask ask = {
		.request = r, .request_bytes = sizeof *r, .in = in, .out = out,
		.in_bytes = in ? r->use.bytes : 0, .out_bytes = out ? r->use.bytes : 0,
		.call = owner_call, .idle = others_serve, .ctx = &asker,
	};

	if (!e->wire || !e->wire->ops->call)
		return -EFAULT;
	return share_ask(peer, &ask, value_out) ? -EFAULT : 0;
}

/* As many errands as it takes, from the lowest address on. */
static int ask_in_parts(struct engine *e, struct share_peer *peer, const struct request *whole,
			const void *in, void *out)
{
	struct request part = *whole;
	uint64_t left = whole->use.bytes, value;
	int rc = 0;

	while (left && !rc) {
		part.use.bytes = left < SHARE_ERRAND_BYTES ? left : SHARE_ERRAND_BYTES;
		rc = ask(e, peer, &part, in, out, &value);
		in = in ? (const uint8_t *)in + part.use.bytes : NULL;
		out = out ? (uint8_t *)out + part.use.bytes : NULL;
		part.use.addr += part.use.bytes;
		part.at += part.use.bytes;
		left -= part.use.bytes;
	}
	return rc;
}

int errand_read(struct engine *e, struct share_peer *peer, const struct key_use *use, uint64_t at,
		void *to)
{
	return ask_in_parts(e, peer, &(struct request){ ERRAND_READ, *use, at, 0, 0 }, NULL, to);
}

int errand_write(struct engine *e, struct share_peer *peer, const struct key_use *use, uint64_t at,
		 const void *from)
{
	return ask_in_parts(e, peer, &(struct request){ ERRAND_WRITE, *use, at, 0, 0 }, from, NULL);
}

int errand_swap(struct engine *e, struct share_peer *peer, const struct key_use *use, uint64_t at,
		const uint64_t compare_swap[2], uint64_t *old_out)
{
	const struct request r = { ERRAND_SWAP, *use, at, compare_swap[0], compare_swap[1] };

	return ask(e, peer, &r, NULL, NULL, old_out);
}
