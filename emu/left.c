/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files whose command descriptor somebody else has when this process closes its last one.
 *
 * As in the kernel, such a file stays open: what is in it can be imported yet, and is used.  A
 * thread that does nothing else waits until the last descriptor is gone, wherever it is.
 *
 * Threads: any.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include "emu/card.h"
#include "emu/emu.h"
#include "emu/left.h"

struct left { struct uv_file *uv; int watch; };

static void *await_return(void *arg)
{
	struct left left = *(struct left *)arg;

	free(arg);
	card_is_out(left.watch, true);
	close(left.watch);
	emu_close(left.uv);
	return NULL;
}

static bool wait_for(struct uv_file *uv, int watch)
{
	struct left *left = malloc(sizeof *left);
	sigset_t all, before;
	pthread_t thread;
	int error;

	if (!left)
		return false;
	*left = (struct left){ uv, watch };
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&thread, NULL, await_return, left);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error)
		free(left);
	else
		pthread_detach(thread);
	return !error;
}

bool left_is_open(struct uv_file *uv, int watch)
{
	if (watch < 0)
		return false;
	if (card_is_out(watch, false) && uv_file_is_wanted(uv) && wait_for(uv, watch))
		return true;
	close(watch);
	return false;
}

int emu_fd_create(bool closes_on_exec)
{
	return card_create(EMU_UVERBS_NAME, closes_on_exec);
}
