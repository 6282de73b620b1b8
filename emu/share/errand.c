/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errands; see errand.h.
 *
 * Both sides change a desk's state by compare-and-swap, so an errand is either taken back or taken,
 * never both.  Nobody who waits holds up who is to serve it: the owner's engine runs under the
 * owner's lock, and a holder of that lock who waits for an errand of its own does ours meanwhile.
 */
#include <errno.h>
#include <string.h>
#include "emu/mem/mem.h"
#include "emu/share/share_local.h"

/* --- who asks --- */

static bool is_state(struct share *s, unsigned i, enum desk_state state)
{
	return atomic_load_explicit(&s->header->desk[i].state, memory_order_acquire) ==
	       DESK(s->desk[i].turn, state);
}

/* Its bytes must not be used before the one that took them has done with them. */
static bool is_free(struct share *s, unsigned i)
{
	struct desk *desk = &s->desk[i];

	if (desk->is_lost && !is_state(s, i, DESK_DONE) &&
	    fabric_lives(s->fabric, desk->slot, desk->generation))
		return false;
	desk->is_lost = false;
	return true;
}

static int desk_find(struct share *s)
{
	unsigned i = 0;

	while (i < SHARE_DESKS && !is_free(s, i))
		i++;
	if (i == SHARE_DESKS)
		return -ENOMEM;
	if (!s->desk[i].has_bytes &&
	    share_reserve(s, offsetof(struct share_header, desk_bytes[i]), SHARE_ERRAND_BYTES))
		return -ENOMEM;
	s->desk[i].has_bytes = true;
	return (int)i;
}

static int desk_put(struct share *s, unsigned i, const struct share_peer *peer,
		    const struct share_ask *ask)
{
	struct share_desk *there = &s->header->desk[i];

	if (ask->in_bytes && mem_copy_in(s->header->desk_bytes[i], (uintptr_t)ask->in,
					 ask->in_bytes))
		return -EFAULT;
	there->slot = s->desk[i].slot = peer->slot;
	there->generation = s->desk[i].generation = peer->generation;
	memset(there->request, 0, sizeof there->request);
	memcpy(there->request, ask->request, ask->request_bytes);
	s->desk[i].turn++;
	atomic_store_explicit(&there->state, DESK(s->desk[i].turn, DESK_ASKED),
			      memory_order_release);
	return 0;
}

static int tell(struct share_peer *peer, const struct share_ask *ask)
{
	unsigned self = peer->share->self;

	if (share_bits_set((uintptr_t)&peer->header->asked[self / 64], UINT64_C(1) << self % 64))
		return -EFAULT;
	ask->call(ask->ctx);
	return 0;
}

/* While we serve others the peer's place may get a new member: the desk remembers the old one. */
static void await(struct share *s, unsigned i, const struct share_ask *ask)
{
	const struct desk *desk = &s->desk[i];
	struct patience patience = { 0 };

	while (!is_state(s, i, DESK_DONE) &&
	       patience_has_more(&patience, s, desk->slot, desk->generation))
		ask->idle(ask->ctx);
}

/* Take the request back.  False: it has been taken, and perhaps it is done by now. */
static bool take_back(struct share *s, unsigned i)
{
	uint32_t asked = DESK(s->desk[i].turn, DESK_ASKED);

	return atomic_compare_exchange_strong(&s->header->desk[i].state, &asked,
					      DESK(s->desk[i].turn, DESK_FREE));
}

static int answer(struct share *s, unsigned i, const struct share_ask *ask, uint64_t *value_out)
{
	const struct share_desk *desk = &s->header->desk[i];

	if (desk->rc)
		return -EFAULT;
	*value_out = desk->value;
	return ask->out_bytes ? mem_copy_out((uintptr_t)ask->out, s->header->desk_bytes[i],
					     ask->out_bytes) : 0;
}

int share_ask(struct share_peer *peer, const struct share_ask *ask, uint64_t *value_out)
{
	struct share *s = peer->share;
	int i = desk_find(s), rc;

	assert(ask->request_bytes <= SHARE_ASK_BYTES && ask->in_bytes <= SHARE_ERRAND_BYTES &&
	       ask->out_bytes <= SHARE_ERRAND_BYTES);
	if (i < 0)
		return i;
	if (!peer->header)
		return -ETIMEDOUT;
	rc = desk_put(s, (unsigned)i, peer, ask);
	if (rc)
		return rc;
	if (!tell(peer, ask))
		await(s, (unsigned)i, ask);
	if (take_back(s, (unsigned)i))
		return -ETIMEDOUT;
	s->desk[i].is_lost = !is_state(s, (unsigned)i, DESK_DONE);
	return s->desk[i].is_lost ? -ETIMEDOUT : answer(s, (unsigned)i, ask, value_out);
}

/* --- who is asked --- */

/* It is ours, and nobody has taken it back or taken it.  *state_out is what it became. */
static bool take(const struct share *s, uint64_t desk, uint32_t *state_out)
{
	uint32_t state, to[2], seen;

	if (mem_load32(desk + offsetof(struct share_desk, state), &state) ||
	    (state & 3) != DESK_ASKED ||
	    mem_copy_in(to, desk + offsetof(struct share_desk, slot), sizeof to) ||
	    to[0] != s->self || to[1] != s->generation)
		return false;
	*state_out = DESK(state >> 2, DESK_TAKEN);
	return !mem_compare_swap32(desk + offsetof(struct share_desk, state), state, *state_out,
				   &seen) && seen == state;
}

static void desk_end(uint64_t desk, uint32_t taken, int rc, uint64_t value)
{
	int32_t outcome = rc;
	uint32_t seen;

	if (!mem_copy_out(desk + offsetof(struct share_desk, rc), &outcome, sizeof outcome) &&
	    !mem_copy_out(desk + offsetof(struct share_desk, value), &value, sizeof value))
		mem_compare_swap32(desk + offsetof(struct share_desk, state), taken,
				   DESK(taken >> 2, DESK_DONE), &seen);
}

static void desk_do(struct share *s, const struct share_header *header, unsigned i,
		    share_errand_fn *errand, void *ctx)
{
	uint64_t desk = (uintptr_t)&header->desk[i];
	uint8_t request[SHARE_ASK_BYTES];
	struct share_errand e = {
		.request = request,
		.bytes = { (void *)(uintptr_t)header->desk_bytes[i], SHARE_ERRAND_BYTES },
	};
	uint32_t taken;
	int rc;

	if (!take(s, desk, &taken))
		return;
	rc = mem_copy_in(request, desk + offsetof(struct share_desk, request), sizeof request);
	if (!rc)
		rc = errand(ctx, &e);
	desk_end(desk, taken, rc, e.value);
}

static void asker_serve(struct share *s, unsigned slot, share_errand_fn *errand, void *ctx)
{
	struct share_peer *peer =
		share_peer_at(s, slot, fabric_generation(s->fabric, slot));

	for (unsigned i = 0; peer && i < SHARE_DESKS; i++)
		desk_do(s, peer->header, i, errand, ctx);
}

void share_errands_do(struct share *s, share_errand_fn *errand, void *ctx)
{
	for (unsigned word = 0; word < FABRIC_MEMBERS_MAX / 64; word++)
		for (uint64_t bits = atomic_exchange(&s->header->asked[word], 0); bits;
		     bits &= bits - 1)
			asker_serve(s, word * 64 + (unsigned)__builtin_ctzll(bits), errand, ctx);
}
