/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A function's shared segment: peers find what its owner keeps there as long as it lives, reach
 * its memory, and do without where there is no room.
 */
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include "tests/unit/share_world.h"

TestSuite(share, .init = start, .fini = stop, .timeout = 50);

/* --- looking --- */

Test(share, entries_are_found_by_their_numbers)
{
	struct node owner = node_up(), peer_node = peer_up();
	static const uint32_t numbers[] = { 0, 1, 63, 64, 4711, 0xffffff };
	struct share_peer *peer = begun(&peer_node, &owner);

	for (uint32_t i = 0; i < 6; i++) {
		uint32_t *entry = share_take(owner.share, SHARE_RESPONDER, numbers[i]);

		cr_assert(entry && share_owns(owner.share, entry));
		entry[3] = numbers[i] ^ 0x5555;
		entry[4] = i;
	}
	for (uint32_t i = 0; i < 6; i++) {
		uint32_t words[2], one = 0;

		cr_assert_eq(share_read(peer, SHARE_RESPONDER, numbers[i], 12, words, 8), 0);
		cr_assert_eq(words[0], numbers[i] ^ 0x5555);
		cr_assert_eq(words[1], i);
		cr_assert_eq(share_load32(peer, SHARE_RESPONDER, numbers[i], 12, &one), 0);
		cr_assert_eq(one, words[0]);
	}
	share_end(peer);
	node_down(&peer_node);
	node_down(&owner);
}

Test(share, what_a_peer_writes_is_seen_by_the_owner)
{
	struct node owner = node_up(), peer_node = peer_up();
	uint32_t *entry = share_take(owner.share, SHARE_KEY, 70), words[2] = { 7, 8 };
	struct share_peer *peer = begun(&peer_node, &owner);

	cr_assert_eq(share_write(peer, SHARE_KEY, 70, 8, words, 8), 0);
	cr_assert_eq(share_store32(peer, SHARE_KEY, 70, 60, 9), 0);
	cr_assert_eq(entry[2], 7);
	cr_assert_eq(entry[3], 8);
	cr_assert_eq(entry[15], 9);
	cr_assert_eq(entry[1] | entry[4] | entry[14], 0);
}

Test(share, what_is_not_there_or_outside_is_no_entry)
{
	struct node owner = node_up(), peer_node = peer_up();
	struct share_peer *peer = begun(&peer_node, &owner);
	uint8_t byte[ENTRY];
	uint32_t word;

	share_take(owner.share, SHARE_KEY, 1);
	cr_assert_eq(share_read(peer, SHARE_KEY, 1, 0, byte, 64), 0);
	cr_assert_eq(share_read(peer, SHARE_KEY, 1, 1, byte, 64), -ENOENT);
	cr_assert_eq(share_read(peer, SHARE_KEY, 1, (size_t)-8, byte, 64), -ENOENT);
	cr_assert_eq(share_read(peer, SHARE_KEY, 64, 0, byte, 1), -ENOENT, "no chunk");
	cr_assert_eq(share_read(peer, SHARE_RESPONDER, 1, 0, byte, 1), -ENOENT, "another kind");
	cr_assert_eq(share_load32(peer, SHARE_KEY, 0x1000001, 0, &word), -ENOENT);
	cr_assert_eq(share_load32(peer, SHARE_KEY, 1, 62, &word), -ENOENT);
	cr_assert_eq(share_store32(peer, SHARE_KEY, UINT32_MAX, 0, 1), -ENOENT);
	cr_assert_null(share_take(owner.share, SHARE_KEY, 0x1000000));
}

Test(share, a_place_that_is_taken_again_is_zero)
{
	struct node owner = node_up();
	uint8_t *entry = share_take(owner.share, SHARE_RESPONDER, 5), *next;

	memset(entry, 0xff, ENTRY);
	next = share_take(owner.share, SHARE_RESPONDER, 6);
	memset(next, 0xee, ENTRY);
	cr_assert_eq(next - entry, ENTRY);
	cr_assert_eq(share_take(owner.share, SHARE_RESPONDER, 5), entry);
	for (int i = 0; i < ENTRY; i++)
		cr_assert(entry[i] == 0 && next[i] == 0xee);
}

