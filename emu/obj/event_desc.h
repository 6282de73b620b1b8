/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events as the application reads them.
 *
 * Source: device-abi B.10.
 */
#ifndef EMU_OBJ_EVENT_DESC_H
#define EMU_OBJ_EVENT_DESC_H
#include <assert.h>
#include <stdint.h>
#include "emu/obj/event.h"

struct event_async {
	uint64_t element;		/* the object's user_handle, or a port number */
	uint32_t type;
	uint32_t reserved;
};
static_assert(sizeof(struct event_async) == EVENT_ASYNC_BYTES, "uverbs ABI");

/* Tell @async (may be NULL) that @type happened to @tag. */
static inline void event_async_push(struct emu_channel *async, const void *tag,
				    uint64_t element, uint32_t type)
{
	struct event_async event = { .element = element, .type = type };

	if (async)
		channel_push(async, &event, tag);
}
#endif
