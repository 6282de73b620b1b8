/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that sleep with an open device, and programs that drive its queues themselves.
 *
 *	rings idle		two connected QPs, then sleep until standard input ends
 *	rings idle-direct	the same, having got a queue from the driver
 *	rings pong COUNT	two processes write to each other by raw queue entries
 *	rings pong-past COUNT	the same by functions that no preloaded library stands in front of
 *
 * The last two touch libibverbs only to make its objects: they ring the doorbell page and read
 * completions from memory, as UCX and DPDK do.  They print the mean half round trip, which no test
 * looks at.  Exit status: 0; EXIT_WRONG, said on stderr.
 */
#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "link.h"

#define PATIENCE_MS	30000
#define WARM_UP		20

struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct mlx5dv_qp raw_qp;
	struct mlx5dv_cq raw_cq;
	uint16_t posted;
	uint32_t completed;
	_Alignas(64) uint64_t word;	/* where the peer writes */
	struct link_info peer;
};

static void need(bool is_true, const char *what)
{
	if (!is_true)
		wrong("%s: %s", what, strerror(errno));
}

/* The functions that a library may stand in front of. */
static struct {
	struct ibv_context *(*open)(struct ibv_device *);
	int (*init_obj)(struct mlx5dv_obj *, uint64_t);
} verb = { ibv_open_device, mlx5dv_init_obj };

static void *symbol(const char *library, const char *name)
{
	void *handle = dlopen(library, RTLD_NOW), *found = handle ? dlsym(handle, name) : NULL;

	if (!found)
		wrong("%s: %s", name, dlerror());
	return found;
}

static void go_past(void)
{
	*(void **)&verb.open = symbol("libibverbs.so.1", "ibv_open_device");
	*(void **)&verb.init_obj = symbol("libmlx5.so.1", "mlx5dv_init_obj");
}

static void end_open(struct end *e, struct ibv_context *context)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { 64, 64, 1, 1, 64 },
	};

	e->context = context;
	e->pd = ibv_alloc_pd(context);
	e->channel = ibv_create_comp_channel(context);
	need(e->pd && e->channel, "pd, channel");
	e->cq = ibv_create_cq(context, 256, NULL, e->channel, 0);
	need(e->cq, "ibv_create_cq");
	attr.send_cq = attr.recv_cq = e->cq;
	e->qp = ibv_create_qp(e->pd, &attr);
	e->mr = ibv_reg_mr(e->pd, &e->word, sizeof e->word,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	need(e->qp && e->mr, "qp, mr");
}

static struct ibv_context *device_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? verb.open(list[0]) : NULL;

	need(context, "ibv_open_device");
	ibv_free_device_list(list);
	return context;
}

static struct link_info end_info(const struct end *e)
{
	struct link_info info = { .addr = (uintptr_t)&e->word, .rkey = e->mr->rkey,
				  .qpn = e->qp->qp_num };

	need(!ibv_query_gid(e->context, 1, 3, &info.gid), "ibv_query_gid");
	return info;
}

