/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the emulated sysfs say.
 *
 * The layout is the kernel's: the class directories hold symbolic links into the PCI
 * function, so that programs which resolve them find a bus address.  There is no
 * device/net, because no interface of the host is this NIC.
 *
 * Source: device-abi A.3, B.8; binary-compat "sysfs, by reader".
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "emu/emu.h"
#include "emu/sysfs.h"
#include "hw-models/profile.h"

#define FUNCTION	"devices/" SYSFS_PCI_BUS "/" SYSFS_PCI_FUNCTION
#define IBDEV		SYSFS_IBDEV
#define UVERBS		FUNCTION "/infiniband_verbs/" EMU_UVERBS_NAME
#define PORT		IBDEV "/ports/1"

struct teller {
	const struct emu_identity *id;
	sysfs_emit_fn *emit;
	void *ctx;
	int error;
};

static void tell_link(struct teller *t, const char *path, const char *target)
{
	if (!t->error)
		t->error = t->emit(t->ctx, path, target, true);
}

static void __attribute__((format(printf, 3, 4)))
tell(struct teller *t, const char *path, const char *format, ...)
{
	char text[160];
	va_list values;

	if (t->error)
		return;
	va_start(values, format);
	vsnprintf(text, sizeof text, format, values);
	va_end(values);
	t->error = t->emit(t->ctx, path, text, false);
}

/* Rows whose text is the same for every NIC. */
static const struct { const char *path, *text; } fixed_files[] = {
	{ "class/infiniband_verbs/abi_version",	"6\n" },
	{ "dev/infiniband/" EMU_UVERBS_NAME,	"" },	/* stands in for access(2) and lists */
	{ UVERBS "/ibdev",			EMU_DEVICE_NAME "\n" },
	{ UVERBS "/abi_version",		"1\n" },
	{ IBDEV "/node_type",			"1: CA\n" },
	{ IBDEV "/node_desc",			"verbena " EMU_DEVICE_NAME "\n" },
	{ IBDEV "/hw_rev",			"0\n" },
	{ PORT "/sm_sl",			"0\n" },
	{ FUNCTION "/vendor",			"0x15b3\n" },
	{ FUNCTION "/subsystem_vendor",		"0x15b3\n" },
	{ FUNCTION "/subsystem_device",		"0x0000\n" },
	{ FUNCTION "/revision",			"0x00\n" },
	{ FUNCTION "/numa_node",		"-1\n" },
	{ FUNCTION "/current_link_speed",	"16.0 GT/s PCIe\n" },
	{ FUNCTION "/max_link_speed",		"16.0 GT/s PCIe\n" },
	{ FUNCTION "/current_link_width",	"16\n" },
	{ FUNCTION "/max_link_width",		"16\n" },
};

static const struct { const char *path, *target; } links[] = {
	{ "class/infiniband/" EMU_DEVICE_NAME,		"../../" IBDEV },
	{ "class/infiniband_verbs/" EMU_UVERBS_NAME,	"../../" UVERBS },
	{ IBDEV "/device",				"../../../" SYSFS_PCI_FUNCTION },
	{ UVERBS "/device",				"../../../" SYSFS_PCI_FUNCTION },
};

/* Never counted: the files are there because programs open all of them. */
static const char *const counters[] = {
	"VL15_dropped", "excessive_buffer_overrun_errors", "link_downed", "link_error_recovery",
	"local_link_integrity_errors", "multicast_rcv_packets", "multicast_xmit_packets",
	"port_rcv_constraint_errors", "port_rcv_data", "port_rcv_errors", "port_rcv_packets",
	"port_rcv_remote_physical_errors", "port_rcv_switch_relay_errors",
	"port_xmit_constraint_errors", "port_xmit_data", "port_xmit_discards",
	"port_xmit_packets", "port_xmit_wait", "symbol_error", "unicast_rcv_packets",
	"unicast_xmit_packets",
};

static const struct { uint8_t bits; const char *name; unsigned lane_mbps; } speeds[] = {
	{ 1, "SDR", 2500 }, { 2, "DDR", 5000 }, { 4, "QDR", 10000 }, { 8, "FDR10", 10000 },
	{ 16, "FDR", 14000 }, { 32, "EDR", 25000 }, { 64, "HDR", 50000 }, { 128, "NDR", 100000 },
};

static const struct { uint8_t bits; unsigned lanes; } widths[] = {
	{ 1, 1 }, { 2, 4 }, { 4, 8 }, { 8, 12 }, { 16, 2 },
};

static void tell_rate(struct teller *t)
{
	const struct hw_profile *p = t->id->profile;
	unsigned speed = 0, width = 0;

	for (unsigned i = 0; i < sizeof speeds / sizeof *speeds; i++)
		if (speeds[i].bits == p->active_speed)
			speed = i;
	for (unsigned i = 0; i < sizeof widths / sizeof *widths; i++)
		if (widths[i].bits == p->active_width)
			width = i;
	tell(t, PORT "/rate", "%u Gb/sec (%uX %s)\n",
	     speeds[speed].lane_mbps * widths[width].lanes / 1000, widths[width].lanes,
	     speeds[speed].name);
}

static void tell_guid(struct teller *t, const char *path)
{
	uint64_t guid = t->id->node_guid;

	tell(t, path, "%04x:%04x:%04x:%04x\n", (unsigned)(guid >> 48),
	     (unsigned)(guid >> 32) & 0xffff, (unsigned)(guid >> 16) & 0xffff,
	     (unsigned)guid & 0xffff);
}

