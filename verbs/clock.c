/* SPDX-License-Identifier: BSD-2-Clause */
#include <endian.h>
#include <errno.h>
#include <rdma/mlx5-abi.h>
#include <sys/mman.h>
#include <unistd.h>
#include "verbs/clock.h"
#include "verbs/ops.h"

enum { MAP_CORE_CLOCK = 5, MAP_CLOCK_INFO = 7 };	/* commands in the offset of a mapping */

/* A page of the device, mapped when it is needed first.  NULL and errno. */
static void *page_of(struct vb_context *c, void **slot, unsigned command)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *at = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
	int error = 0;

	if (at)
		return at;
	pthread_mutex_lock(&c->base.context.mutex);
	at = *slot;
	if (!at)
		error = -c->channel.ops->map(&c->channel, NULL, page, PROT_READ, MAP_SHARED,
					     (uint64_t)command << 8 << 12, &at);
	if (error)
		at = NULL;
	__atomic_store_n(slot, at, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&c->base.context.mutex);
	if (error)
		errno = error;
	return at;
}

static void refresh(struct vb_context *c)
{
	if (c->channel.ops->clock_refresh)
		c->channel.ops->clock_refresh(&c->channel);
}

/* The two halves are read until the upper one stands still. */
static uint64_t cycles_read(const uint32_t *at)
{
	uint32_t high, low, again;

	do {
		high = be32toh(__atomic_load_n(&at[0], __ATOMIC_ACQUIRE));
		low = be32toh(__atomic_load_n(&at[1], __ATOMIC_ACQUIRE));
		again = be32toh(__atomic_load_n(&at[0], __ATOMIC_ACQUIRE));
	} while (high != again);
	return (uint64_t)high << 32 | low;
}

void *vb_core_clock(struct vb_context *c)
{
	uint8_t *page = page_of(c, &c->core_clock_page, MAP_CORE_CLOCK);

	return page ? page + c->limits.core_clock_offset : NULL;
}

int vb_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	struct vb_context *c = vb_context_of(context);
	uint32_t wanted = values->comp_mask;
	uint64_t cycles;
	uint32_t *words;

	if (wanted & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return EINVAL;
	values->comp_mask = 0;
	if (!wanted)
		return 0;
	words = vb_core_clock(c);
	if (!words)
		return EOPNOTSUPP;
	refresh(c);
	cycles = cycles_read(words);
	/* Hardware's unit, not seconds: the structure has no better place. */
	values->raw_clock.tv_sec = 0;
	values->raw_clock.tv_nsec = (long)cycles;
	values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
	return 0;
}

/* A copy that no writer was in the middle of. */
static struct mlx5_ib_clock_info info_read(const struct mlx5_ib_clock_info *page)
{
	struct mlx5_ib_clock_info copy;
	uint32_t before;

	do {
		before = __atomic_load_n(&page->sign, __ATOMIC_ACQUIRE);
		copy = *page;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (before & MLX5_IB_CLOCK_INFO_KERNEL_UPDATING ||
		 before != __atomic_load_n(&page->sign, __ATOMIC_RELAXED));
	return copy;
}

static struct mlx5_ib_clock_info *info_page(struct vb_context *c)
{
	return c->limits.clock_info_versions ? page_of(c, &c->clock_page, MAP_CLOCK_INFO) : NULL;
}

int vb_clock_info(struct vb_context *c, struct mlx5_ib_clock_info *out)
{
	struct mlx5_ib_clock_info *page = info_page(c);

	if (!page)
		return EINVAL;
	refresh(c);
	*out = info_read(page);
	return 0;
}

uint64_t vb_clock_ns(struct vb_context *c, uint64_t cycles)
{
	struct mlx5_ib_clock_info info, *page = info_page(c);
	uint64_t delta;

	if (!page)
		return 0;
	info = info_read(page);
	delta = (cycles - info.cycles) & info.mask;
	if (delta <= info.mask / 2)
		return info.nsec + ((delta * info.mult + info.frac) >> info.shift);
	delta = (info.cycles - cycles) & info.mask;
	return info.nsec - ((delta * info.mult - info.frac) >> info.shift);
}
