/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Very many objects of one sort, each of them used and checked.
 *
 *	crowd qps N	N connected RC QPs in one process, a message through each
 *	crowd keys N	N memory regions, written through by this process and by another one
 *	crowd windows N	the same with N memory windows on one region, of both types
 *
 * Prints "name value" lines: how much memory an object takes, as the kernel counts it.  p_scale.py
 * drives it and judges them.  How long it takes is not judged.
 *
 * Exit status: 0; 1: a verb failed; EXIT_WRONG: what came out is wrong.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_WRONG	3
#define GID_INDEX	3
#define WORD		8u		/* bytes of a message, and of a region */
#define CQ_ENTRIES	256
#define SAMPLES		2000u
#define ACCESS		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND)

struct node {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;		/* of all words */
	uint64_t *word;
	size_t words;
	union ibv_gid gid;
};

/* What the other end of a connection must know. */
struct address {
	union ibv_gid gid;
	uint32_t qpn;
};

static void need(bool is_fine, const char *what)
{
	if (is_fine)
		return;
	fprintf(stderr, "crowd: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void check(bool is_fine, const char *what, unsigned which)
{
	if (is_fine)
		return;
	fprintf(stderr, "crowd: WRONG: %s %u\n", what, which);
	exit(EXIT_WRONG);
}

static size_t resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long total, resident;

	need(file && fscanf(file, "%lu %lu", &total, &resident) == 2, "/proc/self/statm");
	fclose(file);
	return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static void node_open(struct node *n, size_t words)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	need(list && list[0], "no device");
	n->context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	need(n->context, "ibv_open_device");
	n->words = words;
	n->word = mmap(NULL, words * WORD, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	need(n->word != MAP_FAILED, "mmap");
	n->pd = ibv_alloc_pd(n->context);
	n->cq = ibv_create_cq(n->context, CQ_ENTRIES, NULL, NULL, 0);
	need(n->pd && n->cq, "ibv_create_cq");
	n->mr = ibv_reg_mr(n->pd, n->word, words * WORD, ACCESS);
	need(n->mr, "ibv_reg_mr");
	need(!ibv_query_gid(n->context, 1, GID_INDEX, &n->gid), "ibv_query_gid");
}

static void node_close(struct node *n)
{
	need(!ibv_dereg_mr(n->mr) && !ibv_destroy_cq(n->cq) && !ibv_dealloc_pd(n->pd) &&
	     !ibv_close_device(n->context), "close");
	munmap(n->word, n->words * WORD);
}

static struct ibv_qp *qp_new(struct node *n)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = n->cq, .recv_cq = n->cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(n->pd, &attr);

	need(qp, "ibv_create_qp");
	return qp;
}

static struct address address_of(const struct node *n, const struct ibv_qp *qp)
{
	return (struct address){ n->gid, qp->qp_num };
}

static void modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, enum ibv_qp_state state, int mask)
{
	attr->qp_state = state;
	need(!ibv_modify_qp(qp, attr, IBV_QP_STATE | mask), "ibv_modify_qp");
}