Test(share, when_it_is_full_there_is_no_place_and_what_is_taken_stays)
{
	struct node owner = node_up();
	uint32_t chunk = 0;
	uint8_t *first = share_take(owner.share, SHARE_KEY, 0), *at;

	*first = 3;
	while ((at = share_take(owner.share, SHARE_RESPONDER, chunk * CHUNK_NUMBERS))) {
		cr_assert(share_owns(owner.share, at + ENTRY * CHUNK_NUMBERS - 1));
		chunk++;
		cr_assert_lt(chunk, 100000);
	}
	cr_assert_gt(chunk, 1000);
	cr_assert(share_take(owner.share, SHARE_RESPONDER, 1), "a chunk that is there");
	cr_assert_eq(*first, 3);
}

/* --- coming and going --- */

Test(share, nobody_vouches_before_the_owner_does)
{
	struct node owner = peer_up(), peer_node = peer_up();

	cr_assert_not(share_begin(find(&peer_node, &owner)));
	share_live_begin(owner.share);
	share_end(begun(&peer_node, &owner));
	share_live_end(owner.share);
	cr_assert_not(share_begin(find(&peer_node, &owner)));
	cr_assert_null(find(&peer_node, &owner), "it won't come back");
	cr_assert_eq(busy_word(&owner, fabric_self(peer_node.fabric)) & 1, 0);
}

Test(share, an_owner_that_left_is_not_found_and_leaves_nothing)
{
	struct node owner = node_up(), peer_node = peer_up();

	share_end(begun(&peer_node, &owner));
	cr_assert_eq(map_count(), 3, "each its own, and the peer the owner's");
	share_live_end(owner.share);
	share_destroy(owner.share);
	cr_assert_not(share_begin(find(&peer_node, &owner)));
	cr_assert_eq(map_count(), 1, "the memory of the departed is kept");
	fabric_leave(owner.fabric);
	cr_assert_null(find(&peer_node, &owner));
	node_down(&peer_node);
	cr_assert_eq(entries_of(dir), -1);
}

Test(share, no_file_stays_open)
{
	int before = entries_of("/proc/self/fd"), fds;
	struct node owner = node_up(), peer_node = peer_up();

	share_take(owner.share, SHARE_KEY, 1);
	share_end(begun(&peer_node, &owner));
	fds = entries_of("/proc/self/fd");
	cr_assert_eq(fds, before);
}

Test(share, a_forked_child_has_no_part_in_it)
{
	struct node owner = node_up(), peer_node = peer_up();
	pid_t pid;

	share_end(begun(&peer_node, &owner));
	cr_assert_eq(map_count(), 3);
	pid = fork_child();
	if (!pid)
		_exit(map_count());
	cr_assert_eq(guest_end(pid), 0);
	share_end(begun(&peer_node, &owner));	/* its end was not the owner's */
}

Test(share, the_death_of_the_owner_shows_at_once)
{
	struct node n = peer_up();
	struct guest *g = guest_page();
	pid_t pid = guest_start(g, NULL, owner_main);
	struct share_peer *peer = begun_guest(&n, g);
	uint32_t value = 0, byte = 1;
	struct iovec from = { &byte, 4 };

	cr_assert_eq(share_load32(peer, SHARE_RESPONDER, 1, 0, &value), 0);
	cr_assert_eq(value, 77);
	kill(pid, SIGKILL);
	guest_end(pid);
	cr_assert_eq(share_store32(peer, SHARE_RESPONDER, 1, 0, 1), -ENOENT);
	cr_assert_eq(share_memory_write(peer, (uintptr_t)&value, &from, 1, 4), -EAGAIN);
	share_end(peer);
	cr_assert_not(share_begin(peer));
	cr_assert_null(share_peer_find(n.share, g->qpn));
	cr_assert_eq(map_count(), 1);
}

Test(share, the_exec_of_the_owner_shows_at_once)
{
	struct node n = peer_up();
	struct guest *g = guest_page();
	pid_t pid = guest_start(g, NULL, owner_main);
	struct share_peer *peer = begun_guest(&n, g);
	char path[64], target[64] = "";

	share_end(peer);
	atomic_store(&g->go, 1);
	snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
	while (strncmp(target, "sleep", 5)) {	/* the same pid is another program now */
		FILE *f = fopen(path, "r");

		cr_assert(f && fgets(target, sizeof target, f));
		fclose(f);
	}
	cr_assert_not(share_begin(peer));
	guest_kill(pid);
}

