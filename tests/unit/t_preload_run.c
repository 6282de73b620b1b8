/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbena run: what the program sees of it is an environment and nothing else.
 * Method: run it with small shell scripts; look at status and output.
 */
#include <signal.h>
#include "shim_world.h"

static char output[4096];

/* Status of verbena with @arguments (a shell command line); its output in `output`. */
static int run(const char *arguments)
{
	char command[PATH_MAX + 512];
	size_t bytes;
	FILE *pipe;
	int status;

	snprintf(command, sizeof command, "exec %s %s", build_path("bin/verbena"), arguments);
	pipe = popen(command, "r");
	cr_assert(pipe);
	bytes = fread(output, 1, sizeof output - 1, pipe);
	output[bytes] = 0;
	status = pclose(pipe);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static unsigned count_of(const char *text)
{
	unsigned count = 0;

	for (const char *at = output; (at = strstr(at, text)); at++)
		count++;
	return count;
}

Test(preload_run, exit_status_is_the_programs)
{
	cr_expect_eq(run("run true"), 0);
	cr_expect_eq(run("run -- sh -c 'exit 7'"), 7);
	cr_expect_eq(run("run --quiet sh -c 'exit 255'"), 255);
}

Test(preload_run, signals_are_the_programs)
{
	cr_expect_eq(run("run sh -c 'kill -TERM $$'"), -SIGTERM);
	cr_expect_eq(run("run sh -c 'kill -KILL $$'"), -SIGKILL);
}

Test(preload_run, no_process_stays_between)
{
	char expected[32];

	cr_expect_eq(run("run sh -c 'echo $PPID'"), 0);
	snprintf(expected, sizeof expected, "%d\n", getpid());
	cr_expect_str_eq(output, expected);
}

Test(preload_run, programs_that_cannot_start_give_the_shells_status)
{
	cr_expect_eq(run("run /nonexistent/program 2>&1"), 127);
	cr_expect_str_eq(output, "verbena: /nonexistent/program: No such file or directory\n");
	cr_expect_eq(run("run /etc 2>&1"), 126);
	cr_expect_str_eq(output, "verbena: /etc: Permission denied\n");
}

Test(preload_run, wrong_use_is_one_line_and_status_2)
{
	static const char *const wrong[] = {
		"", "walk", "run", "run --", "run --nic", "run --nic connectx-0 true",
		"run --nic= true", "run --node 0 true", "run --node 251 true", "run --node 1x true",
		"run --node '' true", "run --fabric ../x true", "run --fabric '' true",
		"run --quiet=1 true", "run --unknown true", "run -x true", "run --ni hw true",
	};
	char line[128];

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		snprintf(line, sizeof line, "%s 2>&1", wrong[i]);
		cr_expect_eq(run(line), 2, "verbena %s", wrong[i]);
		cr_expect_eq(count_of("\n"), 1, "verbena %s: %s", wrong[i], output);
	}
}

Test(preload_run, help_and_version_are_answers)
{
	cr_expect_eq(run("--help"), 0);
	cr_expect(count_of("--nic"));
	cr_expect_eq(run("--version"), 0);
	cr_expect_eq(count_of("\n"), 1);
}

Test(preload_run, options_become_the_environment)
{
	cr_expect_eq(run("run --nic connectx-5 --fabric=f.1 --node 9 --explain --quiet sh -c "
			 "'echo $VERBENA_NIC $VERBENA_FABRIC $VERBENA_NODE $VERBENA_EXPLAIN "
			 "$VERBENA_QUIET'"), 0);
	cr_expect_str_eq(output, "connectx-5 f.1 9 1 1\n");
}

Test(preload_run, options_of_the_program_are_the_programs)
{
	cr_expect_eq(run("run echo --nic x -- y"), 0);
	cr_expect_str_eq(output, "--nic x -- y\n");
}

Test(preload_run, other_preloads_stay_behind_the_shim)
{
	/* A verbena built with a sanitizer would object to what stands in front of it. */
	setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
	setenv("LD_PRELOAD", "libdl.so.2 libpthread.so.0", 1);
	cr_expect_eq(run("run sh -c 'echo $LD_PRELOAD'"), 0);
	unsetenv("LD_PRELOAD");
	cr_expect(strstr(output, "libverbena_preload.so:libdl.so.2:libpthread.so.0\n"), "%s",
		  output);
}

Test(preload_run, nested_runs_load_one_shim)
{
	char line[2 * PATH_MAX];

	snprintf(line, sizeof line, "run --node 1 %s run --node 2 sh -c "
		 "'echo $LD_PRELOAD $VERBENA_NODE'", build_path("bin/verbena"));
	cr_expect_eq(run(line), 0);
	cr_expect_eq(count_of("libverbena_preload.so"), 1, "%s", output);
	cr_expect(strstr(output, " 2\n"), "%s", output);
}

Test(preload_run, the_program_sees_the_device)
{
	cr_expect_eq(run("run cat /sys/class/infiniband_verbs/uverbs0/ibdev"), 0);
	cr_expect_str_eq(output, "mlx5_0\n");
	cr_expect_eq(run("run sh -c '[ -c /dev/infiniband/uverbs0 ]'"), 0);
}

Test(preload_run, with_hw_the_program_sees_the_host)
{
	int is_there = access("/sys/class/infiniband_verbs", F_OK) == 0;

	cr_expect_eq(run("run --nic hw test -e /sys/class/infiniband_verbs"), !is_there);
}
