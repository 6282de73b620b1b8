/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The emulated device as a provider of the seam, for a verbs library that needs no shim.
 *
 * Nothing is decided here; it hands over to emu.h.  The command descriptor is a memfd that holds
 * nothing: it may be duplicated and passed around, and its inode tells whose it is.
 *
 * Without a shim nobody tells what the program does to descriptors and signals, so it is looked at:
 * by every command, and from time to time by the device (emu_look_with()).  A file whose
 * descriptors are all gone or mean something else was closed; the guard of emu/mem goes before a
 * handler of SIGSEGV that was installed over it.
 *
 * Threads: any; `channels_lock` orders opening, adopting and closing, and nothing of the emulator
 * is called under it.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>
#include "emu/emu.h"
#include "emu/mem/mem.h"
#include "emu/sysfs.h"
#include "hw-models/profile.h"
#include "include/base/cancel.h"
#include "include/seam/channel.h"

#define FDS_MAX	8u		/* descriptors of one file that are watched */

/* What stands behind a command descriptor and its duplicates. */
struct emu_channel {
	struct emu_channel *next;
	struct uv_file *uv;
	dev_t dev;
	ino_t inode;
	int fd[FDS_MAX];	/* of its channels; beyond, the file is never taken to be closed */
	unsigned channels;
	unsigned holds;		/* of @uv: running calls, and one until it is closed */
	bool is_closed;		/* and the one hold is gone; also in a forked child */
};

static pthread_mutex_t channels_lock = PTHREAD_MUTEX_INITIALIZER;
static struct emu_channel *channels;

/* --- what the program did --- */

static bool is_same(const struct emu_channel *e, const struct stat *st)
{
	return st->st_ino == e->inode && st->st_dev == e->dev;
}

static bool is_at(const struct emu_channel *e, int fd)
{
	struct stat st;

	return !fstat(fd, &st) && is_same(e, &st);
}

/* Lock held. */
static bool is_anywhere(const struct emu_channel *e)
{
	if (e->channels > FDS_MAX)
		return true;
	for (unsigned i = 0; i < e->channels; i++)
		if (is_at(e, e->fd[i]))
			return true;
	return false;
}

/* Lock held.  Gives a hold back; what is to be closed after unlocking, or NULL. */
static struct uv_file *hold_drop(struct emu_channel *e)
{
	struct uv_file *last = --e->holds ? NULL : e->uv;

	if (!e->holds && !e->channels)
		free(e);
	return last;
}

/* Lock held, the same. */
static struct uv_file *closed(struct emu_channel *e)
{
	if (e->is_closed)
		return NULL;
	e->is_closed = true;
	return hold_drop(e);
}

static void close_uv(struct uv_file *uv)
{
	if (uv)
		emu_close(uv);
}

/* A thread, because whoever found it may be the device's own or have its lock. */
static void *close_missing(void *arg)
{
	struct uv_file *last;

	(void)arg;
	do {
		last = NULL;
		pthread_mutex_lock(&channels_lock);
		for (struct emu_channel *e = channels; e && !last; e = e->next)
			if (!e->is_closed && !is_anywhere(e))
				last = closed(e);
		pthread_mutex_unlock(&channels_lock);
		close_uv(last);
	} while (last);
	return NULL;
}

/* If there is no thread the next look tries again. */
static void close_missing_aside(void)
{
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (!pthread_create(&thread, NULL, close_missing, NULL))
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* True once in a tick of the coarse clock, for the system calls that follow. */
static bool is_time(void)
{
	static uint64_t last_ns;
	struct timespec now;
	uint64_t now_ns;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	return __atomic_exchange_n(&last_ns, now_ns, __ATOMIC_RELAXED) != now_ns;
}

/* Called by the device, with its lock. */
static void look(void)
{
	bool is_missing = false;

	if (!is_time() || pthread_mutex_trylock(&channels_lock))
		return;
	mem_guard_renew();
	for (struct emu_channel *e = channels; e; e = e->next)
		is_missing |= !e->is_closed && !is_anywhere(e);
	pthread_mutex_unlock(&channels_lock);
	if (is_missing)
		close_missing_aside();
}

static void fork_prepare(void)
{
	pthread_mutex_lock(&channels_lock);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&channels_lock);
}