static void end_connect(struct end *e, const struct link_info *peer)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer->qpn,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = peer->gid, .sgid_index = 3, .hop_limit = 1 } },
	};
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7,
				   .rnr_retry = 7 };

	e->peer = *peer;
	need(!ibv_modify_qp(e->qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			    IBV_QP_ACCESS_FLAGS), "INIT");
	need(!ibv_modify_qp(e->qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			    IBV_QP_MIN_RNR_TIMER), "RTR");
	need(!ibv_modify_qp(e->qp, &rts, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
}

/* --- raw queues --- */

static void end_take_queues(struct end *e)
{
	struct mlx5dv_obj obj = {
		.qp = { .in = e->qp, .out = &e->raw_qp },
		.cq = { .in = e->cq, .out = &e->raw_cq },
	};

	need(!verb.init_obj(&obj, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ), "mlx5dv_init_obj");
}

/* An RDMA WRITE of 8 bytes, inline and signaled: one block of the send queue. */
static void raw_write(struct end *e, uint64_t value)
{
	uint8_t *at = (uint8_t *)e->raw_qp.sq.buf +
		      (size_t)(e->posted & (e->raw_qp.sq.wqe_cnt - 1)) * e->raw_qp.sq.stride;
	struct mlx5_wqe_raddr_seg remote = { .raddr = htobe64(e->peer.addr),
					     .rkey = htobe32(e->peer.rkey) };
	uint32_t inline_bytes = htobe32((uint32_t)sizeof value | MLX5_INLINE_SEG);
	uint64_t head;

	mlx5dv_set_ctrl_seg((struct mlx5_wqe_ctrl_seg *)at, e->posted, MLX5_OPCODE_RDMA_WRITE, 0,
			    e->qp->qp_num, MLX5_WQE_CTRL_CQ_UPDATE, 3, 0, 0);
	memcpy(at + 16, &remote, sizeof remote);
	memcpy(at + 32, &inline_bytes, sizeof inline_bytes);
	memcpy(at + 36, &value, sizeof value);
	memcpy(&head, at, sizeof head);
	__atomic_store_n(&e->raw_qp.dbrec[MLX5_SND_DBR], htobe32(++e->posted), __ATOMIC_RELEASE);
	__atomic_store_n((uint64_t *)e->raw_qp.bf.reg, head, __ATOMIC_SEQ_CST);
}

static bool raw_poll(struct end *e)
{
	const uint8_t *cqe = (uint8_t *)e->raw_cq.buf +
			     (size_t)(e->completed & (e->raw_cq.cqe_cnt - 1)) * e->raw_cq.cqe_size;
	uint8_t op_own = __atomic_load_n(&cqe[e->raw_cq.cqe_size - 1], __ATOMIC_ACQUIRE);

	if (op_own >> 4 == MLX5_CQE_INVALID ||
	    (op_own & 1) != !!(e->completed & e->raw_cq.cqe_cnt))
		return false;
	if (op_own >> 4 != MLX5_CQE_REQ)
		wrong("a completion of kind %u", op_own >> 4);
	e->raw_cq.dbrec[0] = htobe32(++e->completed & 0xffffff);
	return true;
}

static void wait_for(struct end *e, uint64_t word, uint16_t completed)
{
	uint64_t until = clock_ms() + PATIENCE_MS;

	while (__atomic_load_n(&e->word, __ATOMIC_ACQUIRE) != word ||
	       (uint16_t)e->completed != completed) {
		raw_poll(e);
		sched_yield();
		if (clock_ms() > until)
			wrong("stuck: %llu of %llu received, %u of %u completed",
			      (unsigned long long)e->word, (unsigned long long)word,
			      (uint16_t)e->completed, completed);
	}
}

/* --- the cases --- */

static void pong(int fd, bool is_first, unsigned count)
{
	static struct end e;
	struct link_info info, peer;
	struct timespec t[2];

	end_open(&e, device_open());
	info = end_info(&e);
	need(write(fd, &info, sizeof info) == sizeof info &&
	     recv(fd, &peer, sizeof peer, MSG_WAITALL) == sizeof peer, "exchange");
	end_connect(&e, &peer);
	end_take_queues(&e);
	need(write(fd, "r", 1) == 1 && recv(fd, &(char){ 0 }, 1, MSG_WAITALL) == 1, "ready");
	for (unsigned i = 1; i <= count + WARM_UP; i++) {
		if (i == WARM_UP)
			clock_gettime(CLOCK_MONOTONIC, &t[0]);
		if (is_first)
			raw_write(&e, i);
		wait_for(&e, i, (uint16_t)(i - !is_first));
		if (!is_first)
			raw_write(&e, i);
	}
	wait_for(&e, count + WARM_UP, (uint16_t)(count + WARM_UP));
	clock_gettime(CLOCK_MONOTONIC, &t[1]);
	if (is_first)
		printf("%.2f us\n", ((double)(t[1].tv_sec - t[0].tv_sec) * 1e6 +
				     (double)(t[1].tv_nsec - t[0].tv_nsec) / 1e3) / count / 2);
	need(write(fd, "d", 1) == 1 && recv(fd, &(char){ 0 }, 1, MSG_WAITALL) == 1, "done");
}

static int case_pong(unsigned count)
{
	int pair[2], status;
	pid_t child;

	need(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	child = fork();
	need(child >= 0, "fork");
	if (!child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	pong(pair[!child], !!child, count);
	if (!child)
		exit(0);
	need(waitpid(child, &status, 0) == child && !status, "the other process");
	return 0;
}

static int case_idle(bool takes_queues)
{
	static struct end a, b;
	struct ibv_context *context = device_open();
	struct link_info info[2];
	char byte;

	end_open(&a, context);
	end_open(&b, context);
	info[0] = end_info(&a);
	info[1] = end_info(&b);
	end_connect(&a, &info[1]);
	end_connect(&b, &info[0]);
	need(!ibv_req_notify_cq(a.cq, 0), "ibv_req_notify_cq");
	if (takes_queues)
		end_take_queues(&a);
	puts("idle");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "help";
	bool is_past = !strcmp(name, "pong-past");

	if (is_past)
		go_past();
	if ((is_past || !strcmp(name, "pong")) && argc == 3)
		return case_pong((unsigned)atoi(argv[2]));
	if (!strcmp(name, "idle") || !strcmp(name, "idle-direct"))
		return case_idle(name[4]);
	fprintf(stderr, "rings idle | idle-direct | pong COUNT | pong-past COUNT\n");
	return 2;
}