static void qp_connect(struct ibv_qp *qp, const struct address *peer)
{
	struct ibv_qp_attr attr = {
		.port_num = 1, .qp_access_flags = ACCESS, .path_mtu = IBV_MTU_4096,
		.dest_qp_num = peer->qpn, .max_dest_rd_atomic = 1, .max_rd_atomic = 1,
		.min_rnr_timer = 1, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = peer->gid, .sgid_index = GID_INDEX,
				      .hop_limit = 64 } },
	};

	modify(qp, &attr, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	modify(qp, &attr, IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
	       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	modify(qp, &attr, IBV_QPS_RTS, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
	       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void await(struct node *n, int count, unsigned which)
{
	struct ibv_wc wc;
	int got;

	while (count) {
		got = ibv_poll_cq(n->cq, 1, &wc);
		need(got >= 0, "ibv_poll_cq");
		if (got)
			check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status), which);
		count -= got;
	}
}

/* --- QPs --- */

/* Word @from of the process to word @to, through a QP and its peer. */
static void message_pass(struct node *n, struct ibv_qp *sender, struct ibv_qp *receiver,
			 unsigned from, unsigned to)
{
	struct ibv_sge source = { (uintptr_t)&n->word[from], WORD, n->mr->lkey };
	struct ibv_sge sink = { (uintptr_t)&n->word[to], WORD, n->mr->lkey };
	struct ibv_send_wr send = { .sg_list = &source, .num_sge = 1, .opcode = IBV_WR_SEND };
	struct ibv_recv_wr recv = { .sg_list = &sink, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr *bad;

	need(!ibv_post_recv(receiver, &recv, &bad_recv), "ibv_post_recv");
	need(!ibv_post_send(sender, &send, &bad), "ibv_post_send");
}

static void qps_use(struct node *n, struct ibv_qp **qp, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		n->word[i] = i * 0x10001ull + 7;
		n->word[count + i] = 0;
	}
	for (unsigned i = 0; i < count; i++) {
		message_pass(n, qp[i], qp[i ^ 1], i, count + (i ^ 1));
		await(n, 2, i);
	}
	for (unsigned i = 0; i < count; i++)
		check(n->word[count + i] == (i ^ 1) * 0x10001ull + 7, "message of QP", i);
}

static void qps_run(unsigned count)
{
	struct ibv_qp **qp = calloc(count, sizeof *qp);
	struct node n;
	size_t before;

	need(qp && count % 2 == 0, "an even number");
	node_open(&n, 2 * count);
	qp[0] = qp_new(&n);		/* what the first one brings with it is not counted */
	before = resident_bytes();
	for (unsigned i = 1; i < count; i++)
		qp[i] = qp_new(&n);
	for (unsigned i = 0; i < count; i++) {
		struct address peer = address_of(&n, qp[i ^ 1]);

		qp_connect(qp[i], &peer);
	}
	qps_use(&n, qp, count);
	printf("qps %u\nbytes_per_qp %zu\n", count, (resident_bytes() - before) / count);
	for (unsigned i = 0; i < count; i++)
		need(!ibv_destroy_qp(qp[i]), "ibv_destroy_qp");
	free(qp);
	node_close(&n);
}

/* --- keys --- */

/* An access through a key of the peer. */
struct key { uint64_t addr; uint32_t rkey, index; };

static uint64_t value_of(uint32_t index)
{
	return index * 0x9e3779b97f4a7c15ull + 1;
}

static void put(int fd, const void *bytes, size_t count)
{
	need(write(fd, bytes, count) == (ssize_t)count, "write to the other process");
}

static void get(int fd, void *bytes, size_t count)
{
	need(recv(fd, bytes, count, MSG_WAITALL) == (ssize_t)count, "the other process has ended");
}

static void word_write(struct node *n, struct ibv_qp *qp, const struct key *key)
{
	struct ibv_sge sge = { (uintptr_t)n->word, WORD, n->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
				  .wr.rdma = { .remote_addr = key->addr, .rkey = key->rkey } };
	struct ibv_send_wr *bad;

	n->word[0] = value_of(key->index);
	need(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
	await(n, 1, key->index);
}

/* The other process: writes through whatever key it is told of, until there is none. */
static void writer_run(int fd)
{
	struct address self, peer;
	struct ibv_qp *qp;
	struct node n;
	struct key key;

	node_open(&n, 1);
	qp = qp_new(&n);
	self = address_of(&n, qp);
	put(fd, &self, sizeof self);
	get(fd, &peer, sizeof peer);
	qp_connect(qp, &peer);
	for (get(fd, &key, sizeof key); key.rkey; get(fd, &key, sizeof key)) {
		word_write(&n, qp, &key);
		put(fd, "d", 1);
	}
	need(!ibv_destroy_qp(qp), "ibv_destroy_qp");
	node_close(&n);
}

struct writer {
	pid_t pid;
	int fd;
	struct ibv_qp *qp;		/* ours, connected to its */
};

static void writer_fork(struct writer *w)
{
	int fd[2];

	need(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), "socketpair");
	w->pid = fork();
	need(w->pid >= 0, "fork");
	if (!w->pid) {
		close(fd[0]);
		writer_run(fd[1]);
		exit(0);
	}
	close(fd[1]);
	w->fd = fd[0];
}

static void writer_connect(struct writer *w, struct node *n)
{
	struct address self, peer;

	w->qp = qp_new(n);
	self = address_of(n, w->qp);
	get(w->fd, &peer, sizeof peer);
	qp_connect(w->qp, &peer);
	put(w->fd, &self, sizeof self);
}

static void writer_end(struct writer *w)
{
	struct key none = { 0 };
	int status;

	put(w->fd, &none, sizeof none);
	need(waitpid(w->pid, &status, 0) == w->pid, "waitpid");
	check(!status, "the other process ended with", (unsigned)status);
	need(!ibv_destroy_qp(w->qp), "ibv_destroy_qp");
	close(w->fd);
}

static void key_use(struct node *n, struct writer *w, uint32_t rkey, uint32_t index)
{
	struct key key = { (uintptr_t)&n->word[index], rkey, index };
	char done;

	n->word[index] = 0;
	put(w->fd, &key, sizeof key);
	get(w->fd, &done, 1);
	check(n->word[index] == value_of(index), "word behind key", index);
}

/* The first and last ones, and some between them. */
static void keys_use(struct node *n, struct writer *w, struct ibv_mr **mr, unsigned count)
{
	uint64_t seed = 88172645463325252u;

	for (unsigned i = 0; i < count && i < SAMPLES; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		key_use(n, w, mr[i % 100]->rkey, i % 100);
		key_use(n, w, mr[count - 1 - i % 100]->rkey, count - 1 - i % 100);
		key_use(n, w, mr[(seed >> 33) % count]->rkey, (uint32_t)((seed >> 33) % count));
	}
}

/* Inside the process, through the region's own lkey and rkey. */
static void keys_loop(struct node *n, struct ibv_mr **mr, unsigned count)
{
	struct ibv_qp *qp = qp_new(n);
	struct address self = address_of(n, qp);

	qp_connect(qp, &self);
	for (unsigned i = 0; i < count; i += count / SAMPLES + 1) {
		unsigned to = count - 1 - i;
		struct ibv_sge sge = { (uintptr_t)&n->word[i], WORD, mr[i]->lkey };
		struct ibv_send_wr wr = {
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
			.wr.rdma = { (uintptr_t)&n->word[to], mr[to]->rkey } };
		struct ibv_send_wr *bad;

		n->word[i] = value_of(i);
		need(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
		await(n, 1, i);
		check(n->word[to] == value_of(i), "word behind key", to);
	}
	need(!ibv_destroy_qp(qp), "ibv_destroy_qp");
}

static void keys_run(unsigned count)
{
	struct ibv_mr **mr = calloc(count, sizeof *mr);
	struct writer writer;
	struct node n;
	size_t before;

	need(mr && count >= 100, "a hundred at least");
	writer_fork(&writer);
	node_open(&n, count);
	writer_connect(&writer, &n);
	before = resident_bytes();
	for (unsigned i = 0; i < count; i++) {
		mr[i] = ibv_reg_mr(n.pd, &n.word[i], WORD, ACCESS);
		need(mr[i], "ibv_reg_mr");
	}
	printf("keys %u\nbytes_per_key %zu\n", count, (resident_bytes() - before) / count);
	keys_loop(&n, mr, count);
	keys_use(&n, &writer, mr, count);
	for (unsigned i = 0; i < count; i++)
		need(!ibv_dereg_mr(mr[i]), "ibv_dereg_mr");
	writer_end(&writer);
	free(mr);
	node_close(&n);
}

/* --- windows --- */

/* Word @index, through the queue of @qp; type 2 is bound by a work request. */
static void window_bind(struct node *n, struct ibv_qp *qp, struct ibv_mw *mw, unsigned index)
{
	struct ibv_mw_bind_info info = {
		.mr = n->mr, .addr = (uintptr_t)&n->word[index], .length = WORD,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	struct ibv_mw_bind bind = { .bind_info = info };
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW,
				  .bind_mw = { mw, ibv_inc_rkey(mw->rkey), info } };
	struct ibv_send_wr *bad;

	if (mw->type == IBV_MW_TYPE_1) {
		need(!ibv_bind_mw(qp, mw, &bind), "ibv_bind_mw");
	} else {
		need(!ibv_post_send(qp, &wr, &bad), "ibv_post_send of a bind");
		mw->rkey = wr.bind_mw.rkey;
	}
	await(n, 1, index);
}

static void windows_run(unsigned count)
{
	struct ibv_mw **mw = calloc(count, sizeof *mw);
	struct writer writer;
	struct node n;
	size_t before;

	need(mw && count, "one at least");
	writer_fork(&writer);
	node_open(&n, count);
	writer_connect(&writer, &n);
	before = resident_bytes();
	for (unsigned i = 0; i < count; i++) {
		mw[i] = ibv_alloc_mw(n.pd, i % 2 ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1);
		need(mw[i], "ibv_alloc_mw");
		window_bind(&n, writer.qp, mw[i], i);
	}
	printf("windows %u\nbytes_per_window %zu\n", count, (resident_bytes() - before) / count);
	for (unsigned i = 0; i < count; i++)
		key_use(&n, &writer, mw[i]->rkey, i);
	for (unsigned i = 0; i < count; i++)
		need(!ibv_dealloc_mw(mw[i]), "ibv_dealloc_mw");
	writer_end(&writer);
	free(mw);
	node_close(&n);
}

static const struct { const char *name; void (*run)(unsigned count); } crowds[] = {
	{ "qps", qps_run }, { "keys", keys_run }, { "windows", windows_run },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 3 && i < sizeof crowds / sizeof *crowds; i++) {
		if (strcmp(argv[1], crowds[i].name))
			continue;
		crowds[i].run((unsigned)strtoul(argv[2], NULL, 0));
		return 0;
	}
	fprintf(stderr, "usage: crowd qps|keys|windows NUMBER\n");
	return 1;
}
