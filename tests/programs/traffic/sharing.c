/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that share a protection domain, and end at any moment.
 *
 *	sharing kills N SEED	N times an exporter and an importer, one of which is killed: by
 *				itself before one of its steps, each in turn, or from outside
 *	sharing crowd N		N importers of one exporter at a time, which deregisters meanwhile
 *	sharing exec		a descriptor that is kept over exec()
 *	sharing import FD ...	what that one becomes
 *
 * All data is verified.  Who survives sees success or the errors that the other's end may cause,
 * and comes to an end.  p_share.py drives it and looks at what is left of the fabric.
 *
 * Exit status: 0; 1: a verb failed that must not; EXIT_WRONG: wrong data.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_WRONG = 3, GID_INDEX = 3, HALF = 32768, ROUNDS = 6, CROWD_MAX = 64 };
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

struct gift {
	uint32_t pd, mr, lkey, rkey;
	uint64_t addr;
};

/* --- ends at a step ------------------------------------------------------ */

static int steps_left = -1;		/* until this process kills itself; -1: never */
static int steps_done;

static void step(void)
{
	steps_done++;
	if (steps_left >= 0 && !steps_left--)
		kill(getpid(), SIGKILL);
}

static void need(bool is_fine, const char *what)
{
	if (is_fine)
		return;
	fprintf(stderr, "sharing: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void verify(bool is_right, const char *what)
{
	if (is_right)
		return;
	fprintf(stderr, "sharing: %s\n", what);
	exit(EXIT_WRONG);
}

/* --- messages with a descriptor ------------------------------------------ */

union fd_room { struct cmsghdr header; char bytes[CMSG_SPACE(sizeof(int))]; };

static bool gift_send(int socket, const struct gift *gift, int fd)
{
	struct iovec io = { (void *)(uintptr_t)gift, sizeof *gift };
	union fd_room room = { .bytes = { 0 } };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = &room,
			    .msg_controllen = sizeof room };

	room.header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET,
					.cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(&room.header), &fd, sizeof fd);
	return sendmsg(socket, &m, MSG_NOSIGNAL) == sizeof *gift;
}

static int gift_receive(int socket, struct gift *gift)
{
	struct iovec io = { gift, sizeof *gift };
	union fd_room room;
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = &room,
			    .msg_controllen = sizeof room };
	int fd;

	if (recvmsg(socket, &m, 0) != sizeof *gift || !CMSG_FIRSTHDR(&m))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
	return fd;
}

/* --- the exporter -------------------------------------------------------- */

struct exporter {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	uint8_t *memory;
	struct gift gift;
};

static struct ibv_context *device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;

	need(context != NULL, "open");
	ibv_free_device_list(list);
	return context;
}

static void exporter_open(struct exporter *x)
{
	step();
	x->context = device();
	step();
	x->pd = ibv_alloc_pd(x->context);
	need(x->pd != NULL, "alloc_pd");
	x->memory = mmap(NULL, 2 * HALF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);
	memset(x->memory, 0xa5, HALF);
	step();
	x->mr = ibv_reg_mr(x->pd, x->memory, 2 * HALF, ACCESS);
	need(x->mr != NULL, "reg_mr");
	x->gift = (struct gift){ x->pd->handle, x->mr->handle, x->mr->lkey, x->mr->rkey,
				 (uintptr_t)x->memory };
	step();
}

/* An importer that lives may have objects on the domain; one that died has none. */
static void exporter_close(struct exporter *x, bool may_be_busy)
{
	int error;

	step();
	need(!(errno = ibv_dereg_mr(x->mr)), "dereg_mr");
	step();
	error = ibv_dealloc_pd(x->pd);
	errno = error;
	need(!error || (may_be_busy && error == EBUSY), "dealloc_pd");
	step();
	need(!ibv_close_device(x->context), "close");
	step();
}

