/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looking at what nobody tells of: what programs wrote into doorbell pages, the time that they
 * read in clock pages, and what somebody outside did to the port.
 *
 * A doorbell page is memory that nobody is told about when it changes, so somebody has to look.
 * What is found counts as a ring only if it was news: the patched operations write there too, and
 * tell of it.  A register may have been overwritten since the last look; the records of the QPs
 * are what counts, and a QP that rings again later is found then.
 * Source: device-abi B.5 (registers), C.5 (values).
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "emu/engine/engine_local.h"

enum { PAGE_ARM = 0x20, PAGE_SEND = 0x800, PAGE_SEND_STRIDE = 0x100 };

static uint64_t page_read(const struct doorbell_page *page, unsigned offset)
{
	return *(const volatile uint64_t *)(page->at + offset);
}

static void page_look(struct engine *e, struct doorbell_page *page)
{
	for (unsigned i = 0; i < sizeof page->seen / sizeof *page->seen; i++) {
		uint64_t raw = page_read(page, PAGE_SEND + i * PAGE_SEND_STRIDE);
		uint32_t qpn = (uint32_t)be64toh(raw) >> 8;
		struct emu_qp *qp;

		if (raw == page->seen[i])
			continue;
		page->seen[i] = raw;
		qp = qp_find(e->dev, qpn);
		if (!qp || !tp_has_doorbell(qp))
			continue;
		e->page_rings++;
		doorbell_serve(e, qpn);
	}
}

static void page_look_arm(struct engine *e, struct doorbell_page *page)
{
	uint64_t raw = page_read(page, PAGE_ARM);
	struct emu_cq *cq;
	bool was_armed;
	uint32_t arm_sn;

	if (raw == page->seen_arm)
		return;
	page->seen_arm = raw;
	cq = numbers_find(&e->dev->cqns, (uint32_t)be64toh(raw) & 0xffffff);
	if (!cq)
		return;
	was_armed = cq->arm != CQ_NOT_ARMED;
	arm_sn = cq->arm_sn;
	engine_cq_arm(e, cq);
	e->page_rings += was_armed != (cq->arm != CQ_NOT_ARMED) || arm_sn != cq->arm_sn;
}

void look_outside(struct engine *e)
{
	clock_refresh(e->dev);
	if (e->look && e->look(e->look_ctx))
		doze_tell(e);
}

void engine_look_with(struct engine *e, bool (*look)(void *ctx), void *ctx, bool lingers)
{
	e->look = look;
	e->look_ctx = ctx;
	e->lingers = lingers;
}

void pages_scan(struct engine *e)
{
	for (unsigned i = 0; i < e->page_count; i++) {
		page_look(e, &e->page[i]);
		page_look_arm(e, &e->page[i]);
	}
}

int engine_page_add(struct engine *e, const volatile void *at)
{
	struct doorbell_page *page;

	if (e->page_count == e->page_size) {
		unsigned size = e->page_size ? e->page_size * 2 : 16;

		page = realloc(e->page, size * sizeof *page);
		if (!page)
			return -ENOMEM;
		e->page = page;
		e->page_size = size;
	}
	e->page[e->page_count++] = (struct doorbell_page){ .at = at };
	atomic_store(&e->wants_look, true);
	return 0;
}

void engine_watch(struct engine *e, int by)
{
	if (atomic_fetch_add(&e->watched, by) || by < 0)
		return;
	atomic_store(&e->wants_look, true);
	if (e->wire)
		e->wire->ops->kick(e->wire);
}

void engine_page_remove(struct engine *e, const volatile void *at)
{
	for (unsigned i = 0; i < e->page_count; i++) {
		if (e->page[i].at != at)
			continue;
		e->page[i] = e->page[--e->page_count];
		return;
	}
}
