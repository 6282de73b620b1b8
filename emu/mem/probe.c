/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Would the memory be there?  For commands that hand memory over.
 *
 * A few pages are touched.  A large range is looked up in the list of mappings
 * instead, which neither populates untouched memory nor grows with the range.  A mapping
 * without the pages (a truncated file) passes that and is found out at its first use.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/ioctl.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "emu/mem/guard.h"

#define PAGE_BYTES	4096u
#define PAGES_TOUCHED_MAX 16u
#define UNCHECKED	__attribute__((no_sanitize("address", "thread", "undefined")))

/* One byte of a page.  Adding nothing atomically asks for the right to write and loses no
 * store of the application. */
UNCHECKED static int touch(uint64_t addr, int writes)
{
	uint8_t *byte = (uint8_t *)(uintptr_t)addr;

	if (GUARD_ENTER())
		return -EFAULT;
	guard_aim(addr, 1, 0, 0);
	if (writes)
		__atomic_fetch_or(byte, 0, __ATOMIC_RELAXED);
	else
		(void)*(volatile uint8_t *)byte;
	guard_leave();
	return 0;
}

static int touch_pages(uint64_t addr, uint64_t end, int writes)
{
	while (addr < end) {
		int rc = touch(addr, writes);

		if (rc)
			return rc;
		addr = (addr | (PAGE_BYTES - 1)) + 1;
	}
	return 0;
}

/* Linux 6.11: one mapping a call.  Restated here because the headers of Debian 12 are older. */
struct procmap_query {
	uint64_t size, query_flags, query_addr;
	uint64_t vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
	uint32_t dev_major, dev_minor, vma_name_size, build_id_size;
	uint64_t vma_name_addr, build_id_addr;
};
#define PROCMAP_QUERY_CALL	_IOWR('f', 17, struct procmap_query)
enum { PROCMAP_READABLE = 1, PROCMAP_WRITABLE = 2 };

/* 0, -EFAULT, or -ENOTTY where the kernel can't tell this way. */
static int query_mappings(int maps, uint64_t addr, uint64_t end, int writes)
{
	while (addr < end) {
		struct procmap_query query = {
			.size = sizeof query,
			.query_flags = writes ? PROCMAP_READABLE | PROCMAP_WRITABLE
					      : PROCMAP_READABLE,
			.query_addr = addr,
		};

		if (ioctl(maps, PROCMAP_QUERY_CALL, &query))
			return errno == ENOENT ? -EFAULT : -ENOTTY;
		if (query.vma_end <= addr)
			return -ENOTTY;
		addr = query.vma_end;
	}
	return 0;
}

/* Progress of the reader of /proc/self/maps: "55d0a000-55d0b000 rw-p ..." a line. */
struct maps_line {
	uint64_t number[2];
	unsigned field;			/* 0, 1: numbers; 2: rights; 3: rest */
	unsigned right;
	bool can_read, can_write;
};

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* True when the line is complete. */
static bool maps_feed(struct maps_line *line, char c)
{
	if (c == '\n')
		return true;
	if (line->field < 2) {
		if (hex_digit(c) < 0)
			line->field++;
		else
			line->number[line->field] = line->number[line->field] << 4 | hex_digit(c);
	} else if (line->field == 2) {
		if (line->right == 0)
			line->can_read = c == 'r';
		else if (line->right == 1)
			line->can_write = c == 'w';
		if (++line->right == 2)
			line->field++;
	}
	return false;
}

/* How far from *@addr on the mapping of @line serves; -EFAULT at a hole or a missing right. */
static int maps_advance(const struct maps_line *line, uint64_t *addr, int writes)
{
	if (line->number[1] <= *addr)
		return 0;
	if (line->number[0] > *addr || !line->can_read || (writes && !line->can_write))
		return -EFAULT;
	*addr = line->number[1];
	return 0;
}

static int read_mappings(int maps, uint64_t addr, uint64_t end, int writes)
{
	struct maps_line line = { 0 };
	char text[4096];
	ssize_t got;

	while ((got = read(maps, text, sizeof text)) > 0) {
		for (ssize_t i = 0; i < got; i++) {
			if (!maps_feed(&line, text[i]))
				continue;
			if (maps_advance(&line, &addr, writes))
				return -EFAULT;
			if (addr >= end)
				return 0;
			memset(&line, 0, sizeof line);
		}
	}
	return -EFAULT;
}

/*
 * The list of mappings, kept open because opening it takes longer than asking.  The
 * application may close our descriptor, or put a file of its own there: then the question
 * fails, and we open the list again.  A forked child must not ask its parent's list.
 */
static int maps_kept = -1;

static void maps_forget(void)
{
	__atomic_store_n(&maps_kept, -1, __ATOMIC_RELAXED);
}

static void maps_keep(int maps)
{
	int none = -1;

	if (!__atomic_compare_exchange_n(&maps_kept, &none, maps, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		close(maps);
}

__attribute__((constructor))
static void maps_watch_fork(void)
{
	pthread_atfork(NULL, NULL, maps_forget);
}

static int look_up_anew(uint64_t addr, uint64_t end, int writes)
{
	int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	int rc;

	if (maps < 0)
		return touch_pages(addr, end, writes);	/* slow, and never wrong */
	rc = query_mappings(maps, addr, end, writes);
	if (rc != -ENOTTY) {
		maps_keep(maps);
		return rc;
	}
	rc = read_mappings(maps, addr, end, writes);
	close(maps);
	return rc;
}

static int look_up(uint64_t addr, uint64_t end, int writes)
{
	int maps = __atomic_load_n(&maps_kept, __ATOMIC_RELAXED);
	int rc = maps < 0 ? -ENOTTY : query_mappings(maps, addr, end, writes);

	if (rc != -ENOTTY)
		return rc;
	maps_forget();
	return look_up_anew(addr, end, writes);
}

int mem_probe(uint64_t addr, size_t bytes, int writes)
{
	if (!guard_is_user(addr, bytes))
		return -EFAULT;
	if (bytes <= PAGES_TOUCHED_MAX * PAGE_BYTES)
		return touch_pages(addr, addr + bytes, writes);
	return look_up(addr, addr + bytes, writes);
}