static void exporter_main(int socket)
{
	struct exporter x;
	char byte;

	exporter_open(&x);
	gift_send(socket, &x.gift, x.context->cmd_fd);
	step();
	/* Until the importer says it is through, or is gone; a third of them do not wait. */
	if (getpid() % 3)
		while (read(socket, &byte, 1) < 0 && errno == EINTR)
			;
	exporter_close(&x, true);
	exit(0);
}

/* --- the importer -------------------------------------------------------- */

struct importer {
	struct gift gift;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *theirs, *mine;
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];
	uint8_t *memory;
	bool is_over;			/* the exporter's end has shown */
};

static struct ibv_qp *qp_open(struct importer *w)
{
	struct ibv_qp_init_attr init = {
		.send_cq = w->cq, .recv_cq = w->cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				    .qp_access_flags = ACCESS };
	struct ibv_qp *qp = ibv_create_qp(w->pd, &init);

	need(qp != NULL, "create_qp");
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				       IBV_QP_ACCESS_FLAGS), "INIT");
	return qp;
}

static void qp_connect(struct importer *w, struct ibv_qp *qp, const struct ibv_qp *other)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = other->qp_num,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .sgid_index = GID_INDEX } },
		.max_dest_rd_atomic = 1, .min_rnr_timer = 12, .timeout = 14, .retry_cnt = 7,
		.rnr_retry = 7, .max_rd_atomic = 1,
	};

	need(!ibv_query_gid(w->context, 1, GID_INDEX, &attr.ah_attr.grh.dgid), "query_gid");
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), "RTR");
	attr.qp_state = IBV_QPS_RTS;
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				       IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
}

/* What an import may answer if the exporter has gone, or has destroyed the object. */
static bool is_gone(const char *what)
{
	bool is_meant = errno == EIO || errno == ENOENT || errno == EBADF;

	need(is_meant, what);
	return true;
}

/* False: there is nothing to import. */
static bool importer_open(struct importer *w, int fd)
{
	step();
	w->context = ibv_import_device(fd);
	if (!w->context)
		return !is_gone("import_device");
	step();
	w->pd = ibv_import_pd(w->context, w->gift.pd);
	if (!w->pd)
		return !is_gone("import_pd");
	step();
	w->theirs = ibv_import_mr(w->pd, w->gift.mr);
	if (!w->theirs)
		is_gone("import_mr");
	else
		verify(w->theirs->lkey == w->gift.lkey && w->theirs->length == 2 * HALF,
		       "the import is of something else");
	step();
	w->memory = mmap(NULL, HALF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	w->mine = ibv_reg_mr(w->pd, w->memory, HALF, ACCESS);
	need(w->mine != NULL, "reg_mr");
	w->cq = ibv_create_cq(w->context, 8, NULL, NULL, 0);
	need(w->cq != NULL, "create_cq");
	step();
	for (int i = 0; i < 2; i++)
		w->qp[i] = qp_open(w);
	qp_connect(w, w->qp[0], w->qp[1]);
	qp_connect(w, w->qp[1], w->qp[0]);
	step();
	return true;
}

/* False: it failed as it does when the exporter has ended. */
static bool request(struct importer *w, enum ibv_wr_opcode opcode, struct ibv_sge sge,
		    uint64_t addr, uint32_t rkey)
{
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { .remote_addr = addr, .rkey = rkey } }, *bad;
	struct ibv_wc wc;
	int count;

	need(!ibv_post_send(w->qp[0], &wr, &bad), "post_send");
	do
		count = ibv_poll_cq(w->cq, 1, &wc);
	while (!count);
	need(count > 0, "poll_cq");
	if (wc.status == IBV_WC_SUCCESS)
		return true;
	w->is_over = true;
	errno = wc.status;
	verify(wc.status == IBV_WC_LOC_PROT_ERR || wc.status == IBV_WC_REM_ACCESS_ERR,
	       ibv_wc_status_str(wc.status));
	return false;
}

