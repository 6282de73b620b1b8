/* SPDX-License-Identifier: BSD-2-Clause */
/* A process that exports; see exporter.h. */
#include "exporter.h"
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs_share.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BUFFER_BYTES	(1u << 20)
#define DM_BYTES	4096u

/* --- messages with a descriptor --- */

union fd_room { struct cmsghdr header; char bytes[CMSG_SPACE(sizeof(int))]; };

static int message_send(int socket, const struct exporter_message *m, int fd)
{
	struct iovec io = { (void *)(uintptr_t)m, sizeof *m };
	union fd_room room = { .bytes = { 0 } };
	struct msghdr h = { .msg_iov = &io, .msg_iovlen = 1 };

	if (fd >= 0) {
		h.msg_control = &room;
		h.msg_controllen = sizeof room.bytes;
		room.header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof fd),
						.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&room.header), &fd, sizeof fd);
	}
	return sendmsg(socket, &h, MSG_NOSIGNAL) == (ssize_t)sizeof *m ? 0 : -1;
}

static int message_receive(int socket, struct exporter_message *m, int *fd)
{
	struct iovec io = { m, sizeof *m };
	union fd_room room = { .bytes = { 0 } };
	struct msghdr h = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = &room,
			    .msg_controllen = sizeof room.bytes };

	*fd = -1;
	if (recvmsg(socket, &h, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof *m)
		return -1;
	if (CMSG_FIRSTHDR(&h) && CMSG_FIRSTHDR(&h)->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&h)), sizeof *fd);
	return 0;
}

/* --- the exporter --- */

struct process {
	struct ibv_context *context, *second, *taken;
	struct ibv_pd *pd, *taken_pd;
	struct ibv_mr *mr, *dm_mr;
	struct ibv_dm *dm;
	uint8_t *buf;
	int fd_in, fd_out;
};

static int on_open(struct process *p, struct exporter_message *m)
{
	p->context = device_open();
	p->pd = p->context ? ibv_alloc_pd(p->context) : NULL;
	p->buf = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	if (!p->pd || p->buf == MAP_FAILED)
		return errno;
	p->mr = ibv_reg_mr(p->pd, p->buf, BUFFER_BYTES, ACCESS_ALL | IBV_ACCESS_MW_BIND);
	if (!p->mr)
		return errno;
	m->told = (struct exporter_told){
		.pd = p->pd->handle, .mr = p->mr->handle, .lkey = p->mr->lkey, .rkey = p->mr->rkey,
		.addr = (uintptr_t)p->buf, .bytes = BUFFER_BYTES,
	};
	return 0;
}

static int on_fd(struct process *p, struct exporter_message *m)
{
	p->fd_out = p->context->cmd_fd;
	m->arg[0] = (uint64_t)p->fd_out;
	return 0;
}

static int on_fill(struct process *p, struct exporter_message *m)
{
	pattern_fill(p->buf + m->arg[0], m->arg[1], m->arg[2]);
	return 0;
}

static int on_differs(struct process *p, struct exporter_message *m)
{
	return (int)pattern_differs(p->buf + m->arg[0], m->arg[1], m->arg[2]);
}

static int on_read(struct process *p, struct exporter_message *m)
{
	memcpy(m->room, p->buf + m->arg[0], sizeof m->room);
	return 0;
}

static int on_unmap(struct process *p, struct exporter_message *m)
{
	return munmap(p->buf + m->arg[0], m->arg[1]) ? errno : 0;
}

static int on_dereg(struct process *p, struct exporter_message *m)
{
	int err = ibv_dereg_mr(p->mr);

	(void)m;
	if (!err)
		p->mr = NULL;
	return err;
}

static int on_rereg(struct process *p, struct exporter_message *m)
{
	return ibv_rereg_mr(p->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, (int)m->arg[0]);
}

static int on_dealloc(struct process *p, struct exporter_message *m)
{
	int err = ibv_dealloc_pd(p->pd);

	(void)m;
	if (!err)
		p->pd = NULL;
	return err;
}

static int on_shut(struct process *p, struct exporter_message *m)
{
	(void)m;
	return ibv_close_device(p->context) ? errno : 0;
}

static int on_dm(struct process *p, struct exporter_message *m)
{
	struct ibv_alloc_dm_attr attr = { .length = DM_BYTES };
	uint8_t bytes[DM_BYTES];

	p->dm = ibv_alloc_dm(p->context, &attr);
	if (!p->dm)
		return errno;
	p->dm_mr = ibv_reg_dm_mr(p->pd, p->dm, 0, DM_BYTES,
				 ACCESS_ALL | IBV_ACCESS_ZERO_BASED);
	if (!p->dm_mr)
		return errno;
	pattern_fill(bytes, sizeof bytes, m->arg[0]);
	m->told = (struct exporter_told){ .dm = p->dm->handle, .lkey = p->dm_mr->lkey,
					  .rkey = p->dm_mr->rkey, .bytes = DM_BYTES };
	return ibv_memcpy_to_dm(p->dm, 0, bytes, sizeof bytes);
}

static int on_dm_read(struct process *p, struct exporter_message *m)
{
	return ibv_memcpy_from_dm(m->room, p->dm, m->arg[0], sizeof m->room);
}

static int on_dm_free(struct process *p, struct exporter_message *m)
{
	int err = ibv_dereg_mr(p->dm_mr);

	(void)m;
	return err ? err : ibv_free_dm(p->dm);
}

#define SHARE_VERB(name) ((__typeof__(&name))dlsym(RTLD_DEFAULT, #name))

