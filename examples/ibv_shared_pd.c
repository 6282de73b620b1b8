/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes on one protection domain.
 *
 * The owner has the memory and registers it; the worker, a process of its own, is sent the owner's
 * command descriptor over a socket, and imports device, domain and region.  It then moves messages
 * out of the owner's memory and back into it, by queue pairs of its own; the owner only waits.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "examples/device.h"
#include "examples/fail.h"

enum {
	PAIR = 2,			/* queue pairs, connected with each other */
	RNR_TIMER_640_US = 12,
	TIMEOUT_67_MS = 14,
	RETRIES = 7,
	FROM_OWNER = 0xa5, FROM_WORKER = 0x3c,
};

static const int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			  IBV_ACCESS_REMOTE_READ;

/* What the worker needs besides the descriptor: names of objects behind it, and where the memory
 * is, which an import does not tell. */
struct gift {
	uint32_t pd_handle, mr_handle;
	uint64_t addr;
	pid_t owner;
};

/* --- passing it on ------------------------------------------------------- */

union descriptor_room {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static void gift_send(int socket, const struct gift *gift, int fd)
{
	struct iovec text = { (void *)(uintptr_t)gift, sizeof *gift };
	union descriptor_room room = { .bytes = { 0 } };
	struct msghdr message = {
		.msg_iov = &text, .msg_iovlen = 1,
		.msg_control = &room, .msg_controllen = sizeof room,
	};

	room.header = (struct cmsghdr){
		.cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
	};
	memcpy(CMSG_DATA(&room.header), &fd, sizeof fd);
	if (sendmsg(socket, &message, 0) != sizeof *gift)
		fail_errno(errno, "send the descriptor to the worker");
}

static int gift_receive(int socket, struct gift *gift)
{
	struct iovec text = { gift, sizeof *gift };
	union descriptor_room room;
	struct msghdr message = {
		.msg_iov = &text, .msg_iovlen = 1,
		.msg_control = &room, .msg_controllen = sizeof room,
	};
	int fd;

	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != sizeof *gift ||
	    !CMSG_FIRSTHDR(&message) || CMSG_FIRSTHDR(&message)->cmsg_type != SCM_RIGHTS)
		fail("the owner sent no descriptor");
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
	return fd;
}

/* --- the worker ---------------------------------------------------------- */

struct worker {
	const struct options *options;
	struct gift gift;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *theirs, *mine;
	uint8_t *buffer;
	struct ibv_cq *cq;
	struct ibv_qp *qp[PAIR];
};

static void import(struct worker *w, int fd)
{
	size_t bytes = (size_t)w->options->size_bytes;

	w->context = made(ibv_import_device(fd), "import the device");
	w->pd = made(ibv_import_pd(w->context, w->gift.pd_handle), "import the protection domain");
	w->theirs = made(ibv_import_mr(w->pd, w->gift.mr_handle), "import the memory");
	w->buffer = buffer_alloc(bytes);
	w->mine = made(ibv_reg_mr(w->pd, w->buffer, bytes, rights), "register %zu bytes", bytes);
	w->cq = made(ibv_create_cq(w->context, 1, NULL, NULL, 0), "create a CQ");
}

static struct ibv_qp *qp_open(struct worker *w)
{
	struct ibv_qp_init_attr init = {
		.send_cq = w->cq, .recv_cq = w->cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = (uint8_t)w->options->ib_port,
		.qp_access_flags = (unsigned)rights,
	};
	struct ibv_qp *qp = made(ibv_create_qp(w->pd, &init), "create a queue pair");

	qp_change(qp, &attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	return qp;
}

static void qp_connect(struct worker *w, struct ibv_qp *qp, const struct ibv_qp *other)
{
	struct ibv_port_attr port = device_port(w->context, w->options);
	union ibv_gid gid = device_gid(w->context, w->options);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .ah_attr = path_to(&gid, port.lid, w->options),
		.path_mtu = mtu_of_bytes(w->options->mtu_bytes), .dest_qp_num = other->qp_num,
		.max_dest_rd_atomic = 1, .min_rnr_timer = RNR_TIMER_640_US,
		.timeout = TIMEOUT_67_MS, .retry_cnt = RETRIES, .rnr_retry = RETRIES,
		.max_rd_atomic = 1,
	};

