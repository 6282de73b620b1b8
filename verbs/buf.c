/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that the device reads by itself: rings and doorbell records.
 *
 * It must not be shared with a forked child by copy-on-write, see fork.c.  A parent domain or a
 * context may bring an allocator of its own; whatever that gives is taken as it is.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "verbs/context.h"
#include "verbs/fork.h"

static size_t page_bytes(void)
{
	static size_t bytes;

	if (!bytes)
		bytes = (size_t)sysconf(_SC_PAGESIZE);
	return bytes;
}

static size_t round_up(size_t bytes, size_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

/* --- huge pages --- */

#define HUGE_BYTES	((size_t)2 << 20)
#define HUGE_FLAGS	(MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | 21 << MAP_HUGE_SHIFT)

static bool wants_huge(uint64_t resource_type, const char *word)
{
	/* By the low word of MLX5DV_RES_TYPE_*; records are too small. */
	static const char *const variables[] = {
		NULL, "MLX_QP_ALLOC_TYPE", "MLX_RWQ_ALLOC_TYPE", NULL, "MLX_SRQ_ALLOC_TYPE",
		"MLX_CQ_ALLOC_TYPE",
	};
	uint32_t kind = (uint32_t)resource_type;
	const char *name = kind < sizeof variables / sizeof *variables ? variables[kind] : NULL;
	const char *value = name ? getenv(name) : NULL;

	return value && !strcmp(value, word);
}

/* As libmlx5 does it, but for sharing a page: each queue has its own. */
static int huge_alloc(struct vb_buf *b)
{
	size_t bytes = round_up(b->bytes, HUGE_BYTES);
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, HUGE_FLAGS, -1, 0);

	if (at == MAP_FAILED)
		return ENOMEM;
	if (vb_fork_keep(at, bytes)) {
		munmap(at, bytes);
		return ENOMEM;
	}
	b->at = at;
	b->bytes = bytes;
	b->is_huge = true;
	return 0;
}

static int plain_alloc(struct vb_buf *b)
{
	if (posix_memalign(&b->at, page_bytes(), b->bytes))
		return ENOMEM;
	if (vb_fork_keep(b->at, b->bytes)) {
		free(b->at);
		return ENOMEM;
	}
	return 0;
}

static int own_alloc(struct vb_buf *b)
{
	if (wants_huge(b->resource_type, "HUGE"))
		return huge_alloc(b);
	if (wants_huge(b->resource_type, "PREFER_HUGE") && !huge_alloc(b))
		return 0;
	return plain_alloc(b);
}

/* --- whose memory --- */

static int context_alloc(struct vb_buf *b, struct vb_context *c)
{
	b->at = c->allocators.alloc(b->bytes, c->allocators.data);
	b->context = b->at ? c : NULL;
	return b->at ? 0 : ENOMEM;
}

int vb_buf_alloc(struct vb_buf *b, struct vb_context *c, struct ibv_pd *pd, size_t bytes,
		 uint64_t resource_type)
{
	struct vb_pd *domain = pd ? vb_pd_of(pd) : NULL;
	int error = 0;

	*b = (struct vb_buf){ .bytes = round_up(bytes, page_bytes()),
			      .resource_type = resource_type };
	if (domain && domain->alloc) {
		b->at = domain->alloc(pd, domain->pd_context, b->bytes, page_bytes(),
				      resource_type);
		if (!b->at)
			return ENOMEM;
		if (b->at != IBV_ALLOCATOR_USE_DEFAULT)
			b->owner = pd;
	}
	if (!b->owner)
		error = c->allocators.alloc && c->allocators.free ? context_alloc(b, c) :
			own_alloc(b);
	if (error) {
		b->at = NULL;
		return error;
	}
	memset(b->at, 0, b->bytes);
	return 0;
}

void vb_buf_free(struct vb_buf *b)
{
	struct vb_pd *domain = b->owner ? vb_pd_of(b->owner) : NULL;

	if (!b->at)
		return;
	if (domain) {
		domain->free(b->owner, domain->pd_context, b->at, b->resource_type);
	} else if (b->context) {
		b->context->allocators.free(b->at, b->context->allocators.data);
	} else {
		vb_fork_release(b->at, b->bytes);
		if (b->is_huge)
			munmap(b->at, b->bytes);
		else
			free(b->at);
	}
	b->at = NULL;
}

/* --- doorbell records --- */

#define RECORD_BYTES	64u	/* a cache line each: the device and other queues do not share it */

struct vb_record_page {
	struct vb_record_page *next;
	struct vb_buf buf;
	unsigned count, used;
	uint64_t free[];	/* a bit for each */
};

static struct vb_record_page *record_page_new(void)
{
	unsigned count = (unsigned)(page_bytes() / RECORD_BYTES);
	struct vb_record_page *p = calloc(1, sizeof *p + (count + 63) / 64 * sizeof *p->free);

	if (!p)
		return NULL;
	p->buf.bytes = page_bytes();	/* of ours: records are found by their page */
	if (plain_alloc(&p->buf)) {
		free(p);
		return NULL;
	}
	memset(p->buf.at, 0, p->buf.bytes);
	p->count = count;
	for (unsigned i = 0; i < count; i++)
		p->free[i / 64] |= UINT64_C(1) << i % 64;
	return p;
}

static uint32_t *record_take(struct vb_record_page *p)
{
	unsigned word = 0, bit;
	uint32_t *record;

	while (!p->free[word])
		word++;
	bit = (unsigned)__builtin_ctzll(p->free[word]);
	p->free[word] &= p->free[word] - 1;
	p->used++;
	record = (uint32_t *)((char *)p->buf.at + (word * 64 + bit) * RECORD_BYTES);
	record[0] = record[1] = 0;
	return record;
}

/* Pages with room are in front. */
static uint32_t *record_alloc_locked(struct vb_context *c)
{
	struct vb_record_page *p = c->record_pages;

	if (!p || p->used == p->count) {
		p = record_page_new();
		if (!p)
			return NULL;
		p->next = c->record_pages;
		c->record_pages = p;
	}
	return record_take(p);
}

uint32_t *vb_record_alloc(struct vb_context *c)
{
	uint32_t *record;

	vb_lock(&c->record_lock);
	record = record_alloc_locked(c);
	vb_unlock(&c->record_lock);
	return record;
}

static struct vb_record_page **record_page_of(struct vb_context *c, const uint32_t *record)
{
	struct vb_record_page **at = &c->record_pages;
	uintptr_t page = (uintptr_t)record & ~(uintptr_t)(page_bytes() - 1);

	while ((uintptr_t)(*at)->buf.at != page)
		at = &(*at)->next;
	return at;
}

static void record_free_locked(struct vb_context *c, uint32_t *record)
{
	struct vb_record_page **at = record_page_of(c, record), *p = *at;
	unsigned i = (unsigned)((char *)record - (char *)p->buf.at) / RECORD_BYTES;

	p->free[i / 64] |= UINT64_C(1) << i % 64;
	*at = p->next;
	if (--p->used) {
		p->next = c->record_pages;
		c->record_pages = p;
	} else {
		vb_buf_free(&p->buf);
		free(p);
	}
}

void vb_record_free(struct vb_context *c, uint32_t *record)
{
	if (!record)
		return;
	vb_lock(&c->record_lock);
	record_free_locked(c, record);
	vb_unlock(&c->record_lock);
}
