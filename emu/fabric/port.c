/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files in which ports stand, and the visitors that change them; see port.h.
 *
 * A file is replaced by rename, so readers need no lock.  Writers hold the lock of place.c.  The
 * file changes before the counter does: who has seen the counter reads what it speaks of.
 */
#include "emu/fabric/port.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "emu/fabric/segment.h"

#define PORT_MAGIC	0x32726f7062726576ull
#define ALL_HOSTS	"port"		/* names don't begin with a digit: see sweep.c */
#define ONE_HOST	"port-%u"
#define IN_THE_MAKING	"port.new"
#define LID_LAST	0xbfffu

struct port_file {
	uint64_t magic;
	struct fabric_port port;
};

void fabric_port_default(struct fabric_port *out)
{
	*out = (struct fabric_port){ .pkey = { 0xffff } };
}

bool fabric_port_is_default(const struct fabric_port *port)
{
	struct fabric_port other;

	fabric_port_default(&other);
	other.down_ns = port->down_ns;
	other.reregister_ns = port->reregister_ns;
	other.fatal_ns = port->fatal_ns;
	/* Of the list of GIDs only its length counts. */
	memcpy(other.gid_change, port->gid_change, sizeof other.gid_change);
	return !memcmp(&other, port, sizeof other);
}

static bool lids_make_sense(const struct fabric_port *port)
{
	return port->lmc <= FABRIC_LMC_MAX && port->lid <= LID_LAST &&
	       port->sm_lid <= LID_LAST && !(port->lid & ((1u << port->lmc) - 1));
}

static bool makes_sense(const struct port_file *file)
{
	return file->magic == PORT_MAGIC && file->port.is_down <= 1 &&
	       lids_make_sense(&file->port) &&
	       file->port.gid_change_count <= FABRIC_GID_CHANGES_MAX;
}

static void file_name(unsigned node, char *out, size_t bytes)
{
	if (node)
		snprintf(out, bytes, ONE_HOST, node);
	else
		snprintf(out, bytes, ALL_HOSTS);
}

static int path_make(const char *dir, unsigned node, char *path, size_t bytes)
{
	char file[32];

	file_name(node, file, sizeof file);
	return (size_t)snprintf(path, bytes, "%s/%s", dir, file) < bytes ? 0 : -ENAMETOOLONG;
}

/* Of exactly this name.  False: there is none, or it makes no sense. */
static bool read_exactly(const char *dir, unsigned node, struct fabric_port *out)
{
	struct port_file file;
	char path[512];
	bool is_good;
	int fd;

	if (path_make(dir, node, path, sizeof path))
		return false;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return false;
	is_good = read(fd, &file, sizeof file) == sizeof file && makes_sense(&file);
	close(fd);
	if (is_good)
		*out = file.port;
	return is_good;
}

static void read_or_default(const char *dir, unsigned node, struct fabric_port *out)
{
	if (!read_exactly(dir, node, out) && !(node && read_exactly(dir, 0, out)))
		fabric_port_default(out);
}

int fabric_port_read(const char *name, unsigned node, struct fabric_port *out)
{
	char dir[256];
	int rc = fabric_place_name(name, dir, sizeof dir);

	if (!rc)
		read_or_default(dir, node, out);
	return rc;
}

uint64_t fabric_port_stamp(const char *name, unsigned node)
{
	char dir[256], path[512];
	struct stat st;

	if (fabric_place_name(name, dir, sizeof dir) || path_make(dir, node, path, sizeof path))
		return 0;
	if (stat(path, &st)) {
		if (!node || path_make(dir, 0, path, sizeof path) || stat(path, &st))
			return 0;
	}
	return ((uint64_t)st.st_ino << 40 ^ (uint64_t)st.st_mtim.tv_sec << 30 ^
		(uint64_t)st.st_mtim.tv_nsec) | 1;
}

/* --- members --- */

uint32_t fabric_port_changes(const struct fabric *f)
{
	return atomic_load_explicit(&f->segment->port_changes, memory_order_acquire);
}

void fabric_port_noticed(struct fabric *f, uint32_t changes)
{
	atomic_store_explicit(&f->segment->member[f->self].port_noticed, changes + 1,
			      memory_order_release);
}

/* --- visitors --- */

