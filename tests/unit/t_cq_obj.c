/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues: what may be created, where CQE number i goes, and resizing as the
 * library sees it.
 */
#include <endian.h>
#include "emu/obj/cq_ring.h"
#include "hw-models/hw.h"
#include "tests/unit/obj_world.h"

#define ADDR(p)	((uint64_t)(uintptr_t)(p))
#define CQE_AT(ring, i, bytes)	((ring) + (i) * (bytes) + (bytes) - 64)

static struct emu_dev *dev;
static struct emu_channel *channel, *async;
static int channel_fd, async_fd;
static uint8_t *ring, *ring2;
static uint32_t *record;
static struct cq_init init;
static struct emu_cq *cq;

static void start(void)
{
	dev = world_dev();
	ring = world_pages(64);
	ring2 = world_pages(64);
	memset(ring, 0xf0, 64 * WORLD_PAGE);
	memset(ring2, 0xf0, 64 * WORLD_PAGE);
	record = (uint32_t *)world_pages(1);
	CHECK_INT(channel_create(EVENT_COMP_BYTES, &channel, &channel_fd), 0);
	CHECK_INT(channel_create(EVENT_ASYNC_BYTES, &async, &async_fd), 0);
	init = (struct cq_init){
		.user_handle = 0x1122334455667788, .buf_addr = ADDR(ring),
		.db_addr = ADDR(record), .cqe = 3, .cqe_bytes = 64, .channel = channel,
		.async = async,
	};
}

TestSuite(cq_obj, .init = start);

static void create(uint32_t cqe)
{
	init.cqe = cqe;
	CHECK_INT(cq_create(dev, &init, &cq), 0);
}

static void destroy(uint32_t comp, uint32_t asynchronous)
{
	uint32_t c = 99, a = 99;

	CHECK_INT(cq_destroy(dev, cq, &c, &a), 0);
	CHECK_INT(c, comp);
	CHECK_INT(a, asynchronous);
}

static void consume(uint32_t index)
{
	record[0] = htobe32(index & 0xffffff);
}

Test(cq_obj, sizes_are_powers_of_two_above_what_was_asked)
{
	static const struct { uint32_t cqe, count; } row[] = {
		{ 1, 2 }, { 2, 4 }, { 3, 4 }, { 4, 8 }, { 5, 8 }, { 64, 128 }, { 1023, 1024 },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		create(row[i].cqe);
		CHECK_INT(cq->cqe_count, row[i].count);
		CHECK_INT(cq->obj.type, OBJ_CQ);
		CHECK_INT(channel_obj(channel)->users, 1);
		CHECK_INT(channel_obj(async)->users, 1);
		CHECK_INT(cq->arm, CQ_NOT_ARMED);
		CHECK_INT(cq->arm_sn, 0);
		destroy(0, 0);
	}
	CHECK_INT(channel_obj(channel)->users + channel_obj(async)->users, 0);
	world_end(dev);
}

#define REFUSED_WITH(change, rc, why)                           \
	do {                                                    \
		struct cq_init bad = init;                      \
		bad.change;                                     \
		CHECK_REFUSED(cq_create(dev, &bad, &cq), rc, why); \
	} while (0)

Test(cq_obj, values_are_checked)
{
	REFUSED_WITH(cqe = 0, -EINVAL, WHY_CMD_VALUE);
	REFUSED_WITH(cqe = 1024, -EINVAL, WHY_CMD_VALUE);
	REFUSED_WITH(cqe = UINT32_MAX, -EINVAL, WHY_CMD_VALUE);
	REFUSED_WITH(cqe_bytes = 0, -EINVAL, WHY_CMD_VALUE);
	REFUSED_WITH(cqe_bytes = 32, -EINVAL, WHY_CMD_VALUE);
	REFUSED_WITH(cqe_bytes = 256, -EINVAL, WHY_CMD_VALUE);
	REFUSED_WITH(comp_vector = 4, -EINVAL, WHY_CMD_VALUE);
	REFUSED_WITH(comp_vector = UINT32_MAX, -EINVAL, WHY_CMD_VALUE);
	REFUSED_WITH(db_addr += 4, -EINVAL, WHY_CMD_VALUE);
	REFUSED_WITH(buf_addr += 8, -EINVAL, WHY_CMD_VALUE);
	REFUSED_WITH(db_addr = 0, -EFAULT, WHY_CMD_MEMORY);
	REFUSED_WITH(buf_addr = 0, -EFAULT, WHY_CMD_MEMORY);
	REFUSED_WITH(buf_addr = 0xffff800000000000ull, -EFAULT, WHY_CMD_MEMORY);
	mprotect(ring, WORLD_PAGE, PROT_READ);
	REFUSED_WITH(cqe = 3, -EFAULT, WHY_CMD_MEMORY);
	CHECK_INT(dev->cqns.taken, 0);
	CHECK_INT(channel_obj(channel)->users, 0);
}

Test(cq_obj, channels_are_optional)
{
	init.channel = init.async = NULL;
	create(3);
	cq_event(cq, 0);
	destroy(0, 0);
}

