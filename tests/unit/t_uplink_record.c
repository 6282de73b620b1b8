/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recording: what is written is a capture, of several processes at once too; nobody else's file is
 * touched; and what can't be written is told once.
 *
 * Method: each case has a folder of its own; recordings are read with emu/uplink/capture.h, whose
 * own tests do not come from here, and times by hand.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include "emu/mem/mem.h"
#include "emu/uplink/capture.h"
#include "emu/uplink/record.h"
#include "tests/unit/capture_build.h"

static char folder[] = "/tmp/verbena-record-XXXXXX";
static char path[256], other[256];
static struct uplink_said said;

static void start(void)
{
	cr_assert_eq(mem_guard_init(), 0);
	cr_assert(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/out.pcapng", folder);
	snprintf(other, sizeof other, "%s/other", folder);
}

static void stop(void)
{
	unlink(path);
	unlink(other);
	rmdir(folder);
}

TestSuite(record, .init = start, .fini = stop, .timeout = 50);

/* The whole file, which the caller frees. */
static uint8_t *file_read(const char *name, size_t *bytes)
{
	FILE *f = fopen(name, "r");
	uint8_t *at;

	cr_assert(f);
	fseek(f, 0, SEEK_END);
	*bytes = (size_t)ftell(f);
	rewind(f);
	at = malloc(*bytes + 1);
	cr_assert_eq(fread(at, 1, *bytes, f), *bytes);
	fclose(f);
	return at;
}

static struct record *opened(void)
{
	struct record *r;

	cr_assert_eq(record_open(path, &r, &said), 0, "%s", said.text);
	return r;
}

static int frame_record(struct record *r, unsigned i)
{
	struct built b = { 0 };

	put_frame(&b, i, frame_bytes(i));
	return record_frame(r, b.at, b.bytes);
}

/* How many frames are there, which are 0, 1, 2, ... of @each (1: all of one writer). */
static unsigned frames_check(void)
{
	struct capture_frame frame;
	struct capture c;
	size_t bytes;
	uint8_t *at = file_read(path, &bytes);
	enum capture_fault fault = capture_begin(&c, at, bytes);
	unsigned count = 0;

	while (!fault && !(fault = capture_next(&c, &frame))) {
		cr_assert(is_frame(at + frame.at, frame.bytes, count, frame_bytes(count)),
			  "frame %u", count);
		count++;
	}
	cr_assert_eq(fault, CAPTURE_END, "%s", capture_fault_text(fault));
	free(at);
	return count;
}

Test(record, what_is_written_can_be_read)
{
	struct record *r = opened();

	for (unsigned i = 0; i < 200; i++)
		cr_assert_eq(frame_record(r, i), 0);
	cr_expect_eq(frames_check(), 200);
	record_close(r);
	cr_expect_eq(frames_check(), 200);
}

Test(record, a_file_without_frames_is_a_capture)
{
	record_close(opened());
	cr_expect_eq(frames_check(), 0);
}

Test(record, later_frames_are_added)
{
	for (unsigned i = 0; i < 5; i++) {
		struct record *r = opened();

		cr_assert_eq(frame_record(r, i), 0);
		record_close(r);
	}
	cr_expect_eq(frames_check(), 5);
}

static uint64_t wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Option 9 of the interface says what a unit is; the last block is 28 + 16 + 4 bytes. */
Test(record, times_are_nanoseconds_of_the_wall_clock)
{
	struct record *r = opened();
	uint64_t before = wall_ns(), after, time;
	uint32_t high, low;
	size_t bytes;
	uint8_t *at;

	frame_record(r, 0);
	after = wall_ns();
	at = file_read(path, &bytes);
	memcpy(&high, at + bytes - 48 + 12, 4);
	memcpy(&low, at + bytes - 48 + 16, 4);
	time = (uint64_t)high << 32 | low;
	cr_expect(before <= time && time <= after);
	cr_expect(memmem(at, bytes - 48, "\x09\x00\x01\x00\x09\x00\x00\x00\x00\x00\x00\x00", 12));
	free(at);
	record_close(r);
}

/* --- several at once --- */

enum { WRITERS = 4, EACH = 1500 };

/* Frames of a writer are told by their first bytes. */
static void write_many(uint8_t writer)
{
	struct record *r = opened();
	uint8_t frame[3000];

	for (uint32_t i = 0; i < EACH; i++) {
		memset(frame, writer, sizeof frame);
		memcpy(frame + 1, &i, sizeof i);
		cr_assert_eq(record_frame(r, frame, 14 + i * 37 % 2900), 0);
	}
	record_close(r);
}

static void writers_check(void)
{
	uint32_t next[WRITERS] = { 0 };
	struct capture_frame frame;
	struct capture c;
	size_t bytes;
	uint8_t *at = file_read(path, &bytes);

	cr_assert_eq(capture_begin(&c, at, bytes), CAPTURE_OK);
	while (capture_next(&c, &frame) == CAPTURE_OK) {
		uint8_t writer = at[frame.at];
		uint32_t i;

		cr_assert_lt(writer, WRITERS);
		memcpy(&i, at + frame.at + 1, sizeof i);
		cr_assert_eq(i, next[writer]++);
		cr_assert_eq(frame.bytes, 14 + i * 37 % 2900);
		for (uint32_t k = 5; k < frame.bytes; k++)
			cr_assert_eq(at[frame.at + k], writer);
	}
	cr_assert_eq(c.next, bytes);
	for (unsigned i = 0; i < WRITERS; i++)
		cr_expect_eq(next[i], EACH);
	free(at);
}

/* In processes that begin at the same moment, as far as two CPUs let them. */
static void writers_run(void (*run)(uint8_t writer))
{
	_Atomic unsigned *ready = mmap(NULL, sizeof *ready, PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child[WRITERS];
	int status;

	for (unsigned i = 0; i < WRITERS; i++) {
		child[i] = fork();
		if (child[i])
			continue;
		atomic_fetch_add(ready, 1);
		while (atomic_load(ready) < WRITERS)
			sched_yield();
		run((uint8_t)i);
		_exit(0);
	}
	for (unsigned i = 0; i < WRITERS; i++) {
		cr_assert_eq(waitpid(child[i], &status, 0), child[i]);
		cr_assert_eq(status, 0);
	}
	munmap((void *)ready, sizeof *ready);
}

/* From the first moment on: all of them may find no file. */
Test(record, processes_write_into_one_file)
{
	writers_run(write_many);
	writers_check();
}

static void open_only(uint8_t writer)
{
	(void)writer;
	record_close(opened());
}

Test(record, a_file_is_begun_once)
{
	struct stat once, st;

	open_only(0);
	cr_assert_eq(stat(path, &once), 0);
	for (unsigned i = 0; i < 100; i++) {
		unlink(path);
		writers_run(open_only);
		cr_assert_eq(stat(path, &st), 0);
		cr_assert_eq(st.st_size, once.st_size);
	}
}

/* The child has the descriptor, and no business with the file. */
Test(record, a_child)
{
	struct record *r = opened();
	int status;
	pid_t pid = fork();

	if (!pid) {
		record_close(r);
		_exit(frame_record(r, 0) ? 0 : 1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	cr_assert_eq(frame_record(r, 0), 0);
	cr_expect_eq(frames_check(), 1);
	record_close(r);
}

/* --- what is not ours --- */

static void text_write(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");

	fputs(text, f);
	fclose(f);
}

static void expect_text(const char *name, const char *text)
{
	size_t bytes;
	uint8_t *at = file_read(name, &bytes);

	cr_expect(bytes == strlen(text) && !memcmp(at, text, bytes), "%s was written to", name);
	free(at);
}

static void expect_refused(const char *name, int error, const char *words)
{
	struct record *r;

	memset(&said, 0, sizeof said);
	cr_expect_eq(record_open(name, &r, &said), error);
	cr_expect(strstr(said.text, words) && strstr(said.text, name), "%s", said.text);
}

Test(record, other_files_are_left_alone)
{
	struct built capture = build_ng(false, 2);

	text_write(path, "my letters");
	expect_refused(path, -EEXIST, "no recording");
	expect_text(path, "my letters");
	built_write(&capture, path);
	expect_refused(path, -EEXIST, "no recording");
}

Test(record, an_empty_file_is_begun)
{
	struct record *r;

	text_write(path, "");
	r = opened();
	cr_assert_eq(frame_record(r, 0), 0);
	cr_expect_eq(frames_check(), 1);
	record_close(r);
}

/* None of them is opened in a way that waits. */
Test(record, what_is_not_a_file_is_refused)
{
	cr_assert_eq(mkfifo(path, 0600), 0);
	expect_refused(path, -EINVAL, "not a file");
	expect_refused("/dev/null", -EINVAL, "not a file");
	expect_refused(folder, -EISDIR, "cannot be opened");
	expect_refused("/nonexistent/out", -ENOENT, "cannot be opened");
}

/* The descriptor that the recording has. */
static int descriptor_find(void)
{
	char link[64], name[256];

	for (int fd = 3; fd < 256; fd++) {
		ssize_t bytes;

		snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
		bytes = readlink(link, name, sizeof name);
		if (bytes == (ssize_t)strlen(path) && !memcmp(name, path, (size_t)bytes))
			return fd;
	}
	cr_assert(false, "it has none");
	return -1;
}

/* Programs close what is not theirs, and then have the number for a file of their own. */
Test(record, a_descriptor_that_the_program_took)
{
	struct record *r = opened();
	int mine;

	cr_assert_eq(frame_record(r, 0), 0);
	text_write(other, "my letters");
	mine = open(other, O_RDWR);
	dup2(mine, descriptor_find());
	cr_expect_eq(frame_record(r, 1), 0);
	expect_text(other, "my letters");
	cr_expect_eq(frames_check(), 2);
	record_close(r);
}

static char *stderr_of(int (*run)(struct record *r), struct record *r)
{
	static char text[1024];
	int saved = dup(2), to = open(other, O_RDWR | O_CREAT | O_TRUNC, 0600);
	ssize_t bytes;

	dup2(to, 2);
	run(r);
	dup2(saved, 2);
	bytes = pread(to, text, sizeof text - 1, 0);
	text[bytes < 0 ? 0 : bytes] = 0;
	close(to);
	close(saved);
	return text;
}

static int three(struct record *r)
{
	for (unsigned i = 0; i < 3; i++)
		cr_expect_lt(frame_record(r, i), 0);
	return 0;
}

static void expect_one_line(const char *text)
{
	const char *end = strchr(text, '\n');

	cr_expect(strstr(text, path) && end && !end[1], "said: %s", text);
}

Test(record, a_file_that_was_replaced_ends_it)
{
	struct record *r = opened();

	close(descriptor_find());
	unlink(path);
	text_write(path, "my letters");
	expect_one_line(stderr_of(three, r));
	expect_text(path, "my letters");
	record_close(r);
}

/* --- no room --- */

/* The signal that comes with it would end a program that knows nothing of this. */
Test(record, no_file_may_be_that_large)
{
	struct record *r = opened();
	unsigned written = 0;

	setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 5000, RLIM_INFINITY });
	while (!frame_record(r, written))
		written++;
	cr_expect_gt(written, 10);
	setrlimit(RLIMIT_FSIZE, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY });
	cr_expect_eq(frame_record(r, written), -EFBIG, "it is over");
	cr_expect_eq(frames_check(), written);
	record_close(r);
}

Test(record, no_file_may_be_begun)
{
	setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 10, RLIM_INFINITY });
	expect_refused(path, -EFBIG, "cannot be begun");
	setrlimit(RLIMIT_FSIZE, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY });
	record_close(opened());
	cr_expect_eq(frames_check(), 0);
}

