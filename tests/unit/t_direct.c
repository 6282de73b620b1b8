/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-sided operations in a peer's place: which ones are executed, which go by packet, and that
 * both give the same.
 *
 * Method: two functions with a wire that counts, see direct_world.h.  "Executed" means that the
 * wire carried nothing and the target's engine did not run.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include "emu/emu.h"
#include "tests/unit/direct_world.h"

TestSuite(direct, .init = start, .fini = stop, .timeout = 50);

/* --- what is executed --- */

static const uint32_t sizes[] = { 0, 1, 8, 1000, 65536, 1 << 20, (1 << 20) + 1, 3 << 20, 4 << 20 };

Test(direct, writes_of_all_sizes_need_no_packet)
{
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		memset(b->w.a.data, 0, BIG);
		post((struct work_row){ .opcode = OP_WRITE, .bytes = sizes[i],
			.has_no_data = !sizes[i] });
		ring(a);
		EXPECT_EXECUTED();
		cr_assert_eq(memcmp(a->w.a.data, b->w.a.data, sizes[i]), 0, "%u bytes", sizes[i]);
		cr_assert(is_all(b->w.a.data + sizes[i], 0, 4096), "behind them");
	}
	cr_assert_eq(b->w.a.qp->resp->psn_expected, a->w.a.qp->req.psn_next);
	cr_assert_eq(b->w.a.qp->resp->msn, sizeof sizes / sizeof *sizes);
}

Test(direct, reads_up_to_the_limit_need_no_packet)
{
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		for (unsigned at = 0; at < BIG; at++)
			b->w.a.data[at] = (uint8_t)(at % 241 + i);
		memset(a->w.a.data, 0, BIG);
		post((struct work_row){ .opcode = OP_READ, .bytes = sizes[i],
			.has_no_data = !sizes[i] });
		ring(a);
		EXPECT_EXECUTED();
		cr_assert_eq(memcmp(a->w.a.data, b->w.a.data, sizes[i]), 0, "%u bytes", sizes[i]);
		cr_assert(is_all(a->w.a.data + sizes[i], 0, 4096), "behind them");
	}
	cr_assert_eq(b->w.a.qp->resp->psn_expected, a->w.a.qp->req.psn_next);
}

Test(direct, a_read_above_the_limit_is_a_packet)
{
	for (unsigned at = 0; at < BIG; at++)
		b->w.a.data[at] = (uint8_t)(at % 241);
	post((struct work_row){ .opcode = OP_READ, .bytes = 5 << 20 });
	ring(a);
	cr_assert_eq(a->wire.sent, 1);
	cr_assert_eq(outcome(a), -1);
	settle();
	cr_assert_eq(outcome(a), 0);
	cr_assert_eq(memcmp(a->w.a.data, b->w.a.data, 5 << 20), 0);
	post((struct work_row){ .opcode = OP_READ, .bytes = 8 });
	ring(a);
	cr_assert_eq(a->wire.sent, 1, "the next one is executed again");
}

Test(direct, atomics_need_no_packet)
{
	*word_of(b) = 40;
	post((struct work_row){ .opcode = OP_ADD, .bytes = 8, .swap_add = 2 });
	ring(a);
	EXPECT_EXECUTED();
	cr_assert_eq(*word_of(b), 42);
	cr_assert_eq(*word_of(a), 40, "the answer");
	post((struct work_row){ .opcode = OP_CAS, .bytes = 8, .compare = 41, .swap_add = 9 });
	ring(a);
	EXPECT_EXECUTED();
	cr_assert_eq(*word_of(b), 42, "it did not match");
	cr_assert_eq(*word_of(a), 42);
	post((struct work_row){ .opcode = OP_CAS, .bytes = 8, .compare = 42, .swap_add = 9 });
	ring(a);
	EXPECT_EXECUTED();
	cr_assert_eq(*word_of(b), 9);
	cr_assert_eq(*word_of(a), 42);
}

