/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of flow rules; see flow.h.
 */
#include <errno.h>
#include <stdlib.h>
#include "emu/obj/flow.h"

int counters_create(struct emu_dev *dev, struct emu_counters **out)
{
	struct emu_counters *counters = calloc(1, sizeof *counters);

	if (!counters) {
		dev_why(dev, .why = WHY_CMD_LIMIT, .side = WHY_SIDE_COMMAND);
		return -ENOMEM;
	}
	counters->obj.type = OBJ_COUNTERS;
	*out = counters;
	return 0;
}

int counters_destroy(struct emu_dev *dev, struct emu_counters *counters)
{
	if (counters->obj.users) {
		dev_why(dev, .why = WHY_CMD_BUSY, .side = WHY_SIDE_COMMAND,
			.found = counters->obj.users);
		return -EBUSY;
	}
	free(counters->item);
	free(counters);
	return 0;
}

int counters_describe(struct emu_counters *counters, struct counters_item *item, uint32_t count)
{
	uint64_t end = 0;

	if (counters->index_end)
		return -EINVAL;
	for (uint32_t i = 0; i < count; i++) {
		if (item[i].what >= COUNTED_COUNT)
			return -EINVAL;
		if (end <= item[i].index)
			end = item[i].index + UINT64_C(1);
	}
	free(counters->item);
	counters->item = item;
	counters->item_count = count;
	counters->index_end = end;
	return 0;
}

void counters_settle(struct emu_counters *counters)
{
	if (counters->obj.users)
		return;
	free(counters->item);
	counters->item = NULL;
	counters->item_count = 0;
	counters->index_end = 0;
}
