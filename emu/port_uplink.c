/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the environment to uplinks; see port_uplink.h.
 *
 * Captures each function has for itself.  A TAP device has one owner: the first function of the
 * host that opens it, to which all others send what is for the host's stack.
 */
#include "emu/port_uplink.h"
#include <errno.h>
#include <stdio.h>
#include "emu/emu.h"
#include "emu/engine/engine.h"
#include "emu/fabric/fabric.h"
#include "emu/obj/flow.h"
#include "emu/self.h"
#include "emu/uplink/uplink.h"

#define NAME_OF_TAP	UINT64_C(0x7461702d6f776e00)	/* and the host's number */

static int complain(const char *variable, const struct uplink_said *said, int error)
{
	char what[UPLINK_SAID_BYTES + 64];

	snprintf(what, sizeof what, "%s: %s", variable, said->text);
	return emu_complain(what, error);
}

/* NULL: it was not said. */
static const char *asked(const struct emu_dev *dev, const char *variable, int *error)
{
	const char *value = self_env(variable);
	struct uplink_said said;

	if (!value || dev->profile->link == HW_LINK_ETHERNET)
		return value;
	snprintf(said.text, sizeof said.text, "%s has an InfiniBand port, which has no frames",
		 dev->profile->name);
	*error = complain(variable, &said, -EOPNOTSUPP);
	return NULL;
}

static int outside_begin(struct port_uplink *p)
{
	int error = 0;
	const char *names = asked(p->dev, "VERBENA_PORT_PCAP", &error);
	struct uplink_said said;

	if (!names)
		return error;
	return complain("VERBENA_PORT_PCAP", &said, uplink_pcap_open(names, &p->outside, &said));
}

/* The last rule of all. */
static int host_rule_make(struct port_uplink *p)
{
	const struct flow_init init = { .level = STEER_LEVEL_HOST, .is_host = true };

	return flow_create(p->dev, &init, &p->host_rule);
}

/* Nobody polls for the host's stack: the NIC thread has to. */
static int host_open(struct port_uplink *p, const char *name, struct uplink_said *said)
{
	int error = uplink_tap_open(name, &p->host, said);

	if (!error)
		error = host_rule_make(p);
	return error ? error : engine_nic_start(p->engine);
}

static int host_begin(struct port_uplink *p, uint32_t node)
{
	int error = 0;
	const char *name = asked(p->dev, "VERBENA_PORT_TAP", &error);
	struct uplink_said said;

	if (!name)
		return error;
	p->token = fabric_name_hold(p->fabric, NAME_OF_TAP + node, true, true);
	if (p->token == -EEXIST)
		return 0;		/* another one has it */
	snprintf(said.text, sizeof said.text, "%s", name);
	return complain("VERBENA_PORT_TAP", &said,
			p->token < 0 ? p->token : host_open(p, name, &said));
}

int port_uplink_begin(struct port_uplink *p, struct emu_dev *dev, struct engine *engine,
		      struct fabric *fabric, uint32_t node)
{
	int error;

	*p = (struct port_uplink){ .dev = dev, .engine = engine, .fabric = fabric, .token = -1 };
	pthread_mutex_lock(&dev->lock);
	error = outside_begin(p);
	if (!error)
		error = host_begin(p, node);
	if (!error)
		engine_uplinks_join(engine, p->outside, p->host);
	pthread_mutex_unlock(&dev->lock);
	return error;
}

static void uplink_end(struct uplink *u)
{
	if (u)
		u->ops->close(u);
}

void port_uplink_end(struct port_uplink *p)
{
	if (!p->engine)
		return;
	engine_uplinks_leave(p->engine);
	uplink_end(p->outside);
	uplink_end(p->host);
	if (p->host_rule)
		flow_destroy(p->host_rule);
	if (p->token >= 0)
		fabric_name_drop(p->fabric, p->token);
}

void port_uplink_abandon(struct port_uplink *p)
{
	uplink_end(p->outside);
	uplink_end(p->host);
}
