/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address handles: what the device is asked for them.
 *
 * Method: the scripted device counts commands.  That the vectors lead somewhere is judged by
 * tests/conformance/c_ah.c.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include "script.h"

static struct ibv_pd *pd;

static void device_with(uint8_t link_layer, uint8_t port_flags)
{
	script.link_layer = link_layer;
	script.port_flags = port_flags;
	pd = ibv_alloc_pd(script_open());
	cr_assert(pd);
}

/* 0 or the errno. */
static int try_handle(uint8_t port_num, bool is_global)
{
	struct ibv_ah_attr attr = { .port_num = port_num, .is_global = is_global, .dlid = 7 };
	struct ibv_ah *ah = ibv_create_ah(pd, &attr);

	if (!ah)
		return errno;
	return ibv_destroy_ah(ah);
}

static unsigned port_queries(void)
{
	return script_count(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
}

Test(handle, infiniband_handles_ask_for_their_port_once)
{
	unsigned commands;

	device_with(IBV_LINK_LAYER_INFINIBAND, 0);
	cr_assert_eq(try_handle(1, false), 0);
	commands = script.commands;
	for (unsigned i = 0; i < 10; i++) {
		cr_assert_eq(try_handle(1, false), 0);
		cr_assert_eq(try_handle(1, true), 0);
	}
	cr_assert_eq(script.commands, commands, "the vector is all there is");
	cr_assert_eq(port_queries(), 1);
}

Test(handle, each_port_is_asked)
{
	device_with(IBV_LINK_LAYER_INFINIBAND, 0);
	cr_assert_eq(try_handle(1, false), 0);
	script.link_layer = IBV_LINK_LAYER_ETHERNET;
	cr_assert_eq(try_handle(255, false), EINVAL, "RoCE has no LIDs");
	cr_assert_eq(try_handle(255, true), 0);
	cr_assert_eq(try_handle(1, false), 0);
	cr_assert_eq(port_queries(), 2);
	cr_assert_eq(script_count_write(IB_USER_VERBS_CMD_CREATE_AH), 1);
}

Test(handle, each_context_asks)
{
	struct ibv_context *context;

	device_with(IBV_LINK_LAYER_INFINIBAND, 0);
	cr_assert_eq(try_handle(1, false), 0);
	context = pd->context;
	cr_assert_eq(ibv_dealloc_pd(pd), 0);
	cr_assert_eq(ibv_close_device(context), 0);
	device_with(IBV_LINK_LAYER_INFINIBAND, 0);
	cr_assert_eq(try_handle(1, false), 0);
	cr_assert_eq(port_queries(), 2);
}

Test(handle, what_failed_is_asked_again)
{
	device_with(IBV_LINK_LAYER_INFINIBAND, 0);
	script.fail_object = UVERBS_OBJECT_DEVICE;
	script.fail_method = UVERBS_METHOD_QUERY_PORT;
	script.fail_error = EINVAL;
	cr_assert_eq(try_handle(1, false), EINVAL);
	cr_assert_eq(try_handle(1, false), 0);
	cr_assert_eq(port_queries(), 2);
}

Test(handle, a_port_that_routes_wants_a_global_header)
{
	device_with(IBV_LINK_LAYER_INFINIBAND, IBV_QPF_GRH_REQUIRED);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(try_handle(1, false), EINVAL);
		cr_assert_eq(try_handle(1, true), 0);
	}
	cr_assert_eq(port_queries(), 1);
}
