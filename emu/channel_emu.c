/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The emulated device as a provider of the seam, for a verbs library that needs no shim.
 *
 * Nothing is decided here; it hands over to emu.h.  The command descriptor is a memfd that holds
 * nothing: it may be duplicated and passed around, and its inode tells whose it is.
 *
 * Threads: any; `channels_lock` orders opening, adopting and closing.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "emu/emu.h"
#include "emu/mem/mem.h"
#include "emu/sysfs.h"
#include "hw-models/profile.h"
#include "include/base/cancel.h"
#include "include/seam/channel.h"

/* What stands behind a command descriptor and its duplicates. */
struct emu_channel {
	struct emu_channel *next;
	struct uv_file *uv;
	ino_t inode;
	unsigned users;		/* channels */
};

static pthread_mutex_t channels_lock = PTHREAD_MUTEX_INITIALIZER;
static struct emu_channel *channels;

static struct uv_file *uv_of(const struct channel *c)
{
	return ((struct emu_channel *)c->file)->uv;
}

static int emu_command(struct channel *c, struct ib_uverbs_ioctl_hdr *header)
{
	return emu_ioctl(uv_of(c), header);
}

static int emu_map(struct channel *c, void *hint, size_t bytes, int prot, int flags,
		   uint64_t offset, void **out)
{
	return emu_mmap(uv_of(c), hint, bytes, prot, flags, offset, out);
}

static void unlink_locked(struct emu_channel *gone)
{
	struct emu_channel **at = &channels;

	while (*at && *at != gone)
		at = &(*at)->next;
	if (*at)
		*at = gone->next;
}

static void channel_close(struct channel *c)
{
	struct emu_channel *e = c->file;
	int held = cancel_hold();
	bool is_last;

	pthread_mutex_lock(&channels_lock);
	is_last = --e->users == 0;
	if (is_last)
		unlink_locked(e);
	pthread_mutex_unlock(&channels_lock);
	close(c->fd);
	if (is_last) {
		emu_close(e->uv);
		free(e);
	}
	cancel_release(held);
}

static void channel_armed(struct channel *c, uint32_t cq_handle)
{
	emu_armed(uv_of(c), cq_handle);
}

static void channel_awaits_events(struct channel *c)
{
	emu_awaits_events(uv_of(c));
}

static void channel_rings_itself(struct channel *c)
{
	emu_rings_itself(uv_of(c));
}

static void channel_clock_refresh(struct channel *c)
{
	emu_clock_refresh(uv_of(c));
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

static int file_begin(int fd, struct emu_channel *e)
{
	struct stat st;
	int error = fstat(fd, &st) ? -errno : mem_guard_init();

	if (!error)
		error = emu_open(&e->uv);
	if (error)
		return error;
	emu_patched(e->uv);	/* its library tells of what it rings */
	e->inode = st.st_ino;
	e->users = 1;
	return 0;
}

static void channel_begin(struct channel *out, struct emu_channel *e, int fd)
{
	*out = (struct channel){ .ops = &emulated_ops, .fd = fd, .file = e };
}

static int open_held(struct channel *out)
{
	struct emu_channel *e = calloc(1, sizeof *e);
	int fd = memfd_create(EMU_UVERBS_NAME, MFD_CLOEXEC);
	int error = !e ? -ENOMEM : fd < 0 ? emu_complain("file", -errno) : file_begin(fd, e);

	if (error) {
		if (fd >= 0)
			close(fd);
		free(e);
		return error;
	}
	pthread_mutex_lock(&channels_lock);
	e->next = channels;
	channels = e;
	pthread_mutex_unlock(&channels_lock);
	channel_begin(out, e, fd);
	return 0;
}

static int emulated_open(const struct channel_device *device, struct channel *out)
{
	int held = cancel_hold();
	int error = open_held(out);

	(void)device;
	cancel_release(held);
	return error;
}

/* Descriptors of other processes can't be told from any other file yet. */
static int emulated_adopt(int fd, struct channel_device *out_device, struct channel *out)
{
	struct emu_identity id;
	struct emu_channel *e;
	struct stat st;
	int error = fstat(fd, &st) ? -errno : emu_identity(&id);

	if (error)
		return error;
	pthread_mutex_lock(&channels_lock);
	for (e = channels; e && e->inode != st.st_ino; e = e->next)
		;
	if (e)
		e->users++;
	pthread_mutex_unlock(&channels_lock);
	if (!e)
		return -ENODEV;
	device_fill(&id, out_device);
	channel_begin(out, e, fd);
	return 0;
}

const struct channel_provider channel_emulated = {
	.list = emulated_list,
	.read_attribute = emulated_read_attribute,
	.open = emulated_open,
	.adopt = emulated_adopt,
};