Test(cq_obj, numbers_run_out)
{
	for (unsigned i = 0; i < world_profile.max_cq; i++)
		create(1);
	CHECK_REFUSED(cq_create(dev, &init, &cq), -ENOMEM, WHY_CMD_LIMIT);
}

Test(cq_obj, a_used_queue_stays)
{
	uint32_t c, a;

	create(3);
	cq->obj.users = 2;
	CHECK_REFUSED(cq_destroy(dev, cq, &c, &a), -EBUSY, WHY_CMD_BUSY);
	cq->obj.users = 0;
	destroy(0, 0);
}

Test(cq_obj, destruction_counts_events_that_were_read)
{
	uint64_t event;
	struct { uint64_t element; uint32_t type, zero; } a;

	create(3);
	for (int i = 0; i < 3; i++)
		channel_push(channel, &cq->user_handle, cq);
	CHECK_INT(read(channel_fd, &event, 8), 8);
	CHECK_INT(event, 0x1122334455667788);
	CHECK_INT(read(channel_fd, &event, 8), 8);
	cq_event(cq, 0);
	cq_event(cq, 8);
	CHECK_INT(read(async_fd, &a, 16), 16);
	CHECK_INT(a.element, 0x1122334455667788);
	CHECK_INT(a.type, 0);
	CHECK_INT(a.zero, 0);
	destroy(2, 1);
	CHECK_INT(recv(channel_fd, &event, 8, MSG_DONTWAIT), -1);
	CHECK_INT(recv(async_fd, &a, 16, MSG_DONTWAIT), -1);
}

/* --- the arithmetic of the ring --- */

Test(cq_obj, slots_follow_each_other_and_owners_alternate)
{
	create(3);
	for (uint32_t i = 0; i < 16; i++) {
		CHECK_INT(cq_slot_addr(cq, i), ADDR(ring + i % 4 * 64));
		CHECK_INT(cq_owner(cq, i), i / 4 % 2);
	}
	CHECK_INT(cq_slot_addr(cq, UINT32_MAX), ADDR(ring + 3 * 64));
	CHECK_INT(cq_owner(cq, UINT32_MAX), 1);
	destroy(0, 0);
	init.cqe_bytes = 128;
	create(3);
	CHECK_INT(cq_slot_addr(cq, 0), ADDR(ring + 64));
	CHECK_INT(cq_slot_addr(cq, 7), ADDR(ring + 3 * 128 + 64));
}

Test(cq_obj, the_consumer_index_is_widened_and_never_believed_blindly)
{
	create(3);
	cq->produced = cq->consumed = 0xfffffe;
	cq->produced += 4;
	consume(0xfffffe);
	CHECK_INT(cq_read_consumer(cq), 0);
	CHECK_INT(cq->consumed, 0xfffffe);
	CHECK_INT(cq_has_room(cq), 0);
	consume(0);			/* wrapped: two were read */
	CHECK_INT(cq_read_consumer(cq), 0);
	CHECK_INT(cq->consumed, 0x1000000);
	CHECK_INT(cq_has_room(cq), 1);
	consume(3);			/* past the producer */
	CHECK_INT(cq_read_consumer(cq), 0);
	CHECK_INT(cq->consumed, 0x1000000);
	consume(0xffffff);		/* back */
	CHECK_INT(cq_read_consumer(cq), 0);
	CHECK_INT(cq->consumed, 0x1000000);
	consume(2);
	CHECK_INT(cq_read_consumer(cq), 0);
	CHECK_INT(cq->consumed, 0x1000002);
	CHECK_INT(cq_unread(cq), 0);
	munmap(record, WORLD_PAGE);
	CHECK_INT(cq_read_consumer(cq), -EFAULT);
}

Test(cq_obj, thirty_two_bits_wrap_too)
{
	create(3);
	cq->produced = 1;
	cq->consumed = UINT32_MAX - 1;
	consume(0);
	CHECK_INT(cq_has_room(cq), 1);
	CHECK_INT(cq_read_consumer(cq), 0);
	CHECK_INT(cq->consumed, 0);
	CHECK_INT(cq_unread(cq), 1);
}

/* --- resize --- */

static uint8_t *old_cqe(uint32_t i)
{
	return CQE_AT(ring, i % cq->cqe_count, 64);
}

Test(cq_obj, resize_ends_the_old_ring_and_goes_on_one_later)
{
	uint8_t *last;

	create(7);
	cq->produced = 13;		/* second pass: owner 1 */
	consume(10);
	cq->consumed = 8;
	cq->solicited_at = 12;
	last = old_cqe(13);
	CHECK_INT(cq_resize(dev, cq, 31, ADDR(ring2), 128), 0);
	CHECK_INT(last[63] >> 4, HW_CQE_RESIZE);
	CHECK_INT(last[63] & 1, 1);
	CHECK_INT(cq->produced, 14);
	CHECK_INT(cq->consumed, 10);
	CHECK_INT(cq->solicited_at, 13);
	CHECK_INT(cq->cqe_count, 32);
	CHECK_INT(cq->cqe_bytes, 128);
	CHECK_INT(cq_slot_addr(cq, cq->produced), ADDR(CQE_AT(ring2, 14, 128)));
	CHECK_INT(cq_owner(cq, cq->produced), 0);
	CHECK_INT(ring2[14 * 128 + 127], 0xf0);
	CHECK_INT(last[-1], 0xf0);
	CHECK_INT(last[64], 0xf0);
	destroy(0, 0);
}

