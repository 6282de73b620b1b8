/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbena port, pkey, gid, device: what happens to the ports of a fabric.
 *
 * One row a command.  It edits what stands of the port in the fabric, then waits until the programs
 * that run there have seen it, so that a script may go on as if it had pulled the cable.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "emu/fabric/port.h"
#include "emu/wire/wire.h"
#include "tools/verbena/verbena.h"

#define LID_LAST	0xbfff
#define WAIT_NAPS	5000		/* of a millisecond */

/* What was asked. */
struct request {
	const char *fabric;
	unsigned node;			/* 0: all */
	uint64_t now_ns;
	uint16_t number;		/* LID, LMC or P_Key */
	uint8_t gid[16];
};

/* --- arguments --- */

static int number_parse(const char *text, long first, long last, uint16_t *out)
{
	char *end;
	long number = strtol(text, &end, 0);

	if (*text < '0' || *text > '9' || *end || number < first || number > last)
		return -EINVAL;
	*out = (uint16_t)number;
	return 0;
}

static int lid_parse(const char *text, struct request *r)
{
	return number_parse(text, 1, LID_LAST, &r->number);
}

static int lmc_parse(const char *text, struct request *r)
{
	return number_parse(text, 0, FABRIC_LMC_MAX, &r->number);
}

/* Bit 15 says full member; 0 and 0x8000 are no partitions. */
static int pkey_parse(const char *text, struct request *r)
{
	int error = number_parse(text, 1, 0xffff, &r->number);

	return error ? error : r->number & 0x7fff ? 0 : -EINVAL;
}

static int gid_parse(const char *text, struct request *r)
{
	static const uint8_t ipv4_prefix[12] = { [10] = 0xff, [11] = 0xff };

	memcpy(r->gid, ipv4_prefix, sizeof ipv4_prefix);
	if (inet_pton(AF_INET, text, r->gid + sizeof ipv4_prefix) == 1)
		return 0;
	return inet_pton(AF_INET6, text, r->gid) == 1 ? 0 : -EINVAL;
}

/* --- edits --- */

static int edit_down(void *ctx, struct fabric_port *port)
{
	const struct request *r = ctx;

	if (!port->is_down)
		port->down_ns = r->now_ns;
	port->is_down = 1;
	return 0;
}

static int edit_up(void *ctx, struct fabric_port *port)
{
	(void)ctx;
	port->is_down = 0;
	return 0;
}

static uint16_t lid_aligned(uint16_t lid, unsigned lmc)
{
	return (uint16_t)(lid >> lmc << lmc);
}

static int edit_lid(void *ctx, struct fabric_port *port)
{
	uint16_t lid = ((const struct request *)ctx)->number;

	if (lid != lid_aligned(lid, port->lmc))
		return -ERANGE;
	port->lid = lid;
	return 0;
}

/* A subnet manager that changes it hands out other LIDs where it must.  Of a LID that was set and
 * is too low nothing is left: the port has the one of its node again. */
static int edit_lmc(void *ctx, struct fabric_port *port)
{
	port->lmc = ((const struct request *)ctx)->number;
	port->lid = lid_aligned(port->lid, port->lmc);
	return 0;
}

static int edit_sm(void *ctx, struct fabric_port *port)
{
	port->sm_lid = ((const struct request *)ctx)->number;
	return 0;
}

static int edit_reregister(void *ctx, struct fabric_port *port)
{
	port->reregister_ns = ((const struct request *)ctx)->now_ns;
	return 0;
}

static int edit_reset(void *ctx, struct fabric_port *port)
{
	struct fabric_port before = *port;

	(void)ctx;
	fabric_port_default(port);
	port->down_ns = before.down_ns;
	port->reregister_ns = before.reregister_ns;
	port->fatal_ns = before.fatal_ns;
	return 0;
}

static int edit_fatal(void *ctx, struct fabric_port *port)
{
	port->fatal_ns = ((const struct request *)ctx)->now_ns;
	return 0;
}