/* The files are the parent's. */
static void fork_child(void)
{
	pthread_mutex_init(&channels_lock, NULL);
	for (struct emu_channel *e = channels; e; e = e->next) {
		e->is_closed = true;
		e->holds = 0;
	}
}

static void begin(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
	emu_look_with(look);
}

/* --- calls --- */

/* Holds the file for a call: 0; -EIO: it is closed; -EBADF: this descriptor of it is. */
static int call_begin(const struct channel *c)
{
	struct emu_channel *e = c->file;
	struct uv_file *last = NULL;
	int error = 0;

	pthread_mutex_lock(&channels_lock);
	mem_guard_renew();
	if (!is_at(e, c->fd)) {
		error = -EBADF;
		last = is_anywhere(e) ? NULL : closed(e);
	} else if (e->is_closed) {
		error = -EIO;
	} else {
		e->holds++;
	}
	pthread_mutex_unlock(&channels_lock);
	close_uv(last);
	return error;
}

static void call_end(const struct channel *c)
{
	struct uv_file *last;

	pthread_mutex_lock(&channels_lock);
	last = hold_drop(c->file);
	pthread_mutex_unlock(&channels_lock);
	close_uv(last);
}

/* The same without a look: false if it is closed. */
static bool quick_begin(const struct channel *c)
{
	struct emu_channel *e = c->file;
	bool is_open;

	pthread_mutex_lock(&channels_lock);
	is_open = !e->is_closed;
	e->holds += is_open;
	pthread_mutex_unlock(&channels_lock);
	return is_open;
}

static struct uv_file *uv_of(const struct channel *c)
{
	return ((struct emu_channel *)c->file)->uv;
}

static int emu_command(struct channel *c, struct ib_uverbs_ioctl_hdr *header)
{
	int held = cancel_hold();
	int error = call_begin(c);

	if (!error) {
		error = emu_ioctl(uv_of(c), header);
		call_end(c);
	}
	cancel_release(held);
	return error;
}

static int emu_map(struct channel *c, void *hint, size_t bytes, int prot, int flags,
		   uint64_t offset, void **out)
{
	int held = cancel_hold();
	int error = call_begin(c);

	if (!error) {
		error = emu_mmap(uv_of(c), hint, bytes, prot, flags, offset, out);
		call_end(c);
	}
	cancel_release(held);
	return error;
}

/* Lock held. */
static void unlink_locked(struct emu_channel *gone)
{
	struct emu_channel **at = &channels;

	while (*at && *at != gone)
		at = &(*at)->next;
	if (*at)
		*at = gone->next;
}

/* Lock held. */
static void fd_forget(struct emu_channel *e, int fd)
{
	unsigned at = 0;

	while (at < e->channels && at < FDS_MAX && e->fd[at] != fd)
		at++;
	e->channels--;
	if (at < FDS_MAX && e->channels < FDS_MAX)
		e->fd[at] = e->fd[e->channels];
}

static void channel_close(struct channel *c)
{
	struct emu_channel *e = c->file;
	struct uv_file *last = NULL;
	int held = cancel_hold();

	pthread_mutex_lock(&channels_lock);
	if (e->channels == 1 && !e->is_closed && is_at(e, c->fd))
		emu_watch(e->uv, c->fd);
	if (is_at(e, c->fd))
		close(c->fd);
	fd_forget(e, c->fd);
	if (!e->channels) {
		unlink_locked(e);
		if (e->is_closed && !e->holds)
			free(e);
		else
			last = closed(e);
	}
	pthread_mutex_unlock(&channels_lock);
	close_uv(last);
	cancel_release(held);
}

