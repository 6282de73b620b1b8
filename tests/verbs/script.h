/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device that does nothing: it takes the library's commands, gives out numbers, maps memory, and
 * remembers what it was asked for.
 *
 * It stands in for the emulated provider, so the library finds it as it finds that.  Completions
 * are written by the test, into the memory that the library told the device of.
 */
#ifndef TESTS_VERBS_SCRIPT_H
#define TESTS_VERBS_SCRIPT_H
#include <criterion/criterion.h>
#include <infiniband/verbs.h>
#include "hw-models/hw.h"
#include "verbs/queue.h"

#define SCRIPT_COMMANDS_MAX	16384
#define SCRIPT_MAPS_MAX		64
#define SCRIPT_BF_BYTES		512u	/* a register's two buffers */

struct ib_uverbs_ioctl_hdr;
struct ib_uverbs_attr;

struct script_command { uint16_t object, method; uint64_t write_command; };

extern struct script {
	struct script_command command[SCRIPT_COMMANDS_MAX];
	unsigned commands;
	uint8_t *map[SCRIPT_MAPS_MAX];		/* doorbell pages, in the order of mapping */
	unsigned maps;
	uint32_t next_number;			/* of objects, each another */
	unsigned rang, posted_recv, armed, idle;
	uint32_t rang_qpn;
	void (*on_rang)(void);
	void (*on_idle)(void);
	uint8_t link_layer, port_flags;		/* of every port, IBV_LINK_LAYER_*, IBV_QPF_* */
	uint8_t eth_inline_mode;		/* enum mlx5_user_inline_mode */
	uint32_t device_caps, tso_bytes_max;	/* IBV_DEVICE_*; 0: frames are not cut up */
	/* Called with each INVOKE_WRITE, before it is answered. */
	void (*on_write)(uint64_t command);
	/* Called with each command that succeeds, after it is answered: looks, may answer more. */
	void (*on_command)(struct ib_uverbs_ioctl_hdr *header);
	/* The next command of that object and method fails. */
	uint16_t fail_object, fail_method;
	int fail_error;
	bool is_unplugged;			/* the device is no longer listed */
	unsigned attributes_read;
} script;

/* The context of the only device; the library is asked as a program would. */
struct ibv_context *script_open(void);

/* An attribute of a command, or the memory that it tells of, or its value; NULL or 0: not there. */
struct ib_uverbs_attr *script_attr(struct ib_uverbs_ioctl_hdr *header, unsigned id);
void *script_memory(struct ib_uverbs_ioctl_hdr *header, unsigned id);
uint64_t script_value(struct ib_uverbs_ioctl_hdr *header, unsigned id);
bool script_is(const struct ib_uverbs_ioctl_hdr *header, uint16_t object, uint16_t method);

/* How often the device was sent that command. */
unsigned script_count(uint16_t object, uint16_t method);
unsigned script_count_write(uint64_t write_command);

/* Remembers an object that a test leaves behind, so that none is taken for lost; returns it. */
void *script_keep(void *object);

struct ibv_cq *script_cq(struct ibv_context *context, int cqe);

/* A QP in RTS, with @depth requests of both kinds; @srq may be NULL. */
struct script_qp {
	enum ibv_qp_type type;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	uint32_t depth, sges, inline_bytes;
	uint16_t tso_header;		/* raw packets, 0: not asked for */
	uint8_t port;			/* told on the way to INIT, unless 0 */
	uint64_t ops;			/* IBV_QP_EX_WITH_*, 0: none */
	bool signals_all;
};
struct vb_qp *script_qp(const struct script_qp *want);
/* One of RC with small rings and nothing else. */
struct vb_qp *script_rc(struct ibv_context *context, uint32_t depth);

void script_state(struct vb_qp *qp, enum ibv_qp_state state);

/* Writes @cqe as the @index'th completion of @cq ever. */
void script_complete(struct vb_cq *cq, uint32_t index, const struct hw_cqe *cqe);
#endif
