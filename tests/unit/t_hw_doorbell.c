/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doorbell records, doorbell registers and arm words that the real libmlx5 wrote mean what
 * the rules say.
 *
 * Method: tables below fixtures/, one row a line, "what was posted | the bytes".  They were
 * recorded with the WQEs that t_hw_golden.c reads; see there for the folder.  A folder
 * without a row is a failure.
 */
#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "hw-models/mlx5_doorbell.h"
#include "hw-models/mlx5_wqe.h"

#ifndef VERBENA_FIXTURES
#define VERBENA_FIXTURES "fixtures"
#endif
#define LINE_BYTES 512

/* The eight bytes that @hex spells. */
static void bytes_parse(const char *hex, void *out)
{
	uint8_t *byte = out;

	cr_assert(strlen(hex) == 16, "'%s' is not 8 bytes", hex);
	for (unsigned i = 0; i < 8; i++)
		cr_assert(sscanf(hex + 2 * i, "%2hhx", &byte[i]) == 1, "'%s' is not hex", hex);
}

static unsigned table_read(const char *path, void (*check)(const char *line))
{
	FILE *file = fopen(path, "r");
	char line[LINE_BYTES];
	unsigned rows = 0;

	cr_assert(file, "%s can't be opened", path);
	while (fgets(line, sizeof line, file)) {
		if (*line == '#')
			continue;
		check(line);
		rows++;
	}
	fclose(file);
	return rows;
}

static void each_row(const char *kind, void (*check)(const char *line))
{
	const char *folder = getenv("VERBENA_FIXTURES");
	char pattern[4096];
	glob_t found;

	snprintf(pattern, sizeof pattern, "%s/%s/*.txt", folder ? folder : VERBENA_FIXTURES, kind);
	cr_assert(glob(pattern, 0, NULL, &found) == 0, "no fixture matches %s", pattern);
	for (size_t i = 0; i < found.gl_pathc; i++)
		cr_expect(table_read(found.gl_pathv[i], check), "%s is empty", found.gl_pathv[i]);
	globfree(&found);
}

static void check_record(const char *line)
{
	struct mlx5_db_qp record;
	unsigned receives, blocks;
	char hex[17];

	cr_assert(sscanf(line, "%*s %u %u | %16s", &receives, &blocks, hex) == 3, "%s", line);
	bytes_parse(hex, &record);
	cr_expect(mlx5_db_qp_rq_produced(&record) == receives, "receives: %s", line);
	cr_expect(mlx5_db_qp_sq_produced(&record) == blocks, "blocks: %s", line);
}

Test(doorbell, records_count_receives_and_blocks)
{
	each_row("doorbell", check_record);
}

static void check_register(const char *line)
{
	unsigned opcode, index, qpn, ds, at, copied;
	struct mlx5_ctrl ctrl = { 0 };
	char hex[17];

	cr_assert(sscanf(line, "%*s %x %x %x %u | %x %u %16s", &opcode, &index, &qpn, &ds, &at,
			 &copied, hex) == 7, "%s", line);
	bytes_parse(hex, &ctrl);
	cr_expect(mlx5_ctrl_opcode(&ctrl) == opcode, "opcode: %s", line);
	cr_expect(mlx5_ctrl_wqe_index(&ctrl) == index, "index: %s", line);
	cr_expect(mlx5_ctrl_qpn(&ctrl) == qpn, "QPN: %s", line);
	cr_expect(mlx5_ctrl_ds(&ctrl) == ds, "ds: %s", line);
	cr_expect(at >= MLX5_UAR_SEND_FIRST && at % MLX5_UAR_SEND_BYTES == 0, "where: %s", line);
	cr_expect(at + copied <= MLX5_UAR_BYTES && copied <= MLX5_UAR_SEND_BYTES, "how much: %s",
		  line);
}

Test(doorbell, registers_get_the_last_control_segment)
{
	each_row("uar", check_register);
}

static void check_arm(const char *line)
{
	unsigned polled, events, solicited, cqn;
	char record_hex[17], uar_hex[17];
	struct mlx5_db_cq record;
	struct mlx5_uar_arm uar;

	cr_assert(sscanf(line, "%u %u %u %x | %16s %16s", &polled, &events, &solicited, &cqn,
			 record_hex, uar_hex) == 6, "%s", line);
	bytes_parse(record_hex, &record);
	bytes_parse(uar_hex, &uar);
	cr_expect(mlx5_db_cq_consumed(&record) == polled, "consumed: %s", line);
	cr_expect(mlx5_db_cq_arm_sn(&record) == events, "sequence number: %s", line);
	cr_expect(mlx5_db_cq_arm_solicited(&record) == solicited, "solicited: %s", line);
	cr_expect(mlx5_db_cq_arm_consumed(&record) == polled, "consumed when armed: %s", line);
	cr_expect(mlx5_uar_arm_arm_sn(&uar) == events, "register, sequence number: %s", line);
	cr_expect(mlx5_uar_arm_arm_solicited(&uar) == solicited, "register, solicited: %s", line);
	cr_expect(mlx5_uar_arm_arm_consumed(&uar) == polled, "register, consumed: %s", line);
	cr_expect(mlx5_uar_arm_cqn(&uar) == cqn, "register, CQN: %s", line);
}

Test(doorbell, arm_words_say_from_where_and_for_what)
{
	each_row("arm", check_arm);
}
