/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines of ibv_devinfo: a label, and a member of a structure written in one of several ways.
 * Labels, and the names of values, are those that scripts look for.
 *
 *   devinfo_lines.c    the ways to write
 *   devinfo_tables.c   what there is to write
 */
#ifndef EXAMPLES_DEVINFO_H
#define EXAMPLES_DEVINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>

/* A value that has a name, or a bit that has. */
struct name {
	uint64_t value;
	const char *text;		/* NULL ends a table */
};

struct line {
	const char *label;		/* NULL ends a table */
	void (*write)(const struct line *line, const void *member);
	size_t offset, size;		/* of the member */
	const char *format;		/* of a number, as 64 bits */
	const struct name *names;
};

/* The values of @lines, members of @structure, with labels behind @depth tabs. */
void lines_print(unsigned depth, const struct line *lines, const void *structure);
void label_print(unsigned depth, const char *label);

/* Ways to write; each ends the line. */
void write_number(const struct line *line, const void *member);		/* as the format says */
void write_named(const struct line *line, const void *member);		/* name (number) */
void write_bits(const struct line *line, const void *member);		/* number; a line a bit */
void write_high_bits(const struct line *line, const void *member);	/* only bits from 32 on */
void write_text(const struct line *line, const void *member);
void write_guid(const struct line *line, const void *member);

/* Only the names of bits, a line each. */
void bits_print(const struct name *names, uint64_t bits);

/* devinfo_tables.c: what belongs to a device in short, the rest of it, and a port. */
void print_identity(const struct ibv_device *device, const struct ibv_device_attr_ex *attr);
void print_capabilities(const struct ibv_device_attr_ex *attr);
void print_port_state(const struct ibv_port_attr *attr);
void print_port_details(const struct ibv_port_attr *attr, bool has_physical_state);

#endif
