/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of the examples; see options.h. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/fail.h"
#include "examples/options.h"

enum { ROWS_MAX = 24 };

static const struct option_row shared_rows[] = {
#define OPTION(letter, name, value, kind, member, min, max, help)                              \
	{ letter, name, value, help, OPTION_##kind, offsetof(struct options, member), min, max },
#include "examples/options.def"
#undef OPTION
	{ 0 },
};

/* The rows that count for one program, its own first. */
struct rows {
	const struct option_row *row[ROWS_MAX];
	size_t count;
};

static void rows_add(struct rows *rows, const struct option_row *table, const char *letters)
{
	for (; table && table->letter && rows->count < ROWS_MAX; table++)
		if (!letters || strchr(letters, table->letter))
			rows->row[rows->count++] = table;
}

static const struct option_row *rows_find(const struct rows *rows, int letter)
{
	for (size_t i = 0; i < rows->count; i++)
		if (rows->row[i]->letter == letter)
			return rows->row[i];
	return NULL;
}

static void print_default(const struct option_row *row, const struct options *options)
{
	const void *at = (const char *)options + row->offset;

	if (row->kind == OPTION_NUMBER || row->kind == OPTION_MTU) {
		int value = *(const int *)at;

		if (value > 0)
			printf(" (%d)", value);
	}
}

static void print_usage(const struct program *program, const struct rows *rows,
			const struct options *options)
{
	printf("usage: %s [OPTION]...%s\n\n", program_invocation_short_name,
	       program->takes_server ? " [SERVER]" : "");
	printf("%s\n", program->summary);
	if (program->takes_server)
		printf("Start it without SERVER first, then with the host where that runs.\n");
	printf("\n");
	for (size_t i = 0; i < rows->count; i++) {
		const struct option_row *row = rows->row[i];
		char both[32];

		snprintf(both, sizeof both, "--%s%s%s", row->name, row->value ? "=" : "",
			 row->value ? row->value : "");
		printf("  -%c, %-18s %s", row->letter, both, row->help);
		print_default(row, options);
		printf("\n");
	}
	printf("  -h, %-18s %s\n", "--help", "print this and exit");
}

static int number_of(const struct option_row *row, const char *text)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 0);
	if (errno || end == text || *end)
		fail_usage("--%s takes a number, not \"%s\"", row->name, text);
	if (row->kind == OPTION_NUMBER && (value < row->min || value > row->max))
		fail_usage("--%s takes %d to %d, not %s", row->name, row->min, row->max, text);
	return (int)value;
}

static int mtu_of(const struct option_row *row, const char *text)
{
	int value = number_of(row, text);

	if (value < 256 || value > 4096 || (value & (value - 1)))
		fail_usage("--%s takes 256, 512, 1024, 2048 or 4096, not %s", row->name, text);
	return value;
}

static void store(struct options *options, const struct option_row *row, const char *text)
{
	void *at = (char *)options + row->offset;

	switch (row->kind) {
	case OPTION_FLAG:
		*(bool *)at = true;
		break;
	case OPTION_NUMBER:
		*(int *)at = number_of(row, text);
		break;
	case OPTION_MTU:
		*(int *)at = mtu_of(row, text);
		break;
	case OPTION_TEXT:
		*(const char **)at = text;
		break;
	}
}

/* What getopt_long() wants to know of the rows. */
static void describe(const struct rows *rows, char *letters, struct option *names)
{
	for (size_t i = 0; i < rows->count; i++) {
		const struct option_row *row = rows->row[i];

		*letters++ = row->letter;
		if (row->kind != OPTION_FLAG)
			*letters++ = ':';
		*names++ = (struct option){
			row->name, row->kind != OPTION_FLAG, NULL, row->letter,
		};
	}
	*letters++ = 'h';
	*letters = '\0';
	*names = (struct option){ "help", no_argument, NULL, 'h' };
}

void options_parse(struct options *options, const struct program *program, int argc, char **argv)
{
	const struct options defaults = *options;
	struct option names[ROWS_MAX + 2] = { 0 };
	char letters[2 * ROWS_MAX + 2];
	struct rows rows = { .count = 0 };
	int letter;

	rows_add(&rows, program->own, NULL);
	rows_add(&rows, shared_rows, program->letters);
	describe(&rows, letters, names);
	while ((letter = getopt_long(argc, argv, letters, names, NULL)) != -1) {
		if (letter == 'h') {
			print_usage(program, &rows, &defaults);
			exit(EXIT_SUCCESS);
		}
		if (letter == '?')
			fail_usage("that is no option of mine, or it lacks its value");
		store(options, rows_find(&rows, letter), optarg);
	}
	if (program->takes_server && optind < argc)
		options->server = argv[optind++];
	if (optind < argc)
		fail_usage("\"%s\" is one argument too many", argv[optind]);
}
