/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How rows of the command tables are written.  Only for methods.c and commands.c.
 */
#ifndef EMU_UVERBS_ROWS_H
#define EMU_UVERBS_ROWS_H
#include "emu/uverbs/dispatch.h"

#define offsetofend(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))
#define ARRAY_SIZE(array) (sizeof(array) / sizeof *(array))

#define ROW(id_, kind_, need_, ...) \
	{ .name = #id_, .id = id_, .kind = kind_, .need = need_, __VA_ARGS__ }

/* Fixed sizes, and structures that may grow beyond @last. */
#define IN(id, type, need) \
	ROW(id, UV_IN, need, .min = sizeof(type), .size = sizeof(type))
#define IN_STRUCT(id, type, last, need) \
	ROW(id, UV_IN, need, .min = offsetofend(type, last), .size = sizeof(type), .grows = true)
#define IN_ARRAY(id, type) \
	ROW(id, UV_IN, UV_MANDATORY, .min = sizeof(type), .size = sizeof(type), .is_array = true)
/* One of these, with @bytes_of it: a @type, or nothing. */
#define CHOICE(id, type, bytes_of)							\
	ROW(id, UV_ENUM, UV_MANDATORY, .size = sizeof(type), .choice_bytes = bytes_of,	\
	    .choices = ARRAY_SIZE(bytes_of))
/* Handles of objects that this device never has; the handler says so. */
#define USE_ARRAY(id) \
	ROW(id, UV_IN, UV_OPTIONAL, .min = sizeof(uint32_t), .size = sizeof(uint32_t),	\
	    .is_array = true)
#define FLAGS(id, known) \
	ROW(id, UV_FLAGS, UV_OPTIONAL, .min = 4, .size = 8, .flags = known)
#define OUT(id, type, need) \
	ROW(id, UV_OUT, need, .min = sizeof(type), .size = sizeof(type))
#define OUT_STRUCT(id, type, last, need) \
	ROW(id, UV_OUT, need, .min = offsetofend(type, last), .size = sizeof(type), .grows = true)
#define OUT_ARRAY(id, min_, need) \
	ROW(id, UV_OUT, need, .min = min_, .grows = true, .keeps_tail = true)
#define RAW(id, min_) \
	ROW(id, UV_RAW, UV_OPTIONAL, .min = min_, .grows = true)

/* What the mlx5 driver adds. */
#define UHW_IN(type, last, need) IN_STRUCT(UVERBS_ATTR_UHW_IN, type, last, need)
#define UHW_OUT(type) \
	ROW(UVERBS_ATTR_UHW_OUT, UV_OUT, UV_OPTIONAL, .size = sizeof(type), .grows = true, \
	    .keeps_tail = true)
/* A structure with a list behind it, which the handler reads with uv_list(). */
#define CORE_IN_LIST(type, last)							\
	ROW(UVERBS_ATTR_CORE_IN, UV_IN, UV_MANDATORY, .min = offsetofend(struct type, last), \
	    .size = offsetofend(struct type, last), .grows = true, .has_list = true)

/* Driver data that may be there as long as it is zero. */
#define UHW_NOTHING		ROW(UVERBS_ATTR_UHW_IN, UV_IN, UV_OPTIONAL, .grows = true)

/* Driver data that the command takes and this driver does not look at. */
#define UHW_IGNORED		RAW(UVERBS_ATTR_UHW_IN, 0)

/* Objects.  A type of OBJ_NONE is one that this device never has. */
#define NEW(id, type)		ROW(id, UV_NEW, UV_MANDATORY, .obj = type)
#define USE(id, type, need)	ROW(id, UV_USE, need, .obj = type)
#define IMPORT(id, type)	ROW(id, UV_USE, UV_MANDATORY, .obj = type, .imports = true)
#define DESTROY(id, type)	ROW(id, UV_DESTROY, UV_MANDATORY, .obj = type)
#define FD_NEW(id, type)	ROW(id, UV_FD_NEW, UV_MANDATORY, .obj = type)
#define FD_USE(id, type)	ROW(id, UV_FD_USE, UV_OPTIONAL, .obj = type)

/* Write commands: the core structures, and the numbers inside them.  That CORE_OUT is there
 * where it must be is for uv_command_check(). */
#define CORE_IN(type, last)	IN_STRUCT(UVERBS_ATTR_CORE_IN, struct type, last, UV_MANDATORY)
#define CORE_OUT(type, last)	OUT_STRUCT(UVERBS_ATTR_CORE_OUT, struct type, last, UV_OPTIONAL)
#define CORE_AT(id, kind, type, in, field) \
	ROW(id, kind, UV_MANDATORY, .obj = type, .place = UV_CORE, .at = offsetof(struct in, field))

#define CORE_AT_IF(condition, id_, kind_, type, in, field)			\
	ROW(id_, kind_, UV_MANDATORY, .obj = type, .place = UV_CORE,		\
	    .at = offsetof(struct in, field), .applies = condition)

#define ATTRS(...)								\
	.attr = (const struct uv_attr[]){ __VA_ARGS__ },			\
	.attr_count = ARRAY_SIZE(((const struct uv_attr[]){ __VA_ARGS__ }))
#endif