static int write_file(const char *dir, unsigned node, const struct fabric_port *port)
{
	struct port_file file = { .magic = PORT_MAGIC, .port = *port };
	char path[512], path_new[512];
	ssize_t n;
	int fd, rc = path_make(dir, node, path, sizeof path);

	if (rc)
		return rc;
	snprintf(path_new, sizeof path_new, "%s/" IN_THE_MAKING, dir);
	fd = open(path_new, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	n = write(fd, &file, sizeof file);
	rc = n == sizeof file ? 0 : n < 0 ? -errno : -ENOSPC;
	close(fd);
	if (!rc && rename(path_new, path))
		rc = -errno;
	if (rc)
		unlink(path_new);
	return rc;
}

/* Call @each for every host that has a file of its own. */
static int each_host(const char *dir, int (*each)(const char *dir, unsigned node, void *ctx),
		     void *ctx)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	unsigned node;
	char end;
	int rc = 0;

	while (d && !rc && (entry = readdir(d)))
		if (sscanf(entry->d_name, ONE_HOST "%c", &node, &end) == 1 && node)
			rc = each(dir, node, ctx);
	if (d)
		closedir(d);
	return rc;
}

struct edit {
	fabric_port_edit *fn;
	void *ctx;
	bool is_trial;			/* nothing is written */
};

static int edit_one(const char *dir, unsigned node, void *ctx)
{
	const struct edit *edit = ctx;
	struct fabric_port port;
	int rc;

	read_or_default(dir, node, &port);
	rc = edit->fn(edit->ctx, &port);
	return rc || edit->is_trial ? rc : write_file(dir, node, &port);
}

static int edit_each(const char *dir, unsigned node, struct edit *edit)
{
	int rc = node ? 0 : each_host(dir, edit_one, edit);

	return rc ? rc : edit_one(dir, node, edit);
}

static int edit_locked(struct fabric *f, int fd, unsigned node, struct edit *edit)
{
	int rc = fabric_map(f, fd);

	if (rc)
		return rc;
	fabric_sweep(f->segment, f->dir);
	edit->is_trial = true;		/* one host's refusal is everybody's */
	rc = edit_each(f->dir, node, edit);
	edit->is_trial = false;
	if (!rc)
		rc = edit_each(f->dir, node, edit);
	if (!rc)
		atomic_fetch_add(&f->segment->port_changes, 1);
	return rc;
}

int fabric_ports_change(const char *name, unsigned node, fabric_port_edit *edit, void *ctx,
			struct fabric **out)
{
	struct edit e = { .fn = edit, .ctx = ctx };
	struct fabric *f = calloc(1, sizeof *f);
	int rc, fd;

	if (!f)
		return -ENOMEM;
	f->self = FABRIC_MEMBERS_MAX;
	rc = fabric_place_name(name, f->dir, sizeof f->dir);
	if (!rc) {
		fabric_gate_enter();
		rc = fd = fabric_place_open(f->dir);
		if (fd >= 0) {
			rc = edit_locked(f, fd, node, &e);
			close(fd);
		}
		fabric_gate_leave();
	}
	if (!rc)
		*out = f;
	else if (f->segment)
		fabric_visit_end(f);	/* it may have been created for us */
	else
		fabric_abandon(f);
	return rc;
}

static bool has_noticed(const struct fabric *f, unsigned slot)
{
	uint32_t noticed = atomic_load_explicit(&f->segment->member[slot].port_noticed,
						memory_order_acquire);

	return !noticed || noticed == fabric_port_changes(f) + 1;
}

unsigned fabric_port_unnoticed(struct fabric *f)
{
	unsigned count = 0;
	uint64_t seat;

	for (unsigned slot = 0; slot < FABRIC_MEMBERS_MAX; slot++)
		count += seated_generation(f->segment, slot) && !has_noticed(f, slot) &&
			 fabric_seat_life(f->segment, slot, &seat) == FABRIC_ALIVE;
	return count;
}

static int remove_if_default(const char *dir, unsigned node, void *ctx)
{
	struct fabric_port port;
	char path[512];

	(void)ctx;
	if (read_exactly(dir, node, &port) && fabric_port_is_default(&port) &&
	    !path_make(dir, node, path, sizeof path))
		unlink(path);
	return 0;
}

/* A file for one host is needed as long as there is one for all that says something else. */
void fabric_remove_default_ports(const char *dir)
{
	struct fabric_port port;
	char path[512];

	snprintf(path, sizeof path, "%s/" IN_THE_MAKING, dir);
	unlink(path);			/* of a visitor that died */
	remove_if_default(dir, 0, NULL);
	if (!read_exactly(dir, 0, &port))
		each_host(dir, remove_if_default, NULL);
}

static void leave_locked(struct fabric *f, int fd)
{
	/* The last member may have taken the segment along, and this is another one. */
	if (f->segment)
		munmap(f->segment, sizeof *f->segment);
	f->segment = NULL;
	if (!fabric_map(f, fd))
		fabric_clean_or_remove(f);
}

void fabric_visit_end(struct fabric *f)
{
	int fd;

	fabric_gate_enter();
	fd = fabric_place_open(f->dir);
	if (fd >= 0) {
		leave_locked(f, fd);
		close(fd);
	}
	fabric_gate_leave();
	fabric_abandon(f);
}
