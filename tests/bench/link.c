/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection between the two processes of a pair; see link.h. */
#include "link.h"
#include <unistd.h>

enum { RECV_AT = 4096 };

void link_open(struct pair *p, struct link *l, size_t bytes)
{
	struct { struct address address; pid_t pid; } mine, theirs;

	port_open(&l->port, bytes, 1023);
	l->qp = qp_new(&l->port, LINK_DEPTH);
	mine.address = qp_address(&l->port, l->qp);
	mine.pid = getpid();
	exchange(p, &mine, &theirs, sizeof mine);
	l->peer = theirs.address;
	l->peer_pid = theirs.pid;
	qp_connect(l->qp, &l->peer);
	meet(p);
}

void link_messages(struct pair *p, struct link *l)
{
	request_set(&l->request, &l->port, IBV_WR_SEND, 0, 8, &l->peer, 0);
	for (int i = 0; i < LINK_DEPTH / 2; i++)
		recv_post(l->qp, &l->port, RECV_AT, 8);
	meet(p);
}

void link_send(void *link)
{
	struct link *l = link;
	bool is_signaled = ++l->sent % LINK_SIGNAL_EVERY == 0;

	l->request.wr.send_flags = IBV_SEND_INLINE | (is_signaled ? IBV_SEND_SIGNALED : 0);
	post(l->qp, &l->request);
	if (is_signaled)
		await(l->port.send_cq, 1);
}

void link_wait_polling(void *link)
{
	struct link *l = link;

	await(l->port.recv_cq, 1);
	recv_post(l->qp, &l->port, RECV_AT, 8);
}
