/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors of the device: duplicates, the last close, numbers that are used again, fork and
 * vfork.  Method: an ioctl that the device refuses in its own way (EINVAL for an empty header)
 * tells whether a number is the device; a memfd would say ENOTTY.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include "shim_world.h"

static int device;

static void open_device(void)
{
	device = SHIM(open)("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC);
	cr_assert_geq(device, 0, "%s", strerror(errno));
}

/* errno of an empty command; 0 if it was accepted. */
static int probe(int fd)
{
	struct ib_uverbs_ioctl_hdr header = { .length = 0 };

	return SHIM(ioctl)(fd, RDMA_VERBS_IOCTL, &header) ? errno : 0;
}

TestSuite(preload_files, .init = open_device);

Test(preload_files, the_descriptor_is_a_character_device)
{
	struct stat st;

	cr_assert_eq(SHIM(fstat)(device, &st), 0);
	cr_expect(S_ISCHR(st.st_mode));
	cr_expect_eq(st.st_rdev, makedev(231, 192));
	memset(&st, 0, sizeof st);
	cr_assert_eq(SHIM(fstatat)(device, "", &st, AT_EMPTY_PATH), 0);
	cr_expect(S_ISCHR(st.st_mode));
}

Test(preload_files, close_on_exec_is_as_asked)
{
	int kept = SHIM(open)("/dev/infiniband/uverbs0", O_RDWR);

	cr_expect_eq(fcntl(device, F_GETFD), FD_CLOEXEC);
	cr_expect_eq(fcntl(kept, F_GETFD), 0);
	SHIM(close)(kept);
	SHIM(close)(device);
}

Test(preload_files, commands_reach_the_device_and_other_ioctls_do_not)
{
	int value;

	cr_expect_eq(probe(device), EINVAL);
	cr_expect_eq(SHIM(ioctl)(device, 0x12345678, &value), -1);
	cr_expect_eq(errno, ENOTTY);
	cr_expect_eq(SHIM(ioctl)(device, RDMA_VERBS_IOCTL, NULL), -1);
	cr_expect_eq(errno, EFAULT);
	SHIM(close)(device);
}

Test(preload_files, writes_that_are_no_command_are_refused)
{
	cr_expect_eq(SHIM(write)(device, "x", 1), -1);
	cr_expect_eq(errno, EINVAL);
	SHIM(close)(device);
}

Test(preload_files, offsets_that_mean_nothing_cannot_be_mapped)
{
	cr_expect_eq(SHIM(mmap)(NULL, 4096, PROT_READ, MAP_SHARED, device, 0x123000), MAP_FAILED);
	SHIM(close)(device);
}

Test(preload_files, every_duplicate_is_the_device_until_its_own_close)
{
	int copies[4] = { SHIM(dup)(device), SHIM(dup2)(device, 700), SHIM(dup3)(device, 701, 0),
			  SHIM(fcntl)(device, F_DUPFD_CLOEXEC, 1500) };

	SHIM(close)(device);
	cr_expect_eq(probe(device), EBADF);
	for (int i = 0; i < 4; i++)
		cr_expect_eq(probe(copies[i]), EINVAL, "copy %d", i);
	for (int i = 0; i < 4; i++) {
		SHIM(close)(copies[i]);
		cr_expect_eq(probe(copies[i]), EBADF, "copy %d", i);
	}
}

Test(preload_files, dup2_onto_the_device_closes_it)
{
	int null = open("/dev/null", O_WRONLY);

	cr_expect_eq(SHIM(dup2)(null, device), device);
	cr_expect_eq(probe(device), ENOTTY);
	cr_expect_eq(SHIM(write)(device, "x", 1), 1);
	close(null);
	SHIM(close)(device);
}

Test(preload_files, dup2_onto_itself_changes_nothing)
{
	cr_expect_eq(SHIM(dup2)(device, device), device);
	cr_expect_eq(probe(device), EINVAL);
	SHIM(close)(device);
}

Test(preload_files, a_failed_dup_changes_nothing)
{
	cr_expect_eq(SHIM(dup2)(device, -1), -1);
	cr_expect_eq(SHIM(dup2)(999, device), -1);
	cr_expect_eq(probe(device), EINVAL);
	SHIM(close)(device);
}

/* The C library closes descriptors without asking anyone (closefrom, fclose, posix_spawn). */
Test(preload_files, a_number_closed_unseen_is_whatever_it_is_next)
{
	int pipe_fds[2];
	char byte = 0;

	cr_assert_eq(syscall(SYS_close, device), 0);
	cr_assert_eq(pipe(pipe_fds), 0);
	cr_assert_eq(pipe_fds[0], device, "the test needs the number again");
	cr_expect_eq(SHIM(write)(pipe_fds[1], "y", 1), 1);
	cr_expect_eq(probe(pipe_fds[0]), ENOTTY);
	cr_expect_eq(read(pipe_fds[0], &byte, 1), 1);
	cr_expect_eq(byte, 'y');
}

Test(preload_files, each_open_is_a_file_of_its_own)
{
	int other = SHIM(open)("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC);

	cr_assert_geq(other, 0);
	SHIM(close)(device);
	cr_expect_eq(probe(other), EINVAL);
	SHIM(close)(other);
}

Test(preload_files, the_device_comes_back_after_the_last_close)
{
	for (int i = 0; i < 3; i++) {
		SHIM(close)(device);
		open_device();
		cr_expect_eq(probe(device), EINVAL);
	}
	SHIM(close)(device);
}

static void use_as_child(void)
{
	struct stat st;

	if (probe(device) != EIO || SHIM(write)(device, "x", 1) != -1 || errno != EIO)
		_exit(1);
	if (SHIM(fstat)(device, &st) || !S_ISCHR(st.st_mode))
		_exit(2);
	if (SHIM(close)(device) || probe(device) != EBADF)
		_exit(3);
	device = SHIM(open)("/dev/infiniband/uverbs0", O_RDWR);
	if (device < 0 || probe(device) != EINVAL || SHIM(close)(device))
		_exit(4);
}

Test(preload_files, a_forked_child_has_lost_the_device_and_may_open_it_anew)
{
	int status = status_of_child(use_as_child);

	cr_expect(WIFEXITED(status) && !WEXITSTATUS(status), "status %x", (unsigned)status);
	cr_expect_eq(probe(device), EINVAL);
	SHIM(close)(device);
}

Test(preload_files, a_vfork_child_that_closes_takes_nothing_from_its_parent)
{
	__typeof__(&close) shim_close = SHIM(close);
	int status;
	pid_t child = vfork();

	if (!child) {
		shim_close(device);
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(probe(device), EINVAL);
	SHIM(close)(device);
}

/* How many descriptors the emulator has of its own: none while the device is closed. */
static int hidden_fds(void)
{
	char name[64], path[64];
	int count = 0;

	for (int fd = 0; fd < 256; fd++) {
		ssize_t bytes;

		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		bytes = readlink(path, name, sizeof name - 1);
		if (bytes < 0)
			continue;
		name[bytes] = 0;
		count += strstr(name, "verbena-uar") != NULL;
	}
	return count;
}

Test(preload_files, close_range_and_closefrom_close_the_device)
{
	int other;

	cr_assert_eq(hidden_fds(), 1);
	cr_expect_eq(SHIM(close_range)((unsigned)device, (unsigned)device, CLOSE_RANGE_CLOEXEC), 0);
	cr_expect_eq(probe(device), EINVAL, "only marked");
	cr_expect_eq(SHIM(close_range)((unsigned)device + 1, (unsigned)device, 0), -1);
	cr_expect_eq(probe(device), EINVAL, "nothing happened");
	other = SHIM(fcntl)(device, F_DUPFD, 200);
	cr_assert_eq(other, 200);
	cr_expect_eq(SHIM(close_range)((unsigned)device, (unsigned)device, 0), 0);
	cr_expect_eq(probe(device), EBADF);
	cr_expect_eq(probe(other), EINVAL, "a duplicate keeps it");
	SHIM(closefrom)(200);
	cr_expect_eq(probe(other), EBADF);
	cr_expect_eq(hidden_fds(), 0);
}

static void *open_and_close(void *unused)
{
	__typeof__(&open) shim_open = SHIM(open);
	__typeof__(&close) shim_close = SHIM(close);

	for (int i = 0; i < 20; i++) {
		int fd = shim_open("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC);

		if (fd < 0 || probe(fd) != EINVAL || shim_close(fd))
			return "failed";
	}
	return unused;
}

Test(preload_files, threads_open_and_close_at_once)
{
	pthread_t thread[3];
	void *result;

	for (int i = 0; i < 3; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, open_and_close, NULL), 0);
	for (int i = 0; i < 3; i++) {
		pthread_join(thread[i], &result);
		cr_expect_null(result);
	}
	cr_expect_eq(probe(device), EINVAL);
	SHIM(close)(device);
}

Test(preload_files, descriptors_that_are_not_ours_work_as_ever)
{
	int pipe_fds[2];
	char text[4] = "";
	void *page = SHIM(mmap)(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_expect_neq(page, MAP_FAILED);
	cr_assert_eq(pipe(pipe_fds), 0);
	cr_expect_eq(SHIM(write)(pipe_fds[1], "abc", 3), 3);
	cr_expect_eq(read(pipe_fds[0], text, 3), 3);
	cr_expect_str_eq(text, "abc");
	cr_expect_eq(SHIM(close)(pipe_fds[0]), 0);
	cr_expect_eq(SHIM(close)(pipe_fds[0]), -1);
	cr_expect_eq(errno, EBADF);
	cr_expect_eq(SHIM(close)(-1), -1);
	cr_expect_eq(SHIM(fcntl)(pipe_fds[1], F_SETFL, O_NONBLOCK), 0);
	cr_expect(SHIM(fcntl)(pipe_fds[1], F_GETFL) & O_NONBLOCK);
	SHIM(close)(device);
}
