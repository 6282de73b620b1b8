/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long a device lives: as long as it is there, and whoever has it needs it.
 *
 * Method: the device is pulled out and put back.  Whether the library still knows it is seen from
 * whether it asks it for an attribute.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include "script.h"

static unsigned count(void)
{
	struct ibv_device **list;
	int devices = -1;

	list = ibv_get_device_list(&devices);
	cr_assert_not_null(list);
	cr_assert_null(list[devices]);
	ibv_free_device_list(list);
	return (unsigned)devices;
}

static struct ibv_device *device_of_a_freed_list(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL), *device;

	cr_assert(list && list[0]);
	device = list[0];
	ibv_free_device_list(list);
	return device;
}

static bool is_known(void)
{
	unsigned before = script.attributes_read;
	char text[8];

	cr_assert_eq(vb_read_attribute_by_path("/node_guid", text, sizeof text), -ENOENT);
	return script.attributes_read != before;
}

/* Programs do so, and rdma-core lets them. */
Test(device, can_be_opened_after_its_list_was_freed)
{
	struct ibv_device *device = device_of_a_freed_list();
	struct ibv_context *context = ibv_open_device(device);

	cr_assert_not_null(context);
	cr_assert_eq(context->device, device);
	cr_assert_eq(ibv_close_device(context), 0);
	cr_assert_eq(device_of_a_freed_list(), device);
}

Test(device, is_forgotten_when_it_is_gone)
{
	cr_assert_not(is_known());
	cr_assert_eq(count(), 1);
	cr_assert(is_known());
	script.is_unplugged = true;
	cr_assert(is_known());
	cr_assert_eq(count(), 0);
	cr_assert_not(is_known());
	script.is_unplugged = false;
	cr_assert_eq(count(), 1);
	cr_assert(is_known());
}

Test(device, that_is_open_stays_until_it_is_closed)
{
	struct ibv_context *context = script_open();
	struct ibv_device *device = context->device;

	script.is_unplugged = true;
	cr_assert_eq(count(), 0);
	cr_assert_str_eq(ibv_get_device_name(device), "script0");
	script.is_unplugged = false;
	cr_assert_eq(device_of_a_freed_list(), device);
	script.is_unplugged = true;
	cr_assert_eq(count(), 0);
	cr_assert(is_known());
	cr_assert_eq(ibv_close_device(context), 0);
	cr_assert_not(is_known());
}

Test(device, that_is_listed_stays_until_the_list_is_freed)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	cr_assert(list && list[0]);
	script.is_unplugged = true;
	cr_assert_eq(count(), 0);
	cr_assert_str_eq(ibv_get_device_name(list[0]), "script0");
	ibv_free_device_list(list);
	cr_assert_not(is_known());
}
