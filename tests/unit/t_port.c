/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port of a function: partitions, and changes from outside with the events that tell of them.
 *
 * Method: the RC world, whose QPs are moved to other partitions with modify_qp; an async file is
 * read from the application's end.
 */
#include <sys/socket.h>
#include "emu/obj/event_desc.h"
#include "tests/unit/rc_world.h"

#define CHECK_INT(got, want) cr_assert_eq((long long)(got), (long long)(want))

Test(port, partition_keys_match_by_number_and_one_full_member)
{
	static const struct { uint16_t a, b; bool match; } rows[] = {
		{ 0xffff, 0xffff, true },  { 0xffff, 0x7fff, true },  { 0x7fff, 0xffff, true },
		{ 0x7fff, 0x7fff, false }, { 0x8001, 0x8001, true },  { 0x8001, 0x0001, true },
		{ 0x0001, 0x0001, false }, { 0x8001, 0x8002, false }, { 0x8000, 0x8000, false },
		{ 0x8000, 0, false },      { 0, 0, false },           { 0xffff, 0, false },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		cr_assert_eq(ib_pkeys_match(rows[i].a, rows[i].b), rows[i].match, "row %zu", i);
}

static int to_partition(struct world *w, struct emu_qp *qp, uint16_t index)
{
	struct qp_attr at = { .state = QP_RESET, .port = 1, .pkey_index = index };
	int rc = qp_modify(&w->dev, qp, &at, A_STATE);

	at.state = QP_INIT;
	return rc ? rc : qp_modify(&w->dev, qp, &at, A_STATE | A_PKEY | A_PORT | A_ACCESS);
}

Test(port, a_qp_has_the_partition_at_its_index)
{
	struct world *w = world_new();
	struct emu_qp *qp = w->a.qp;

	w->dev.profile = hw_profile_find("connectx-6");
	w->dev.port.pkey[5] = 0x8005;
	w->dev.port.pkey[127] = 0x7fff;
	CHECK_INT(qp->pkey, 0xffff);
	CHECK_INT(to_partition(w, qp, 5), 0);
	CHECK_INT(qp->pkey, 0x8005);
	CHECK_INT(qp->resp->pkey, 0x8005);
	CHECK_INT(to_partition(w, qp, 127), 0);
	CHECK_INT(qp->pkey, 0x7fff);
	CHECK_INT(to_partition(w, qp, 1), 0);		/* an empty entry matches nobody */
	CHECK_INT(qp->pkey, 0);
	CHECK_INT(to_partition(w, qp, 128), -EINVAL);
	CHECK_INT(to_partition(w, qp, 0), 0);
	CHECK_INT(qp->pkey, 0xffff);
}

/* --- changes --- */

/* The port as it is. */
static struct port_change change_of(const struct emu_dev *dev)
{
	static struct emu_gid gid[EMU_GIDS_MAX];
	struct port_change to = {
		.is_down = dev->port.is_down, .was_down = dev->port.is_down, .lid = dev->lid,
		.lmc = dev->lmc, .sm_lid = dev->port.sm_lid, .gid = gid,
		.gid_count = dev->gid_count,
	};

	memcpy(to.pkey, dev->port.pkey, sizeof to.pkey);
	memcpy(gid, dev->gid, sizeof gid);
	return to;
}

/* The next event about the port, or -1. */
static int next_event(int fd)
{
	struct event_async event;

	if (recv(fd, &event, sizeof event, MSG_DONTWAIT) != sizeof event)
		return -1;
	CHECK_INT(event.element, 1);
	return (int)event.type;
}

struct listener { struct emu_channel *channel; int fd; };

static struct listener listener_new(struct world *w)
{
	struct listener l;

	CHECK_INT(channel_create(EVENT_ASYNC_BYTES, &l.channel, &l.fd), 0);
	channel_subscribe(l.channel, &w->dev.async);
	return l;
}

Test(port, every_difference_has_its_event)
{
	static struct emu_gid gid[EMU_GIDS_MAX];
	struct world *w = world_new();
	struct emu_dev *dev = &w->dev;
	int fd = listener_new(w).fd;
	struct port_change to;

#define CHECK_EVENT(change, event)                       \
	do {                                             \
		to = change_of(dev);                     \
		change;                                  \
		port_change(dev, &to, true);             \
		CHECK_INT(next_event(fd), event);        \
		CHECK_INT(next_event(fd), -1);           \
	} while (0)
	CHECK_EVENT((void)0, -1);
	CHECK_EVENT(to.is_down = to.was_down = true, EVENT_PORT_ERR);
	CHECK_INT(dev->port.is_down, 1);
	CHECK_EVENT((void)0, -1);
	CHECK_EVENT(to.is_down = to.was_down = false, EVENT_PORT_ACTIVE);
	CHECK_INT(dev->port.is_down, 0);
	CHECK_EVENT(to.lid = 7, EVENT_LID_CHANGE);
	CHECK_INT(dev->lid, 7);
	CHECK_EVENT(to.sm_lid = 9, EVENT_SM_CHANGE);
	CHECK_INT(dev->port.sm_lid, 9);
	CHECK_EVENT(to.pkey[3] = 0x8003, EVENT_PKEY_CHANGE);
	CHECK_INT(dev->port.pkey[3], 0x8003);
	CHECK_EVENT(to.is_reregistered = true, EVENT_CLIENT_REREGISTER);
	memcpy(gid, dev->gid, sizeof gid);
	gid[4].raw[0] = 0x20;
	CHECK_EVENT((to.gid = gid, to.gid_count = 5), EVENT_GID_CHANGE);
	CHECK_INT(dev->gid[4].raw[0], 0x20);
	CHECK_EVENT(to.gid_count = 1, EVENT_GID_CHANGE);
	CHECK_INT(dev->gid[4].raw[0], 0);
}

/* With another number of LIDs the subnet manager has begun anew: clients register again. */
Test(port, another_lmc_has_two_events)
{
	struct world *w = world_new();
	int fd = listener_new(w).fd;
	struct port_change to = change_of(&w->dev);

	for (uint8_t i = 1; i < 4; i++) {
		to.lmc = i % 3;
		port_change(&w->dev, &to, true);
		CHECK_INT(w->dev.lmc, i % 3);
		CHECK_INT(next_event(fd), EVENT_LID_CHANGE);
		CHECK_INT(next_event(fd), EVENT_CLIENT_REREGISTER);
		CHECK_INT(next_event(fd), -1);
	}
	port_change(&w->dev, &to, true);
	CHECK_INT(next_event(fd), -1);
}

Test(port, a_flap_that_nobody_saw_is_still_told)
{
	struct world *w = world_new();
	struct listener a = listener_new(w), b = listener_new(w);
	struct port_change to = change_of(&w->dev);

	to.was_down = true;
	to.lid = 8;
	port_change(&w->dev, &to, true);
	for (int i = 0; i < 2; i++) {
		int fd = i ? a.fd : b.fd;

		CHECK_INT(next_event(fd), EVENT_PORT_ERR);
		CHECK_INT(next_event(fd), EVENT_LID_CHANGE);
		CHECK_INT(next_event(fd), EVENT_PORT_ACTIVE);
		CHECK_INT(next_event(fd), -1);
	}
	channel_destroy(a.channel);
	to.lid = 9;
	port_change(&w->dev, &to, false);	/* silently */
	CHECK_INT(next_event(b.fd), -1);
	CHECK_INT(w->dev.lid, 9);
	device_event(&w->dev, 1, EVENT_DEVICE_FATAL);
	CHECK_INT(next_event(b.fd), EVENT_DEVICE_FATAL);
	channel_destroy(b.channel);
	device_event(&w->dev, 1, EVENT_DEVICE_FATAL);
}

Test(port, qps_follow_the_tables)
{
	static struct emu_gid gid[EMU_GIDS_MAX];
	struct world *w = world_new();
	struct port_change to = change_of(&w->dev);
	struct emu_qp *qp = w->a.qp;

	CHECK_INT(qp->resp->is_open, 1);
	to.pkey[0] = 0x8001;
	memcpy(gid, w->dev.gid, sizeof gid);
	gid[0].raw[15] = 77;
	to.gid = gid;
	port_change(&w->dev, &to, true);
	CHECK_INT(qp->pkey, 0x8001);
	CHECK_INT(qp->resp->pkey, 0x8001);
	CHECK_INT(qp->sgid[15], 77);
	CHECK_INT(qp->resp->sgid[15], 77);
	CHECK_INT(qp->dgid[15], 1);
	to.is_down = to.was_down = true;
	port_change(&w->dev, &to, true);
	CHECK_INT(qp->resp->is_open, 0);
	CHECK_INT(qp->state, QP_RTS);
	qp_state_set(qp, QP_RTS);
	CHECK_INT(qp->resp->is_open, 0);
	to.is_down = false;
	port_change(&w->dev, &to, true);
	CHECK_INT(qp->resp->is_open, 1);
}
