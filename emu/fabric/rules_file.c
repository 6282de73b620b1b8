/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making, growing, writing and reading the file of a member's rules.
 *
 * No file stays open: the application may close descriptors that it does not know.
 */
#include "emu/fabric/rules_file.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "emu/mem/mem.h"

#define BYTES_FIRST	((size_t)64 << 10)
#define BYTES_STEP_MIN	((size_t)64 << 10)
#define BYTES_STEP_MAX	((size_t)4 << 20)
#define BYTES_MAX	(sizeof(struct rules_head) + (size_t)RULES_UNITS_MAX * RULES_UNIT_BYTES)

/* Stores before it are seen before those behind it, and loads are made in order.  Not an
 * atomic_thread_fence(), which the thread sanitizer does not know. */
static void barrier(void)
{
	__sync_synchronize();
}

static size_t bytes_of(uint32_t units)
{
	return sizeof(struct rules_head) + (size_t)units * RULES_UNIT_BYTES;
}

static uint64_t unit_at(const struct rules_file *f, uint32_t unit)
{
	return (uintptr_t)f->head + bytes_of(unit);
}

static struct rules_record *record_at(const struct rules_file *f, uint32_t unit)
{
	return (void *)(uintptr_t)unit_at(f, unit);
}

void rules_file_close(struct rules_file *f)
{
	if (f->head)
		munmap(f->head, f->bytes);
	memset(f, 0, sizeof *f);
}

/* --- the owner --- */

static int create(struct rules_file *f, int fd, uint32_t node)
{
	struct stat st;
	void *at;
	int rc = fabric_file_reserve(fd, BYTES_FIRST);

	if (rc)
		return rc;
	/* Whatever the umask says: our other processes must get in. */
	if (fchmod(fd, 0600) || fstat(fd, &st))
		return -errno;
	at = mmap(NULL, BYTES_FIRST, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	*f = (struct rules_file){
		.head = at, .bytes = BYTES_FIRST, .node = node,
		.device = st.st_dev, .inode = st.st_ino,
	};
	f->head->layout = RULES_LAYOUT;
	f->head->node = node;
	f->head->magic = RULES_MAGIC;
	return 0;
}

int rules_file_create(struct rules_file *f, const char *path, uint32_t node)
{
	int fd, rc;

	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	rc = create(f, fd, node);
	close(fd);
	if (rc)
		unlink(path);
	return rc;
}

static int reopen(const struct rules_file *f, const char *path)
{
	int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && st.st_dev == f->device && st.st_ino == f->inode)
		return fd;
	close(fd);
	return -ESTALE;
}

static int map_more(struct rules_file *f, size_t bytes)
{
	void *at = mremap(f->head, f->bytes, bytes, MREMAP_MAYMOVE);

	if (at == MAP_FAILED)
		return -errno;
	f->head = at;
	f->bytes = bytes;
	return 0;
}

static size_t step_bytes(const struct rules_file *f)
{
	size_t bytes = f->bytes / 2;

	if (bytes < BYTES_STEP_MIN)
		return BYTES_STEP_MIN;
	return bytes < BYTES_STEP_MAX ? bytes & ~(BYTES_STEP_MIN - 1) : BYTES_STEP_MAX;
}

/* By a good deal, or where room is short by the least. */
static int grow(struct rules_file *f, const char *path)
{
	size_t bytes = f->bytes + step_bytes(f);
	int rc, fd = reopen(f, path);

	if (fd < 0)
		return fd;
	rc = fabric_file_grow(fd, f->bytes, bytes);
	if (rc == -ENOSPC || rc == -EFBIG) {
		bytes = f->bytes + (size_t)sysconf(_SC_PAGESIZE);
		rc = fabric_file_grow(fd, f->bytes, bytes);
	}
	close(fd);
	return rc ? rc : map_more(f, bytes);
}

int rules_file_extend(struct rules_file *f, const char *path, uint32_t units, uint32_t *unit_out)
{
	int rc = 0;

	if (f->end + units > RULES_UNITS_MAX)
		return -ENOSPC;
	if (bytes_of(f->end + units) > f->bytes)
		rc = grow(f, path);
	if (rc)
		return rc;
	*record_at(f, f->end) = (struct rules_record){ .units = units };
	*unit_out = f->end;
	f->end += units;
	atomic_store_explicit(&f->head->end, f->end, memory_order_release);
	return 0;
}

