/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The function's port follows what somebody outside sets; see port.h.
 */
#include "emu/port.h"
#include <assert.h>
#include <string.h>
#include "emu/engine/engine.h"
#include "emu/obj/obj.h"
#include "emu/self.h"
#include "hw-models/ib_packet.h"

static_assert(FABRIC_LMC_MAX == PORT_LMC_MAX, "one field of three bits");
static_assert(FABRIC_PKEYS == PORT_PKEYS_MAX && EMU_PKEYS_MAX == PORT_PKEYS_MAX,
	      "one table of P_Keys");

unsigned port_gids(const struct emu_identity *id, uint8_t gid[FABRIC_GIDS_MAX][16])
{
	unsigned count = id->gid_count;

	for (unsigned i = 0; i < count; i++)
		memcpy(gid[i], id->gid[i].raw, 16);
	/* Packets without a GRH go by LIDs; see ib_packet.h. */
	if (id->port.lid && count < FABRIC_GIDS_MAX)
		ib_lids_as_gid(id->port.lid, id->port.lmc, gid[count++]);
	return count;
}

static void gids_convert(const struct emu_identity *id, struct emu_gid gid[EMU_GIDS_MAX])
{
	memset(gid, 0, EMU_GIDS_MAX * sizeof *gid);
	for (unsigned i = 0; i < id->gid_count; i++) {
		memcpy(gid[i].raw, id->gid[i].raw, sizeof gid[i].raw);
		gid[i].type = id->gid[i].type;
		gid[i].netdev_ifindex = id->gid[i].netdev_ifindex;
		memcpy(gid[i].netdev, id->gid[i].netdev, sizeof gid[i].netdev);
	}
}

static void port_apply(struct port_watch *w, const struct fabric_port *set, bool is_told)
{
	struct emu_gid gid[EMU_GIDS_MAX];
	struct emu_identity id = w->base;
	struct port_change to = { .gid = gid };
	uint8_t raw[FABRIC_GIDS_MAX][16];

	identity_set_port(&id, set);
	gids_convert(&id, gid);
	to.gid_count = id.gid_count;
	to.is_down = set->is_down;
	to.was_down = set->is_down || set->down_ns > w->down_ns;
	to.is_reregistered = w->base.port.lid && set->reregister_ns > w->reregister_ns;
	to.lid = id.port.lid;
	to.lmc = id.port.lmc;
	to.sm_lid = id.port.sm_lid;
	memcpy(to.pkey, id.port.pkey, sizeof to.pkey);
	port_change(w->dev, &to, is_told);
	fabric_gids_set(w->fabric, (const uint8_t (*)[16])raw, port_gids(&id, raw));
}

/* A file that was removed says that nothing is set any more, and nothing of when things were. */
static uint64_t later(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns > b_ns ? a_ns : b_ns;
}

static void times_keep(struct port_watch *w, const struct fabric_port *set)
{
	w->down_ns = later(w->down_ns, set->down_ns);
	w->reregister_ns = later(w->reregister_ns, set->reregister_ns);
	w->fatal_ns = later(w->fatal_ns, set->fatal_ns);
}

void port_watch_begin(struct port_watch *w, struct emu_dev *dev, struct fabric *fabric)
{
	struct fabric_port set;

	w->dev = dev;
	w->fabric = fabric;
	w->changes = fabric_port_changes(fabric);
	self_port(&set);
	port_apply(w, &set, false);
	times_keep(w, &set);
}

static void break_down(struct port_watch *w)
{
	w->dev->is_fatal = true;
	device_event(w->dev, 0, EVENT_DEVICE_FATAL);
	engine_fail(w->dev->engine);
}

bool port_watch_look(void *ctx)
{
	struct port_watch *w = ctx;
	uint32_t changes = fabric_port_changes(w->fabric);
	bool is_watching = engine_nic_runs(w->dev->engine);
	struct fabric_port set;

	if (changes == w->changes && is_watching == w->is_watching)
		return false;
	self_port(&set);
	port_apply(w, &set, true);
	if (set.fatal_ns > w->fatal_ns)
		break_down(w);
	times_keep(w, &set);
	w->changes = changes;
	w->is_watching = is_watching;
	if (is_watching)
		fabric_port_noticed(w->fabric, changes);
	return true;
}