static bool is_all(const uint8_t *at, size_t bytes, uint8_t value)
{
	return at[0] == value && !memcmp(at, at + 1, bytes - 1);
}

static bool move(struct importer *w, size_t bytes)
{
	struct ibv_sge from = { w->gift.addr, (uint32_t)bytes, w->gift.lkey };
	struct ibv_sge mine = { (uintptr_t)w->memory, (uint32_t)bytes, w->mine->lkey };

	memset(w->memory, 0, bytes);
	if (!request(w, IBV_WR_RDMA_WRITE, from, (uintptr_t)w->memory, w->mine->rkey))
		return false;
	verify(is_all(w->memory, bytes, 0xa5), "wrong bytes by the exporter's lkey");
	step();
	memset(w->memory, 0, bytes);
	if (!request(w, IBV_WR_RDMA_READ, mine, w->gift.addr, w->gift.rkey))
		return false;
	verify(is_all(w->memory, bytes, 0xa5), "wrong bytes by the exporter's rkey");
	step();
	memset(w->memory, 0x3c, bytes);
	if (!request(w, IBV_WR_RDMA_WRITE, mine, w->gift.addr + HALF, w->gift.rkey))
		return false;
	step();
	return true;
}

static void importer_close(struct importer *w)
{
	for (int i = 0; i < 2 && w->qp[i]; i++)
		need(!ibv_destroy_qp(w->qp[i]), "destroy_qp");
	step();
	if (w->cq)
		need(!ibv_destroy_cq(w->cq), "destroy_cq");
	if (w->mine)
		need(!ibv_dereg_mr(w->mine), "dereg_mr");
	step();
	if (w->theirs)
		ibv_unimport_mr(w->theirs);
	step();
	if (w->pd)
		ibv_unimport_pd(w->pd);
	step();
	if (w->context)
		need(!ibv_close_device(w->context), "close");
	step();
}

/* What is imported stays while the exporter lives: without its end nothing may fail. */
static void importer_main(int socket, bool exporter_may_end)
{
	struct importer w = { 0 };
	int fd = gift_receive(socket, &w.gift);

	if (fd < 0)
		exit(0);		/* it ended before */
	if (importer_open(&w, fd) && w.theirs)
		for (int i = 0; i < ROUNDS && !w.is_over; i++)
			move(&w, i % 2 ? HALF : 64);
	verify(!w.is_over || exporter_may_end, "an error without a death");
	importer_close(&w);
	exit(0);
}

/* --- kills --------------------------------------------------------------- */

enum {
	EXPORTER_STEPS = 9,
	IMPORTER_STEPS = 11 + 3 * ROUNDS,
	STEPS = EXPORTER_STEPS + IMPORTER_STEPS,
};