Test(direct, many_in_a_row_keep_their_order_and_leave_no_timer)
{
	for (int i = 0; i < 40; i++) {
		a->w.a.data[0] = (uint8_t)i;
		post((struct work_row){ .opcode = OP_WRITE, .bytes = 1,
			.is_unsignaled = i != 39 });
		if (i % 5 == 4)
			ring(a);
	}
	EXPECT_EXECUTED();
	cr_assert_eq(b->w.a.data[0], 39);
	cr_assert_eq(engine_deadline_ns(a->e), UINT64_MAX);
	cr_assert_eq(a->w.a.qp->req.psn_out, 0);
	cr_assert_eq(a->w.a.qp->req.reads_out, 0);
}

Test(direct, a_send_is_a_packet_and_what_follows_waits_for_it)
{
	recv_post(&b->w.a, 64, 0, 4096);
	post((struct work_row){ .opcode = OP_SEND, .bytes = 24 });
	post((struct work_row){ .opcode = OP_WRITE, .bytes = 8 });
	ring(a);
	cr_assert_eq(a->wire.sent, 2);
	cr_assert(is_all(b->w.a.data, 0, 8), "the gate");
	settle();
	cr_assert_eq(outcome(a), 0);
	cr_assert_eq(outcome(a), 0);
	cr_assert_eq(memcmp(a->w.a.data, b->w.a.data, 8), 0);
	cr_assert_eq(memcmp(a->w.a.data, b->w.a.data + 4096, 24), 0);
	post((struct work_row){ .opcode = OP_WRITE, .bytes = 16 });
	ring(a);
	cr_assert_eq(a->wire.sent, 2);
	cr_assert_eq(outcome(a), 0);
}

/* A peer that executes acknowledges what went by packet before: the gate says that it is done. */
Test(direct, an_executed_write_completes_the_send_before_it)
{
	recv_post(&b->w.a, 64, 0, 4096);
	post((struct work_row){ .opcode = OP_SEND, .bytes = 24 });
	ring(a);
	b->wire.carries = 0;			/* its answer is lost */
	engine_lend(b->e);
	cr_assert_eq(outcome(a), -1);
	post((struct work_row){ .opcode = OP_WRITE, .bytes = 8 });
	ring(a);
	cr_assert_eq(a->wire.sent, 1);
	cr_assert_eq(outcome(a), 0);
	cr_assert_eq(outcome(a), 0);
	cr_assert_eq(a->w.a.qp->req.psn_out, 0);
	cr_assert_eq(a->w.a.qp->req.deadline_ns, 0);
}

/* --- both ways mixed --- */

enum { PARTS = 48, PART = 4096 };

static void mixed_write(unsigned seed)
{
	memset(b->w.a.data, 0, PARTS * PART + 1);
	post((struct work_row){ .opcode = OP_WRITE, .bytes = PARTS * PART });
	for (int i = 0; i < PARTS; i++) {
		struct ib_packet p = next_request(PART);

		cr_assert_eq(p.dma_bytes, PARTS * PART);
		if (seed >> i % 7 & 1) {
			cr_assert(execute(&p), "seed %u part %d", seed, i);
		} else {
			send_packet(&p);
			engine_lend(b->e);
		}
	}
	settle();
	cr_assert_eq(outcome(a), 0);
	cr_assert_eq(memcmp(a->w.a.data, b->w.a.data, PARTS * PART), 0);
	cr_assert_eq(b->w.a.data[PARTS * PART], 0);
	cr_assert_eq(b->w.a.qp->state, QP_RTS);
}

Test(direct, the_parts_of_a_write_may_go_either_way)
{
	for (unsigned seed = 0; seed < 128; seed += 3)
		mixed_write(seed);
	cr_assert_eq(b->w.a.qp->resp->msn, 43);
}

Test(direct, nothing_is_executed_while_an_earlier_packet_is_under_way)
{
	struct ib_packet p;

	post((struct work_row){ .opcode = OP_WRITE, .bytes = 8 });
	p = next_request(PART);
	send_packet(&p);
	post((struct work_row){ .opcode = OP_ADD, .bytes = 8, .swap_add = 1,
		.remote = (uintptr_t)b->w.a.data + 64 });
	p = next_request(PART);
	cr_assert_not(execute(&p));
	cr_assert_eq(word_of(b)[8], 0);
	engine_lend(b->e);
	cr_assert(execute(&p), "it has arrived");
	cr_assert_eq(word_of(b)[8], 1);
	cr_assert_eq(outcome(a), 0);
	cr_assert_eq(outcome(a), 0);
}

