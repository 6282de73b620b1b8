/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel as a provider of the seam: devices under /sys/class/infiniband_verbs, commands through
 * /dev/infiniband/uverbsN.
 *
 * Only parts whose queues are of mlx5's format are listed.  SYSFS_PATH moves /sys, as for other
 * libraries of this kind.
 *
 * Source: device-abi A.3, A.5.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "include/seam/channel.h"

#define DRIVER_ABI	1u		/* of mlx5's part of the commands */
#define ABI_FIRST	3u		/* of the class of devices */
#define ABI_LAST	6u
#define MELLANOX	0x15b3u
#define TEXT_BYTES	128

/* First and last number of the parts of one family. */
static const struct { uint16_t first, last;
} parts[] = {
	{ 0x1011, 0x1025 }, /* Connect-IB, ConnectX-4 to 8 and their functions */
	{ 0xa2d2, 0xa2d3 }, { 0xa2d6, 0xa2d6 },
	{ 0xa2dc, 0xa2dc }, { 0xa2df, 0xa2df }, /* BlueField */
};

static const char *sysfs(void)
{
	const char *path = getenv("SYSFS_PATH");

	return path ? path : "/sys";
}

/* False: it does not fit. */
static bool __attribute__((format(printf, 3, 4)))
print(char *out, size_t bytes, const char *format, ...)
{
	va_list values;
	int length;

	va_start(values, format);
	length = vsnprintf(out, bytes, format, values);
	va_end(values);
	return length >= 0 && (size_t)length < bytes;
}

/* The text of a file without its newline; -ENOENT. */
static int text_read(const char *folder, const char *name, char *out, size_t bytes)
{
	char path[2 * CHANNEL_PATH_BYTES];
	ssize_t length;
	int fd;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -ENOENT;
	length = read(fd, out, bytes - 1);
	close(fd);
	if (length <= 0)
		return -ENOENT;
	if (out[length - 1] == '\n')
		length--;
	out[length] = '\0';
	return (int)length;
}

static uint64_t number_read(const char *folder, const char *name, int base)
{
	char text[TEXT_BYTES];

	return text_read(folder, name, text, sizeof text) < 0 ? 0 : strtoull(text, NULL, base);
}

/* "0011:2233:4455:6677" */
static uint64_t guid_read(const char *folder, const char *name)
{
	char text[TEXT_BYTES];
	unsigned part[4];

	if (text_read(folder, name, text, sizeof text) < 0 ||
	    sscanf(text, "%4x:%4x:%4x:%4x", &part[0], &part[1], &part[2], &part[3]) != 4)
		return 0;
	return (uint64_t)part[0] << 48 | (uint64_t)part[1] << 32 | (uint64_t)part[2] << 16 |
	       part[3];
}

static bool part_is_known(const struct channel_device *d)
{
	for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
		if (d->device_id >= parts[i].first && d->device_id <= parts[i].last)
			return d->vendor_id == MELLANOX && d->abi_version == DRIVER_ABI;
	return false;
}

static dev_t cdev_read(const char *folder)
{
	char text[TEXT_BYTES];
	unsigned major_number, minor_number;

	if (text_read(folder, "dev", text, sizeof text) < 0 ||
	    sscanf(text, "%u:%u", &major_number, &minor_number) != 2)
		return 0;
	return makedev(major_number, minor_number);
}

/* False: not one that we could drive. */
static bool device_read(const char *uverbs, struct channel_device *d)
{
	*d = (struct channel_device){ .index = UINT32_MAX };
	if (!print(d->dev_name, sizeof d->dev_name, "%s", uverbs) ||
	    !print(d->dev_path, sizeof d->dev_path, "%s/class/infiniband_verbs/%s", sysfs(),
		   uverbs))
		return false;
	if (text_read(d->dev_path, "ibdev", d->name, sizeof d->name) < 0 ||
	    !print(d->ibdev_path, sizeof d->ibdev_path, "%s/class/infiniband/%s", sysfs(), d->name))
		return false;
	d->abi_version = (uint32_t)number_read(d->dev_path, "abi_version", 10);
	d->vendor_id = (uint16_t)number_read(d->dev_path, "device/vendor", 16);
	d->device_id = (uint16_t)number_read(d->dev_path, "device/device", 16);
	d->node_type = (uint8_t)number_read(d->ibdev_path, "node_type", 10);
	d->node_guid = guid_read(d->ibdev_path, "node_guid");
	d->cdev = cdev_read(d->dev_path);
	return part_is_known(d);
}

