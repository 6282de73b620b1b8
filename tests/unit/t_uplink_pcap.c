/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Captures in place of a cable: which files are meant, what is said of them if they are no good,
 * and what comes and goes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "emu/mem/mem.h"
#include "emu/uplink/capture.h"
#include "emu/uplink/uplink.h"
#include "tests/unit/capture_build.h"

enum { FRAMES = 30 };

static char folder[] = "/tmp/verbena-pcap-XXXXXX";
static char in[256], out[256], both[600];
static struct uplink_said said;

static void start(void)
{
	cr_assert_eq(mem_guard_init(), 0);
	cr_assert(mkdtemp(folder));
	snprintf(in, sizeof in, "%s/in", folder);
	snprintf(out, sizeof out, "%s/out", folder);
	snprintf(both, sizeof both, "%s,%s", in, out);
}

static void stop(void)
{
	unlink(in);
	unlink(out);
	rmdir(folder);
}

TestSuite(pcap, .init = start, .fini = stop);

static struct uplink *opened(const char *names)
{
	struct uplink *u;

	cr_assert_eq(uplink_pcap_open(names, &u, &said), 0, "%s", said.text);
	return u;
}

static void in_write(void)
{
	struct built b = build_ng(true, FRAMES);

	built_write(&b, in);
}

static unsigned frames_take(struct uplink *u, unsigned from)
{
	struct iovec frame;

	while (u->ops->receive(u, &frame)) {
		cr_assert(u->ops->receive(u, &frame), "it is there until it is released");
		cr_assert(is_frame(frame.iov_base, (uint32_t)frame.iov_len, from,
				   frame_bytes(from)), "frame %u", from);
		u->ops->release(u);
		from++;
	}
	return from;
}

Test(pcap, one_is_played_and_the_other_recorded)
{
	struct uplink *u;
	struct stat st;

	in_write();
	u = opened(both);
	cr_expect_eq(frames_take(u, 0), FRAMES);
	cr_expect_eq(frames_take(u, 0), 0, "it came to its end");
	cr_expect_eq(u->ops->send(u, "fourteen bytes", 14), 0);
	cr_expect(!u->ops->listen);
	u->ops->close(u);
	cr_assert_eq(stat(out, &st), 0);
	cr_expect_gt(st.st_size, 100);
}

Test(pcap, either_alone)
{
	char only_out[300];
	struct uplink *u;

	in_write();
	u = opened(in);
	cr_expect(u->ops->receive && !u->ops->send);
	u->ops->close(u);
	snprintf(only_out, sizeof only_out, ",%s", out);
	u = opened(only_out);
	cr_expect(!u->ops->receive && u->ops->send);
	u->ops->close(u);
	snprintf(only_out, sizeof only_out, "%s,", in);
	u = opened(only_out);
	cr_expect(u->ops->receive && !u->ops->send);
	u->ops->close(u);
}

/* It tells that there is one, and may lose it. */
Test(pcap, a_frame_longer_than_any)
{
	struct built b = build_ng(false, 1);
	struct iovec frame;
	struct uplink *u;

	put_enhanced(&b, 0, 1, 40000);
	put_enhanced(&b, 0, 2, frame_bytes(2));
	built_write(&b, in);
	u = opened(in);
	cr_assert(u->ops->receive(u, &frame));
	u->ops->release(u);
	cr_assert(u->ops->receive(u, &frame));
	cr_expect_eq(frame.iov_len, 40000);
	u->ops->release(u);
	cr_expect_eq(frames_take(u, 2), 3);
	u->ops->close(u);
}

static void expect_refused(const char *names, int error, const char *file, const char *words)
{
	struct uplink *u = NULL;

	memset(&said, 0, sizeof said);
	cr_expect_eq(uplink_pcap_open(names, &u, &said), error, "%s", said.text);
	cr_expect(strstr(said.text, file) && strstr(said.text, words), "%s", said.text);
	cr_expect_null(u);
}

Test(pcap, what_is_no_good_is_told)
{
	struct built good = build_old(true, 3), cut = good, text = { 0 }, nothing = { 0 };
	struct stat st;

	expect_refused("", -EINVAL, "", "no file");
	expect_refused(",", -EINVAL, "", "no file");
	expect_refused(both, -ENOENT, in, "cannot be opened");
	expect_refused(folder, -EINVAL, folder, "not a file");
	expect_refused("/dev/zero", -EINVAL, "/dev/zero", "not a file");
	built_write(&nothing, in);
	expect_refused(both, -EINVAL, in, "is empty");
	put(&text, "a text of some length", 21);
	built_write(&text, in);
	expect_refused(both, -EINVAL, in, "neither pcapng nor pcap");
	cut.bytes -= 5;
	built_write(&cut, in);
	expect_refused(both, -EINVAL, in, "ends in the middle");
	cr_expect(stat(out, &st) && errno == ENOENT, "nothing was begun");
	built_write(&good, in);
	built_write(&good, out);
	expect_refused(both, -EEXIST, out, "no recording");
}

/* Changed since it was checked: damaged, or shorter. */
static void change(const struct built *b)
{
	int fd = open(in, O_WRONLY | O_TRUNC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, b->at, b->bytes), b->bytes);
	close(fd);
}

Test(pcap, a_capture_that_changes_ends)
{
	struct built b = build_ng(false, 2), none = { 0 };
	struct iovec frame;
	struct uplink *u;

	built_write(&b, in);
	u = opened(in);
	cr_assert(u->ops->receive(u, &frame));
	u->ops->release(u);
	b.at[b.bytes - 4]++;
	change(&b);
	cr_expect(!u->ops->receive(u, &frame));
	u->ops->close(u);
	b.at[b.bytes - 4]--;
	change(&b);
	u = opened(in);
	change(&none);
	cr_expect(!u->ops->receive(u, &frame));
	cr_expect(!u->ops->receive(u, &frame));
	u->ops->close(u);
}
