/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The seam: all that the verbs library may ask of whatever has a device.
 *
 * What is said here is the Linux RDMA user ABI (commands of <rdma/rdma_user_ioctl_cmds.h>, mappings
 * by offset) and the mlx5 queue formats of hw-models/, which lie in memory that both sides see.
 * There are two providers: the kernel, behind /dev/infiniband (verbs/channel_kernel.c), and the
 * emulated device of this process (emu/channel_emu.c).  The library knows neither by more than its
 * table; a device list comes from one of them and is never mixed.
 *
 * Threads: any, on any of these.  Errors are negative errnos.
 */
#ifndef SEAM_CHANNEL_H
#define SEAM_CHANNEL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ib_uverbs_ioctl_hdr;
struct channel;

#define CHANNEL_NAME_BYTES	64
#define CHANNEL_PATH_BYTES	256

/* A device that could be opened. */
struct channel_device {
	char name[CHANNEL_NAME_BYTES];		/* "mlx5_0" */
	char dev_name[CHANNEL_NAME_BYTES];	/* "uverbs0" */
	char ibdev_path[CHANNEL_PATH_BYTES];	/* its folder in sysfs */
	char dev_path[CHANNEL_PATH_BYTES];	/* that of its uverbs device */
	uint8_t node_type;			/* as in <sysfs>/node_type: 1 channel adapter */
	uint64_t node_guid;			/* host order */
	uint32_t abi_version;			/* of the driver's own part of commands */
	uint32_t index;				/* how the kernel numbers devices; -1: unknown */
	uint16_t vendor_id, device_id;		/* PCI */
	dev_t cdev;
};

/* What processes can share. */
enum channel_kind { CHANNEL_PD, CHANNEL_MR, CHANNEL_DM };

/* Entries that only lend the device time are NULL where it has its own. */
struct channel_ops {
	/* @header with its attributes, as RDMA_VERBS_IOCTL takes them. */
	int (*command)(struct channel *c, struct ib_uverbs_ioctl_hdr *header);
	/* As mmap(2) of the command descriptor at @offset bytes; @hint may be NULL. */
	int (*map)(struct channel *c, void *hint, size_t bytes, int prot, int flags,
		   uint64_t offset, void **out);
	/* The channel and its descriptor are gone; mappings stay until munmap(2). */
	void (*close)(struct channel *c);

	/* The doorbell record of QP @qpn has moved and its doorbell was rung. */
	void (*rang)(uint32_t qpn);
	/* Receives were posted to QP @qpn. */
	void (*posted_recv)(uint32_t qpn);
	/* The caller found a CQ empty and would look again. */
	void (*idle)(void);
	/* The CQ of that uverbs handle was armed. */
	void (*armed)(struct channel *c, uint32_t cq_handle);
	/* The caller is going to sleep in a read of the completion channel @fd.  0: read now;
	 * -EINTR, -EBADF.  A cancellation point. */
	int (*doze)(int fd);
	/* The caller is going to read asynchronous events. */
	void (*awaits_events)(struct channel *c);
	/* The program drives queues of this channel itself: they move without any of the above. */
	void (*rings_itself)(struct channel *c);
	/* The clock page is going to be read. */
	void (*clock_refresh)(struct channel *c);
	/* The import of the object with that uverbs handle ends; no command says so. */
	void (*unimport)(struct channel *c, enum channel_kind kind, uint32_t handle);
	/* Give the object @from_handle of the file behind @from_fd a handle in the file behind
	 * @to_fd too.  NULL where only the driver's own form of sharing exists. */
	int (*share)(int from_fd, int to_fd, enum channel_kind kind, uint32_t from_handle,
		     uint32_t *to_handle_out);
};

/* An open device. */
struct channel {
	const struct channel_ops *ops;
	int fd;			/* a descriptor that may be passed on, ibv_context.cmd_fd */
	void *file;		/* the provider's */
};

struct channel_provider {
	/* Writes up to @max devices, in the order that ibv_get_device_list() tells; the number
	 * found, 0 for none. */
	int (*list)(struct channel_device *out, unsigned max);
	/* The text of the file @name below the device's folder in sysfs ("ports/1/gids/3",
	 * "fw_ver"), without its last newline and with a zero; its length.  -ENOENT */
	int (*read_attribute)(const struct channel_device *device, const char *name, char *out,
			      size_t bytes);
	/* -ENOMEM, -EMFILE, -EACCES, ... as open(2) */
	int (*open)(const struct channel_device *device, struct channel *out);
	/* Makes a channel of a command descriptor that somebody passed to us, which it keeps;
	 * @out_device says whose.  -EBADF, -ENODEV, -EOPNOTSUPP */
	int (*adopt)(int fd, struct channel_device *out_device, struct channel *out);
};

extern const struct channel_provider channel_kernel;
extern const struct channel_provider channel_emulated;
#endif
