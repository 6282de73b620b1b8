/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a program that may not move the memory of other processes, as in a container whose seccomp
 * profile forbids it: walled PROGRAM [ARGUMENT...]
 *
 * process_vm_readv() and process_vm_writev() fail with EPERM, for what it starts too.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define ROWS(a) (sizeof(a) / sizeof *(a))

static int wall_up(void)
{
	struct sock_filter row[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { ROWS(row), row };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

static int stands(void)
{
	char from = 1, to = 0;
	struct iovec there = { &from, 1 }, here = { &to, 1 };

	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) < 0 && errno == EPERM;
}

int main(int argc, char **argv)
{
	if (argc < 2 || wall_up() || !stands()) {
		fprintf(stderr, "walled: %s\n", argc < 2 ? "no program" : strerror(errno));
		return 2;
	}
	execvp(argv[1], argv + 1);
	fprintf(stderr, "walled: %s: %s\n", argv[1], strerror(errno));
	return 2;
}
