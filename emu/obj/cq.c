/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues: creation, resizing, destruction.
 *
 * Completions are written by the engine; only the CQE that ends an old ring is written
 * here, because it must be there before the command returns.
 *
 * Source: device-abi B.9 and C.9.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include "emu/mem/mem.h"
#include "emu/obj/cq_ring.h"
#include "emu/obj/event_desc.h"
#include "emu/obj/obj.h"
#include "hw-models/hw.h"

/* A ring somewhere in the application. */
struct ring { uint64_t addr; uint32_t count, cqe_bytes; };

static uint32_t power_of_two_from(uint32_t n)
{
	uint32_t power = 1;

	while (power < n)
		power *= 2;
	return power;
}

static bool ring_values_fit(const struct hw_profile *profile, uint32_t cqe, uint32_t cqe_bytes,
			    uint64_t buf_addr)
{
	return cqe >= 1 && cqe <= profile->max_cqe && (cqe_bytes == 64 || cqe_bytes == 128) &&
	       buf_addr % CQE_BYTES == 0;
}

/* -EINVAL, -EFAULT, or the ring in *out. */
static int ring_check(struct emu_dev *dev, uint32_t cqe, uint32_t cqe_bytes, uint64_t buf_addr,
		      struct ring *out)
{
	struct ring ring = { .addr = buf_addr, .cqe_bytes = cqe_bytes };

	if (!ring_values_fit(dev->profile, cqe, cqe_bytes, buf_addr)) {
		dev_why(dev, .why = WHY_CMD_VALUE, .side = WHY_SIDE_COMMAND, .addr = buf_addr,
			.bytes = cqe, .found_bytes = dev->profile->max_cqe);
		return -EINVAL;
	}
	ring.count = power_of_two_from(cqe + 1);
	if (mem_probe(ring.addr, (size_t)ring.count * cqe_bytes, 1)) {
		dev_why(dev, .why = WHY_CMD_MEMORY, .side = WHY_SIDE_COMMAND, .addr = ring.addr,
			.bytes = (uint64_t)ring.count * cqe_bytes);
		return -EFAULT;
	}
	*out = ring;
	return 0;
}

static int init_check(struct emu_dev *dev, const struct cq_init *init, struct ring *ring)
{
	if (init->comp_vector >= dev->profile->comp_vectors || init->db_addr % CQ_RECORD_BYTES) {
		dev_why(dev, .why = WHY_CMD_VALUE, .side = WHY_SIDE_COMMAND,
			.addr = init->db_addr, .bytes = init->comp_vector,
			.found_bytes = dev->profile->comp_vectors);
		return -EINVAL;
	}
	if (mem_probe(init->db_addr, CQ_RECORD_BYTES, 0)) {
		dev_why(dev, .why = WHY_CMD_MEMORY, .side = WHY_SIDE_COMMAND,
			.addr = init->db_addr, .bytes = CQ_RECORD_BYTES);
		return -EFAULT;
	}
	return ring_check(dev, init->cqe, init->cqe_bytes, init->buf_addr, ring);
}

static void channel_count_user(struct emu_channel *channel, int change)
{
	if (channel)
		channel_obj(channel)->users += change;
}

int cq_create(struct emu_dev *dev, const struct cq_init *init, struct emu_cq **out)
{
	struct ring ring;
	struct emu_cq *cq;
	int rc = init_check(dev, init, &ring);

	if (rc)
		return rc;
	cq = calloc(1, sizeof *cq);
	if (!cq || dev->cqns.taken >= dev->profile->max_cq ||
	    numbers_take(&dev->cqns, cq, &cq->cqn)) {
		free(cq);
		dev_why(dev, .why = WHY_CMD_LIMIT, .side = WHY_SIDE_COMMAND,
			.found = dev->cqns.taken);
		return -ENOMEM;
	}
	cq->obj.type = OBJ_CQ;
	cq->channel = init->channel;
	cq->async = init->async;
	cq->user_handle = init->user_handle;
	cq->buf_addr = ring.addr;
	cq->cqe_count = ring.count;
	cq->cqe_bytes = ring.cqe_bytes;
	cq->db_addr = init->db_addr;
	cq->ignores_overrun = init->ignores_overrun;
	cq->wants_stamps = init->wants_stamps;
	channel_count_user(cq->channel, 1);
	channel_count_user(cq->async, 1);
	*out = cq;
	return 0;
}

