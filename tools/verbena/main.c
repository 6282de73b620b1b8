/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbena: which subcommand?
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "tools/verbena/verbena.h"

static const char help_text[] =
	"usage: verbena run [OPTION]... [--] COMMAND [ARGUMENT]...\n"
	"       verbena port [show | up | down | reset | lid N | lmc N | sm N | reregister]\n"
	"       verbena pkey add | del P_KEY\n"
	"       verbena gid add | del ADDRESS\n"
	"       verbena device fatal\n"
	"       verbena --help | --version\n"
	"\n"
	"Runs COMMAND with an emulated RDMA NIC as its only RDMA device; the others change what\n"
	"such NICs see of their network, with --fabric and --node to say which.\n"
	"\n"
	"  --nic NAME      connectx-5, connectx-6, connectx-6dx, connectx-7, or hw for the\n"
	"                  devices of this machine (default connectx-6dx)\n"
	"  --fabric NAME   the fabric that the NIC is connected to (default \"default\")\n"
	"  --node N        run on the emulated host N of the fabric, 1 to 250\n"
	"  --port-pcap IN[,OUT]\n"
	"                  play the capture IN into the port, record in OUT what leaves it;\n"
	"                  either may be left out\n"
	"  --port-tap NAME the host's network stack is behind the port, by the TAP device NAME\n"
	"  --own           with our libibverbs.so.1 and libmlx5.so.1, not the system's\n"
	"  --explain       say on standard error why work requests fail\n"
	"  --quiet         do not say that the NIC is emulated\n"
	"\n"
	"The same can be said in the environment: VERBENA_NIC, VERBENA_FABRIC, VERBENA_NODE,\n"
	"VERBENA_PORT_PCAP, VERBENA_PORT_TAP, VERBENA_EXPLAIN=1, VERBENA_QUIET=1.\n"
	"See verbena(1).\n";

static int help_main(int argc, char **argv)
{
	(void)argc, (void)argv;
	fputs(help_text, stdout);
	return 0;
}

static int version_main(int argc, char **argv)
{
	(void)argc, (void)argv;
	puts("verbena " VERBENA_VERSION);
	return 0;
}

static const struct {
	const char *name;
	int (*main)(int argc, char **argv);
} commands[] = {
	{ "run",	run_main },
	{ "port",	port_main },
	{ "pkey",	port_main },
	{ "gid",	port_main },
	{ "device",	port_main },
	{ "--help",	help_main },
	{ "-h",		help_main },
	{ "help",	help_main },
	{ "--version",	version_main },
};

int usage_error(const char *format, ...)
{
	va_list values;

	fputs("verbena: ", stderr);
	va_start(values, format);
	vfprintf(stderr, format, values);
	va_end(values);
	fputs(" (see verbena --help)\n", stderr);
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return usage_error("no command given");
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].main(argc - 1, argv + 1);
	return usage_error("unknown command \"%s\"", argv[1]);
}