Test(cq_obj, resize_in_the_first_pass_has_owner_0)
{
	create(7);
	cq->produced = 5;
	CHECK_INT(cq_resize(dev, cq, 15, ADDR(ring2), 64), 0);
	CHECK_INT(CQE_AT(ring, 5, 64)[63] & 0xf1, HW_CQE_RESIZE << 4);
}

Test(cq_obj, the_same_size_changes_nothing)
{
	create(7);
	CHECK_INT(cq_resize(dev, cq, 4, ADDR(ring2), 64), 0);
	CHECK_INT(cq_resize(dev, cq, 7, 0, 64), 0);
	CHECK_INT(cq->buf_addr, ADDR(ring));
	CHECK_INT(cq->produced, 0);
	CHECK_INT(ring[63], 0xf0);
}

Test(cq_obj, resize_checks_values)
{
	create(7);
	CHECK_REFUSED(cq_resize(dev, cq, 0, ADDR(ring2), 64), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(cq_resize(dev, cq, 1024, ADDR(ring2), 64), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(cq_resize(dev, cq, UINT32_MAX, ADDR(ring2), 64), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(cq_resize(dev, cq, 15, ADDR(ring2), 96), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(cq_resize(dev, cq, 15, 0, 64), -EFAULT, WHY_CMD_MEMORY);
	CHECK_INT(cq->buf_addr, ADDR(ring));
	CHECK_INT(cq->cqe_count, 8);
	CHECK_INT(cq->produced, 0);
}

Test(cq_obj, what_is_unread_must_fit)
{
	create(15);
	cq->produced = 9;
	consume(5);
	CHECK_REFUSED(cq_resize(dev, cq, 3, ADDR(ring2), 64), -EINVAL, WHY_CMD_VALUE);
	consume(6);
	CHECK_INT(cq_resize(dev, cq, 3, ADDR(ring2), 64), 0);
	CHECK_INT(cq->produced, 10);
	CHECK_INT(cq->cqe_count, 4);
}

Test(cq_obj, a_full_or_failed_queue_is_not_resized)
{
	create(3);
	cq->produced = 4;
	CHECK_REFUSED(cq_resize(dev, cq, 63, ADDR(ring2), 64), -EINVAL, WHY_CMD_VALUE);
	consume(2);
	cq->has_failed = true;
	CHECK_REFUSED(cq_resize(dev, cq, 63, ADDR(ring2), 64), -EINVAL, WHY_CMD_VALUE);
}

Test(cq_obj, memory_that_went_away_is_efault)
{
	create(3);
	mprotect(ring, WORLD_PAGE, PROT_READ);
	CHECK_REFUSED(cq_resize(dev, cq, 63, ADDR(ring2), 64), -EFAULT, WHY_CMD_MEMORY);
	CHECK_INT(cq->buf_addr, ADDR(ring));
	munmap(record, WORLD_PAGE);
	CHECK_REFUSED(cq_resize(dev, cq, 63, ADDR(ring2), 64), -EFAULT, WHY_CMD_MEMORY);
}

/* The library's side of a resize, as rdma-core does it: copy what is unread from the old
 * ring, one further on, until the RESIZE CQE; then count it as read. */
Test(cq_obj, the_library_finds_every_unread_entry_again)
{
	for (uint32_t read_before = 0; read_before <= 20; read_before++) {
		uint32_t ci = read_before, unread = 5, i, new_count = 16;

		memset(ring, 0xf0, 8 * 64);
		memset(ring2, 0xf0, new_count * 64);
		init.buf_addr = ADDR(ring);
		create(7);
		consume(ci);
		cq->consumed = ci;
		for (i = 0; i < unread; i++, cq->produced = ci + i) {
			ring[(ci + i) % 8 * 64] = 100 + i;
			ring[(ci + i) % 8 * 64 + 63] = HW_CQE_RECV << 4 |
						       (((ci + i) & 8) != 0);
		}
		CHECK_INT(cq_resize(dev, cq, 15, ADDR(ring2), 64), 0);
		for (i = ci; ring[i % 8 * 64 + 63] >> 4 != HW_CQE_RESIZE; i++) {
			cr_assert_lt(i, ci + unread);
			memcpy(ring2 + (i + 1) % new_count * 64, ring + i % 8 * 64, 64);
		}
		CHECK_INT(ring[i % 8 * 64 + 63] & 1, (i & 8) != 0);
		CHECK_INT(i, ci + unread);
		ci++;
		/* The next completion of the device stands where the library looks next. */
		CHECK_INT(cq_slot_addr(cq, cq->produced), ADDR(ring2 + (ci + unread) % 16 * 64));
		consume(ci + unread);
		CHECK_INT(cq_read_consumer(cq), 0);
		CHECK_INT(cq_unread(cq), 0);
		destroy(0, 0);
	}
}
