/* SPDX-License-Identifier: BSD-2-Clause */
/* Ways to write a member of a structure; see devinfo.h. */
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "examples/devinfo.h"

enum { TAB = 8, DEVICE_COLUMN = 5 * TAB, DEEPER_COLUMN = 6 * TAB };

/* Values stand below each other, whatever the length of the label. */
void label_print(unsigned depth, const char *label)
{
	unsigned end = depth == 1 ? DEVICE_COLUMN : DEEPER_COLUMN;
	unsigned at = depth * TAB + (unsigned)strlen(label) + 1;

	printf("%.*s%s:", (int)depth, "\t\t\t", label);
	do {
		putchar('\t');
		at = (at / TAB + 1) * TAB;
	} while (at < end);
}

void lines_print(unsigned depth, const struct line *lines, const void *structure)
{
	for (; lines->label; lines++) {
		label_print(depth, lines->label);
		lines->write(lines, (const char *)structure + lines->offset);
	}
}

static uint64_t value_of(const struct line *line, const void *member)
{
	union {
		uint8_t one;
		uint16_t two;
		uint32_t four;
		uint64_t eight;
	} value = { .eight = 0 };

	memcpy(&value, member, line->size);
	switch (line->size) {
	case 1:
		return value.one;
	case 2:
		return value.two;
	case 4:
		return value.four;
	default:
		return value.eight;
	}
}

void write_number(const struct line *line, const void *member)
{
	printf(line->format, value_of(line, member));
	putchar('\n');
}

/* The last row of the names is for values that have none. */
void write_named(const struct line *line, const void *member)
{
	uint64_t value = value_of(line, member);
	const struct name *name = line->names;

	while (name->value != value && name[1].text)
		name++;
	printf("%s (%" PRIu64 ")\n", name->text, value);
}

void bits_print(const struct name *names, uint64_t bits)
{
	for (; names->text; names++) {
		if (bits & names->value)
			printf("\t\t\t\t\t%s\n", names->text);
		bits &= ~names->value;
	}
	if (bits)
		printf("\t\t\t\t\tUnknown flags: 0x%" PRIX64 "\n", bits);
}

void write_bits(const struct line *line, const void *member)
{
	write_number(line, member);
	bits_print(line->names, value_of(line, member));
}

void write_high_bits(const struct line *line, const void *member)
{
	write_number(line, member);
	bits_print(line->names, value_of(line, member) >> 32 << 32);
}

void write_text(const struct line *line, const void *member)
{
	printf("%.*s\n", (int)line->size, (const char *)member);
}

void write_guid(const struct line *line, const void *member)
{
	uint64_t guid = be64toh(value_of(line, member));

	for (int shift = 48; shift >= 0; shift -= 16)
		printf("%04" PRIx64 "%s", guid >> shift & 0xffff, shift ? ":" : "\n");
}
