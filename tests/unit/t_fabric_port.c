/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports as visitors of a fabric set them: for one host or all, with members there or not.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "emu/fabric/port.h"
#include "emu/fabric/segment.h"
#include "hw-models/ib_packet.h"

#define CHECK_INT(got, want) cr_assert_eq((long long)(got), (long long)(want), "%s is %lld", #got, \
					  (long long)(got))

static const uint8_t gids[3][16] = { { 1 }, { 2 }, { 3 } };
static char name[64], dir[256];

static void start(void)
{
	snprintf(name, sizeof name, "unit-port-%d", (int)getpid());
	CHECK_INT(fabric_place_name(name, dir, sizeof dir), 0);
}

TestSuite(fabric_port, .init = start);

static struct fabric *join(void)
{
	struct fabric_config config = { name, gids, 2 };
	struct fabric *f = NULL;

	CHECK_INT(fabric_join(&config, &f), 0);
	return f;
}

static int set_lid(void *ctx, struct fabric_port *port)
{
	port->lid = *(const uint16_t *)ctx;
	return 0;
}

static int set_nothing(void *ctx, struct fabric_port *port)
{
	(void)ctx;
	fabric_port_default(port);
	return 0;
}

static int refuse(void *ctx, struct fabric_port *port)
{
	(void)ctx;
	port->is_down = 1;
	return -ENOSPC;
}

static void change(unsigned node, fabric_port_edit *edit, uint16_t lid)
{
	struct fabric *visitor;

	CHECK_INT(fabric_ports_change(name, node, edit, &lid, &visitor), 0);
	fabric_visit_end(visitor);
}

static uint16_t lid_of(unsigned node)
{
	struct fabric_port port;

	CHECK_INT(fabric_port_read(name, node, &port), 0);
	return port.lid;
}

Test(fabric_port, a_new_port_has_the_default_partition_and_no_more)
{
	struct fabric_port port;

	CHECK_INT(fabric_port_read(name, 0, &port), 0);
	CHECK_INT(fabric_port_is_default(&port), 1);
	CHECK_INT(port.pkey[0], 0xffff);
	CHECK_INT(port.pkey[1], 0);
	CHECK_INT(fabric_port_stamp(name, 0), 0);
	CHECK_INT(fabric_port_read("a/b", 0, &port), -EINVAL);
	port.down_ns = port.reregister_ns = port.fatal_ns = 5;
	CHECK_INT(fabric_port_is_default(&port), 1);
	port.pkey[127] = 1;
	CHECK_INT(fabric_port_is_default(&port), 0);
}

Test(fabric_port, what_was_set_stays_without_members)
{
	uint64_t stamp;

	change(0, set_lid, 77);
	CHECK_INT(lid_of(0), 77);
	CHECK_INT(lid_of(3), 77);
	stamp = fabric_port_stamp(name, 0);
	cr_assert_neq(stamp, 0);
	fabric_leave(join());			/* somebody came and went */
	CHECK_INT(lid_of(0), 77);
	CHECK_INT(fabric_port_stamp(name, 0), stamp);
	change(0, set_lid, 78);
	cr_assert_neq(fabric_port_stamp(name, 0), stamp);
	change(0, set_nothing, 0);
	CHECK_INT(access(dir, F_OK), -1);	/* nothing is left */
	CHECK_INT(lid_of(0), 0);
}

Test(fabric_port, one_host_or_all)
{
	change(2, set_lid, 20);
	CHECK_INT(lid_of(0), 0);
	CHECK_INT(lid_of(1), 0);
	CHECK_INT(lid_of(2), 20);
	change(0, set_lid, 5);			/* also those with a file of their own */
	CHECK_INT(lid_of(0), 5);
	CHECK_INT(lid_of(1), 5);
	CHECK_INT(lid_of(2), 5);
	change(2, set_nothing, 0);		/* differs from the others: is kept */
	CHECK_INT(lid_of(1), 5);
	CHECK_INT(lid_of(2), 0);
	change(0, set_nothing, 0);
	CHECK_INT(access(dir, F_OK), -1);
}

