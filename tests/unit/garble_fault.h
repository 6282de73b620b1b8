/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Putting one fault into each row of every command, and judging what comes of it: the errno, that
 * nothing changed, that nothing leaked, one reason.
 *
 * What a fault must give is stated by the test and not taken from the dispatcher.  Where a fault is
 * seen only by a command that has worked otherwise, a row without values that work must answer as
 * it does without the fault.
 */
#ifndef TESTS_UNIT_GARBLE_FAULT_H
#define TESTS_UNIT_GARBLE_FAULT_H
#include <stdio.h>
#include "emu/uverbs/handlers.h"
#include "tests/unit/garble.h"

/* A fault that can be put into a row of a command. */
struct fault {
	bool (*hits)(const struct command *c, const struct uv_attr *row);
	void (*spoil)(struct command *c, unsigned i);
	/* @whole: what the command gives when nothing is wrong. */
	int (*want)(const struct command *c, const struct uv_attr *row, int whole);
	unsigned channels;		/* bits of enum channel */
};

static struct command command;
static int whole_results[CHANNEL_COUNT][256];
static bool is_whole_known[CHANNEL_COUNT][256];

static inline void world_for(const struct uv_method *m)
{
	static bool is_begun, has_context;

	if (!is_begun)
		garble_begin(!m->before_context);
	else if (has_context == m->before_context)
		garble_again(!m->before_context);
	is_begun = true;
	has_context = !m->before_context;
}

static inline int whole_result(enum channel channel, const struct uv_method *m, unsigned k)
{
	if (!is_whole_known[channel][k]) {
		command_make(&command, channel, m);
		whole_results[channel][k] = command_run(&command);
		is_whole_known[channel][k] = true;
		garble_again(!m->before_context);
	}
	return whole_results[channel][k];
}

/* What was destroyed stays so, as in the kernel, if only the answer had nowhere to go. */
static inline bool is_told_too_late(const struct uv_method *m, int result)
{
	return result == -EFAULT && has_kind(m, UV_DESTROY) && has_kind(m, UV_OUT);
}

/* libibverbs asks with an empty INVOKE_WRITE whether there is one; that is no failure. */
static inline bool is_probe(const struct command *c)
{
	int in = buffer_row(c->method, UVERBS_ATTR_CORE_IN);
	int out = buffer_row(c->method, UVERBS_ATTR_CORE_OUT);

	if (c->channel == BY_IOCTL)
		return c->method->run == on_invoke_write;
	return c->channel == BY_INVOKE && !c->part[in].is_given &&
	       (out < 0 || !c->part[out].is_given);
}

static inline void refused_check(const struct command *c, const struct inventory *before,
				 uint64_t reasons, const char *name)
{
	struct inventory after = inventory_take();
	uint64_t made = device.why->made - reasons;

	cr_assert(!memcmp(before, &after, sizeof after), "%s changed something", name);
	cr_assert(made == 1 || (made == 0 && is_probe(c)), "%s: %d reasons", name, (int)made);
}

static inline void command_check(const struct command *c, const char *where, int want)
{
	static const char *const names[] = { "ioctl", "INVOKE_WRITE", "write" };
	struct inventory before = inventory_take();
	uint64_t reasons = device.why->made;
	int got = command_run(c);
	char name[128];

	snprintf(name, sizeof name, "%s by %s, %s", c->method->name, names[c->channel], where);
	cr_assert(got == want, "%s: %d, want %d", name, got, want);
	if (got && !is_told_too_late(c->method, got))
		refused_check(c, &before, reasons, name);
	else
		garble_again(!c->method->before_context);
}

static inline unsigned command_try(const struct fault *f, enum channel channel,
			    const struct uv_method *m, unsigned k)
{
	unsigned tried = 0;

	for (unsigned i = 0; m->run && i < m->attr_count; i++) {
		int whole;

		world_for(m);
		command_make(&command, channel, m);
		if (!f->hits(&command, &m->attr[i]))
			continue;
		whole = whole_result(channel, m, k);
		command_make(&command, channel, m);
		f->spoil(&command, i);
		command_check(&command, m->attr[i].name, f->want(&command, &m->attr[i], whole));
		tried++;
	}
	return tried;
}

