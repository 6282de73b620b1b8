/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doorbell records, doorbell registers and arm words: small tables of what the rule says
 * and what libmlx5 wrote.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include "golden.h"

#define PAGE_MASK	0xfffu
#define ARM_OFFSET	0x20
#define REGISTER_BYTES	256u
#define PATH_BYTES	4096

static FILE *record_table, *uar_table;

FILE *fixture_open(const struct world *w, const char *folder, const char *name,
		   const char *suffix)
{
	char path[PATH_BYTES];
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", w->folder, folder);
	if (mkdir(path, 0777) && errno != EEXIST)
		fail(path);
	snprintf(path, sizeof path, "%s/%s/%s.%s", w->folder, folder, name, suffix);
	file = fopen(path, "w");
	if (!file)
		fail(path);
	return file;
}

static void table_close(FILE **table)
{
	if (*table && fclose(*table))
		fail("fclose");
	*table = NULL;
}

void tables_close(void)
{
	table_close(&record_table);
	table_close(&uar_table);
}

/* The tables that rows go to from now on. */
void record_table_open(const struct world *w, const char *name)
{
	tables_close();
	record_table = fixture_open(w, "doorbell", name, "txt");
	fputs("# request receives blocks | record\n", record_table);
}

/* Only send queues ring a register. */
void uar_table_open(const struct world *w, const char *name)
{
	uar_table = fixture_open(w, "uar", name, "txt");
	fputs("# request opcode index qpn ds | register bytes_copied first_8_bytes\n", uar_table);
}

static void print_bytes(FILE *out, const void *at, unsigned bytes)
{
	const uint8_t *byte = at;

	for (unsigned i = 0; i < bytes; i++)
		fprintf(out, "%02x", byte[i]);
	fputc('\n', out);
}

void record_table_row(const struct queue *q, const char *name)
{
	fprintf(record_table, "%s %u %u | ", name, q->received & 0xffff, q->produced & 0xffff);
	print_bytes(record_table, q->dv.dbrec, 8);
}

/*
 * Two registers, used in turn; the one that is not zero afterwards was rung.  A library that shares
 * them among queues tells of none that more than 8 bytes may be written to (size 0), and may know
 * better itself.
 */
void uar_clear(const struct queue *q)
{
	memset(q->dv.bf.reg, 0, 2 * REGISTER_BYTES);
}

static unsigned bytes_copied(const uint64_t *at, unsigned bytes)
{
	unsigned last = bytes / 8 - 1;

	while (last && !at[last])
		last--;
	return last ? (last * 8 + BLOCK_BYTES) / BLOCK_BYTES * BLOCK_BYTES : 8;
}

/* @last was just posted: its control segment is what rings. */
void uar_table_row(const struct queue *q, const struct request *last, const char *name)
{
	unsigned units = expect_units(q, last);
	unsigned blocks = (units * UNIT_BYTES + BLOCK_BYTES - 1) / BLOCK_BYTES;
	const uint8_t *at = q->dv.bf.reg;

	if (!*(const uint64_t *)at)
		at += REGISTER_BYTES;
	fprintf(uar_table, "%s 0x%02x 0x%04x 0x%x %u | 0x%03x %u ", name,
		expect_opcode(last->opcode), (q->produced - blocks) & 0xffff, q->qp->qp_num,
		units, (unsigned)((uintptr_t)at & PAGE_MASK),
		bytes_copied((const uint64_t *)at, REGISTER_BYTES));
	print_bytes(uar_table, at, 8);
}

/* ---- arming ---- */

static void arm_row(FILE *out, struct queue *q, const struct mlx5dv_cq *dv, unsigned events,
		    int solicited)
{
	const uint8_t *uar = dv->cq_uar;

	errno = ibv_req_notify_cq(q->cq, solicited);
	if (errno)
		fail("ibv_req_notify_cq");
	fprintf(out, "%u %u %d 0x%x | ", q->completed, events & 3, solicited, dv->cqn);
	for (unsigned i = 0; i < 8; i++)
		fprintf(out, "%02x", ((const uint8_t *)dv->dbrec)[i]);
	fputc(' ', out);
	print_bytes(out, uar + ARM_OFFSET, 8);
}

static void event_take(struct queue *q)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(q->channel, &cq, &context))
		fail("ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
}

/* Each event moves the sequence number on, and it has two bits. */
void arm_record(struct world *w)
{
	static const struct request request = { .name = "arm", .opcode = IBV_WR_SEND };
	struct queue *q = queue_open(w, &type_rc, API_OLD, false, 1);
	FILE *out = fixture_open(w, "arm", "arm", "txt");
	struct mlx5dv_cq dv = { 0 };
	struct mlx5dv_obj obj = { .cq = { .in = q->cq, .out = &dv } };

	if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ))
		fail("mlx5dv_init_obj");
	fputs("# polled events solicited cqn | record register\n", out);
	for (unsigned events = 0; events < 6; events++) {
		arm_row(out, q, &dv, events, events % 2);
		if (events == 3)
			arm_row(out, q, &dv, events, 0);	/* again: nothing has changed */
		post(q, &request, events % 3 + 1);
		event_take(q);
		queue_drain(q, events % 3 + 1);
	}
	arm_row(out, q, &dv, 6, 0);
	if (fclose(out))
		fail("fclose");
	queue_close(q);
}