	qp_change(qp, &attr, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	attr.qp_state = IBV_QPS_RTS;
	qp_change(qp, &attr, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			     IBV_QP_MAX_QP_RD_ATOMIC);
}

static void completion_await(struct worker *w, const char *what)
{
	struct ibv_wc wc;
	int count;

	do
		count = ibv_poll_cq(w->cq, 1, &wc);
	while (!count);
	if (count < 0)
		fail_errno(errno, "poll the CQ");
	if (wc.status != IBV_WC_SUCCESS)
		fail_work("%s failed: %s", what, ibv_wc_status_str(wc.status));
}

/* One WRITE between the owner's memory and ours; both keys are of the shared domain. */
static void move(struct worker *w, bool is_back)
{
	uint64_t here = (uintptr_t)w->buffer;
	struct ibv_sge local = {
		.addr = is_back ? here : w->gift.addr,
		.length = (uint32_t)w->options->size_bytes,
		.lkey = is_back ? w->mine->lkey : w->theirs->lkey,
	};
	struct ibv_send_wr wr = {
		.sg_list = &local, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {
			.remote_addr = is_back ? w->gift.addr : here,
			.rkey = is_back ? w->theirs->rkey : w->mine->rkey,
		},
	}, *bad;

	check(ibv_post_send(w->qp[0], &wr, &bad), "post a WRITE");
	completion_await(w, is_back ? "a WRITE into the owner's memory" :
				      "a WRITE out of the owner's memory");
}

static bool is_all(const uint8_t *at, size_t bytes, uint8_t value)
{
	return at[0] == value && !memcmp(at, at + 1, bytes - 1);
}

static void work(struct worker *w)
{
	size_t bytes = (size_t)w->options->size_bytes;

	for (int i = 0; i < w->options->iterations; i++) {
		uint8_t expected = i ? FROM_WORKER : FROM_OWNER;

		memset(w->buffer, 0, bytes);
		move(w, false);
		if (!is_all(w->buffer, bytes, expected))
			fail("message %d out of the owner's memory is wrong", i);
		memset(w->buffer, FROM_WORKER, bytes);
		move(w, true);
	}
	printf("worker %d: %d messages of %zu bytes out of the memory of process %d, and back\n",
	       (int)getpid(), w->options->iterations, bytes, (int)w->gift.owner);
}

static void worker_close(struct worker *w)
{
	for (unsigned i = 0; i < PAIR; i++)
		check(ibv_destroy_qp(w->qp[i]), "destroy a queue pair");
	check(ibv_destroy_cq(w->cq), "destroy the CQ");
	check(ibv_dereg_mr(w->mine), "deregister the memory");
	ibv_unimport_mr(w->theirs);
	ibv_unimport_pd(w->pd);
	check(ibv_close_device(w->context), "close the device");
	free(w->buffer);
}

static int worker_main(const struct options *options, int socket)
{
	struct worker w = { .options = options };

	import(&w, gift_receive(socket, &w.gift));
	for (unsigned i = 0; i < PAIR; i++)
		w.qp[i] = qp_open(&w);
	qp_connect(&w, w.qp[0], w.qp[1]);
	qp_connect(&w, w.qp[1], w.qp[0]);
	work(&w);
	worker_close(&w);
	return 0;
}

/* --- the owner ----------------------------------------------------------- */

static int owner_main(const struct options *options, int socket, pid_t worker)
{
	size_t bytes = (size_t)options->size_bytes;
	struct ibv_context *context = device_open(options->device);
	struct ibv_pd *pd = made(ibv_alloc_pd(context), "allocate a protection domain");
	uint8_t *buffer = buffer_alloc(bytes);
	struct ibv_mr *mr = made(ibv_reg_mr(pd, buffer, bytes, rights), "register the memory");
	struct gift gift = { pd->handle, mr->handle, (uintptr_t)buffer, getpid() };
	int status;

	memset(buffer, FROM_OWNER, bytes);
	gift_send(socket, &gift, context->cmd_fd);
	if (waitpid(worker, &status, 0) != worker || status)
		fail("the worker failed");
	if (!is_all(buffer, bytes, FROM_WORKER))
		fail("what the worker wrote is not here");
	printf("owner %d: my memory is what the worker made of it\n", (int)getpid());
	check(ibv_dereg_mr(mr), "deregister the memory");
	check(ibv_dealloc_pd(pd), "free the protection domain");
	check(ibv_close_device(context), "close the device");
	free(buffer);
	return 0;
}

static const struct program program = {
	.summary = "One process uses protection domain and memory of another one.",
	.letters = "disgmnl",
};

/* The worker begins before there is a device: to a child of a fork the parent's is not its own. */
int main(int argc, char **argv)
{
	struct options options = { OPTIONS_DEFAULT };
	int ends[2];
	pid_t worker;

	options_parse(&options, &program, argc, argv);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		fail_errno(errno, "make a socket");
	fflush(stdout);
	worker = fork();
	if (worker < 0)
		fail_errno(errno, "start the worker");
	close(ends[worker ? 1 : 0]);
	return worker ? owner_main(&options, ends[0], worker) : worker_main(&options, ends[1]);
}
