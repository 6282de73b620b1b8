/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port; see port.h.
 *
 * QPs name the port's entries by index, as on the hardware: what changes in a table changes for
 * them too, without another modify_qp.
 */
#include "emu/obj/port.h"
#include <string.h>
#include "emu/obj/event_desc.h"
#include "emu/obj/obj.h"
#include "hw-models/ib_packet.h"

#define PORT_NUMBER 1

void port_begin(struct emu_dev *dev)
{
	dev->port = (struct emu_port){
		.sm_lid = PORT_SM_LID_DEFAULT, .pkey = { PORT_PKEY_DEFAULT },
	};
}

void port_pkey_apply(struct emu_qp *qp)
{
	qp->pkey = qp->dev->port.pkey[qp->attr.pkey_index % PORT_PKEYS_MAX];
	qp->resp->pkey = qp->pkey;
}

void port_address(const struct emu_dev *dev, uint8_t gid[16])
{
	static const uint8_t none[16];
	unsigned i = 0;

	memset(gid, 0, 16);
	while (i < dev->gid_count && !memcmp(dev->gid[i].raw, none, sizeof none))
		i++;
	if (dev->lid)
		ib_lid_as_gid(dev->lid, gid);
	else if (i < dev->gid_count)
		memcpy(gid, dev->gid[i].raw, 16);
}

void device_event(struct emu_dev *dev, unsigned port, uint32_t type)
{
	struct event_async event = { .element = port, .type = type };

	channels_push(&dev->async, &event, &dev->port);
}

/* --- differences --- */

static bool goes_down(const struct emu_dev *dev, const struct port_change *to)
{
	return to->was_down && !dev->port.is_down;
}

static bool comes_up(const struct emu_dev *dev, const struct port_change *to)
{
	return !to->is_down && (to->was_down || dev->port.is_down);
}

static bool has_other_lmc(const struct emu_dev *dev, const struct port_change *to)
{
	return to->lmc != dev->lmc;
}

/* Also one more or less. */
static bool has_other_lids(const struct emu_dev *dev, const struct port_change *to)
{
	return to->lid != dev->lid || has_other_lmc(dev, to);
}

static bool has_other_sm(const struct emu_dev *dev, const struct port_change *to)
{
	return to->sm_lid != dev->port.sm_lid;
}

static bool has_other_pkeys(const struct emu_dev *dev, const struct port_change *to)
{
	return memcmp(to->pkey, dev->port.pkey, sizeof to->pkey) != 0;
}

static bool has_other_gids(const struct emu_dev *dev, const struct port_change *to)
{
	return to->gid_count != dev->gid_count ||
	       memcmp(to->gid, dev->gid, to->gid_count * sizeof *to->gid) != 0;
}

static bool is_reregistered(const struct emu_dev *dev, const struct port_change *to)
{
	/* Who hands out LIDs by another LMC has begun anew with all that it knows of the subnet. */
	return to->is_reregistered || has_other_lmc(dev, to);
}

/* In the order in which they are told. */
static const struct {
	uint32_t event;
	bool (*has)(const struct emu_dev *dev, const struct port_change *to);
} differences[] = {
	{ EVENT_PORT_ERR, goes_down },
	{ EVENT_LID_CHANGE, has_other_lids },
	{ EVENT_PKEY_CHANGE, has_other_pkeys },
	{ EVENT_GID_CHANGE, has_other_gids },
	{ EVENT_SM_CHANGE, has_other_sm },
	{ EVENT_CLIENT_REREGISTER, is_reregistered },
	{ EVENT_PORT_ACTIVE, comes_up },
};
#define DIFFERENCES (sizeof differences / sizeof *differences)

/* --- the change --- */

static void qp_follow(struct emu_qp *qp)
{
	if (qp->attr.port)
		port_pkey_apply(qp);
	if (qp->attr.path.port)
		qp_source_apply(qp);
	atomic_store(&qp->resp->is_open, qp_is_open(qp));
}

static void qps_follow(struct emu_dev *dev)
{
	struct emu_qp *qp;

	for (uint32_t at = 0; (qp = numbers_next(&dev->qpns, &at));)
		qp_follow(qp);
	home_quiesce(&dev->home);
}

void port_change(struct emu_dev *dev, const struct port_change *to, bool is_told)
{
	bool has[DIFFERENCES];

	for (size_t i = 0; i < DIFFERENCES; i++)
		has[i] = is_told && differences[i].has(dev, to);
	dev->port.is_down = to->is_down;
	dev->port.sm_lid = to->sm_lid;
	memcpy(dev->port.pkey, to->pkey, sizeof dev->port.pkey);
	dev->lid = to->lid;
	dev->lmc = to->lmc;
	memset(dev->gid, 0, sizeof dev->gid);
	memcpy(dev->gid, to->gid, to->gid_count * sizeof *to->gid);
	dev->gid_count = to->gid_count;
	qps_follow(dev);
	for (size_t i = 0; i < DIFFERENCES; i++)
		if (has[i])
			device_event(dev, PORT_NUMBER, differences[i].event);
}
