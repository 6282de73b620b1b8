/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows that this program can measure, by the file that has them.  bench.py says what each
 * one means and what it should reach. */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

/* local.c: one thread, one process */
void row_write_8(void);
void row_write_8_alone(void);
void row_send_8(void);
void row_send_8_alone(void);
void row_batch(void);
void row_write_1m(void);

/* control.c: what a program does before it sends */
void row_register(void);
void row_register_large(void);
void row_open(void);

/* scale.c: 16,384 queue pairs */
void row_round_robin(void);
void row_random(void);
void row_idle(void);
void row_connect(void);

/* frames.c: Ethernet */
void row_frame(void);

/* remote.c: two processes that know when to look */
void row_pair_write_1m(void);
void row_pair_send(void);
void row_pair_write(void);
void row_pair_read(void);
void row_pair_fetch_add(void);

/* waiting.c: two processes that wait for events, or for a CPU */
void row_event(void);
void row_unarmed(void);
void row_crowd(void);
#endif
