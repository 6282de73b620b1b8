/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring's file, its records, and the two ends.
 */
#include "emu/wire/ring.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "emu/fabric/fabric.h"
#include "emu/mem/mem.h"

#define LINE_BYTES	64u

/*
 * A record: this, then the groups that `flags` names, then the payload; right behind if all
 * fits into one line, else from the next line on.  An 8-byte SEND or WRITE is one line.
 */
struct record {
	_Atomic uint64_t commit;	/* key + position */
	uint32_t opcode_psn;		/* [31:24] and [23:0], as in the BTH, and so on */
	uint32_t flags_dest_qpn;
	uint32_t syndrome_src_qpn;
	uint32_t msn;
	uint16_t pkey, mtu_bytes;
	uint32_t packet_count;
	uint32_t imm;
	uint32_t payload_bytes;
};
static_assert(sizeof(struct record) == 40, "with RETH and 8 bytes of payload one line");

struct record_reth { uint64_t va; uint32_t rkey, dma_bytes; };
struct record_atomic { uint64_t swap_add, compare, original; };
static_assert(sizeof(struct ib_extra) % 8 == 0, "a group of the record as it is");

enum record_flag {
	RECORD_SOLICITED = 1, RECORD_WANTS_ACK = 2,
	RECORD_RETH = 4, RECORD_ATOMIC = 8, RECORD_GIDS = 16,
	RECORD_EXTRA = 32,
	RECORD_FLAGS = 63,
};
#define NUMBER_MASK	0xffffffu

static size_t groups_bytes(unsigned flags)
{
	return (flags & RECORD_RETH ? sizeof(struct record_reth) : 0) +
	       (flags & RECORD_ATOMIC ? sizeof(struct record_atomic) : 0) +
	       (flags & RECORD_GIDS ? 32 : 0) +
	       (flags & RECORD_EXTRA ? sizeof(struct ib_extra) : 0);
}

static size_t lines(size_t bytes)
{
	return (bytes + LINE_BYTES - 1) & ~(size_t)(LINE_BYTES - 1);
}

static size_t payload_offset(unsigned flags, size_t payload_bytes)
{
	size_t header_bytes = sizeof(struct record) + groups_bytes(flags);

	return header_bytes + payload_bytes <= LINE_BYTES ? header_bytes : lines(header_bytes);
}

static void *record_at(const struct ring_map *map, uint64_t position)
{
	return map->data + (position & (map->bytes - 1));
}

/* The file and its mappings */

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* The head page, the data, and the data once more. */
static int map_twice(struct ring_map *map, int fd, size_t bytes)
{
	size_t page = page_bytes();
	uint8_t *base, *again;

	base = mmap(NULL, page + 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		    -1, 0);
	if (base == MAP_FAILED)
		return -errno;
	again = base + page + bytes;
	if (mmap(base, page + bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
		 fd, 0) == MAP_FAILED ||
	    mmap(again, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
		 fd, (off_t)page) == MAP_FAILED) {
		int rc = -errno;

		munmap(base, page + 2 * bytes);
		return rc;
	}
	map->head = (void *)base;
	map->data = base + page;
	map->bytes = bytes;
	return 0;
}

static void unmap(struct ring_map *map)
{
	if (map->head)
		munmap(map->head, page_bytes() + 2 * map->bytes);
	map->head = NULL;
}

static uint64_t random_key(void)
{
	struct timespec t;
	uint64_t key;

	if (getrandom(&key, sizeof key, GRND_NONBLOCK) == sizeof key)
		return key;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return ((uint64_t)t.tv_nsec << 32 ^ (uint64_t)t.tv_sec) * 0x9e3779b97f4a7c15ull;
}

/* The largest size that there is room for. */
static int reserve(int fd, size_t *bytes_out)
{
	int rc = -ENOSPC;

	for (size_t bytes = RING_BYTES_MAX; rc == -ENOSPC && bytes >= RING_BYTES_MIN; bytes /= 2) {
		rc = fabric_file_reserve(fd, page_bytes() + bytes);
		*bytes_out = bytes;
	}
	return rc;
}

static int create(struct ring_map *map, int fd)
{
	size_t bytes = 0;
	int rc = reserve(fd, &bytes);

	if (rc == 0)
		rc = map_twice(map, fd, bytes);
	if (rc)
		return rc;
	map->key = random_key();
	map->head->layout = RING_LAYOUT;
	map->head->bytes = (uint32_t)bytes;
	map->head->key = map->key;
	map->head->magic = RING_MAGIC;
	return 0;
}

