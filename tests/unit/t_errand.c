/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes that only their owner may move: what is asked of its engine, and what becomes of it.
 *
 * a's QPs are on b's domain, and nobody may touch b's memory from outside.  b's engine is a thread,
 * where it runs at all.
 */
#include <sys/prctl.h>
#include <sys/wait.h>
#include "emu/share/errand.h"
#include "tests/unit/abroad_world.h"

enum { LARGE = 300000, PIECE = SHARE_ERRAND_BYTES };

static _Atomic uint32_t called[2];	/* a, b */
static _Atomic uint32_t *told_called;	/* of another process */
static _Atomic unsigned calls;

static void test_call(struct wire *w, unsigned member)
{
	(void)w;
	calls++;
	atomic_store(told_called ? told_called : &called[member == fabric_self(b->fabric)], 1);
}

static void end_listens(struct end *n, _Atomic uint32_t *flag)
{
	static struct wire_ops ops;

	ops = test_wire_ops;
	ops.call = test_call;
	n->wire.base.ops = &ops;
	n->wire.base.called = flag;
}

static void begin(void)
{
	abroad_start();
	b->share->is_closed = true;
	b->share->header->is_closed = true;
	end_listens(a, &called[0]);
	end_listens(b, &called[1]);
}

TestSuite(errand, .init = begin, .fini = stop, .timeout = 60);

/* --- an engine that runs --- */

static pthread_t owner;
static _Atomic bool owner_must_stop;

static void *owner_main(void *arg)
{
	while (!atomic_load(&owner_must_stop)) {
		engine_lend(arg);
		sched_yield();
	}
	return NULL;
}

static void owner_start(void)
{
	cr_assert_eq(pthread_create(&owner, NULL, owner_main, b->e), 0);
}

static void owner_stop(void)
{
	atomic_store(&owner_must_stop, true);
	pthread_join(owner, NULL);
}

/* --- what is asked --- */

static struct share_peer *peer_of_a(void)
{
	struct share_peer *peer = share_peer_at(a->share, proxy.ref.slot, proxy.ref.generation);

	cr_assert_not_null(peer);
	return peer;
}

Test(errand, bytes_go_both_ways)
{
	static const size_t sizes[] = { 1, 7, 4097, PIECE, PIECE + 1, LARGE };

	owner_start();
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct iovec there = far_memory(KEY_LOCAL_WRITE, 3, sizes[i]);
		struct iovec here = { a->w.a.data, sizes[i] };
		struct iovec back = { a->w.a.data + (1 << 20), sizes[i] };

		cr_assert_eq(copy(&there, &here, sizes[i]), MEM_SIDE_NONE);
		cr_assert_eq(memcmp(b->w.a.data + 3, a->w.a.data, sizes[i]), 0);
		cr_assert_eq(b->w.a.data[3 + sizes[i]], 0, "not beyond");
		cr_assert_eq(copy(&back, &there, sizes[i]), MEM_SIDE_NONE);
		cr_assert_eq(memcmp(back.iov_base, a->w.a.data, sizes[i]), 0);
		memset(b->w.a.data, 0, LARGE + 4);
	}
	owner_stop();
	cr_assert_eq(calls, 2 * (4 + 2 + 5));
}

Test(errand, a_process_that_is_forbidden_later_is_asked_too)
{
	struct share_peer *peer;

	b->share->header->is_closed = false;
	peer = peer_of_a();
	peer->pid = 0x3fffff;		/* nobody: as good as forbidden */
	owner_start();
	cr_assert_eq(copy(&(struct iovec){ a->w.a.data, 100 },
			  &(struct iovec){ far_memory(0, 0, 100).iov_base, 100 }, 100),
		     MEM_SIDE_NONE);
	owner_stop();
	cr_assert(peer->is_forbidden);
	cr_assert_eq(calls, 1);
}

Test(errand, atomics_are_those_of_the_owner)
{
	owner_start();
	atomics_check();
	owner_stop();
}

/* --- who judges --- */

static int errand_of(struct key_use use, uint64_t at)
{
	uint8_t bytes[64];

	memset(bytes, 0xee, sizeof bytes);
	return errand_write(a->e, peer_of_a(), &use, at, bytes);
}