Test(share, a_stopped_owner_is_as_good_as_a_running_one)
{
	struct node n = peer_up();
	struct guest *g = guest_page();
	pid_t pid = guest_start(g, NULL, owner_main);
	struct share_peer *peer = begun_guest(&n, g);
	uint32_t value;

	share_end(peer);
	kill(pid, SIGSTOP);
	wait_stopped(pid);
	cr_assert(share_begin(peer));
	cr_assert_eq(share_store32(peer, SHARE_RESPONDER, 1, 0, 78), 0);
	cr_assert_eq(share_load32(peer, SHARE_RESPONDER, 1, 0, &value), 0);
	cr_assert_eq(value, 78);
	share_end(peer);
	guest_kill(pid);
}

static void vouch_main(struct guest *g, struct node *self, uint32_t host_qpn)
{
	(void)host_qpn;
	share_live_begin(self->share);
	atomic_store(&g->step, 1);
	pause();
}

Test(share, a_slot_that_is_taken_again_is_another_owner)
{
	struct node n = peer_up();
	struct guest *g = guest_page(), *h = guest_page();
	pid_t pid = guest_start(g, NULL, owner_main), second;
	struct share_peer *peer = begun_guest(&n, g);
	uint32_t value;

	share_end(peer);
	guest_kill(pid);
	second = guest_start(h, NULL, vouch_main);
	wait_step(h, 1);
	cr_assert_eq(g->slot, h->slot, "the case is about this");
	cr_assert_null(share_peer_find(n.share, g->qpn));
	peer = share_peer_find(n.share, h->qpn);
	cr_assert(peer && share_begin(peer));
	cr_assert_eq(share_load32(peer, SHARE_RESPONDER, 1, 0, &value), -ENOENT);
	share_end(peer);
	guest_kill(second);
}

/* --- memory --- */

static uint8_t *pages_then_hole(size_t count)
{
	uint8_t *at = mmap(NULL, (count + 1) * 4096, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert(at != MAP_FAILED);
	munmap(at + count * 4096, 4096);
	return at;
}

Test(share, memory_is_moved_at_every_alignment)
{
	struct node owner = node_up(), peer_node = peer_up();
	struct share_peer *peer = begun(&peer_node, &owner);
	uint8_t source[64], target[96], back[64];

	for (int i = 0; i < 64; i++)
		source[i] = (uint8_t)(i + 1);
	for (size_t at = 8; at < 17; at++) {
		for (size_t bytes = 0; bytes < 40; bytes++) {
			struct iovec from[2] = { { source, bytes / 3 },
				{ source + bytes / 3, bytes - bytes / 3 } };
			struct iovec to = { back, bytes };

			memset(target, 0, sizeof target);
			cr_assert_eq(share_memory_write(peer, (uintptr_t)target + at, from, 2,
							bytes), 0);
			cr_assert_eq(memcmp(target + at, source, bytes), 0);
			cr_assert_eq(target[at - 1] | target[at + bytes], 0, "beside it");
			cr_assert_eq(share_memory_read(peer, &to, 1, (uintptr_t)target + at,
						       bytes), 0);
			cr_assert_eq(memcmp(back, source, bytes), 0);
		}
	}
}

Test(share, memory_that_is_not_there_is_a_fault_of_that_move_alone)
{
	struct node owner = node_up(), peer_node = peer_up();
	struct share_peer *peer = begun(&peer_node, &owner);
	uint8_t *memory = pages_then_hole(1), byte[16] = { 0 };
	struct iovec good = { byte, 16 }, bad = { memory + 4090, 16 };

	cr_assert_eq(share_memory_write(peer, (uintptr_t)memory + 4090, &good, 1, 16), -EFAULT);
	cr_assert_eq(share_memory_read(peer, &good, 1, (uintptr_t)memory + 4090, 16), -EFAULT);
	cr_assert_eq(share_memory_write(peer, (uintptr_t)memory, &bad, 1, 16), -EFAULT);
	cr_assert_eq(share_memory_write(peer, UINT64_MAX - 4, &good, 1, 16), -EFAULT);
	cr_assert_eq(share_memory_write(peer, (uintptr_t)memory, &good, 1, 16), 0);
}

Test(share, a_kernel_that_forbids_it_is_asked_once)
{
	struct node owner = node_up(), peer_node = peer_up();
	struct share_peer *peer = begun(&peer_node, &owner);
	uint8_t byte = 1, target = 0;
	struct iovec from = { &byte, 1 };

	peer->pid = 0x3fffff;		/* nobody: as good as forbidden */
	cr_assert_eq(share_memory_write(peer, (uintptr_t)&target, &from, 1, 1), -EPERM);
	share_end(peer);
	cr_assert_null(find(&peer_node, &owner));
	cr_assert_eq(share_peer_at(peer_node.share, peer->slot, peer->generation), peer,
		     "its segment can still be looked into");
	cr_assert_eq(target, 0);
}

/* --- room --- */

/* What share_create() says in a child that did @limit to itself. */
static int create_in_child(void (*limit)(void))
{
	pid_t pid = fork_child();

	if (!pid) {
		struct node n;

		if (node_join(&n))
			_exit(200);
		limit();
		int rc = share_create(n.fabric, entry_bytes, false, &n.share);

		_exit(rc ? -rc : 150 + (entries_of(dir) != 3));
	}
	return guest_end(pid);
}

static void limit_set(int what, rlim_t value)
{
	struct rlimit limit = { value, value };

	setrlimit(what, &limit);
}

static void limit_files(void)
{
	limit_set(RLIMIT_FSIZE, 1 << 20);
}

static inline void limit_memory(void)
{
	limit_set(RLIMIT_AS, 16 << 20);
}

static void limit_descriptors(void)
{
	limit_set(RLIMIT_NOFILE, 0);
}

static void limit_mask(void)
{
	umask(0777);
}

Test(share, limits_of_the_process_are_an_answer_and_no_signal)
{
	node_up();
	cr_assert_eq(create_in_child(limit_files), EFBIG);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)	/* need much */
	cr_assert_eq(create_in_child(limit_memory), ENOMEM);
#endif
	cr_assert_eq(create_in_child(limit_descriptors), EMFILE);
	cr_assert_eq(create_in_child(limit_mask), 150);
}

