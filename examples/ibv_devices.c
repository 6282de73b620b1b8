/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists the RDMA devices with their GUIDs. */
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "examples/device.h"

static const struct program program = {
	.summary = "Lists the RDMA devices of this machine and their node GUIDs.",
	.letters = "",
};

static void print_row(const char *device, const char *guid)
{
	printf("    %-16s\t%s\n", device, guid);
}

int main(int argc, char **argv)
{
	struct options options = { OPTIONS_DEFAULT };
	struct ibv_device **list;

	options_parse(&options, &program, argc, argv);
	list = device_list(NULL);
	print_row("device", "   node GUID");
	print_row("------", "----------------");
	for (struct ibv_device **device = list; *device; device++) {
		char guid[17];

		snprintf(guid, sizeof guid, "%016" PRIx64, be64toh(ibv_get_device_guid(*device)));
		print_row(ibv_get_device_name(*device), guid);
	}
	ibv_free_device_list(list);
	return EXIT_SUCCESS;
}