static pid_t process(void (*run)(int socket), int socket, int other, int dies_at)
{
	pid_t pid = fork();

	need(pid >= 0, "fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(other);
	steps_left = dies_at;
	run(socket);
	_exit(0);
}

static void importer_of_a_mortal(int socket)
{
	importer_main(socket, true);
}

/* Either is killed, or has ended well. */
static void expect(pid_t pid, bool may_be_killed, const char *who)
{
	int status;

	need(waitpid(pid, &status, 0) == pid, "waitpid");
	if (!status || (may_be_killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
		return;
	fprintf(stderr, "sharing: the %s ended with 0x%x\n", who, status);
	exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static void nap(long us)
{
	struct timespec t = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&t, NULL);
}

/* @at: a step, or STEPS for a moment that nobody chose. */
static void round_of_kills(int at)
{
	bool is_exporter = at < STEPS ? at < EXPORTER_STEPS : rand() % 2;
	int pair[2];
	pid_t exporter, importer;

	need(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	exporter = process(exporter_main, pair[0], pair[1], at < EXPORTER_STEPS ? at : -1);
	importer = process(importer_of_a_mortal, pair[1], pair[0],
			   at >= EXPORTER_STEPS && at < STEPS ? at - EXPORTER_STEPS : -1);
	close(pair[0]);
	close(pair[1]);
	if (at == STEPS) {
		nap(rand() % 30000);
		kill(is_exporter ? exporter : importer, SIGKILL);
	}
	expect(importer, !is_exporter, "importer");
	expect(exporter, is_exporter, "exporter");
}

static void kills(int count)
{
	for (int i = 0; i < count; i++)
		round_of_kills(i % 2 ? STEPS : i / 2 % STEPS);
}

/* --- a crowd ------------------------------------------------------------- */

static void importer_in_a_crowd(int socket)
{
	importer_main(socket, false);
}

/* What they hold when it deregisters they keep; the others find nothing. */
static void crowd(int count)
{
	int socket[CROWD_MAX];
	pid_t pid[CROWD_MAX];
	struct exporter x;
	char byte;

	for (int i = 0; i < count; i++) {
		int pair[2];

		need(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), "socketpair");
		pid[i] = process(importer_in_a_crowd, pair[1], pair[0], -1);
		close(pair[1]);
		socket[i] = pair[0];
	}
	exporter_open(&x);
	for (int i = 0; i < count; i++)
		need(gift_send(socket[i], &x.gift, x.context->cmd_fd), "send");
	nap(rand() % 100000);
	need(!(errno = ibv_dereg_mr(x.mr)), "dereg_mr");
	for (int i = 0; i < count; i++) {
		need(read(socket[i], &byte, 1) == 0, "the end of an importer");
		expect(pid[i], false, "importer");
	}
	need(!(errno = ibv_dealloc_pd(x.pd)), "dealloc_pd");
	need(!ibv_close_device(x.context), "close");
}

/* --- exec ---------------------------------------------------------------- */

static void import_after_exec(char **argument)
{
	struct importer w = { 0 };

	w.gift = (struct gift){
		.pd = (uint32_t)strtoul(argument[1], NULL, 10),
		.mr = (uint32_t)strtoul(argument[2], NULL, 10),
		.lkey = (uint32_t)strtoul(argument[3], NULL, 10),
		.rkey = (uint32_t)strtoul(argument[3], NULL, 10),
		.addr = strtoull(argument[4], NULL, 10),
	};
	need(importer_open(&w, atoi(argument[0])) && w.theirs, "import");
	need(move(&w, HALF), "traffic");
	importer_close(&w);
}

static void exec_with(const struct exporter *x)
{
	char text[5][24];

	snprintf(text[0], 24, "%d", dup(x->context->cmd_fd));
	snprintf(text[1], 24, "%u", x->gift.pd);
	snprintf(text[2], 24, "%u", x->gift.mr);
	snprintf(text[3], 24, "%u", x->gift.lkey);
	snprintf(text[4], 24, "%llu", (unsigned long long)x->gift.addr);
	execl("/proc/self/exe", "sharing", "import", text[0], text[1], text[2], text[3], text[4],
	      (char *)NULL);
	need(false, "exec");
}

static void exec_case(void)
{
	struct exporter x;
	pid_t pid;

	exporter_open(&x);
	pid = fork();
	need(pid >= 0, "fork");
	if (!pid)
		exec_with(&x);
	expect(pid, false, "program after exec");
	verify(is_all(x.memory + HALF, HALF, 0x3c), "what it wrote is not here");
	exporter_close(&x, false);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	srand(argc > 3 ? (unsigned)atoi(argv[3]) : (unsigned)getpid());
	if (!strcmp(what, "kills") && argc > 2)
		kills(atoi(argv[2]));
	else if (!strcmp(what, "crowd") && argc > 2 && atoi(argv[2]) <= CROWD_MAX)
		crowd(atoi(argv[2]));
	else if (!strcmp(what, "exec"))
		exec_case();
	else if (!strcmp(what, "import") && argc == 7)
		import_after_exec(argv + 2);
	else
		return 2;
	return 0;
}