/* The last entry of the old ring, which tells software where to go on reading. */
static int write_resize_cqe(const struct emu_cq *cq)
{
	struct hw_cqe cqe = { .kind = HW_CQE_RESIZE };
	uint64_t addr = cq_slot_addr(cq, cq->produced);
	uint8_t bytes[CQE_BYTES];
	int rc;

	mlx5_cqe_write(bytes, &cqe, cq_owner(cq, cq->produced));
	rc = mem_copy_out(addr, bytes, CQE_BYTES - 1);
	if (!rc)
		rc = mem_store8_release(addr + CQE_BYTES - 1, bytes[CQE_BYTES - 1]);
	return rc;
}

/* Does what is unread fit into @count entries, and the RESIZE CQE into the old ring? */
static int room_check(struct emu_dev *dev, struct emu_cq *cq, uint32_t count)
{
	int rc = cq_read_consumer(cq);

	if (!rc && !cq->has_failed && cq_unread(cq) < count && cq_has_room(cq))
		return 0;
	dev_why(dev, .why = rc ? WHY_CMD_MEMORY : WHY_CMD_VALUE, .side = WHY_SIDE_COMMAND,
		.addr = rc ? cq->db_addr : 0, .bytes = count, .found_bytes = cq_unread(cq));
	return rc ? rc : -EINVAL;
}

/* CQE number i of the old ring becomes i + 1 in the new one, and the RESIZE CQE took a
 * number of its own, so that everything that counts moves by one. */
static void ring_change(struct emu_cq *cq, const struct ring *ring)
{
	cq->buf_addr = ring->addr;
	cq->cqe_count = ring->count;
	cq->cqe_bytes = ring->cqe_bytes;
	cq->produced++;
	cq->solicited_at++;
	cq->told_of++;
}

int cq_resize(struct emu_dev *dev, struct emu_cq *cq, uint32_t cqe, uint64_t buf_addr,
	      uint32_t cqe_bytes)
{
	struct ring ring;
	int rc;

	if (cqe >= 1 && cqe <= dev->profile->max_cqe &&
	    power_of_two_from(cqe + 1) == cq->cqe_count)
		return 0;
	rc = ring_check(dev, cqe, cqe_bytes, buf_addr, &ring);
	if (!rc)
		rc = room_check(dev, cq, ring.count);
	if (rc)
		return rc;
	if (write_resize_cqe(cq)) {
		dev_why(dev, .why = WHY_CMD_MEMORY, .side = WHY_SIDE_COMMAND,
			.addr = cq->buf_addr, .bytes = (uint64_t)cq->cqe_count * cq->cqe_bytes);
		return -EFAULT;
	}
	ring_change(cq, &ring);
	return 0;
}

int cq_destroy(struct emu_dev *dev, struct emu_cq *cq, uint32_t *comp_events_out,
	       uint32_t *async_events_out)
{
	if (cq->obj.users) {
		dev_why(dev, .why = WHY_CMD_BUSY, .side = WHY_SIDE_COMMAND,
			.found = cq->obj.users);
		return -EBUSY;
	}
	*comp_events_out = cq->channel ? channel_forget(cq->channel, cq) : 0;
	*async_events_out = cq->async ? channel_forget(cq->async, cq) : 0;
	channel_count_user(cq->channel, -1);
	channel_count_user(cq->async, -1);
	numbers_give(&dev->cqns, cq->cqn);
	free(cq);
	return 0;
}

void cq_event(struct emu_cq *cq, uint32_t type)
{
	event_async_push(cq->async, cq, cq->user_handle, type);
}