Test(fabric_port, a_refused_edit_changes_nothing)
{
	struct fabric *visitor;
	struct fabric_port port;

	CHECK_INT(fabric_ports_change(name, 0, refuse, NULL, &visitor), -ENOSPC);
	CHECK_INT(access(dir, F_OK), -1);
	change(0, set_lid, 9);
	CHECK_INT(fabric_ports_change(name, 0, refuse, NULL, &visitor), -ENOSPC);
	CHECK_INT(fabric_port_read(name, 0, &port), 0);
	CHECK_INT(port.is_down, 0);
	CHECK_INT(port.lid, 9);
	change(0, set_nothing, 0);
	CHECK_INT(fabric_ports_change("a b", 0, refuse, NULL, &visitor), -EINVAL);
}

static int refuse_without_lid(void *ctx, struct fabric_port *port)
{
	(void)ctx;
	port->sm_lid = 3;
	return port->lid ? 0 : -EEXIST;
}

/* Those who would not refuse are asked first. */
Test(fabric_port, what_one_host_refuses_all_do)
{
	struct fabric *visitor;
	struct fabric_port port;

	change(2, set_lid, 20);
	CHECK_INT(fabric_ports_change(name, 0, refuse_without_lid, NULL, &visitor), -EEXIST);
	CHECK_INT(fabric_port_read(name, 2, &port), 0);
	CHECK_INT(port.lid, 20);
	CHECK_INT(port.sm_lid, 0);
	change(2, set_nothing, 0);
}

Test(fabric_port, a_file_that_makes_no_sense_is_none)
{
	struct fabric_port port;
	char path[300];
	int fd;

	change(0, set_lid, 9);
	snprintf(path, sizeof path, "%s/port", dir);
	fd = open(path, O_WRONLY);
	cr_assert(fd >= 0);
	CHECK_INT(pwrite(fd, "\xff\xff\xff\xff", 4, 8 + offsetof(struct fabric_port, is_down)), 4);
	CHECK_INT(lid_of(0), 0);
	CHECK_INT(pwrite(fd, "\0\0\0\0", 4, 8 + offsetof(struct fabric_port, is_down)), 4);
	CHECK_INT(lid_of(0), 9);
	CHECK_INT(pwrite(fd, "\xff", 1,
			 8 + offsetof(struct fabric_port, gid_change_count)), 1);
	CHECK_INT(lid_of(0), 0);
	CHECK_INT(ftruncate(fd, 40), 0);
	CHECK_INT(lid_of(0), 0);
	close(fd);
	change(0, set_lid, 3);			/* is made anew */
	CHECK_INT(fabric_port_read(name, 0, &port), 0);
	CHECK_INT(port.gid_change_count, 0);
	change(0, set_nothing, 0);
}

static void lids_are_none(uint32_t lmc, uint16_t lid, bool is_none)
{
	const size_t at = offsetof(struct fabric_port, lmc);
	const size_t end = offsetof(struct fabric_port, sm_lid);
	const struct fabric_port set = { .lmc = lmc, .lid = lid };
	char path[300];
	int fd;

	change(0, set_lid, 64);
	snprintf(path, sizeof path, "%s/port", dir);
	fd = open(path, O_WRONLY);
	cr_assert(fd >= 0);
	CHECK_INT(pwrite(fd, (const uint8_t *)&set + at, end - at, 8 + at), end - at);
	close(fd);
	CHECK_INT(lid_of(0), is_none ? 0 : lid);
}

/* A base LID is a multiple of 2^LMC. */
Test(fabric_port, lids_that_make_no_sense_are_none)
{
	lids_are_none(0, 1, false);
	lids_are_none(1, 1, true);
	lids_are_none(2, 6, true);
	lids_are_none(2, 8, false);
	lids_are_none(7, 0xbf80, false);
	lids_are_none(7, 0xbf00 + 0x7f, true);
	lids_are_none(7, 0xc000, true);
	lids_are_none(8, 0x4000, true);
	lids_are_none(0xffffffff, 0x4000, true);
	change(0, set_nothing, 0);
}

