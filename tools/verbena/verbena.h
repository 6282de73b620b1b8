/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of the verbena command.
 *
 * Exit status: 2 for a wrong use of verbena itself; otherwise what the subcommand says.
 */
#ifndef TOOLS_VERBENA_H
#define TOOLS_VERBENA_H
#include <stdbool.h>
#include <stddef.h>

#define EXIT_USAGE		2
#define EXIT_CANNOT_EXECUTE	126	/* as shells have it */
#define EXIT_NOT_FOUND		127

/* One line on stderr; returns EXIT_USAGE. */
int usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Take the option at **arguments, which begins with '-', and its value.  0 or what to exit with.
 * @places_only: only --fabric and --node. */
int option_take(const char *command, bool places_only, char ***arguments);
int check_node(const char *value);

/* Of --port-pcap and --port-tap: 0, or what to exit with, which was said.  A recording is begun. */
int check_port_pcap(const char *names);
int check_port_tap(const char *name);
/* The same files from wherever a program goes.  Allocated; NULL without memory, or a directory. */
char *port_pcap_absolute(const char *names);

/* verbena port, pkey, gid, device */
int port_main(int argc, char **argv);

/* verbena run: returns only if the program could not be started. */
int run_main(int argc, char **argv);

/* The shim that belongs to this executable; the folder of our libraries.  0, or -errno */
int preload_find(char *out, size_t bytes);
int own_find(char *out, size_t bytes);

/*
 * LD_PRELOAD with @shim (NULL: none) in front of @before (may be NULL), which keeps everything but
 * an earlier shim: a nested run does not load two.  Allocated; NULL without memory.
 */
char *preload_list(const char *sanitizer, const char *shim, const char *before);

/* LD_LIBRARY_PATH with @folder in front of @before (may be NULL) if @is_wanted, else without it.
 * Allocated; NULL without memory. */
char *library_path(const char *folder, bool is_wanted, const char *before);
#endif