/* Whatever the asker believes. */
Test(errand, the_owner_s_rules_are_judged_by)
{
	uint64_t at = (uintptr_t)b->w.a.data;
	struct key_use use = use_of(KEY_LOCAL_WRITE, 0, 64), good = use;

	owner_start();
	cr_expect_eq(errand_of(use, at + 8), -EFAULT, "not where the key leads");
	use.pdn++;
	cr_expect_eq(errand_of(use, at), -EFAULT);
	use = good;
	use.key ^= 1;
	cr_expect_eq(errand_of(use, at), -EFAULT);
	use = use_of(KEY_LOCAL_WRITE, BIG - 32, 64);
	cr_expect_eq(errand_of(use, at + BIG - 32), -EFAULT);
	use = use_of(KEY_MW_BIND, 0, 64);
	cr_expect_eq(errand_of(use, at), -EFAULT);
	cr_expect(is_all(b->w.a.data, 0, BIG));
	cr_expect_eq(errand_of(good, at), 0);
	cr_expect(is_all(b->w.a.data, 0xee, 64));
	owner_stop();
}

Test(errand, what_is_no_request_is_refused)
{
	uint8_t noise[SHARE_ASK_BYTES];
	unsigned seed = 1;

	for (int i = 0; i < 20000; i++) {
		uint32_t turn = ++a->share->desk[0].turn;
		struct share_desk *desk = &a->share->header->desk[0];

		for (unsigned k = 0; k < sizeof noise; k++) {
			seed = seed * 1103515245u + 12345;
			noise[k] = (uint8_t)(seed >> 16);
		}
		noise[0] = (uint8_t)(i % 5);		/* operations, and one that is none */
		memset(noise + 1, 0, 3);
		desk->slot = fabric_self(b->fabric);
		desk->generation = proxy.ref.generation;
		memcpy(desk->request, noise, sizeof noise);
		atomic_store(&desk->state, DESK(turn, DESK_ASKED));
		atomic_store(&b->share->header->asked[0], UINT64_C(1) << fabric_self(a->fabric));
		atomic_store(&called[1], 1);
		engine_lend(b->e);
		cr_assert_eq(atomic_load(&desk->state), DESK(turn, DESK_DONE));
		cr_assert_eq(desk->rc, -EFAULT);
	}
	cr_expect(is_all(b->w.a.data, 0, BIG));
}

Test(errand, a_desk_without_memory_harms_its_owner_alone)
{
	char path[512];

	share_path(a->share, fabric_self(a->fabric), a->share->generation, path, sizeof path);
	cr_assert_not_null(share_peer_at(b->share, fabric_self(a->fabric), a->share->generation));
	cr_assert_eq(truncate(path, 0), 0);
	atomic_store(&b->share->header->asked[0], UINT64_MAX);
	atomic_store(&called[1], 1);
	engine_lend(b->e);
}

Test(errand, a_key_that_is_gone_meanwhile_moves_nothing)
{
	struct iovec there = far_memory(KEY_LOCAL_WRITE, 0, 100), here = { a->w.a.data, 100 };

	owner_start();
	peer_of_a();
	pthread_mutex_lock(&b->w.dev.lock);
	cr_assert_eq(mr_destroy(&b->w.dev, b->w.a.mr), 0);
	pthread_mutex_unlock(&b->w.dev.lock);
	cr_assert_eq(copy(&there, &here, 100), MEM_SIDE_DST);
	cr_assert_eq(copy(&here, &there, 100), MEM_SIDE_SRC);
	owner_stop();
	cr_assert(is_all(b->w.a.data, 0, 100));
}

Test(errand, the_side_that_faults_is_named)
{
	owner_start();
	sides_check();
	owner_stop();
}

/* --- owners that don't answer --- */

Test(errand, what_was_not_served_in_time_is_not_done_later)
{
	struct iovec there = far_memory(KEY_LOCAL_WRITE, 0, 100), here = { a->w.a.data, 100 };

	a->share->patience_ns = 20000000;
	cr_assert_eq(copy(&there, &here, 100), MEM_SIDE_DST);
	cr_assert_eq(atomic_load(&called[1]), 1);
	engine_lend(b->e);
	cr_assert(is_all(b->w.a.data, 0, 100));
	owner_start();
	cr_assert_eq(copy(&there, &here, 100), MEM_SIDE_NONE);
	owner_stop();
}

