/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Options of the subcommands: each sets the variable that programs read.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "hw-models/profile.h"
#include "tools/verbena/verbena.h"

#define NODE_MAX 250		/* as emu/identity.h has it */

static int check_nic(const char *value)
{
	if (!strcmp(value, "hw") || (*value && hw_profile_find(value)))
		return 0;
	return usage_error("--nic: no NIC is called \"%s\"", value);
}

int check_node(const char *value)
{
	size_t digits = strspn(value, "0123456789");
	long node = strtol(value, NULL, 10);

	if (digits && digits < 4 && !value[digits] && node >= 1 && node <= NODE_MAX)
		return 0;
	return usage_error("--node: \"%s\" is not a number from 1 to %d", value, NODE_MAX);
}

/* The name becomes part of a file name. */
static int check_fabric(const char *value)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_.";

	if (*value && *value != '.' && !value[strspn(value, allowed)])
		return 0;
	return usage_error("--fabric: \"%s\" is not made of letters, digits, '-', '_' and '.'",
			   value);
}

static const struct option {
	const char *name, *variable;
	int (*check)(const char *value);	/* NULL: a switch, which sets "1" */
	bool is_place;				/* says where, not how */
	char *(*rewrite)(const char *value);	/* NULL: it is set as it is; else allocated */
} options[] = {
	{ "--nic",	"VERBENA_NIC",		check_nic,	false,	NULL },
	{ "--fabric",	"VERBENA_FABRIC",	check_fabric,	true,	NULL },
	{ "--node",	"VERBENA_NODE",		check_node,	true,	NULL },
	{ "--port-pcap", "VERBENA_PORT_PCAP",	check_port_pcap, false,	port_pcap_absolute },
	{ "--port-tap",	"VERBENA_PORT_TAP",	check_port_tap,	false,	NULL },
	{ "--explain",	"VERBENA_EXPLAIN",	NULL,		false,	NULL },
	{ "--quiet",	"VERBENA_QUIET",	NULL,		false,	NULL },
};

/* The row of "--name" or "--name=value". */
static const struct option *option_find(const char *argument)
{
	size_t length = strcspn(argument, "=");

	for (size_t i = 0; i < sizeof options / sizeof *options; i++)
		if (!strncmp(argument, options[i].name, length) && !options[i].name[length])
			return &options[i];
	return NULL;
}

static int variable_set(const struct option *option, const char *value)
{
	char *rewritten = option->rewrite ? option->rewrite(value) : NULL;
	int error = option->rewrite && !rewritten ? -1 :
		    setenv(option->variable, rewritten ? rewritten : value, 1);

	free(rewritten);
	return error ? EXIT_CANNOT_EXECUTE : 0;
}

int option_take(const char *command, bool places_only, char ***arguments)
{
	const char *argument = *(*arguments)++;
	const struct option *option = option_find(argument);
	const char *equals = strchr(argument, '=');
	const char *value = equals ? equals + 1 : NULL;
	int error;

	if (!option || (places_only && !option->is_place))
		return usage_error("%s: unknown option \"%s\"", command, argument);
	if (!option->check && value)
		return usage_error("%s: %s takes no value", command, option->name);
	if (option->check && !value) {
		if (!**arguments)
			return usage_error("%s: %s needs a value", command, option->name);
		value = *(*arguments)++;
	}
	error = option->check ? option->check(value) : 0;
	return error ? error : variable_set(option, option->check ? value : "1");
}