int ring_tx_create(struct ring_tx *r, const char *path_new, const char *path)
{
	int fd, rc;

	memset(r, 0, sizeof *r);
	fd = open(path_new, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	rc = create(&r->map, fd);
	close(fd);
	if (rc == 0 && rename(path_new, path) < 0)
		rc = -errno;
	if (rc) {
		unlink(path_new);
		unmap(&r->map);
	}
	return rc;
}

void ring_tx_close(struct ring_tx *r)
{
	unmap(&r->map);
}

static bool size_is_valid(const struct ring_head *head, uint64_t file_bytes)
{
	uint64_t bytes = head->bytes;

	return head->magic == RING_MAGIC && head->layout == RING_LAYOUT &&
	       bytes >= RING_BYTES_MIN && bytes <= RING_BYTES_MAX && !(bytes & (bytes - 1)) &&
	       file_bytes == page_bytes() + bytes;
}

static int map_checked(struct ring_map *map, int fd)
{
	struct ring_head head;
	struct stat st;
	int rc;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || pread(fd, &head, sizeof head, 0) != sizeof head ||
	    !size_is_valid(&head, (uint64_t)st.st_size))
		return -EBADMSG;
	rc = map_twice(map, fd, head.bytes);
	map->key = head.key;
	return rc;
}

int ring_rx_open(struct ring_rx *r, const char *path)
{
	int fd, rc;

	memset(r, 0, sizeof *r);
	fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ELOOP ? -EBADMSG : -errno;
	rc = map_checked(&r->map, fd);
	close(fd);
	return rc;
}

void ring_rx_refuse(struct ring_rx *r)
{
	atomic_store_explicit(&r->map.head->tail, RING_TAIL_REFUSED, memory_order_release);
}

void ring_rx_close(struct ring_rx *r)
{
	unmap(&r->map);
}

/* The writer */

static unsigned record_flags(const struct ring_tx *r, const struct ib_packet *p)
{
	unsigned flags = 0;

	if (p->is_solicited)
		flags |= RECORD_SOLICITED;
	if (p->wants_ack)
		flags |= RECORD_WANTS_ACK;
	if (p->va || p->rkey || p->dma_bytes)
		flags |= RECORD_RETH;
	if (p->swap_add || p->compare || p->original)
		flags |= RECORD_ATOMIC;
	if (!r->has_gids || memcmp(r->gids, p->sgid, 16) || memcmp(r->gids + 16, p->dgid, 16))
		flags |= RECORD_GIDS;
	if (p->opcode & IB_TRANSPORT_MASK & ~IB_UC)
		flags |= RECORD_EXTRA;
	return flags;
}

/* Everything but the commit word. */
static void record_write(struct record *record, const struct ib_packet *p, unsigned flags)
{
	uint8_t *group = (uint8_t *)(record + 1);

	record->opcode_psn = (uint32_t)p->opcode << 24 | (p->psn & NUMBER_MASK);
	record->flags_dest_qpn = flags << 24 | (p->dest_qpn & NUMBER_MASK);
	record->syndrome_src_qpn = (uint32_t)p->aeth_syndrome << 24 | (p->src_qpn & NUMBER_MASK);
	record->msn = p->msn & NUMBER_MASK;
	record->pkey = p->pkey;
	record->mtu_bytes = (uint16_t)p->mtu_bytes;
	record->packet_count = p->packet_count;
	record->imm = p->imm;
	record->payload_bytes = p->payload_bytes;
	if (flags & RECORD_RETH) {
		struct record_reth reth = { p->va, p->rkey, p->dma_bytes };

		group = (uint8_t *)memcpy(group, &reth, sizeof reth) + sizeof reth;
	}
	if (flags & RECORD_ATOMIC) {
		struct record_atomic atomic = { p->swap_add, p->compare, p->original };

		group = (uint8_t *)memcpy(group, &atomic, sizeof atomic) + sizeof atomic;
	}
	if (flags & RECORD_GIDS) {
		memcpy(group, p->sgid, 16);
		memcpy(group + 16, p->dgid, 16);
		group += 32;
	}
	if (flags & RECORD_EXTRA)
		memcpy(group, &p->extra, sizeof p->extra);
}

static enum wire_sent reserve_room(struct ring_tx *r, size_t total)
{
	if (r->position + total - r->tail_seen <= r->map.bytes)
		return WIRE_SENT;
	r->tail_seen = atomic_load_explicit(&r->map.head->tail, memory_order_acquire);
	/* RING_TAIL_REFUSED among others. */
	if (r->position - r->tail_seen > r->map.bytes)
		return WIRE_NOBODY;
	return r->position + total - r->tail_seen <= r->map.bytes ? WIRE_SENT : WIRE_FULL;
}

enum wire_sent ring_tx_has_room(struct ring_tx *r, const struct ib_packet *p)
{
	size_t offset = payload_offset(record_flags(r, p), p->payload_bytes);

	return reserve_room(r, lines(offset + p->payload_bytes));
}

static enum wire_sent payload_copy(uint8_t *to, const struct ib_packet *p)
{
	struct iovec dst = { to, p->payload_bytes };

	switch (mem_copy_spans(&dst, 1, 0, p->span, p->span_count, 0, p->payload_bytes)) {
	case MEM_SIDE_SRC:
		return WIRE_UNREADABLE;
	case MEM_SIDE_DST:
		return WIRE_NOBODY;	/* somebody cut the file */
	case MEM_SIDE_NONE:
		break;
	}
	return WIRE_SENT;
}

enum wire_sent ring_tx_send(struct ring_tx *r, const struct ib_packet *p)
{
	unsigned flags = record_flags(r, p);
	size_t offset = payload_offset(flags, p->payload_bytes);
	size_t total = lines(offset + p->payload_bytes);
	enum wire_sent sent = reserve_room(r, total);
	struct record *record;