Test(share, others_of_the_user_get_in_whatever_the_umask_says)
{
	struct stat st;
	struct node owner;
	char path[512];

	umask(0777);
	owner = node_up();
	share_path(owner.share, owner.share->self, owner.share->generation, path, sizeof path);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 07777, 0600);
}

Test(share, a_peer_without_descriptors_or_address_space_does_without)
{
	struct node owner = node_up(), peer_node = peer_up();
	struct rlimit before, none = { 0, 0 };

	getrlimit(RLIMIT_NOFILE, &before);
	none.rlim_max = before.rlim_max;
	setrlimit(RLIMIT_NOFILE, &none);
	cr_assert_null(find(&peer_node, &owner));
	setrlimit(RLIMIT_NOFILE, &before);
	share_quiesce(owner.share);
}

static bool put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool is_done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return is_done;
}

/* One that holds the fabric's own segment and little else, for this process only. */
static bool small_file_system(void)
{
	char uid[32], gid[32];

	snprintf(uid, sizeof uid, "0 %d 1", (int)geteuid());
	snprintf(gid, sizeof gid, "0 %d 1", (int)getegid());
	return !unshare(CLONE_NEWUSER | CLONE_NEWNS) && put("/proc/self/setgroups", "deny") &&
	       put("/proc/self/uid_map", uid) && put("/proc/self/gid_map", gid) &&
	       !mount("none", "/dev/shm", "tmpfs", 0, "size=1M");
}

Test(share, a_full_file_system_is_an_answer_and_no_signal)
{
	pid_t pid = fork_child();
	int status;

	if (!pid) {
		struct node n;
		uint32_t number = 0;
		uint8_t *entry;

		if (!small_file_system())
			_exit(77);
		if (node_try(&n))
			_exit(1);
		while ((entry = share_take(n.share, SHARE_RESPONDER, number))) {
			memset(entry, 0xff, ENTRY);
			number += 1;
			if (number > 100000)
				_exit(2);
		}
		if (number < 64 || number % 64)
			_exit(3);
		memset(share_take(n.share, SHARE_RESPONDER, number - 1), 1, ENTRY);
		share_quiesce(n.share);
		share_destroy(n.share);
		if (share_create(n.fabric, entry_bytes, false, &n.share))
			_exit(4);		/* its memory came back */
		_exit(0);
	}
	status = guest_end(pid);
	if (status == 77)
		cr_skip("no namespaces here");
	cr_assert_eq(status, 0, "step %d", status);
}