static int by_name(const void *a, const void *b)
{
	const struct channel_device *x = a, *y = b;
	size_t x_bytes = strlen(x->dev_name), y_bytes = strlen(y->dev_name);

	return x_bytes != y_bytes ? (x_bytes < y_bytes ? -1 : 1) : strcmp(x->dev_name, y->dev_name);
}

/* There is none where the kernel has no RDMA. */
static bool abi_is_known(const char *class)
{
	uint64_t version = number_read(class, "abi_version", 10);

	return version >= ABI_FIRST && version <= ABI_LAST;
}

static int kernel_list(struct channel_device *out, unsigned max)
{
	char path[CHANNEL_PATH_BYTES];
	struct dirent *entry;
	unsigned count = 0;
	DIR *folder;

	snprintf(path, sizeof path, "%s/class/infiniband_verbs", sysfs());
	folder = abi_is_known(path) ? opendir(path) : NULL;
	if (!folder)
		return -ENOSYS;		/* inventory DISC-1, SYS-2 */
	while (count < max && (entry = readdir(folder)))
		if (!strncmp(entry->d_name, "uverbs", 6) && device_read(entry->d_name, &out[count]))
			count++;
	closedir(folder);
	qsort(out, count, sizeof *out, by_name);
	return (int)count;
}

static int kernel_read_attribute(const struct channel_device *device, const char *name, char *out,
				 size_t bytes)
{
	return bytes ? text_read(device->ibdev_path, name, out, bytes) : -EINVAL;
}

/* --- an open one --- */

static int kernel_command(struct channel *c, struct ib_uverbs_ioctl_hdr *header)
{
	return ioctl(c->fd, RDMA_VERBS_IOCTL, header) ? -errno : 0;
}

static int kernel_map(struct channel *c, void *hint, size_t bytes, int prot, int flags,
		      uint64_t offset, void **out)
{
	void *at = mmap(hint, bytes, prot, flags, c->fd, (off_t)offset);

	if (at == MAP_FAILED)
		return -errno;
	*out = at;
	return 0;
}

static void kernel_close(struct channel *c)
{
	close(c->fd);
}

static const struct channel_ops kernel_ops = {
	.command = kernel_command,
	.map = kernel_map,
	.close = kernel_close,
};

static int kernel_open(const struct channel_device *device, struct channel *out)
{
	char path[CHANNEL_PATH_BYTES];
	struct stat st;
	int fd;

	snprintf(path, sizeof path, "/dev/infiniband/%s", device->dev_name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* The name may have gone to another device since it was listed. */
	if (fstat(fd, &st) || !S_ISCHR(st.st_mode) || st.st_rdev != device->cdev) {
		close(fd);
		return -ENODEV;
	}
	*out = (struct channel){ .ops = &kernel_ops, .fd = fd };
	return 0;
}

static int kernel_adopt(int fd, struct channel_device *out_device, struct channel *out)
{
	struct channel_device *found;
	struct stat st;
	int count, error = -ENODEV;

	if (fstat(fd, &st))
		return -errno;
	found = calloc(64, sizeof *found);
	if (!found)
		return -ENOMEM;
	count = kernel_list(found, 64);
	for (int i = 0; i < count && error; i++)
		if (S_ISCHR(st.st_mode) && found[i].cdev == st.st_rdev) {
			*out_device = found[i];
			*out = (struct channel){ .ops = &kernel_ops, .fd = fd };
			error = 0;
		}
	free(found);
	return error;
}

const struct channel_provider channel_kernel = {
	.list = kernel_list,
	.read_attribute = kernel_read_attribute,
	.open = kernel_open,
	.adopt = kernel_adopt,
};
