/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring of reasons, and their texts.
 *
 * Must not allocate: it runs under the device lock, wherever something is refused.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "emu/diag/why.h"

struct why_text { const char *name, *sentence, *look_at, *rule; };

static const struct why_text why_texts[WHY_COUNT] = {
	[WHY_NONE] = { "WHY_NONE", "nothing was refused", "", "" },
#define WHY(id, what, look_at, rule) [WHY_##id] = { "WHY_" #id, what, look_at, rule },
#include "emu/diag/why.def"
#undef WHY
};

static const struct why_text *text_of(enum why why)
{
	static const struct why_text none = { "WHY_?", "an unknown reason", "", "" };

	return (unsigned)why < WHY_COUNT ? &why_texts[why] : &none;
}

const char *why_name(enum why why)
{
	return text_of(why)->name;
}

const char *why_sentence(enum why why)
{
	return text_of(why)->sentence;
}

const char *why_look_at(enum why why)
{
	return text_of(why)->look_at;
}

const char *why_rule(enum why why)
{
	return text_of(why)->rule;
}

static const char *const side_names[] = {
	[WHY_SIDE_SEND] = "send", [WHY_SIDE_RECV] = "recv",
	[WHY_SIDE_COMMAND] = "command", [WHY_SIDE_DEVICE] = "device",
};

/* Text that grows up to @bytes; @length is what all of it would need. */
struct line { char *out; unsigned bytes, length; };

__attribute__((format(printf, 2, 3)))
static void add(struct line *line, const char *format, ...)
{
	unsigned used = line->length < line->bytes ? line->length : line->bytes;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line->out + used, line->bytes - used, format, args);
	va_end(args);
	if (n > 0)
		line->length += n;
}

static void add_place(struct line *line, const struct why_record *r)
{
	if ((unsigned)r->side < sizeof side_names / sizeof *side_names)
		add(line, " %s", side_names[r->side]);
	if (r->qpn)
		add(line, " qp 0x%x", r->qpn);
	if (r->peer_qpn)
		add(line, " peer 0x%x", r->peer_qpn);
	if (r->qpn && r->side <= WHY_SIDE_RECV)
		add(line, " wqe %u opcode 0x%02x psn 0x%06x", r->wqe_index, r->opcode, r->psn);
}

static void add_values(struct line *line, const struct why_record *r)
{
	if (r->key)
		add(line, " key 0x%08x", r->key);
	if (r->addr || r->bytes)
		add(line, " asked 0x%" PRIx64 "+%" PRIu64, r->addr, r->bytes);
	if (r->found || r->found_bytes)
		add(line, " found 0x%" PRIx64 "+%" PRIu64, r->found, r->found_bytes);
}

int why_print(const struct why_record *record, char *out, unsigned bytes)
{
	const struct why_text *text = text_of(record->why);
	struct line line = { out, bytes, 0 };

	add(&line, "verbena: %s", text->name);
	add_place(&line, record);
	add_values(&line, record);
	add(&line, ": %s; look at: %s; rule: %s", text->sentence, text->look_at, text->rule);
	return line.length;
}

static void print_on_stderr(const struct why_record *record)
{
	char text[512];
	ssize_t written;
	int before;
	int length = why_print(record, text, sizeof text - 1);

	if (length > (int)sizeof text - 2)
		length = sizeof text - 2;
	text[length] = '\n';
	/* A cancellation point, and the caller holds the device lock. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	written = write(STDERR_FILENO, text, length + 1);
	pthread_setcancelstate(before, NULL);
	(void)written;		/* if nobody listens, the ring still has it */
}

void why_note(struct why_ring *ring, const struct why_record *record)
{
	if (!ring)
		return;
	ring->record[ring->made++ % WHY_KEPT] = *record;
	if (ring->is_printing)
		print_on_stderr(record);
}

const struct why_record *why_find(const struct why_ring *ring, uint32_t qpn,
				  enum why_side side, uint16_t wqe_index)
{
	uint64_t kept = ring->made < WHY_KEPT ? ring->made : WHY_KEPT;

	for (uint64_t age = 1; age <= kept; age++) {
		const struct why_record *r = &ring->record[(ring->made - age) % WHY_KEPT];

		if (r->qpn == qpn && r->side == side && r->wqe_index == wqe_index)
			return r;
	}
	return NULL;
}
