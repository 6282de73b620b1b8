/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A toy NIC: the least that posting, executing and polling can cost on this machine.
 *
 * It has what no NIC can do without: a 64-byte descriptor and a doorbell, checks of the
 * queue's state, of both keys and of the sequence, a copy, a 64-byte completion with an owner
 * bit, and a poll that makes a work completion of it, with a spinlock around each queue.  It has
 * nothing else: no errors worth the name, no packets, no other process.  The yardstick of rows 1,
 * 1b and 2.
 *
 * Threads: post and poll any; ring one at a time.
 */
#ifndef BENCH_TOY_H
#define BENCH_TOY_H
#include <stdint.h>

struct toy_queue;
struct toy_cq;

struct toy_memory { uint64_t addr; uint32_t bytes, key; };

struct toy_done {
	uint64_t id;
	uint32_t status, opcode, bytes, qpn, peer_qpn, imm, vendor, flags;
	uint16_t pkey, slid;
	uint8_t level, path;
};

enum toy_opcode { TOY_WRITE = 8, TOY_SEND = 10, TOY_RECV = 128 };

struct toy_cq *toy_cq_new(uint32_t entries);
/* Two connected queues; completions of both go to @cq. */
void toy_pair_new(struct toy_cq *cq, uint32_t depth, struct toy_queue *out[2]);
/* Returns the key, good for everything. */
uint32_t toy_register(void *at, uint64_t bytes);

/* 0, or -1: the queue is full.  A WRITE goes to @remote; a SEND to the peer's next receive. */
int toy_post(struct toy_queue *q, enum toy_opcode opcode, uint64_t id,
	     const struct toy_memory *local, uint64_t remote_addr, uint32_t remote_key);
int toy_post_recv(struct toy_queue *q, uint64_t id, const struct toy_memory *local);
void toy_ring(struct toy_queue *q);
int toy_poll(struct toy_cq *cq, int count, struct toy_done *out);
#endif
