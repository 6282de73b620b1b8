/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line of the examples.
 *
 * options.def has a row for each option that several programs share; a program names
 * the letters that it takes, and brings rows for what only it has.  The usage text is made
 * from the rows, and the defaults in it from the values, so neither can be out of date.
 */
#ifndef EXAMPLES_OPTIONS_H
#define EXAMPLES_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

struct options {
	const char *server;		/* whom to connect to; NULL: wait for a client */
	const char *device;		/* NULL: the first one */
	int tcp_port;			/* where the two sides tell each other their addresses */
	int ib_port;
	int gid_index;			/* negative: none, addresses are LIDs */
	int size_bytes, mtu_bytes;
	int rx_depth, iterations, sl;
	int pair_count, client_count;
	bool wants_events, wants_check, wants_timestamps;
	bool wants_odp, wants_implicit_odp, wants_prefetch;
	bool wants_device_memory, wants_new_send;
	bool wants_list, wants_verbose;
};

#define OPTIONS_DEFAULT                                                                          \
	.tcp_port = 18515, .ib_port = 1, .gid_index = -1, .size_bytes = 4096, .mtu_bytes = 1024, \
	.rx_depth = 500, .iterations = 1000, .pair_count = 1, .client_count = 1

enum option_kind { OPTION_FLAG, OPTION_NUMBER, OPTION_MTU, OPTION_TEXT };

struct option_row {
	char letter;			/* 0 ends a table */
	const char *name;		/* of the long form */
	const char *value;		/* what its value is called in the usage text */
	const char *help;
	enum option_kind kind;
	size_t offset;			/* in struct options */
	int min, max;			/* of a number */
};

struct program {
	const char *summary;		/* what it does, for the usage text */
	const char *letters;		/* of shared options */
	const struct option_row *own;	/* options of its own; NULL: none */
	bool takes_server;
};

/* Fills @options, which hold the defaults; ends the program on --help and on a mistake. */
void options_parse(struct options *options, const struct program *program, int argc, char **argv);

#endif