static void channel_armed(struct channel *c, uint32_t cq_handle)
{
	if (!quick_begin(c))
		return;
	emu_armed(uv_of(c), cq_handle);
	call_end(c);
}

static void channel_awaits_events(struct channel *c)
{
	if (!quick_begin(c))
		return;
	emu_awaits_events(uv_of(c));
	call_end(c);
}

static void channel_rings_itself(struct channel *c)
{
	if (!quick_begin(c))
		return;
	emu_rings_itself(uv_of(c));
	call_end(c);
}

static void channel_clock_refresh(struct channel *c)
{
	if (!quick_begin(c))
		return;
	emu_clock_refresh(uv_of(c));
	call_end(c);
}

static_assert((int)CHANNEL_PD == EMU_IMPORT_PD && (int)CHANNEL_MR == EMU_IMPORT_MR &&
	      (int)CHANNEL_DM == EMU_IMPORT_DM, "the same kinds");

static void channel_unimport(struct channel *c, enum channel_kind kind, uint32_t handle)
{
	if (!quick_begin(c))
		return;
	emu_unimport(uv_of(c), (enum emu_import)kind, handle);
	call_end(c);
}

static int channel_share(int from_fd, int to_fd, enum channel_kind kind, uint32_t from_handle,
			 uint32_t *to_handle_out)
{
	return emu_share(from_fd, to_fd, (enum emu_import)kind, from_handle, to_handle_out);
}

static const struct channel_ops emulated_ops = {
	.command = emu_command,
	.map = emu_map,
	.close = channel_close,
	.rang = emu_rang,
	.posted_recv = emu_posted_recv,
	.idle = emu_lend,
	.armed = channel_armed,
	.doze = emu_doze,
	.awaits_events = channel_awaits_events,
	.rings_itself = channel_rings_itself,
	.clock_refresh = channel_clock_refresh,
	.unimport = channel_unimport,
	.share = channel_share,
};

static void device_fill(const struct emu_identity *id, struct channel_device *out)
{
	*out = (struct channel_device){
		.node_type = 1, .node_guid = id->node_guid, .abi_version = 1, .index = UINT32_MAX,
		.vendor_id = 0x15b3, .device_id = id->profile->pci_device,
		.cdev = makedev(EMU_DEV_MAJOR, EMU_DEV_MINOR),
	};
	snprintf(out->name, sizeof out->name, "%s", EMU_DEVICE_NAME);
	snprintf(out->dev_name, sizeof out->dev_name, "%s", EMU_UVERBS_NAME);
	snprintf(out->ibdev_path, sizeof out->ibdev_path, "/sys/class/infiniband/%s",
		 EMU_DEVICE_NAME);
	snprintf(out->dev_path, sizeof out->dev_path, "/sys/class/infiniband_verbs/%s",
		 EMU_UVERBS_NAME);
}

static int emulated_list(struct channel_device *out, unsigned max)
{
	struct emu_identity id;
	int error = emu_identity(&id);

	if (error || !max)
		return error;
	device_fill(&id, out);
	return 1;
}

struct search { const char *name; char *out; size_t bytes; int length; };

static int attribute_take(void *ctx, const char *path, const char *text, bool is_link)
{
	static const char folder[] = SYSFS_IBDEV "/", pci[] = "device/";
	static const char function[] = "devices/" SYSFS_PCI_BUS "/" SYSFS_PCI_FUNCTION "/";
	struct search *s = ctx;
	size_t length = strlen(text);

	if (is_link)
		return 0;
	if (!strncmp(s->name, pci, sizeof pci - 1)) {
		if (strncmp(path, function, sizeof function - 1) ||
		    strcmp(path + sizeof function - 1, s->name + sizeof pci - 1))
			return 0;
	} else if (strncmp(path, folder, sizeof folder - 1) ||
		   strcmp(path + sizeof folder - 1, s->name)) {
		return 0;
	}
	if (length && text[length - 1] == '\n')
		length--;
	if (length >= s->bytes)
		length = s->bytes - 1;
	memcpy(s->out, text, length);
	s->out[length] = '\0';
	s->length = (int)length;
	return 1;
}

