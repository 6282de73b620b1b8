/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One command to the device: attributes are put together on the stack, then it is sent.
 *
 *	struct cmd c = cmd_new(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
 *
 *	cmd_in(&c, UVERBS_ATTR_CREATE_CQ_CQE, &cqe, sizeof cqe);
 *	cmd_out(&c, UVERBS_ATTR_CREATE_CQ_RESP_CQE, &cqe, sizeof cqe);
 *	h = cmd_object(&c, UVERBS_ATTR_CREATE_CQ_HANDLE, 0);
 *	error = cmd_send(&c, context);
 *	handle = cmd_handle(&c, h);
 *
 * Source: <rdma/rdma_user_ioctl_cmds.h>, <rdma/ib_user_ioctl_cmds.h>; device-abi B.1 to B.3.
 */
#ifndef VERBS_CMD_H
#define VERBS_CMD_H
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdint.h>

struct ibv_context;

#define CMD_ATTRS_MAX 24

struct cmd {
	struct ib_uverbs_ioctl_hdr header;
	struct ib_uverbs_attr attr[CMD_ATTRS_MAX];
};

struct cmd cmd_new(unsigned object, unsigned method);

/* A value that the device reads.  It must stay where it is until cmd_send(). */
void cmd_in(struct cmd *c, unsigned id, const void *value, size_t bytes);
/* The same for an attribute that an older kernel may ignore. */
void cmd_in_optional(struct cmd *c, unsigned id, const void *value, size_t bytes);
void cmd_in_u32(struct cmd *c, unsigned id, uint32_t value);
void cmd_in_u64(struct cmd *c, unsigned id, uint64_t value);	/* constants, 64-bit flags */
/* A value of one of several kinds, and which. */
void cmd_in_enum(struct cmd *c, unsigned id, unsigned kind, const void *value, size_t bytes);
/* Where the device writes. */
void cmd_out(struct cmd *c, unsigned id, void *value, size_t bytes);
void cmd_out_optional(struct cmd *c, unsigned id, void *value, size_t bytes);
/* An object by its handle, or one to be made (@handle 0); returns where cmd_handle() finds it. */
unsigned cmd_object(struct cmd *c, unsigned id, uint32_t handle);
/* The same for descriptors: -1 is sent as it is. */
unsigned cmd_fd(struct cmd *c, unsigned id, int fd);
/* The driver's own part, on both sides; NULL for none. */
void cmd_driver(struct cmd *c, const void *in, size_t in_bytes, void *out, size_t out_bytes);

static inline uint32_t cmd_handle(const struct cmd *c, unsigned at)
{
	return (uint32_t)c->attr[at].data;
}

/* 0 or an errno, positive, as verbs return it; programs look at errno itself, too. */
int cmd_send(struct cmd *c, struct ibv_context *context);

/* A command that has only its old form: @in is <rdma/ib_user_verbs.h>'s structure, without header.
 * With @command or'ed with CMD_EXTENDED it is one of the extended ones.  0 or an errno. */
#define CMD_EXTENDED 0x80000000u
struct cmd_write {
	unsigned command;
	const void *in;
	size_t in_bytes;
	void *out;
	size_t out_bytes;
	const void *driver_in;
	size_t driver_in_bytes;
	void *driver_out;
	size_t driver_out_bytes;
};
int cmd_write(const struct cmd_write *w, struct ibv_context *context);

/* Destroys @handle: @attr is the method's handle attribute.  0 or an errno. */
int cmd_destroy(struct ibv_context *context, unsigned object, unsigned method, unsigned attr,
		uint32_t handle);
#endif