Test(direct, nothing_is_executed_before_an_earlier_read_has_its_answer)
{
	struct ib_packet p;

	post((struct work_row){ .opcode = OP_READ, .bytes = 5 << 20 });
	ring(a);
	engine_lend(b->e);			/* it has taken the request */
	post((struct work_row){ .opcode = OP_WRITE, .bytes = 8 });
	p = next_request(PART);
	cr_assert_eq(p.psn, b->w.a.qp->resp->psn_expected);
	cr_assert_not(execute(&p));
	settle();
	cr_assert_eq(outcome(a), 0);
	cr_assert_eq(outcome(a), 0);
	cr_assert_eq(a->w.a.qp->req.retries_left, 2);
}

/* The target may be about to take the packet: then it would be executed twice at once. */
Test(direct, what_was_sent_as_a_packet_is_never_executed)
{
	struct ib_packet p;

	post((struct work_row){ .opcode = OP_ADD, .bytes = 8, .swap_add = 1 });
	p = next_request(PART);
	send_packet(&p);
	rc_timer(&a->e->tp, a->w.a.qp);
	p = next_request(PART);
	cr_assert_eq(p.psn, b->w.a.qp->resp->psn_expected, "the target expects it");
	cr_assert_not(execute(&p));
	cr_assert_eq(*word_of(b), 0);
	send_packet(&p);
	settle();
	cr_assert_eq(*word_of(b), 1);
	cr_assert_eq(outcome(a), 0);
	post((struct work_row){ .opcode = OP_ADD, .bytes = 8, .swap_add = 1 });
	ring(a);
	cr_assert_eq(*word_of(b), 2);
	cr_assert_eq(a->wire.sent, 1 + 1, "and the next is executed");
}

Test(direct, a_read_whose_answer_broke_off_goes_on_by_packet)
{
	for (unsigned at = 0; at < BIG; at++)
		b->w.a.data[at] = (uint8_t)(at % 241);
	memset(a->w.a.data, 0, BIG);
	post((struct work_row){ .opcode = OP_READ, .bytes = 5 << 20 });
	ring(a);
	b->wire.carries = 40;			/* of 80 */
	settle();
	cr_assert_eq(outcome(a), -1);
	b->wire.carries = UINT32_MAX;
	clock_ns = engine_deadline_ns(a->e);
	cr_assert_neq(clock_ns, UINT64_MAX);
	settle();
	cr_assert_eq(outcome(a), 0);
	cr_assert_eq(memcmp(a->w.a.data, b->w.a.data, 5 << 20), 0);
}

/* From the moment that a peer finds its PSN expected the message state is the peer's. */
static struct emu_qp *watched;
static uint32_t gate_at_completion;
static const struct tp_ops *engine_ops;

static void watching_complete(struct tp *tp, struct emu_qp *qp, struct emu_cq *cq,
			      struct hw_cqe *cqe)
{
	if (qp == watched)
		gate_at_completion = qp->resp->psn_expected;
	engine_ops->complete(tp, qp, cq, cqe);
}

Test(direct, a_receive_is_complete_before_the_next_packet_may_be_executed)
{
	static const struct tp_ops watching = { .complete = watching_complete };

	watched = b->w.a.qp;
	engine_ops = b->e->tp.ops;
	b->e->tp.ops = &watching;
	recv_post(&b->w.a, 64, 0, 4096);
	post((struct work_row){ .opcode = OP_SEND, .bytes = 24 });
	ring(a);
	settle();
	cr_assert_eq(outcome(b), 0);
	cr_assert_eq(gate_at_completion, 100, "the gate was open: %u", gate_at_completion);
	cr_assert_eq(watched->resp->psn_expected, 101);
}

/* A completion may end the QP, and that waits for peers: two that are in each other would wait
 * for one another. */
static uint64_t busy_at_completion;

static void leaving_complete(struct tp *tp, struct emu_qp *qp, struct emu_cq *cq,
			     struct hw_cqe *cqe)
{
	busy_at_completion = b->share->header->busy[fabric_self(a->fabric)].word;
	engine_ops->complete(tp, qp, cq, cqe);
}