static int emulated_read_attribute(const struct channel_device *device, const char *name,
				   char *out, size_t bytes)
{
	struct search s = { .name = name, .out = out, .bytes = bytes, .length = -ENOENT };
	struct emu_identity id;
	int error = bytes ? emu_identity(&id) : -EINVAL;

	(void)device;
	if (error)
		return error;
	sysfs_describe(&id, attribute_take, &s);
	return s.length;
}

static void fd_add(struct emu_channel *e, int fd)
{
	if (e->channels < FDS_MAX)
		e->fd[e->channels] = fd;
	e->channels++;
}

static int file_begin(int fd, struct emu_channel *e, int (*how)(int fd, struct uv_file **out))
{
	struct stat st;
	int error = fstat(fd, &st) ? -errno : mem_guard_init();

	if (!error)
		error = how(fd, &e->uv);
	if (error)
		return error;
	emu_patched(e->uv);	/* its library tells of what it rings */
	e->dev = st.st_dev;
	e->inode = st.st_ino;
	e->holds = 1;
	fd_add(e, fd);
	return 0;
}

static void channel_begin(struct channel *out, struct emu_channel *e, int fd)
{
	*out = (struct channel){ .ops = &emulated_ops, .fd = fd, .file = e };
}

/* A file that is not among ours yet.  @fd stays the caller's if it fails. */
static int file_add(int fd, int (*how)(int fd, struct uv_file **out), struct emu_channel **out)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct emu_channel *e = calloc(1, sizeof *e);
	int error = e ? 0 : -ENOMEM;

	pthread_once(&once, begin);
	if (!error)
		error = file_begin(fd, e, how);
	if (error) {
		free(e);
		return error;
	}
	pthread_mutex_lock(&channels_lock);
	e->next = channels;
	channels = e;
	pthread_mutex_unlock(&channels_lock);
	*out = e;
	return 0;
}

static int open_held(struct channel *out)
{
	struct emu_channel *e;
	int fd = emu_fd_create(true);
	int error = fd < 0 ? emu_complain("file", fd) : file_add(fd, emu_open, &e);

	if (!error)
		channel_begin(out, e, fd);
	else if (fd >= 0)
		close(fd);
	return error;
}

static int emulated_open(const struct channel_device *device, struct channel *out)
{
	int held = cancel_hold();
	int error = open_held(out);

	(void)device;
	cancel_release(held);
	return error;
}

/* One of ours that is open, with @fd as a descriptor more; or NULL. */
static struct emu_channel *known_take(int fd)
{
	struct emu_channel *e;
	struct stat st;

	if (fstat(fd, &st))
		return NULL;
	pthread_mutex_lock(&channels_lock);
	for (e = channels; e && (e->is_closed || !is_same(e, &st)); e = e->next)
		;
	if (e)
		fd_add(e, fd);
	pthread_mutex_unlock(&channels_lock);
	return e;
}

static int adopt_held(int fd, struct channel_device *out_device, struct channel *out)
{
	struct emu_channel *e = known_take(fd);
	struct emu_identity id;
	int error = e ? 0 : file_add(fd, emu_adopt, &e);

	if (error)
		return error;
	error = emu_identity(&id);
	assert(!error);			/* there is a device */
	emu_counts_imports(e->uv);
	device_fill(&id, out_device);
	channel_begin(out, e, fd);
	return 0;
}

static int emulated_adopt(int fd, struct channel_device *out_device, struct channel *out)
{
	int held = cancel_hold();
	int error = adopt_held(fd, out_device, out);

	cancel_release(held);
	return error;
}

const struct channel_provider channel_emulated = {
	.list = emulated_list,
	.read_attribute = emulated_read_attribute,
	.open = emulated_open,
	.adopt = emulated_adopt,
};
