/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One row of the table: "bench ROW".  Run by bench.py, under `verbena run`.
 *
 * Prints a line a round: "round subject=... reference=...", in ns.
 */
#include <stdio.h>
#include <string.h>
#include "bench.h"
#include "rows.h"

static const struct row {
	const char *name;
	void (*run)(void);
	bool is_pinned;			/* rows of two processes see to it themselves */
} rows[] = {
	{ "write_8",		row_write_8,		true },
	{ "write_8_alone",	row_write_8_alone,	true },
	{ "send_8",		row_send_8,		true },
	{ "send_8_alone",	row_send_8_alone,	true },
	{ "batch",		row_batch,		true },
	{ "write_1m",		row_write_1m,		true },
	{ "register",		row_register,		true },
	{ "register_large",	row_register_large,	true },
	{ "open",		row_open,		true },
	{ "round_robin",	row_round_robin,	false },
	{ "random",		row_random,		false },
	{ "idle",		row_idle,		false },
	{ "connect",		row_connect,		true },
	{ "frame",		row_frame,		false },
	{ "pair_write_1m",	row_pair_write_1m,	false },
	{ "pair_send",		row_pair_send,		false },
	{ "pair_write",		row_pair_write,		false },
	{ "pair_read",		row_pair_read,		false },
	{ "pair_fetch_add",	row_pair_fetch_add,	false },
	{ "event",		row_event,		false },
	{ "unarmed",		row_unarmed,		false },
	{ "crowd",		row_crowd,		false },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < sizeof rows / sizeof *rows; i++) {
		if (strcmp(argv[1], rows[i].name))
			continue;
		clock_start();
		if (rows[i].is_pinned)
			pin(0);
		rows[i].run();
		return 0;
	}
	fprintf(stderr, "usage: bench ROW; rows are called:");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		fprintf(stderr, " %s", rows[i].name);
	fputc('\n', stderr);
	return 2;
}