Test(direct, a_completion_comes_after_the_peer_was_left)
{
	static const struct tp_ops leaving = { .complete = leaving_complete };

	engine_ops = a->e->tp.ops;
	a->e->tp.ops = &leaving;
	post((struct work_row){ .opcode = OP_WRITE, .bytes = 8 });
	ring(a);
	EXPECT_EXECUTED();
	cr_assert_neq(busy_at_completion, 0);
	cr_assert_eq(busy_at_completion & 1, 0);
}

/* --- taking back --- */

struct taking {
	int (*take)(void);
	_Atomic bool is_done;
	int rc;
};

static void *taking_main(void *arg)
{
	struct taking *t = arg;

	t->rc = t->take();
	atomic_store(&t->is_done, true);
	return NULL;
}

/* @take does not return while a peer is in the middle of something. */
static void expect_wait(int (*take)(void))
{
	struct share_peer *peer = share_peer_find(a->share, b->w.a.qp->qpn);
	struct taking t = { take, false, -1 };
	pthread_t thread;

	cr_assert(peer && share_begin(peer));
	pthread_create(&thread, NULL, taking_main, &t);
	for (int i = 0; i < 30; i++) {
		usleep(1000);
		cr_assert_not(atomic_load(&t.is_done), "it did not wait");
	}
	share_end(peer);
	pthread_join(thread, NULL);
	cr_assert_eq(t.rc, 0);
}

static int take_mr(void)
{
	return mr_destroy(&b->w.dev, b->w.a.mr);
}

static int take_qp(void)
{
	uint32_t events;

	return qp_destroy(&b->w.dev, b->w.a.qp, &events);
}

static int take_to_reset(void)
{
	return take_to(QP_RESET);
}

static int take_to_err(void)
{
	return take_to(QP_ERR);
}

static int take_right(void)
{
	struct qp_attr attr = { .access = KEY_REMOTE_READ };

	return qp_modify(&b->w.dev, b->w.a.qp, &attr, A_ACCESS);
}

Test(direct, a_key_is_not_taken_back_from_under_a_peer)
{
	expect_wait(take_mr);
}

Test(direct, a_qp_is_not_destroyed_under_a_peer)
{
	expect_wait(take_qp);
}

Test(direct, a_qp_is_not_reset_under_a_peer)
{
	expect_wait(take_to_reset);
}

Test(direct, nothing_arrives_after_the_change_to_error)
{
	expect_wait(take_to_err);
}

Test(direct, nothing_goes_by_rights_that_were_taken)
{
	expect_wait(take_right);
}

/* Writes large pieces until they don't get through any more. */
static void *writer_main(void *arg)
{
	const uint32_t *key = arg;

	while (!a->wire.sent) {
		post((struct work_row){ .opcode = OP_WRITE, .bytes = 2 << 20, .rkey = *key });
		ring(a);
		while (outcome(a) == 0)
			;
	}
	return NULL;
}

Test(direct, memory_is_the_applications_again_when_its_key_is_gone)
{
	pthread_t thread;

	for (int round = 0; round < 10; round++) {
		uint32_t key = b->w.a.mr->key;

		pthread_create(&thread, NULL, writer_main, &key);
		usleep(500 + 777 * (useconds_t)round);
		cr_assert_eq(mr_destroy(&b->w.dev, b->w.a.mr), 0);
		memset(b->w.a.data, 0, 2 << 20);
		pthread_join(thread, NULL);
		cr_assert(is_all(b->w.a.data, 0, 2 << 20), "written late, round %d", round);
		munmap(a->w.a.data, BIG);
		munmap(b->w.a.data, BIG);
		start();
	}
}

/* The old responder's number, another QP: what was on its way must not fit. */
Test(direct, a_new_qp_of_an_old_number_is_another)
{
	struct rc_resp *old = b->w.a.qp->resp;
	uint32_t events;

	cr_assert_eq(qp_destroy(&b->w.dev, b->w.a.qp, &events), 0);
	post((struct work_row){ .opcode = OP_WRITE, .bytes = 8 });
	ring(a);
	cr_assert_eq(a->wire.sent, 1, "nobody is there");
	cr_assert_eq(share_take(b->share, SHARE_RESPONDER, a->w.a.qp->dest_qpn), old);
	a->w.a.qp->req.psn_out = 0;		/* as if it had not been sent */
	cr_assert_not(execute(&(struct ib_packet){ .opcode = RC_WRITE_ONLY, .psn = 0 }));
	cr_assert(is_all(b->w.a.data, 0, 8));
}

