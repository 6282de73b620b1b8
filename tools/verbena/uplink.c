/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbena run --port-pcap, --port-tap: what is to be behind the port is looked at before the
 * program starts, because that would hear of it in its own words only when it opens the device.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "emu/mem/mem.h"
#include "emu/uplink/uplink.h"
#include "tools/verbena/verbena.h"

static int pcap_check(const char *names, struct uplink_said *said)
{
	struct uplink *u;
	int error = mem_guard_init();

	if (error)
		return error;
	error = uplink_pcap_open(names, &u, said);
	if (!error)
		u->ops->close(u);
	return error;
}

static int refuse(const char *option, const struct uplink_said *said, int error)
{
	if (error)
		fprintf(stderr, "verbena: %s: %s: %s\n", option, said->text, strerror(-error));
	return error ? EXIT_USAGE : 0;
}

int check_port_pcap(const char *names)
{
	struct uplink_said said = { "no capture can be read" };
	struct sigaction before[2];
	int error;

	/* The program shall find these as they were. */
	sigaction(SIGSEGV, NULL, &before[0]);
	sigaction(SIGBUS, NULL, &before[1]);
	error = pcap_check(names, &said);
	sigaction(SIGSEGV, &before[0], NULL);
	sigaction(SIGBUS, &before[1], NULL);
	return refuse("--port-pcap", &said, error);
}

int check_port_tap(const char *name)
{
	struct uplink_said said;
	int error = uplink_tap_check(name, &said);

	return refuse("--port-tap", &said, error);
}

/* A name that is in this directory, from wherever the program goes. */
static int path_print(char *out, const char *directory, const char *name, size_t length)
{
	bool is_relative = length && *name != '/';

	return sprintf(out, "%s%s%.*s", is_relative ? directory : "", is_relative ? "/" : "",
		       (int)length, name);
}

char *port_pcap_absolute(const char *names)
{
	char *directory = getcwd(NULL, 0), *list;
	size_t in = strcspn(names, ",");
	const char *out = names + in + (names[in] == ',');
	int end;

	if (!directory || strchr(directory, ',')) {
		free(directory);
		return strdup(names);	/* there is no better way to say it */
	}
	list = malloc(2 * strlen(directory) + strlen(names) + 4);
	if (list) {
		end = path_print(list, directory, names, in);
		list[end++] = ',';
		path_print(list + end, directory, out, strlen(out));
	}
	free(directory);
	return list;
}
