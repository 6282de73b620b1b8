/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two that sleep on one word, and who is woken for a packet: the dozer, and the NIC thread if
 * there is nobody else.
 *
 * Method: one side's wake protocol with threads as sleepers; a packet is a flag and wake_peer().
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#include "emu/wire/wake.h"

TestSuite(wire_doze, .timeout = 50);

static struct wake_mail mail;
static struct wake w = { .mail = &mail };
static atomic_bool has_packet, has_ended;

static bool look(void *ctx)
{
	(void)ctx;
	return atomic_load(&has_packet);
}

static void packet_comes(void)
{
	atomic_store(&has_packet, true);
	wake_peer(&mail);
}

static void *nic_main(void *arg)
{
	wake_listen(&w, true, look, arg);
	wake_wait(&w, UINT64_MAX, look, arg);
	atomic_store(&has_ended, true);
	return NULL;
}

static void *dozer_main(void *arg)
{
	*(int *)arg = wake_doze(&w, look, NULL);
	return arg;
}

static pthread_t sleeper(void *(*main)(void *), void *arg)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, main, arg), 0);
	usleep(5000);				/* mostly asleep by then; no matter if not */
	return thread;
}

Test(wire_doze, the_dozer_is_woken_and_the_nic_thread_is_not)
{
	int result = 1;
	pthread_t nic = sleeper(nic_main, NULL), dozer = sleeper(dozer_main, &result);

	packet_comes();
	pthread_join(dozer, NULL);
	cr_assert_eq(result, 0);
	usleep(2000);
	cr_assert_not(atomic_load(&has_ended));
	wake_kick(&w);
	pthread_join(nic, NULL);
}

Test(wire_doze, where_the_dozer_is_gone_the_nic_thread_is_woken)
{
	pthread_t nic = sleeper(nic_main, NULL);

	atomic_store(&w.is_dozing, true);	/* as a jump out of a signal handler leaves it */
	atomic_store(&mail.wants_wake, WAKE_DOZER);
	packet_comes();
	pthread_join(nic, NULL);
}

Test(wire_doze, what_came_for_a_dozer_that_ends_is_the_nic_threads)
{
	int result;
	pthread_t nic = sleeper(nic_main, NULL), dozer = sleeper(dozer_main, &result);

	packet_comes();
	pthread_join(dozer, NULL);
	wake_doze_end(&w, look, NULL);
	pthread_join(nic, NULL);
	cr_assert_eq(mail.wants_wake, WAKE_NIC);
}

Test(wire_doze, it_can_be_roused)
{
	int result = 1;
	pthread_t dozer = sleeper(dozer_main, &result);

	wake_rouse(&w);
	pthread_join(dozer, NULL);
	cr_assert_eq(result, 0);
}

Test(wire_doze, it_can_be_cancelled)
{
	int result;
	pthread_t dozer = sleeper(dozer_main, &result);
	void *end;

	pthread_cancel(dozer);
	pthread_join(dozer, &end);
	cr_assert_eq(end, PTHREAD_CANCELED);
}

static void nothing(int number)
{
	(void)number;
}

Test(wire_doze, a_signal_interrupts_it)
{
	struct sigaction action = { .sa_handler = nothing };
	int result = 0;
	pthread_t dozer;

	sigaction(SIGUSR1, &action, NULL);
	dozer = sleeper(dozer_main, &result);
	while (pthread_tryjoin_np(dozer, NULL) == EBUSY) {
		pthread_kill(dozer, SIGUSR1);
		usleep(1000);
	}
	cr_assert_eq(result, -EINTR);
}

static bool look_and_then_one_comes(void *ctx)
{
	(void)ctx;
	wake_peer(&mail);
	return false;
}

Test(wire_doze, a_packet_right_after_the_look_ends_it)
{
	wake_listen(&w, true, look, NULL);
	cr_assert_eq(wake_doze(&w, look_and_then_one_comes, NULL), 0);
	cr_assert_eq(mail.wants_wake, 0);
}
