/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See foreign_library.h.  With FAKE_IS_OLD it has only what a list of devices takes; with
 * FAKE_IS_OURS it has what tells us from others.
 *
 * Each verb is defined under a C name of its own, because what it takes and returns is not what the
 * headers say: its first argument and its answer are words, whatever they mean.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "tests/verbs/foreign_library.h"
#include "verbs/foreign.h"

static struct fake_state state;
static struct fake_device devices[FAKE_DEVICES] = {
	{ { .name = "other_0", .dev_name = "uverbs7" }, &state },
	{ { .name = "mlx5_0", .dev_name = "uverbs0" }, &state },
	{ { .name = "other_1", .dev_name = "uverbs8" }, &state },
};

/* --- what does something --- */

static intptr_t list_make(void *unused)
{
	struct ibv_device **list = calloc(FAKE_DEVICES + 1, sizeof *list);

	(void)unused;
	for (unsigned i = 0; list && i < FAKE_DEVICES; i++)
		list[i] = &devices[i].device;
	state.lists++;
	return (intptr_t)list;
}

static intptr_t list_free(void *list)
{
	free(list);
	state.lists--;
	return 0;
}

static int poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
	(void)wc;
	state.polled = cq;
	return count;
}

static intptr_t device_open(void *device)
{
	struct fake_context *c = calloc(1, sizeof *c);

	if (!c)
		return 0;
	c->verbs.context.device = device;
	c->verbs.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	c->verbs.context.ops.poll_cq = poll_cq;
	c->verbs.sz = sizeof c->verbs;
	c->as_made = c->verbs;
	state.contexts++;
	return (intptr_t)&c->verbs.context;
}

static intptr_t context_close(void *context)
{
	free(fake_context_of(context));
	state.contexts--;
	return 0;
}

static intptr_t fork_init(void *unused)
{
	(void)unused;
	state.forks++;
	return state.fork_answer;
}

/* The others answer what no verb answers by itself. */
static intptr_t (*const acts[FOREIGN_NAMES])(void *object) = {
	[FOREIGN_ibv_get_device_list] = list_make,
	[FOREIGN_ibv_free_device_list] = list_free,
	[FOREIGN_ibv_open_device] = device_open,
	[FOREIGN_ibv_close_device] = context_close,
	[FOREIGN_ibv_fork_init] = fork_init,
};

static intptr_t call(enum foreign_name name, void *object)
{
	state.called = name;
	state.object = object;
	state.error_before = errno;
	errno = FAKE_ERROR;
	return acts[name] ? acts[name](object) : FAKE_ANSWER;
}

/* --- what is exported --- */

#define EXPORT_AS(symbol, name)						\
	intptr_t fake_##symbol(void *object) __asm__(#symbol);		\
	__attribute__((visibility("default")))				\
	intptr_t fake_##symbol(void *object)				\
	{								\
		return call(FOREIGN_##name, object);			\
	}
#define EXPORT(name) EXPORT_AS(name, name)

#ifdef FAKE_IS_OLD
EXPORT(ibv_get_device_list)
EXPORT(ibv_free_device_list)
EXPORT(ibv_open_device)
EXPORT(ibv_close_device)
#else
#define FOREIGN_VERB(name, answer) EXPORT(name)
#include "verbs/foreign.def"
#endif

#ifdef FAKE_IS_OURS
EXPORT_AS(vb_dv_is_ours, ibv_get_device_list)
#endif
