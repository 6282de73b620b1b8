/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory keys of other functions: what a QP on an imported protection domain may use.
 *
 * A key that the own table has not got is looked for in the segment of the function that the number
 * belongs to, and judged by the same rules.  What comes out is no memory of ours: the address leads
 * to a note of what was asked for, and when the bytes are moved it is asked again, announced to the
 * owner, so that nothing is touched after the owner has taken the key back.  Where the kernel does
 * not let us move them, the owner's engine does (errand.c), and judges again.
 */
#include <errno.h>
#include <sched.h>
#include "emu/engine/engine_local.h"
#include "emu/mem/mem.h"
#include "emu/share/share.h"

/* More than the pieces of any two messages: a note is used in the same step in which it is made. */
#define NOTES		1024u
#define LOCK_TRIES	1000

static struct note {
	struct engine *e;
	struct key_use use;
	uint64_t at;		/* where the use begins, in the owner's memory */
} notes[NOTES];
static unsigned note_next;	/* the device lock guards both: a process has one function */

static const struct key_entry *far_find(const void *ctx, uint32_t index, struct key_entry *room)
{
	return direct_key_read((struct share_peer *)(uintptr_t)ctx, index, room) ? NULL : room;
}

/* Has who exported the domain ended?  Its number may be somebody else's by now. */
static bool owner_is_gone(const struct emu_dev *dev, uint32_t pdn)
{
	const struct abroad *abroad = &dev->abroad;

	for (const struct emu_proxy *p = dev->proxies; p; p = p->next_of_all)
		if (((struct emu_pd *)p->obj)->pdn == pdn && p->hold)
			return abroad->generation_of(abroad->ctx, p->ref.slot) !=
			       p->ref.generation;
	return false;
}

static enum why far_enter(struct engine *e, const struct key_use *use, struct share_peer **out)
{
	bool has_owner;

	if (owner_is_gone(e->dev, use->pdn))
		return WHY_KEY_OWNER_GONE;
	*out = share_peer_of_key(e->share, KEY_INDEX(use->key), &has_owner);
	if (!*out)
		return has_owner ? WHY_KEY_OWNER_CLOSED : WHY_KEY_UNKNOWN;
	if (share_peer_is_beyond(*out))
		return WHY_KEY_OWNER_STOPPED;
	return share_begin(*out) ? WHY_NONE : WHY_KEY_OWNER_GONE;
}

static enum why far_ask(struct engine *e, const struct key_use *use, struct iovec *out,
			struct share_peer **peer)
{
	enum why why = far_enter(e, use, peer);

	if (why != WHY_NONE)
		return why;
	why = key_find_check(far_find, *peer, use, out);
	if (why == WHY_NONE && ((uintptr_t)out->iov_base + use->bytes) >> MEM_FAR_BITS)
		why = WHY_KEY_RANGE;
	if (why != WHY_NONE)
		share_end(*peer);
	return why;
}

static enum why far_check(void *ctx, const struct key_use *use, struct iovec *out)
{
	unsigned index = note_next++ % NOTES;
	struct share_peer *peer;
	struct iovec memory;
	enum why why = far_ask(ctx, use, &memory, &peer);

	if (why != WHY_NONE)
		return why;
	share_end(peer);
	notes[index] = (struct note){ ctx, *use, (uintptr_t)memory.iov_base };
	out->iov_base = (void *)(uintptr_t)(MEM_FAR | (uint64_t)index << MEM_FAR_BITS |
					    notes[index].at);
	out->iov_len = use->bytes;
	return WHY_NONE;
}

/* --- moving --- */

/* What a far address means, and who owns it. */
struct far {
	struct engine *e;
	struct share_peer *peer;
	struct key_use use;
	uint64_t at;
};

/* In: share_end(far->peer) follows. */
static int far_open(uint64_t addr, size_t bytes, struct far *far)
{
	const struct note *note = &notes[addr >> MEM_FAR_BITS & (NOTES - 1)];
	struct iovec memory;

	*far = (struct far){ .e = note->e, .use = note->use };
	far->at = addr & ((UINT64_C(1) << MEM_FAR_BITS) - 1);
	far->use.addr += far->at - note->at;
	far->use.bytes = bytes;
	if (!far->e || far_ask(far->e, &far->use, &memory, &far->peer) != WHY_NONE)
		return -EFAULT;
	if ((uintptr_t)memory.iov_base == far->at)
		return 0;
	share_end(far->peer);		/* registered elsewhere meanwhile */
	return -EFAULT;
}

static int far_read(uint64_t addr, void *to, size_t bytes)
{
	const struct iovec here = { to, bytes };
	struct far far;
	int rc = far_open(addr, bytes, &far);

	if (rc)
		return rc;
	rc = share_memory_read(far.peer, &here, 1, far.at, bytes);
	share_end(far.peer);
	if (rc == -EPERM)
		rc = errand_read(far.e, far.peer, &far.use, far.at, to);
	return rc ? -EFAULT : 0;
}

static int far_write(uint64_t addr, const void *from, size_t bytes)
{
	const struct iovec here = { (void *)(uintptr_t)from, bytes };
	struct far far;
	int rc = far_open(addr, bytes, &far);

	if (rc)
		return rc;
	rc = share_memory_write(far.peer, far.at, &here, 1, bytes);
	share_end(far.peer);
	if (rc == -EPERM)
		rc = errand_write(far.e, far.peer, &far.use, far.at, from);
	return rc ? -EFAULT : 0;
}

/* Two system calls, under the lock that the owner's own atomics take. */
static int swap_locked(const struct far *far, const uint64_t compare_swap[2], uint64_t *old)
{
	struct iovec there = { old, far->use.bytes };
	struct iovec here = { (void *)(uintptr_t)&compare_swap[1], far->use.bytes };
	int rc;

	*old = 0;
	rc = share_memory_read(far->peer, &there, 1, far->at, far->use.bytes);
	if (!rc && *old == compare_swap[0])
		rc = share_peer_atomics_held(far->peer) ?
		     share_memory_write(far->peer, far->at, &here, 1, far->use.bytes) : -EAGAIN;
	return rc;
}

static int far_compare_swap(uint64_t addr, unsigned bytes, uint64_t compare, uint64_t swap,
			    uint64_t *old_out)
{
	const uint64_t compare_swap[2] = { compare, swap };
	struct far far;
	int rc = far_open(addr, bytes, &far);

	if (rc)
		return rc;
	rc = -EAGAIN;
	for (int i = 0; i < LOCK_TRIES && rc == -EAGAIN; i++) {
		if (!share_peer_atomics_lock(far.peer))
			continue;
		rc = swap_locked(&far, compare_swap, old_out);
		share_peer_atomics_unlock(far.peer);
	}
	share_end(far.peer);
	if (rc == -EPERM)
		rc = errand_swap(far.e, far.peer, &far.use, far.at, compare_swap, old_out);
	return rc ? -EFAULT : 0;
}

static const struct mem_far_ops far_ops = {
	.read = far_read, .write = far_write, .compare_swap = far_compare_swap,
};

void abroad_keys_begin(struct engine *e)
{
	if (!e->share || !e->dev->abroad.ctx)
		return;
	mem_far = &far_ops;
	e->dev->keys.far = far_check;
	e->dev->keys.far_ctx = e;
}

void abroad_keys_end(struct engine *e)
{
	for (unsigned i = 0; i < NOTES; i++)
		if (notes[i].e == e)
			notes[i].e = NULL;
}