static int on_export(struct process *p, struct exporter_message *m)
{
	__typeof__(&ibv_export_pd) export_pd = SHARE_VERB(ibv_export_pd);
	__typeof__(&ibv_export_mr) export_mr = SHARE_VERB(ibv_export_mr);
	int err;

	if (!export_pd || !export_mr)
		return ENOSYS;
	p->second = device_open();
	if (!p->second)
		return errno;
	p->fd_out = p->second->cmd_fd;
	m->arg[0] = (uint64_t)p->fd_out;
	err = export_pd((uint32_t)p->fd_out, &m->told.pd, p->context, p->pd);
	return err ? err : export_mr((uint32_t)p->fd_out, &m->told.mr, p->context, p->mr);
}

static int on_shut_second(struct process *p, struct exporter_message *m)
{
	(void)m;
	return ibv_close_device(p->second) ? errno : 0;
}

/* arg: the domain's handle */
static int on_take(struct process *p, struct exporter_message *m)
{
	p->taken = ibv_import_device(p->fd_in);
	p->fd_in = -1;
	if (!p->taken)
		return errno;
	p->taken_pd = ibv_import_pd(p->taken, (uint32_t)m->arg[0]);
	return p->taken_pd ? 0 : errno;
}

static int on_exit_(struct process *p, struct exporter_message *m)
{
	(void)p;
	(void)m;
	return 0;
}

static int (*const handlers[EXPORTER_OP_COUNT])(struct process *, struct exporter_message *) = {
	[EXPORTER_OPEN] = on_open, [EXPORTER_FD] = on_fd, [EXPORTER_FILL] = on_fill,
	[EXPORTER_DIFFERS] = on_differs, [EXPORTER_READ] = on_read, [EXPORTER_UNMAP] = on_unmap,
	[EXPORTER_DEREG] = on_dereg, [EXPORTER_REREG] = on_rereg, [EXPORTER_DEALLOC] = on_dealloc,
	[EXPORTER_SHUT] = on_shut, [EXPORTER_DM] = on_dm, [EXPORTER_DM_READ] = on_dm_read,
	[EXPORTER_EXPORT] = on_export, [EXPORTER_SHUT_SECOND] = on_shut_second,
	[EXPORTER_DM_FREE] = on_dm_free, [EXPORTER_TAKE] = on_take, [EXPORTER_EXIT] = on_exit_,
};

static void serve(int socket)
{
	struct process p = { .fd_out = -1 };
	struct exporter_message m;

	while (!message_receive(socket, &m, &p.fd_in)) {
		p.fd_out = -1;
		m.err = handlers[m.op](&p, &m);
		if (message_send(socket, &m, p.fd_out) || m.op == EXPORTER_EXIT)
			break;
		if (p.fd_in >= 0)
			close(p.fd_in);
	}
}

/* --- who calls --- */

void exporter_start(struct exporter *x)
{
	int pair[2];

	memset(x, 0, sizeof *x);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	x->socket = pair[0];
	x->pid = fork();
	cr_assert_geq(x->pid, 0);
	if (!x->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		serve(pair[1]);
		_exit(0);
	}
	close(pair[1]);
}

void exporter_call(struct exporter *x, struct exporter_message *m, int fd_in, int *fd_out)
{
	int none;

	cr_assert_eq(message_send(x->socket, m, fd_in), 0, "the exporter is gone (call %d)", m->op);
	cr_assert_eq(message_receive(x->socket, m, fd_out ? fd_out : &none), 0,
		     "the exporter died in call %d", m->op);
}

int exporter_do(struct exporter *x, enum exporter_op op, uint64_t a, uint64_t b, uint64_t c)
{
	struct exporter_message m = { .op = op, .arg = { a, b, c } };

	exporter_call(x, &m, -1, NULL);
	return m.err;
}

int exporter_fd(struct exporter *x)
{
	struct exporter_message open = { .op = EXPORTER_OPEN }, pass = { .op = EXPORTER_FD };
	int fd;

	exporter_call(x, &open, -1, NULL);
	cr_assert_eq(open.err, 0, "open there: %s", strerror(open.err));
	x->told = open.told;
	exporter_call(x, &pass, -1, &fd);
	cr_assert_geq(fd, 0, "no descriptor came");
	return fd;
}

void exporter_kill(struct exporter *x)
{
	kill(x->pid, SIGKILL);
	waitpid(x->pid, NULL, 0);
	close(x->socket);
	x->pid = 0;
}

void exporter_stop(struct exporter *x)
{
	int status = 0;

	if (!x->pid)
		return;
	exporter_do(x, EXPORTER_EXIT, 0, 0, 0);
	close(x->socket);
	cr_assert_eq(waitpid(x->pid, &status, 0), x->pid);
	cr_expect_eq(status, 0, "the exporter ended with status 0x%x", status);
}

void borrowers_open(struct borrowers *p, struct ibv_context *context, struct ibv_pd *pd)
{
	struct pair_opts o;

	pair_defaults(&o);
	o.a.bytes = o.b.bytes = BUFFER_BYTES;
	p->lender = (struct end){ .context = context, .log = &p->log, .pd = pd, .lends_pd = true };
	cr_assert_eq(end_open(&p->a, &o.a, &p->lender), 0, "%s", strerror(errno));
	cr_assert_eq(end_open(&p->b, &o.b, &p->lender), 0, "%s", strerror(errno));
	end_describe(&p->a, &p->ia);
	end_describe(&p->b, &p->ib);
	cr_assert_eq(end_connect(&p->a, &p->ib), 0);
	cr_assert_eq(end_connect(&p->b, &p->ia), 0);
}

void borrowers_close(struct borrowers *p)
{
	end_close(&p->a);
	end_close(&p->b);
}
