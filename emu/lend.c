/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of the application that lend the device their time; see emu.h.
 *
 * Threads: any, at any moment.
 */
#include <pthread.h>
#include "emu/emu.h"
#include "emu/engine/engine.h"
#include "emu/lenders.h"
#include "include/base/cancel.h"

void emu_rang(uint32_t qpn)
{
	struct engine *e = lender_enter();

	if (!e)
		return;
	engine_rang(e, qpn);
	lender_leave();
}

void emu_posted_recv(uint32_t qpn)
{
	struct engine *e = lender_enter();

	if (!e)
		return;
	engine_posted_recv(e, qpn);
	lender_leave();
}

void emu_lend(void)
{
	struct engine *e = lender_enter();

	if (!e)
		return;
	engine_lend(e);
	lender_leave();
}

static void leave(void *ctx)
{
	(void)ctx;
	lender_leave();
}

LEFT_BY_CANCELLATION
int emu_doze(int fd)
{
	struct engine *e = lender_enter();
	volatile int error = 0;

	if (!e)
		return 0;
	pthread_cleanup_push(leave, NULL);
	error = engine_doze(e, fd);
	pthread_cleanup_pop(1);
	return error;
}
