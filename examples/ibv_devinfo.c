/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints what a device says of itself and its ports.  Nearly all of it is tables: which member of
 * which structure, what it is called, and how it is written; they are in devinfo_tables.c.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/devinfo.h"
#include "examples/device.h"
#include "examples/fail.h"

static const struct option_row own[] = {
	{ 'l', "list", NULL, "print the names of the devices, nothing else", OPTION_FLAG,
	  offsetof(struct options, wants_list), 0, 0 },
	{ 'v', "verbose", NULL, "print everything", OPTION_FLAG,
	  offsetof(struct options, wants_verbose), 0, 0 },
	{ 0 },
};

static const struct program program = {
	.summary = "Prints what RDMA devices can do; all devices and ports, if not told which.",
	.letters = "di",
	.own = own,
};

/* --- GIDs ---------------------------------------------------------------- */

/* In the long form if its type has nothing to do with IP. */
static void print_gid(const struct ibv_gid_entry *entry)
{
	static const char *const type_names[] = {
		[IBV_GID_TYPE_IB] = "",
		[IBV_GID_TYPE_ROCE_V1] = ", RoCE v1",
		[IBV_GID_TYPE_ROCE_V2] = ", RoCE v2",
	};
	char text[INET6_ADDRSTRLEN];
	char *at = text;

	if (entry->gid_type == IBV_GID_TYPE_ROCE_V2) {
		inet_ntop(AF_INET6, entry->gid.raw, text, sizeof text);
	} else {
		for (size_t i = 0; i < sizeof entry->gid.raw; i += 2)
			at += sprintf(at, "%s%02x%02x", i ? ":" : "", entry->gid.raw[i],
				      entry->gid.raw[i + 1]);
	}
	printf("\t\t\tGID[%3u]:\t\t%s%s\n", entry->gid_index, text,
	       entry->gid_type <= IBV_GID_TYPE_ROCE_V2 ? type_names[entry->gid_type] : "");
}

static void print_gids(struct ibv_context *context, uint32_t port, int count)
{
	for (int i = 0; i < count; i++) {
		struct ibv_gid_entry entry;

		/* An empty entry of the table is answered with ENODATA. */
		if (ibv_query_gid_ex(context, port, (uint32_t)i, &entry, 0) == 0 &&
		    entry.gid.global.interface_id)
			print_gid(&entry);
	}
}

/* --- ports and devices --------------------------------------------------- */

static void print_port(struct ibv_context *context, uint8_t port, const struct options *options)
{
	struct ibv_port_attr attr;

	check(ibv_query_port(context, port, &attr), "query port %u of %s", port,
	      ibv_get_device_name(context->device));
	printf("\t\tport:\t%u\n", port);
	print_port_state(&attr);
	if (options->wants_verbose) {
		print_port_details(&attr, context->device->transport_type == IBV_TRANSPORT_IB);
		print_gids(context, port, attr.gid_tbl_len);
	}
	printf("\n");
}

/* libibverbs exports it, and no header of it has it. */
int ibv_read_sysfs_file(const char *dir, const char *file, char *text, size_t bytes);

/* The board is named in sysfs only, which need not be on a disk. */
static void print_board(const struct ibv_device *device)
{
	char board[64];

	if (ibv_read_sysfs_file(device->ibdev_path, "board_id", board, sizeof board) > 0) {
		label_print(1, "board_id");
		printf("%s\n", board);
	}
}

static void print_device(struct ibv_device *device, const struct options *options)
{
	const char *name = ibv_get_device_name(device);
	struct ibv_context *context = made(ibv_open_device(device), "open the device %s", name);
	struct ibv_device_attr_ex attr;
	uint8_t port_count;

	check(ibv_query_device_ex(context, NULL, &attr), "query the device %s", name);
	port_count = attr.orig_attr.phys_port_cnt;
	if (options->ib_port > port_count)
		fail("%s has no port %d, the last is %d", name, options->ib_port, port_count);
	print_identity(device, &attr);
	print_board(device);
	label_print(1, "phys_port_cnt");
	printf("%u\n", port_count);
	if (options->wants_verbose) {
		print_capabilities(&attr);
		label_print(1, "num_comp_vectors");
		printf("%d\n", context->num_comp_vectors);
	}
	for (uint8_t port = 1; port <= port_count; port++)
		if (!options->ib_port || options->ib_port == port)
			print_port(context, port, options);
	check(ibv_close_device(context), "close the device %s", name);
}

static void print_names(struct ibv_device **list, int count)
{
	printf("%d HCA%s found:\n", count, count == 1 ? "" : "s");
	for (; *list; list++)
		printf("\t%s\n", ibv_get_device_name(*list));
	printf("\n");
}

int main(int argc, char **argv)
{
	struct options options = { OPTIONS_DEFAULT };
	struct ibv_device **list;
	int count;

	options.ib_port = 0;
	options_parse(&options, &program, argc, argv);
	list = device_list(&count);
	if (options.wants_list)
		print_names(list, count);
	else if (options.device || !count)
		print_device(device_find(list, options.device), &options);
	else
		for (struct ibv_device **device = list; *device; device++)
			print_device(*device, &options);
	ibv_free_device_list(list);
	return EXIT_SUCCESS;
}