/* Its bytes may still be looked at. */
Test(errand, a_desk_that_was_taken_is_left_alone)
{
	const struct key_use use = use_of(KEY_LOCAL_WRITE, 0, 64);
	uint64_t at = (uintptr_t)b->w.a.data;

	a->share->patience_ns = 1000000;
	for (unsigned i = 0; i < SHARE_DESKS; i++) {
		a->share->desk[i].turn = 7;
		a->share->desk[i].is_lost = true;
		a->share->desk[i].slot = fabric_self(b->fabric);
		a->share->desk[i].generation = proxy.ref.generation;
		atomic_store(&a->share->header->desk[i].state, DESK(7, DESK_TAKEN));
	}
	cr_expect_eq(errand_of(use, at), -EFAULT);
	cr_expect_eq(calls, 0, "there was no desk");
	atomic_store(&a->share->header->desk[2].state, DESK(7, DESK_DONE));
	cr_expect_eq(errand_of(use, at), -EFAULT);
	cr_expect_eq(calls, 1);
	cr_expect_eq(atomic_load(&a->share->header->desk[2].state), DESK(8, DESK_FREE));
	a->share->desk[0].generation++;		/* it has died */
	cr_expect_eq(errand_of(use, at), -EFAULT);
	cr_expect_eq(atomic_load(&a->share->header->desk[0].state), DESK(8, DESK_FREE));
}

/* Both hold their own lock while they wait, as engines do. */
struct party {
	struct end *self, *other;
	struct key_use use;
	unsigned failed;
};

static void *party_main(void *arg)
{
	struct party *p = arg;
	uint8_t bytes[256];
	struct share_peer *peer = share_peer_at(p->self->share, fabric_self(p->other->fabric),
						p->other->share->generation);

	pthread_mutex_lock(&p->self->w.dev.lock);
	for (int i = 0; i < 500; i++)
		p->failed += errand_read(p->self->e, peer, &p->use, p->use.addr, bytes) != 0;
	pthread_mutex_unlock(&p->self->w.dev.lock);
	/* The other one may not be done. */
	for (int i = 0; i < 2000; i++) {
		engine_lend(p->self->e);
		usleep(100);
	}
	return NULL;
}

static struct key_use own_use(struct end *n)
{
	return (struct key_use){ n->w.a.mr->key, n->w.pd->pdn, KEY_QPN_LOCAL, 0,
				 (uintptr_t)n->w.a.data, 256 };
}

Test(errand, two_that_ask_each_other_do_not_wait_for_ever)
{
	struct party parties[2] = { { a, b, own_use(b), 0 }, { b, a, own_use(a), 0 } };
	pthread_t thread[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, party_main, &parties[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	cr_assert_eq(parties[0].failed + parties[1].failed, 0, "%u, %u", parties[0].failed,
		     parties[1].failed);
}

/* --- another process --- */

struct told {
	uint32_t slot, generation, pdn, key;
	uint64_t data;
	_Atomic int is_ready;
};

static void other_main(struct told *told)
{
	cr_assert_eq(prctl(PR_SET_PDEATHSIG, SIGKILL), 0);
	b = end_new();
	b->share->header->is_closed = true;
	share_live_begin(b->share);
	b->w.a.data[0] = 42;
	told->slot = fabric_self(b->fabric);
	told->generation = b->share->generation;
	told->pdn = b->w.pd->pdn;
	told->key = b->w.a.mr->key;
	told->data = (uintptr_t)b->w.a.data;
	end_listens(b, told_called);
	atomic_store(&told->is_ready, 1);
	for (;;) {
		engine_lend(b->e);
		usleep(100);
	}
}

static enum why byte_of(const struct told *told, uint8_t *out)
{
	const struct key_use use = { told->key, told->pdn, KEY_QPN_LOCAL, 0, told->data, 1 };
	const struct iovec here = { out, 1 };
	struct iovec there;
	enum why why = key_use_check(&a->w.dev.keys, &use, &there);

	*out = 0;
	if (why == WHY_NONE && copy(&here, &there, 1) != MEM_SIDE_NONE)
		why = WHY_MEMORY_GONE;
	return why;
}

Test(errand, an_owner_that_is_stopped_or_dead_is_told_apart)
{
	struct told *told = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
				 0);
	uint8_t byte;
	pid_t pid;

	told_called = (_Atomic uint32_t *)(told + 1);
	pid = fork();
	if (!pid)
		other_main(told);
	while (!atomic_load(&told->is_ready))
		usleep(100);
	import(told->slot, told->generation, told->pdn);
	cr_expect_eq(byte_of(told, &byte), WHY_NONE);
	cr_expect_eq(byte, 42);
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	cr_expect_eq(byte_of(told, &byte), WHY_KEY_OWNER_STOPPED);
	kill(pid, SIGCONT);
	cr_expect_eq(byte_of(told, &byte), WHY_NONE);
	cr_expect_eq(byte, 42);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	cr_expect_eq(byte_of(told, &byte), WHY_KEY_OWNER_GONE);
}
