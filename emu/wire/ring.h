/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One direction of a pair of functions: a byte ring with one writer and one reader, in a file.
 *
 * Used by wire_shm.c, which decides who has rings with whom.  A ring holds records of whole
 * cache lines at positions that only grow.  A record is published by one release store of its
 * first word, which must equal the ring's random key plus the record's position: old bytes,
 * whatever an application sent, can't look like a record, and a small packet costs the reader
 * one cache line.  The data is mapped twice in a row, so that a record never wraps.
 *
 * The writer distrusts the tail, the reader everything.  Must not allocate, sleep or make a
 * system call outside create, open and close.
 * Threads: the caller serialises, except for ring_rx_has_packet().
 */
#ifndef EMU_WIRE_RING_H
#define EMU_WIRE_RING_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "emu/wire/wire.h"

#define RING_MAGIC		0x676e697256657262ull
#define RING_LAYOUT		1u
#define RING_BYTES_MAX		(512u << 10)
#define RING_BYTES_MIN		(128u << 10)	/* where shared memory is short */
#define RING_PAYLOAD_MAX	(64u << 10)
/* The reader has dropped the ring: as far from every position as can be. */
#define RING_TAIL_REFUSED	(1ull << 63)

/* The first page of the file. */
struct ring_head {
	uint64_t magic;
	uint32_t layout;
	uint32_t bytes;			/* of data; a power of two */
	uint64_t key;
	_Alignas(64) _Atomic uint64_t tail;	/* the reader's position; only it writes here */
};

struct ring_map {
	struct ring_head *head;		/* NULL: no ring */
	uint8_t *data;
	uint64_t bytes, key;		/* as checked: not read from the file again */
};

struct ring_tx {
	struct ring_map map;
	uint64_t position;		/* of the next record */
	uint64_t tail_seen;
	uint8_t gids[32];		/* of the last packet: records carry only changes */
	bool has_gids;
};

struct ring_rx {
	struct ring_map map;
	_Atomic uint64_t position;	/* of the next record; written by the reader alone */
	uint64_t taken_bytes;		/* of the record being looked at */
	uint8_t gids[32];
	struct iovec span;
};

/* 0 or -errno: -ENOSPC, -EMFILE and others of open, fallocate, mmap.  The file is complete when
 * it appears as @path; until then it is @path_new. */
int ring_tx_create(struct ring_tx *r, const char *path_new, const char *path);
/* WIRE_SENT: ring_tx_send() of this packet will find room. */
enum wire_sent ring_tx_has_room(struct ring_tx *r, const struct ib_packet *p);
/* WIRE_NOBODY: the reader refused the ring, or spoilt it: close it. */
enum wire_sent ring_tx_send(struct ring_tx *r, const struct ib_packet *p);
/* All that was sent has been taken (or refused). */
bool ring_tx_is_taken(const struct ring_tx *r);
void ring_tx_close(struct ring_tx *r);

/* -EBADMSG: the file is no ring; else -errno of open, mmap. */
int ring_rx_open(struct ring_rx *r, const char *path);
/* 1, 0, or -EBADMSG: the writer is broken, drop the ring. */
int ring_rx_take(struct ring_rx *r, struct ib_packet *out);
void ring_rx_release(struct ring_rx *r);
/* Any thread while the ring is open.  True too for a packet that is just being taken. */
bool ring_rx_has_packet(const struct ring_rx *r);
void ring_rx_refuse(struct ring_rx *r);
void ring_rx_close(struct ring_rx *r);
#endif