/* --- atomics of several --- */

enum { ADDS = 300 };

struct adder {
	struct end *n;
	uint64_t done;
};

static void add_one(struct end *n)
{
	struct emu_qp *qp = n->w.a.qp;
	struct ib_packet p;

	work_post(&n->w.a, (struct work_row){ .opcode = OP_ADD, .bytes = 8, .swap_add = 1,
		.is_unsignaled = true, .remote = (uintptr_t)b->w.a.data, .rkey = b->w.a.mr->key });
	tp_doorbell(&n->e->tp, qp);
	while (!rc_req_next(&n->e->tp, qp, PART, &p) || !direct_execute(n->e, qp, &p))
		sched_yield();
}

static void *adder_main(void *arg)
{
	struct adder *me = arg;

	for (; me->done < ADDS; me->done++)
		add_one(me->n);
	return NULL;
}

static void *owner_adder_main(void *arg)
{
	uint64_t old;

	(void)arg;
	for (int i = 0; i < ADDS; i++) {
		home_atomics_lock(&b->w.dev.home);
		mem_fetch_add((uintptr_t)b->w.a.data, 1, &old);
		home_atomics_unlock(&b->w.dev.home);
		sched_yield();
	}
	return NULL;
}

Test(direct, atomics_of_peers_and_of_the_owner_exclude_each_other)
{
	struct end *c = end_new();
	struct adder adders[2] = { { a, 0 }, { c, 0 } };
	struct qp_init init = { .type = QPT_RC, .pd = b->w.pd, .send_cq = b->w.cq,
		.recv_cq = b->w.cq, .async = b->w.async, .sq_blocks = WORLD_BLOCKS,
		.buf_addr = (uintptr_t)b->w.a.queue, .db_addr = (uintptr_t)b->w.a.record };
	struct side second = b->w.a;
	pthread_t thread[3];

	cr_assert_eq(qp_create(&b->w.dev, &init, &second.qp), 0);
	side_connect(&c->w, &c->w.a, second.qp->qpn, 100);
	side_connect(&b->w, &second, c->w.a.qp->qpn, 100);
	pthread_create(&thread[0], NULL, adder_main, &adders[0]);
	pthread_create(&thread[1], NULL, adder_main, &adders[1]);
	pthread_create(&thread[2], NULL, owner_adder_main, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	cr_assert_eq(*word_of(b), 3 * ADDS, "%llu", (unsigned long long)*word_of(b));
}

Test(direct, an_atomic_that_finds_the_lock_taken_is_a_packet)
{
	home_atomics_lock(&b->w.dev.home);
	post((struct work_row){ .opcode = OP_ADD, .bytes = 8, .swap_add = 1 });
	ring(a);
	cr_assert_eq(a->wire.sent, 1);
	cr_assert_eq(*word_of(b), 0);
	home_atomics_unlock(&b->w.dev.home);
	settle();
	cr_assert_eq(*word_of(b), 1);
	cr_assert_eq(outcome(a), 0);
}

/* --- coming and going --- */

Test(direct, an_owner_that_leaves_is_left_alone)
{
	post((struct work_row){ .opcode = OP_WRITE, .bytes = 8 });
	ring(a);
	EXPECT_EXECUTED();
	share_live_end(b->share);
	post((struct work_row){ .opcode = OP_WRITE, .bytes = 32 });
	ring(a);
	cr_assert_eq(a->wire.sent, 1);
	cr_assert(is_all(b->w.a.data + 8, 0, 24));
}

/* Of either side the word is enough. */
Test(direct, closed_memory_is_not_touched)
{
	struct share *closed[] = { a->share, b->share };

	for (int i = 0; i < 2; i++) {
		struct share_peer *peer;

		a->share->is_closed = closed[i] == a->share;
		b->share->header->is_closed = closed[i] == b->share;
		peer = share_peer_at(a->share, fabric_self(b->fabric),
				     fabric_generation(b->fabric, fabric_self(b->fabric)));
		cr_assert_not_null(peer, "the segment is there to be seen");
		cr_expect_null(share_peer_find(a->share, b->w.a.qp->qpn));
		cr_expect(share_begin(peer));
		cr_expect_eq(share_memory_read(peer, &(struct iovec){ a->w.a.data, 8 }, 1,
					       (uintptr_t)b->w.a.data, 8), -EPERM);
		share_end(peer);
		share_peer_close(peer);
	}
}

Test(direct, who_has_no_segment_gets_and_sends_packets)
{
	a->e->share = NULL;
	a->e->is_direct = false;
	post((struct work_row){ .opcode = OP_WRITE, .bytes = 8 });
	ring(a);
	cr_assert_eq(a->wire.sent, 1);
	settle();
	cr_assert_eq(outcome(a), 0);
	cr_assert_eq(memcmp(a->w.a.data, b->w.a.data, 8), 0);
}

static pid_t fork_child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

struct told {
	uint32_t qpn, key;
	uint64_t data;
	_Atomic int is_ready;
};

/* Another process as b; a's QP is connected to it. */
static pid_t target_start(struct told *told)
{
	pid_t pid = fork_child();

	if (pid)
		return pid;
	b = end_new();
	share_live_begin(b->share);
	side_connect(&b->w, &b->w.a, a->w.a.qp->qpn, 100);
	*told = (struct told){ b->w.a.qp->qpn, b->w.a.mr->key, (uintptr_t)b->w.a.data, 1 };
	for (;;)
		pause();
}

Test(direct, a_target_that_was_killed_is_not_written_to)
{
	struct told *told = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
				 0);
	struct work_row row = { .opcode = OP_WRITE, .bytes = 8 };
	pid_t pid = target_start(told);

	while (!atomic_load(&told->is_ready))
		usleep(100);
	cr_assert_eq(qp_modify(&a->w.dev, a->w.a.qp, &(struct qp_attr){ .state = QP_RESET },
			       A_STATE), 0);
	a->w.a.posted_blocks = 0;
	a->w.a.record[1] = 0;
	side_connect(&a->w, &a->w.a, told->qpn, 100);
	row.remote = told->data;
	row.rkey = told->key;
	post(row);
	ring(a);
	EXPECT_EXECUTED();
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	post(row);
	ring(a);
	EXPECT_EXECUTED();			/* a stopped process has a working NIC */
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	post(row);
	ring(a);
	cr_assert_eq(a->wire.sent, 1);
	cr_assert_eq(outcome(a), -1);
}

