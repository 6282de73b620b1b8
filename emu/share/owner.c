/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The owner's side of a function's shared segment: making it, places in it, and being sure that
 * nobody looks any more.
 *
 * No file stays open: the application may close descriptors that it does not know, and a forked
 * child would keep the memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "emu/mem/mem.h"
#include "emu/share/share_local.h"
#include "include/base/sparse.h"

#define PATIENCE_NS	UINT64_C(5000000000)

void share_path(const struct share *s, unsigned slot, uint32_t generation, char *out, size_t bytes)
{
	snprintf(out, bytes, "%s/%u-%u-share", fabric_dir(s->fabric), slot, generation);
}

void share_keep_private(void *at)
{
	madvise(at, SHARE_BYTES, MADV_DONTFORK);
	madvise(at, SHARE_BYTES, MADV_DONTDUMP);
}

/* A larger file than the limit allows would end the process by SIGXFSZ. */
static bool file_limit_allows(uint64_t bytes)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) &&
	       (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= bytes);
}

/* A page that can't be backed faults, and the guard makes that an error; one that is in use keeps
 * what it holds. */
int share_reserve(struct share *s, uint64_t offset, uint64_t bytes)
{
	uint64_t seen;

	for (uint64_t at = offset; at < offset + bytes; at += SHARE_PAGE)
		if (mem_compare_swap((uintptr_t)s->header + at, 0, 0, &seen))
			return -ENOSPC;
	return 0;
}

static int segment_map(struct share *s, int fd)
{
	void *at;

	/* Whatever the umask says: our other processes must get in. */
	if (fchmod(fd, 0600) || ftruncate(fd, (off_t)SHARE_BYTES))
		return -errno;
	at = mmap(NULL, SHARE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	share_keep_private(at);
	s->header = at;
	s->next_page = sizeof(struct share_header) / SHARE_PAGE;
	return share_reserve(s, 0, offsetof(struct share_header, directory));
}

static int segment_make(struct share *s, const char *path)
{
	int fd, rc;

	if (!file_limit_allows(SHARE_BYTES))
		return -EFBIG;
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	rc = segment_map(s, fd);
	close(fd);
	if (rc)
		unlink(path);
	return rc;
}

static void segment_announce(struct share *s)
{
	memcpy(s->header->entry_bytes, s->entry_bytes, sizeof s->entry_bytes);
	s->header->layout = SHARE_LAYOUT;
	s->header->is_closed = s->is_closed;
	atomic_store_explicit(&s->header->magic, SHARE_MAGIC, memory_order_release);
}

int share_create(struct fabric *fabric, const size_t entry_bytes[SHARE_KIND_COUNT],
		 bool is_closed, struct share **out)
{
	struct share *s = sparse_alloc(sizeof *s);
	char path[512];
	int rc;

	if (!s)
		return -ENOMEM;
	s->fabric = fabric;
	s->self = fabric_self(fabric);
	s->generation = fabric_generation(fabric, s->self);
	s->patience_ns = PATIENCE_NS;
	s->is_closed = is_closed;
	for (int kind = 0; kind < SHARE_KIND_COUNT; kind++)
		s->entry_bytes[kind] = (uint32_t)((entry_bytes[kind] + 63) & ~(size_t)63);
	share_path(s, s->self, s->generation, path, sizeof path);
	rc = segment_make(s, path);
	if (rc) {
		share_destroy(s);
		return rc;
	}
	segment_announce(s);
	*out = s;
	return 0;
}

bool share_is_open(const struct share *s)
{
	return !s->is_closed;
}

void share_destroy(struct share *s)
{
	char path[512];

	for (unsigned slot = 0; slot < FABRIC_MEMBERS_MAX; slot++)
		if (s->peer[slot].header)
			share_peer_close(&s->peer[slot]);
	if (s->header) {
		share_path(s, s->self, s->generation, path, sizeof path);
		unlink(path);
		munmap(s->header, SHARE_BYTES);
	}
	sparse_free(s, sizeof *s);
}

static int chunk_make(struct share *s, enum share_kind kind, uint32_t chunk)
{
	_Atomic uint32_t *place = &s->header->directory[kind][chunk];
	uint64_t directory_page = (uint64_t)((uint8_t *)place - (uint8_t *)s->header) / SHARE_PAGE;
	uint64_t bytes = (uint64_t)s->entry_bytes[kind] * CHUNK_NUMBERS;
	uint32_t pages = (uint32_t)((bytes + SHARE_PAGE - 1) / SHARE_PAGE);
	int rc;

	if ((uint64_t)(s->next_page + pages) * SHARE_PAGE > SHARE_BYTES)
		return -ENOSPC;
	rc = share_reserve(s, directory_page * SHARE_PAGE, SHARE_PAGE);
	if (!rc)
		rc = share_reserve(s, (uint64_t)s->next_page * SHARE_PAGE,
				   (uint64_t)pages * SHARE_PAGE);
	if (rc)
		return rc;
	s->place[kind][chunk] = (uint16_t)s->next_page;
	atomic_store_explicit(place, s->next_page, memory_order_release);
	s->next_page += pages;
	return 0;
}

void *share_take(struct share *s, enum share_kind kind, uint32_t number)
{
	uint32_t chunk = number >> CHUNK_BITS, bytes = s->entry_bytes[kind];
	uint8_t *entry;

	if (chunk >= CHUNKS || (!s->place[kind][chunk] && chunk_make(s, kind, chunk)))
		return NULL;
	entry = (uint8_t *)s->header + (uint64_t)s->place[kind][chunk] * SHARE_PAGE +
		(uint64_t)(number % CHUNK_NUMBERS) * bytes;
	memset(entry, 0, bytes);
	return entry;
}

bool share_owns(const struct share *s, const void *entry)
{
	return (uintptr_t)entry - (uintptr_t)s->header < SHARE_BYTES;
}

/* One peer: until it is out of what it was in.  Who is not waited for any longer is put out, so
 * that it finds that when it goes on. */
static void wait_for(struct share *s, unsigned slot, struct patience *patience)
{
	_Atomic uint64_t *busy = &s->header->busy[slot].word;
	uint64_t seen = atomic_load(busy);

	while (seen & 1 && atomic_load(busy) == seen) {
		if (patience_has_more(patience, s, slot, (uint32_t)(seen >> 32)))
			continue;
		atomic_compare_exchange_strong(busy, &seen, busy_next(seen));
		return;
	}
}

void share_quiesce(struct share *s)
{
	struct patience patience = { 0 };

	/* With the one in share_begin(): it sees what we changed, or we see that it is in. */
	share_barrier();
	if (!atomic_load(&s->header->has_peers))
		return;
	for (unsigned slot = 0; slot < FABRIC_MEMBERS_MAX; slot++)
		wait_for(s, slot, &patience);
}