static int pkey_find(const struct fabric_port *port, uint16_t pkey)
{
	for (int i = 0; i < FABRIC_PKEYS; i++)
		if (port->pkey[i] == pkey)
			return i;
	return -1;
}

static int edit_pkey_add(void *ctx, struct fabric_port *port)
{
	const struct request *r = ctx;
	int free_at = pkey_find(port, 0);

	if (pkey_find(port, r->number) >= 0)
		return -EEXIST;
	if (free_at < 0)
		return -ENOSPC;
	port->pkey[free_at] = r->number;
	return 0;
}

static int edit_pkey_del(void *ctx, struct fabric_port *port)
{
	int at = pkey_find(port, ((const struct request *)ctx)->number);

	if (at < 0)
		return -ENOENT;
	port->pkey[at] = 0;
	return 0;
}

/* Each host has a GID table of its own, so what was done to it is kept and not the result. */
static int gid_change(const struct request *r, struct fabric_port *port, bool is_removal)
{
	struct fabric_gid_change *change = &port->gid_change[port->gid_change_count];
	struct fabric_gid_change *last = port->gid_change_count ? change - 1 : NULL;

	if (last && !memcmp(last->gid, r->gid, sizeof r->gid)) {
		if (last->is_removal == is_removal)
			return is_removal ? -ENOENT : -EEXIST;
		port->gid_change_count--;	/* as if nothing had been */
		return 0;
	}
	if (port->gid_change_count == FABRIC_GID_CHANGES_MAX)
		return -ENOSPC;
	port->gid_change_count++;
	change->is_removal = is_removal;
	memcpy(change->gid, r->gid, sizeof change->gid);
	return 0;
}

static int edit_gid_add(void *ctx, struct fabric_port *port)
{
	return gid_change(ctx, port, false);
}

static int edit_gid_del(void *ctx, struct fabric_port *port)
{
	return gid_change(ctx, port, true);
}

/* --- the commands --- */

static const struct command {
	const char *group, *verb;
	const char *argument;		/* what it needs; NULL: nothing */
	int (*parse)(const char *text, struct request *r);
	fabric_port_edit *edit;		/* NULL: show */
} commands[] = {
	{ "port",	"show",		NULL,		NULL,		NULL },
	{ "port",	"down",		NULL,		NULL,		edit_down },
	{ "port",	"up",		NULL,		NULL,		edit_up },
	{ "port",	"lid",		"LID",		lid_parse,	edit_lid },
	{ "port",	"lmc",		"LMC",		lmc_parse,	edit_lmc },
	{ "port",	"sm",		"LID",		lid_parse,	edit_sm },
	{ "port",	"reregister",	NULL,		NULL,		edit_reregister },
	{ "port",	"reset",	NULL,		NULL,		edit_reset },
	{ "pkey",	"add",		"P_Key",	pkey_parse,	edit_pkey_add },
	{ "pkey",	"del",		"P_Key",	pkey_parse,	edit_pkey_del },
	{ "gid",	"add",		"address",	gid_parse,	edit_gid_add },
	{ "gid",	"del",		"address",	gid_parse,	edit_gid_del },
	{ "device",	"fatal",	NULL,		NULL,		edit_fatal },
};

static const struct command *command_find(const char *group, const char *verb)
{
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		if (!strcmp(commands[i].group, group) && !strcmp(commands[i].verb, verb))
			return &commands[i];
	return NULL;
}

static int fail(const char *what, int error)
{
	static const struct { int error; const char *text; } reasons[] = {
		{ -EEXIST, "is there already" }, { -ENOENT, "is not there" },
		{ -ENOSPC, "there is no room for more (see verbena port reset)" },
		{ -ERANGE, "is no multiple of how many LIDs the LMC says there are" },
		{ -EPROTONOSUPPORT, "its programs are of another version of verbena" },
	};

	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
		if (reasons[i].error != error)
			continue;
		fprintf(stderr, "verbena: %s: %s\n", what, reasons[i].text);
		return EXIT_FAILURE;
	}
	fprintf(stderr, "verbena: %s: %s\n", what, strerror(-error));
	return EXIT_FAILURE;
}