static void tell_gid_text(struct teller *t, unsigned index, const uint8_t raw[16])
{
	unsigned word[8];
	char path[128];

	for (unsigned i = 0; i < 8; i++)
		word[i] = (unsigned)raw[2 * i] << 8 | raw[2 * i + 1];
	snprintf(path, sizeof path, PORT "/gids/%u", index);
	tell(t, path, "%04x:%04x:%04x:%04x:%04x:%04x:%04x:%04x\n", word[0], word[1], word[2],
	     word[3], word[4], word[5], word[6], word[7]);
}

/* Empty slots have a zero GID and, where the kernel fails the read, no attributes. */
static void tell_gids(struct teller *t)
{
	static const uint8_t empty[16];
	const struct emu_identity *id = t->id;
	char path[128];

	for (unsigned i = 0; i < id->gid_count; i++) {
		tell_gid_text(t, i, id->gid[i].raw);
		if (!memcmp(id->gid[i].raw, empty, sizeof empty))
			continue;
		snprintf(path, sizeof path, PORT "/gid_attrs/types/%u", i);
		tell(t, path, "%s\n", id->gid[i].type == 2 ? "RoCE v2" : "IB/RoCE v1");
		if (!id->gid[i].netdev[0])
			continue;
		snprintf(path, sizeof path, PORT "/gid_attrs/ndevs/%u", i);
		tell(t, path, "%s\n", id->gid[i].netdev);
	}
	for (unsigned i = id->gid_count; i < id->profile->gid_table; i++)
		tell_gid_text(t, i, empty);
}

static void tell_pkeys(struct teller *t)
{
	char path[128];

	for (unsigned i = 0; i < t->id->profile->pkey_table && i < EMU_PKEYS_MAX; i++) {
		snprintf(path, sizeof path, PORT "/pkeys/%u", i);
		tell(t, path, "0x%04x\n", (unsigned)t->id->port.pkey[i]);
	}
}

static void tell_pci(struct teller *t)
{
	const struct hw_profile *p = t->id->profile;
	bool is_infiniband = p->link == HW_LINK_INFINIBAND;

	tell(t, FUNCTION "/device", "0x%04x\n", p->pci_device);
	tell(t, FUNCTION "/class", "0x%06x\n", is_infiniband ? 0x020700u : 0x020000u);
	tell(t, FUNCTION "/modalias", "pci:v000015B3d%08Xsv000015B3sd00000000bc02sc%02Xi00\n",
	     (unsigned)p->pci_device, is_infiniband ? 7u : 0u);
}

/* All CPUs are local to a NIC of software.  As the kernel prints a mask: 32 bits a word. */
static void tell_cpus(struct teller *t)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	unsigned count = cpus < 1 ? 1 : cpus > 512 ? 512 : (unsigned)cpus;
	unsigned words = (count + 31) / 32, first_bits = count % 32;
	char mask[160];
	int at;

	at = snprintf(mask, sizeof mask, "%x", first_bits ? (1u << first_bits) - 1 : ~0u);
	for (unsigned i = 1; i < words; i++)
		at += snprintf(mask + at, sizeof mask - (unsigned)at, ",%08x", ~0u);
	tell(t, FUNCTION "/local_cpus", "%s\n", mask);
	tell(t, FUNCTION "/local_cpulist", count > 1 ? "0-%u\n" : "%u\n", count - 1);
}

static void tell_device(struct teller *t)
{
	const struct hw_profile *p = t->id->profile;
	bool is_infiniband = p->link == HW_LINK_INFINIBAND;

	tell(t, UVERBS "/dev", "%u:%u\n", EMU_DEV_MAJOR, EMU_DEV_MINOR);
	tell_guid(t, IBDEV "/node_guid");
	tell_guid(t, IBDEV "/sys_image_guid");
	tell(t, IBDEV "/board_id", "%s\n", p->board_id);
	tell(t, IBDEV "/hca_type", "%s\n", p->hca_type);
	tell(t, IBDEV "/fw_ver", "%u.%u.%04u\n", (unsigned)(p->fw_ver >> 32),
	     (unsigned)(p->fw_ver >> 16) & 0xffff, (unsigned)p->fw_ver & 0xffff);
	tell(t, PORT "/link_layer", "%s\n", is_infiniband ? "InfiniBand" : "Ethernet");
	tell(t, PORT "/cap_mask", "0x%08x\n", p->port_cap_flags);
	tell(t, PORT "/lid", "0x%x\n", (unsigned)t->id->port.lid);
	tell(t, PORT "/lid_mask_count", "%u\n", (unsigned)t->id->port.lmc);
	tell(t, PORT "/sm_lid", "0x%x\n", (unsigned)t->id->port.sm_lid);
	tell(t, PORT "/state", "%s\n", t->id->port.is_down ? "1: DOWN" : "4: ACTIVE");
	tell(t, PORT "/phys_state", "%s\n", !t->id->port.is_down ? "5: LinkUp" :
	     is_infiniband ? "2: Polling" : "3: Disabled");
}

int sysfs_describe(const struct emu_identity *id, sysfs_emit_fn *emit, void *ctx)
{
	struct teller t = { .id = id, .emit = emit, .ctx = ctx };
	char path[128];

	for (unsigned i = 0; i < sizeof links / sizeof *links; i++)
		tell_link(&t, links[i].path, links[i].target);
	for (unsigned i = 0; i < sizeof fixed_files / sizeof *fixed_files; i++)
		tell(&t, fixed_files[i].path, "%s", fixed_files[i].text);
	tell_device(&t);
	tell_rate(&t);
	tell_gids(&t);
	tell_pkeys(&t);
	tell_pci(&t);
	tell_cpus(&t);
	for (unsigned i = 0; i < sizeof counters / sizeof *counters; i++) {
		snprintf(path, sizeof path, PORT "/counters/%s", counters[i]);
		tell(&t, path, "0\n");
	}
	return t.error;
}