/* How many commands were tried. */
static inline unsigned fault_try(const struct fault *f)
{
	unsigned tried = 0;

	for (enum channel by = BY_IOCTL; by < CHANNEL_COUNT; by++) {
		const struct uv_method *table = by == BY_IOCTL ? uv_methods : uv_commands;
		unsigned count = by == BY_IOCTL ? uv_method_count : uv_command_count;

		for (unsigned k = 0; k < count && f->channels >> by & 1; k++)
			tried += command_try(f, by, &table[k], k);
	}
	return tried;
}

enum { IN_IOCTL = 1 << BY_IOCTL, IN_INVOKE = 1 << BY_INVOKE, IN_WRITE = 1 << BY_WRITE };
#define IN_ATTRIBUTES	(IN_IOCTL | IN_INVOKE)
#define EVERYWHERE	(IN_ATTRIBUTES | IN_WRITE)
#define FAULT_TRY(channels_, hits_, spoil_, want_)					\
	fault_try(&(const struct fault){ .channels = channels_, .hits = hits_, .spoil = spoil_, \
					 .want = want_ })
#define FAULT(...)					\
	do {						\
		cr_assert(FAULT_TRY(__VA_ARGS__) > 0);	\
		garble_end();				\
	} while (0)

/* --- what hits, and what is wanted --- */

static inline bool is_there(const struct command *c, const struct uv_attr *row)
{
	return c->part[row - c->method->attr].is_given;
}

/* The driver's structures follow the core's in a plain write(): what one lacks is taken from the
 * next, and what one has too much is the next's. */
static inline bool is_before_driver_data(const struct command *c, const struct uv_attr *row)
{
	uint16_t next = row->kind == UV_OUT ? UVERBS_ATTR_UHW_OUT : UVERBS_ATTR_UHW_IN;

	return c->channel == BY_WRITE && !is_extended(c->method) && is_core_buffer(row) &&
	       buffer_row(c->method, next) >= 0;
}

/* An extended command by write() may go unanswered. */
static inline bool is_mandatory(const struct command *c, const struct uv_attr *row)
{
	bool is_answer = is_command(c->method) && row->id == UVERBS_ATTR_CORE_OUT;

	if (is_before_driver_data(c, row))
		return false;
	if (is_answer)
		return !(c->channel == BY_WRITE && is_extended(c->method));
	return is_there(c, row) && row->need == UV_MANDATORY;
}

static inline bool is_there_as_number(const struct command *c, const struct uv_attr *row)
{
	return is_there(c, row) && is_number(row);
}

static inline bool is_handle(const struct command *c, const struct uv_attr *row)
{
	return (row->kind == UV_USE || row->kind == UV_DESTROY) && row->obj != OBJ_NONE &&
	       !is_without(c, row);
}

static inline bool is_descriptor_row(const struct command *c, const struct uv_attr *row)
{
	return row->kind == UV_FD_USE && !is_without(c, row);
}

static inline int want_einval(const struct command *c, const struct uv_attr *row, int whole)
{
	(void)c, (void)row, (void)whole;
	return -EINVAL;
}

static inline int want_enoent(const struct command *c, const struct uv_attr *row, int whole)
{
	(void)c, (void)row, (void)whole;
	return -ENOENT;
}

static inline int want_ebadf(const struct command *c, const struct uv_attr *row, int whole)
{
	(void)c, (void)row, (void)whole;
	return -EBADF;
}

static inline int want_whole(const struct command *c, const struct uv_attr *row, int whole)
{
	(void)c, (void)row;
	return whole;
}

/* The core structures of a write command have an errno of their own. */
static inline int want_size(const struct command *c, const struct uv_attr *row, int whole)
{
	(void)whole;
	return c->channel != BY_IOCTL && is_core_buffer(row) ? -ENOSPC : -EINVAL;
}
static inline bool is_first(const struct command *c, const struct uv_attr *row)
{
	return row == c->method->attr;
}

static inline int want_efault_if_whole(const struct command *c, const struct uv_attr *row,
				       int whole)
{
	(void)c, (void)row;
	return whole ? whole : -EFAULT;
}
#endif