/* A sleeper that was just falling asleep may miss being woken, so it is done again. */
static void wait_for_members(struct fabric *visitor)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	unsigned left = 1;

	for (int i = 0; left && i < WAIT_NAPS; i++) {
		wire_shm_wake_all(visitor);
		left = fabric_port_unnoticed(visitor);
		if (left)
			nanosleep(&nap, NULL);
	}
	if (left)
		fprintf(stderr, "verbena: %u programs have not noticed yet\n", left);
}

static int change(const struct command *c, struct request *r, const char *what)
{
	struct fabric *visitor;
	struct timespec now;
	int error;

	clock_gettime(CLOCK_MONOTONIC, &now);
	r->now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	error = fabric_ports_change(r->fabric, r->node, c->edit, r, &visitor);
	if (error)
		return fail(what, error);
	wait_for_members(visitor);
	fabric_visit_end(visitor);
	return 0;
}

static void gid_print(const struct fabric_gid_change *change)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, change->gid, text, sizeof text);
	printf("  GID %s %s\n", text, change->is_removal ? "removed" : "added");
}

static int show(const struct request *r)
{
	struct fabric_port port;
	int error = fabric_port_read(r->fabric, r->node, &port);

	if (error)
		return fail(r->fabric, error);
	puts(port.is_down ? "down" : "up");
	if (port.lid)
		printf("  LID 0x%x\n", port.lid);
	if (port.lmc)
		printf("  LMC %u\n", (unsigned)port.lmc);
	if (port.sm_lid)
		printf("  subnet manager's LID 0x%x\n", port.sm_lid);
	for (unsigned i = 0; i < FABRIC_PKEYS; i++)
		if (port.pkey[i])
			printf("  P_Key %u 0x%04x\n", i, port.pkey[i]);
	for (unsigned i = 0; i < port.gid_change_count; i++)
		gid_print(&port.gid_change[i]);
	return 0;
}

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

/* Options may stand anywhere; *@out gets the other words, at most two. */
static int words_take(const char *group, char **argv, struct request *r, const char *out[2])
{
	unsigned count = 0;
	int error = 0;

	while (!error && *argv) {
		if (**argv == '-')
			error = option_take(group, true, &argv);
		else if (count < 2)
			out[count++] = *argv++;
		else
			error = usage_error("%s: \"%s\" is too much", group, *argv);
	}
	if (error)
		return error;
	r->fabric = variable("VERBENA_FABRIC");
	if (variable("VERBENA_NODE")) {
		error = check_node(variable("VERBENA_NODE"));
		r->node = (unsigned)atoi(variable("VERBENA_NODE"));
	}
	return error;
}

int port_main(int argc, char **argv)
{
	const char *words[2] = { NULL, NULL };
	struct request r = { 0 };
	const struct command *c;
	int error = words_take(argv[0], argv + 1, &r, words);

	(void)argc;
	if (error)
		return error;
	c = command_find(argv[0], words[0] ? words[0] : "show");
	if (!c && !words[0])
		return usage_error("%s: no command given", argv[0]);
	if (!c)
		return usage_error("%s: unknown command \"%s\"", argv[0], words[0]);
	if (!c->argument != !words[1])
		return usage_error("%s %s: needs %s", c->group, c->verb,
				   c->argument ? c->argument : "nothing more");
	if (c->parse && c->parse(words[1], &r))
		return usage_error("%s %s: \"%s\" is no %s", c->group, c->verb, words[1],
				   c->argument);
	return c->edit ? change(c, &r, words[1] ? words[1] : c->group) : show(&r);
}