	assert(p->payload_bytes <= RING_PAYLOAD_MAX);
	if (sent != WIRE_SENT)
		return sent;
	record = record_at(&r->map, r->position);
	if (p->payload_bytes) {
		sent = payload_copy((uint8_t *)record + offset, p);
		if (sent != WIRE_SENT)
			return sent;	/* nothing is published: the commit word is still old */
	}
	record_write(record, p, flags);
	atomic_store_explicit(&record->commit, r->map.key + r->position, memory_order_release);
	r->position += total;
	if (flags & RECORD_GIDS) {
		memcpy(r->gids, p->sgid, 16);
		memcpy(r->gids + 16, p->dgid, 16);
		r->has_gids = true;
	}
	return WIRE_SENT;
}

bool ring_tx_is_taken(const struct ring_tx *r)
{
	uint64_t tail = atomic_load_explicit(&r->map.head->tail, memory_order_acquire);

	return r->position == tail || r->position - tail > r->map.bytes;
}

/* The reader */

bool ring_rx_has_packet(const struct ring_rx *r)
{
	uint64_t position = atomic_load_explicit(&r->position, memory_order_relaxed);
	const struct record *record = record_at(&r->map, position);

	return atomic_load_explicit(&record->commit, memory_order_acquire) ==
	       r->map.key + position;
}

/* Field by field: a compound literal clears the whole structure first, which costs more than all
 * the rest. */
static void packet_read(struct ib_packet *out, const struct record *copy, unsigned flags)
{
	out->opcode = (uint8_t)(copy->opcode_psn >> 24);
	out->is_solicited = flags & RECORD_SOLICITED;
	out->wants_ack = flags & RECORD_WANTS_ACK;
	out->aeth_syndrome = (uint8_t)(copy->syndrome_src_qpn >> 24);
	out->pkey = copy->pkey;
	out->mtu_bytes = copy->mtu_bytes;
	out->packet_count = copy->packet_count ? copy->packet_count : 1;
	out->psn = copy->opcode_psn & NUMBER_MASK;
	out->dest_qpn = copy->flags_dest_qpn & NUMBER_MASK;
	out->src_qpn = copy->syndrome_src_qpn & NUMBER_MASK;
	out->msn = copy->msn & NUMBER_MASK;
	out->imm = copy->imm;
	out->payload_bytes = copy->payload_bytes;
	out->span_count = copy->payload_bytes ? 1 : 0;
}

static void groups_read(struct ring_rx *r, struct ib_packet *out, const uint8_t *group,
			unsigned flags)
{
	struct record_reth reth = { 0 };
	struct record_atomic atomic = { 0 };

	if (flags & RECORD_RETH) {
		memcpy(&reth, group, sizeof reth);
		group += sizeof reth;
	}
	if (flags & RECORD_ATOMIC) {
		memcpy(&atomic, group, sizeof atomic);
		group += sizeof atomic;
	}
	if (flags & RECORD_GIDS) {
		memcpy(r->gids, group, 32);
		group += 32;
	}
	if (flags & RECORD_EXTRA)
		memcpy(&out->extra, group, sizeof out->extra);
	else
		memset(&out->extra, 0, sizeof out->extra);
	out->va = reth.va;
	out->rkey = reth.rkey;
	out->dma_bytes = reth.dma_bytes;
	out->swap_add = atomic.swap_add;
	out->compare = atomic.compare;
	out->original = atomic.original;
	memcpy(out->sgid, r->gids, 16);
	memcpy(out->dgid, r->gids + 16, 16);
}

int ring_rx_take(struct ring_rx *r, struct ib_packet *out)
{
	uint8_t *at = record_at(&r->map, atomic_load_explicit(&r->position, memory_order_relaxed));
	struct record copy;
	unsigned flags;
	size_t offset;

	if (!ring_rx_has_packet(r))
		return 0;
	/* Once: behind this point the compiler can't tell the copy from anything else, so what is
	 * checked is what is used. */
	memcpy(&copy, at, sizeof copy);
	__asm__ volatile("" : "+m" (copy));
	flags = copy.flags_dest_qpn >> 24;
	if (flags & ~(unsigned)RECORD_FLAGS || copy.payload_bytes > RING_PAYLOAD_MAX)
		return -EBADMSG;
	/* Both are bounded now, and together less than the smallest ring. */
	offset = payload_offset(flags, copy.payload_bytes);
	r->taken_bytes = lines(offset + copy.payload_bytes);
	packet_read(out, &copy, flags);
	groups_read(r, out, at + sizeof copy, flags);
	r->span = (struct iovec){ at + offset, copy.payload_bytes };
	out->span = &r->span;
	return 1;
}

void ring_rx_release(struct ring_rx *r)
{
	uint64_t position = atomic_load_explicit(&r->position, memory_order_relaxed) +
			    r->taken_bytes;

	atomic_store_explicit(&r->position, position, memory_order_relaxed);
	atomic_store_explicit(&r->map.head->tail, position, memory_order_release);
}