static int fill(struct record *r)
{
	static const uint8_t frame[9000];
	int error = 0;

	while (!error)
		error = record_frame(r, frame, sizeof frame);
	cr_expect_eq(error, -ENOSPC);
	return three(r);
}

/* What was written of the last block is taken back.  Skipped where nothing can be mounted, as for
 * other users than root: no other file system may be filled. */
Test(record, a_full_file_system)
{
	struct record *r;
	struct capture c;
	size_t bytes;
	uint8_t *at;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", folder, "tmpfs", 0, "size=64k")) {
		stop();
		cr_skip_test("nothing can be mounted");
	}
	snprintf(other, sizeof other, "%s-said", folder);
	r = opened();
	expect_one_line(stderr_of(fill, r));
	record_close(r);
	at = file_read(path, &bytes);
	cr_expect_eq(capture_check(&c, at, bytes), CAPTURE_END);
	cr_expect_gt(bytes, 9000);
	free(at);
	unlink(other);
	umount2(folder, MNT_DETACH);
	stop();
}

/* --- manners --- */

static void *record_one(void *arg)
{
	pthread_cancel(pthread_self());
	errno = 77;
	frame_record(arg, 0);
	cr_expect_eq(errno, 77);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return arg;
}

/* It is called with locks held, and between what an application does and its errno. */
Test(record, neither_cancelled_nor_seen_in_errno)
{
	struct record *r = opened();
	pthread_t thread;
	void *out;

	cr_assert_eq(pthread_create(&thread, NULL, record_one, r), 0);
	pthread_join(thread, &out);
	cr_expect_eq(out, r);
	cr_expect_eq(frames_check(), 1);
	record_close(r);
}