static void record_fill(struct rules_record *record, const struct fabric_rule *rule, uint64_t order)
{
	size_t bytes = rules_value_offset(rule->blocks);
	uint8_t *blocks = (uint8_t *)(record + 1);

	record->number = rule->number;
	record->level = rule->level;
	record->blocks = rule->blocks;
	record->continues = rule->continues;
	record->order = order;
	if (bytes) {
		memcpy(blocks, rule->mask, bytes);
		memcpy(blocks + bytes, rule->value, bytes);
	}
}

void rules_file_write(struct rules_file *f, uint32_t unit, const struct fabric_rule *rule,
		      uint64_t order)
{
	struct rules_record *record = record_at(f, unit);
	uint32_t odd = atomic_load_explicit(&record->sequence, memory_order_relaxed) | 1;

	atomic_store_explicit(&record->sequence, odd, memory_order_relaxed);
	barrier();
	if (rule)
		record_fill(record, rule, order);
	else
		record->number = 0;
	atomic_store_explicit(&record->sequence, odd + 1, memory_order_release);
}

void rules_file_log(struct rules_file *f, uint64_t change, uint32_t number, uint32_t unit)
{
	struct rules_change *c = &f->head->change[change % RULES_CHANGES];

	atomic_store_explicit(&c->number, number, memory_order_relaxed);
	atomic_store_explicit(&c->unit, unit, memory_order_relaxed);
}

/* --- a reader --- */

static int map_checked(struct rules_file *f, int fd)
{
	struct { uint64_t magic; uint32_t layout, node; } head;
	struct stat st;
	void *at;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(struct rules_head) ||
	    st.st_size > (off_t)BYTES_MAX + (off_t)BYTES_STEP_MAX ||
	    pread(fd, &head, sizeof head, 0) != sizeof head || head.magic != RULES_MAGIC ||
	    head.layout != RULES_LAYOUT || head.node > RULES_NODE_MAX)
		return -EBADMSG;
	at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	*f = (struct rules_file){
		.head = at, .bytes = (size_t)st.st_size, .node = head.node,
	};
	return 0;
}

int rules_file_open(struct rules_file *f, const char *path)
{
	int rc, fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return errno == ELOOP ? -EBADMSG : -errno;
	rc = map_checked(f, fd);
	close(fd);
	return rc;
}

int rules_file_look(struct rules_file *f)
{
	uint32_t end;
	int rc = 0;

	if (mem_load32((uintptr_t)&f->head->end, &end) || end > RULES_UNITS_MAX)
		return -EBADMSG;
	if (bytes_of(end) > f->bytes)
		rc = map_more(f, bytes_of(end));
	if (!rc)
		f->end = end;
	return rc;
}

static bool makes_sense(const struct rules_file *f, uint32_t unit, const struct rules_record *r)
{
	return !(r->blocks >> RULES_BLOCKS) && rules_units(r->blocks) <= r->units &&
	       r->units <= f->end - unit;
}

int rules_file_read(const struct rules_file *f, uint32_t unit, struct rules_record *out)
{
	uint64_t at = unit_at(f, unit);
	uint32_t before, after;

	if (unit >= f->end || mem_load32(at, &before) || mem_copy_in(out, at, sizeof *out))
		return -EBADMSG;
	barrier();
	if (mem_load32(at, &after) || !out->units || out->units > RULES_RECORD_UNITS_MAX)
		return -EBADMSG;
	if (before & 1 || before != after)
		return -EAGAIN;
	out->sequence = before;
	return makes_sense(f, unit, out) ? 0 : -EBADMSG;
}

int rules_file_read_blocks(const struct rules_file *f, uint32_t unit,
			   const struct rules_record *record, uint8_t out[RULES_RULE_BYTES_MAX])
{
	uint64_t at = unit_at(f, unit);
	size_t bytes = 2 * rules_value_offset(record->blocks);
	uint32_t after;

	if (mem_copy_in(out, at + RULES_UNIT_BYTES, bytes))
		return -EBADMSG;
	barrier();
	if (mem_load32(at, &after))
		return -EBADMSG;
	return after == record->sequence ? 0 : -EAGAIN;
}

int rules_file_change(const struct rules_file *f, uint64_t change, uint32_t *number_out,
		      uint32_t *unit_out)
{
	const struct rules_change *c = &f->head->change[change % RULES_CHANGES];

	if (mem_load32((uintptr_t)&c->number, number_out) ||
	    mem_load32((uintptr_t)&c->unit, unit_out))
		return -EBADMSG;
	return 0;
}
