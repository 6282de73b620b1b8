/* SPDX-License-Identifier: BSD-2-Clause */
/* Two processes that take turns; see turns.h. */
#include "turns.h"
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench.h"

enum { TURNS = 400 };

struct place {
	struct seat seat;
	int mine, other;		/* read a turn here, give it there */
	double *best_ns;		/* shared with the parent */
};

static void turn_take(const struct place *p)
{
	char token;

	if (read(p->mine, &token, 1) != 1)
		exit(1);		/* the other one died and has said why */
}

/* When this fails, the other one has ended, which is right after its last turn. */
static void turn_give(const struct place *p)
{
	if (write(p->other, "t", 1) != 1)
		return;
}

/* One of the two processes. */
static void sit(const struct place *p)
{
	struct side side = { .run = p->seat.run };

	if (p->seat.fabric)
		setenv("VERBENA_FABRIC", p->seat.fabric, 1);
	p->seat.open(p->seat.many);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < TURNS; i++) {
			turn_take(p);
			slice(&side);
			turn_give(p);
		}
		p->best_ns[round] = side.best_ns;
		side.best_ns = 1e18;
	}
}

static pid_t place_fork(const struct place *p, const int unused[2])
{
	pid_t pid = fork();

	need(pid >= 0, "fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(unused[0]);
	close(unused[1]);
	pin(0);
	sit(p);
	_exit(0);
}

static void child_await(pid_t pid)
{
	int status;

	need(waitpid(pid, &status, 0) == pid, "waitpid");
	if (status)
		die("bench: a process of the pair ended with status 0x%x", status);
}

void take_turns(const struct seat seats[2])
{
	int pipes[2][2];
	double *best_ns = memory_shared(2 * ROUNDS * sizeof *best_ns);
	struct place places[2];
	pid_t pid[2];

	need(!pipe(pipes[0]) && !pipe(pipes[1]), "pipe");
	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; i < 2; i++)
		places[i] = (struct place){ seats[i], pipes[i][0], pipes[!i][1],
					    best_ns + i * ROUNDS };
	for (int i = 0; i < 2; i++)	/* without the ends that it does not use */
		pid[i] = place_fork(&places[i], (int[2]){ pipes[i][1], pipes[!i][0] });
	turn_give(&places[1]);		/* the subject begins */
	for (int i = 0; i < 4; i++)
		close(pipes[i / 2][i % 2]);
	for (int i = 0; i < 2; i++)
		child_await(pid[i]);
	for (int i = 0; i < ROUNDS; i++)
		tell_round(best_ns[i], best_ns[ROUNDS + i]);
}