Test(fabric_port, members_that_watch_are_waited_for)
{
	struct fabric *a = join(), *b = join(), *visitor;
	uint32_t changes = fabric_port_changes(a);
	uint16_t lid = 4;

	fabric_port_noticed(a, changes);	/* b does not watch */
	CHECK_INT(fabric_ports_change(name, 0, set_lid, &lid, &visitor), 0);
	cr_assert_neq(fabric_port_changes(a), changes);
	CHECK_INT(fabric_port_unnoticed(visitor), 1);
	fabric_port_noticed(b, changes);
	CHECK_INT(fabric_port_unnoticed(visitor), 2);
	fabric_port_noticed(a, fabric_port_changes(a));
	fabric_port_noticed(b, fabric_port_changes(b));
	CHECK_INT(fabric_port_unnoticed(visitor), 0);
	fabric_visit_end(visitor);
	fabric_leave(b);
	CHECK_INT(fabric_ports_change(name, 0, set_nothing, NULL, &visitor), 0);
	fabric_leave(a);			/* before it noticed */
	CHECK_INT(fabric_port_unnoticed(visitor), 0);
	fabric_visit_end(visitor);
	CHECK_INT(access(dir, F_OK), -1);
}

static bool has_lid(struct fabric *f, unsigned member, uint16_t lid)
{
	uint8_t gid[16];

	ib_lid_as_gid(lid, gid);
	return fabric_has_gid(f, member, gid);
}

Test(fabric_port, a_member_may_have_many_lids)
{
	struct fabric *a = join(), *b = join();
	unsigned self = fabric_self(a);
	uint8_t gid[16];

	CHECK_INT(has_lid(b, self, 0), 0);
	CHECK_INT(has_lid(b, self, 0x1200), 0);
	for (unsigned lmc = 0; lmc <= FABRIC_LMC_MAX; lmc++) {
		ib_lids_as_gid(0x1280, (uint8_t)lmc, gid);
		fabric_gids_set(a, (const uint8_t (*)[16])gid, 1);
		CHECK_INT(has_lid(b, self, 0x1280), 1);
		CHECK_INT(has_lid(b, self, 0x127f), 0);
		CHECK_INT(has_lid(b, self, 0x1280 + (1 << lmc) - 1), 1);
		CHECK_INT(has_lid(b, self, 0x1280 + (1 << lmc)), 0);
	}
	fabric_leave(a);
	fabric_leave(b);
}

/* Addresses that look like LIDs only from afar are compared whole. */
Test(fabric_port, a_gid_is_one_address)
{
	uint8_t own[16] = { 0, 'L', 'I', 'D', [12] = 1, [13] = 7 }, gid[16];

	memcpy(gid, own, sizeof gid);
	cr_assert(ib_gid_is_of(gid, own));
	gid[15] = 1;
	cr_assert(!ib_gid_is_of(gid, own));
	ib_lid_as_gid(1, gid);
	cr_assert(!ib_gid_is_of(gid, own));
}

Test(fabric_port, a_member_may_get_other_gids)
{
	struct fabric *a = join(), *b = join();
	unsigned self = fabric_self(a);

	CHECK_INT(fabric_has_gid(b, self, gids[0]), 1);
	CHECK_INT(fabric_has_gid(b, self, gids[2]), 0);
	fabric_gids_set(a, gids + 1, 2);
	CHECK_INT(fabric_has_gid(b, self, gids[0]), 0);
	CHECK_INT(fabric_has_gid(b, self, gids[1]), 1);
	CHECK_INT(fabric_has_gid(b, self, gids[2]), 1);
	fabric_gids_set(a, gids, 0);
	CHECK_INT(fabric_has_gid(b, self, gids[1]), 0);
	fabric_leave(a);
	fabric_leave(b);
}