/* --- the switch --- */

/* Of the one segment in the fabric. */
static bool says_closed(const char *fabric)
{
	static struct share_header head;
	char path[300];
	DIR *d;
	struct dirent *entry;
	int fd = -1;

	/* Beside this case's own fabric. */
	snprintf(path, sizeof path, "%.*s%s", (int)(strlen(dir) - strlen(name)), dir, fabric);
	d = opendir(path);
	cr_assert(d, "%s", path);
	while (fd < 0 && (entry = readdir(d)))
		if (strstr(entry->d_name, "-share"))
			fd = openat(dirfd(d), entry->d_name, O_RDONLY);
	cr_assert_geq(fd, 0);
	cr_assert_eq(read(fd, &head, offsetof(struct share_header, live)),
		     offsetof(struct share_header, live));
	close(fd);
	closedir(d);
	cr_assert_eq(head.magic, SHARE_MAGIC);
	return head.is_closed;
}

static void expect_closed(const char *one_sided_value, bool is_closed)
{
	struct uv_file *file;
	char fabric[80];

	snprintf(fabric, sizeof fabric, "%s-e", name);
	setenv("VERBENA_FABRIC", fabric, 1);
	setenv("VERBENA_QUIET", "1", 1);
	if (one_sided_value)
		setenv("VERBENA_ONE_SIDED", one_sided_value, 1);
	else
		unsetenv("VERBENA_ONE_SIDED");
	cr_assert_eq(emu_open(-1, &file), 0);
	cr_assert_eq(says_closed(fabric), is_closed);
	emu_close(file);
}

Test(direct, the_environment_can_ask_for_packets_only)
{
	expect_closed(NULL, false);
	expect_closed("ring", true);
	expect_closed("", false);
}
