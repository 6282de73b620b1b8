/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contexts, device and port attributes, GIDs, doorbell pages: what libmlx5 reads at open.
 */
#include <endian.h>
#include "tests/unit/uv_world.h"

/* --- contexts --- */

Test(uv_device, context_of_a_dynamic_client)
{
	struct uv_world w = uv_world_bare("");
	struct mlx5_ib_alloc_ucontext_req_v2 ask = context_request();
	struct mlx5_ib_alloc_ucontext_resp r;

	CHECK_INT(context_get(&w, &ask, sizeof ask, &r), 0);
	CHECK_INT(r.tot_bfregs, 0);
	CHECK_INT(r.bf_reg_size, 512);
	CHECK_INT(r.cache_line_size, 64);
	CHECK_INT(r.max_sq_desc_sz, 1024);
	CHECK_INT(r.max_rq_desc_sz, 512);
	CHECK_INT(r.max_send_wqebb, 32768);
	CHECK_INT(r.num_ports, 1);
	CHECK_INT(r.comp_mask, MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_CORE_CLOCK_OFFSET |
			       MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_DUMP_FILL_MKEY);
	CHECK_INT(r.dump_fill_mkey, KEY_NULL);
	CHECK_INT(r.hca_core_clock_offset, 0);
	CHECK_INT(r.response_length, 72);
	CHECK_INT(r.cqe_version, 1);
	CHECK_INT(r.cmds_supp_uhw, 3);
	CHECK_INT(r.clock_info_versions, 1);
	CHECK_INT(r.log_uar_size, 12);
	CHECK_INT(r.num_uars_per_page, 1);
	CHECK_REFUSED(context_get(&w, &ask, sizeof ask, &r), -EINVAL, WHY_CMD_VALUE);
	uv_world_end(&w);
}

Test(uv_device, context_request_rules)
{
	static const struct {
		size_t bytes;
		struct mlx5_ib_alloc_ucontext_req_v2 ask;
		int rc;
		uint32_t bfregs;
	} rows[] = {
		{ 32, { 16, 4, 0, 0, 1, 0, 0, 0, 3 }, 0, 0 },
		{ 24, { 16, 4, 0, 0, 1, 0, 0, 0, 3 }, 0, 16 },	/* no lib_caps: static */
		{ 16, { 16, 4, 0, 0, 1, 0, 0, 0, 3 }, 0, 16 },
		{ 8, { 16, 4, 0, 0, 1, 0, 0, 0, 3 }, 0, 16 },
		{ 12, { 16, 4, 0, 0, 1, 0, 0, 0, 3 }, -EINVAL, 0 },
		{ 32, { 16, 4, 1, 0, 1, 0, 0, 0, 3 }, -EINVAL, 0 },	/* DEVX */
		{ 32, { 16, 4, 2, 0, 1, 0, 0, 0, 3 }, -EOPNOTSUPP, 0 },
		{ 32, { 16, 4, 0, 1, 1, 0, 0, 0, 3 }, -EOPNOTSUPP, 0 },
		{ 32, { 16, 4, 0, 0, 1, 0, 0, 1, 3 }, -EOPNOTSUPP, 0 },
		{ 32, { 16, 16, 0, 0, 1, 0, 0, 0, 3 }, -EINVAL, 0 },
		{ 32, { 15, 15, 0, 0, 1, 0, 0, 0, 1 }, 0, 16 },	/* rounded up before */
		{ 32, { 0, 0, 0, 0, 1, 0, 0, 0, 3 }, 0, 0 },
		{ 32, { 0, 0, 0, 0, 1, 0, 0, 0, 1 }, -EINVAL, 0 },
		{ 32, { 514, 4, 0, 0, 1, 0, 0, 0, 1 }, -ENOMEM, 0 },
		{ 32, { UINT32_MAX, 4, 0, 0, 1, 0, 0, 0, 1 }, -EINVAL, 0 },
		{ 32, { 512, 4, 0, 0, 1, 0, 0, 0, 1 }, 0, 512 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct uv_world w = uv_world_bare("");
		struct mlx5_ib_alloc_ucontext_resp r = { .tot_bfregs = 77 };
		int rc = context_get(&w, &rows[i].ask, rows[i].bytes, &r);

		cr_assert(rc == rows[i].rc, "row %zu: %d", i, rc);
		if (!rc)
			CHECK_INT(r.tot_bfregs, rows[i].bfregs);
		uv_world_end(&w);
	}
}

Test(uv_device, failed_context_can_be_asked_again)
{
	struct uv_world w = uv_world_bare("");
	struct mlx5_ib_alloc_ucontext_req_v2 ask = context_request();
	struct mlx5_ib_alloc_ucontext_resp r;

	ask.lib_caps = 0;
	CHECK_REFUSED(context_get(&w, &ask, sizeof ask, NOWHERE), -EFAULT, WHY_CMD_MEMORY);
	CHECK_INT(context_get(&w, &ask, sizeof ask, &r), 0);
	CHECK_INT(r.tot_bfregs, 16);
	uv_world_end(&w);
}

Test(uv_device, old_cqe_version_is_kept)
{
	struct uv_world w = uv_world_bare("");
	struct mlx5_ib_alloc_ucontext_resp r;
	struct mlx5_ib_alloc_ucontext_req_v2 ask = context_request();

	ask.max_cqe_version = 0;
	CHECK_INT(context_get(&w, &ask, sizeof ask, &r), 0);
	CHECK_INT(r.cqe_version, 0);
	uv_world_end(&w);
}

Test(uv_device, query_context_tells_the_same_again)
{
	struct uv_world w = uv_world_new();
	struct cmd c = cmd_new(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT);
	struct mlx5_ib_alloc_ucontext_resp r;

	cmd_out(&c, MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX, &r, sizeof r);
	CHECK_INT(cmd_run(&w, &c), 0);
	CHECK_INT(r.tot_bfregs, 0);
	CHECK_INT(r.response_length, 72);
	CHECK_INT(r.cqe_version, 1);
	uv_world_end(&w);
}

/* --- device --- */

static int query_device_ex(const struct uv_world *w, void *out, size_t bytes, void *tail,
			   size_t tail_bytes)
{
	struct ib_uverbs_ex_query_device in = { 0 };
	struct cmd c = cmd_write(IB_USER_VERBS_CMD_FLAG_EXTENDED | 1, &in, sizeof in, out, bytes);

	if (tail)
		cmd_out(&c, UVERBS_ATTR_UHW_OUT, tail, tail_bytes);
	return cmd_run(w, &c);
}

Test(uv_device, query_device_says_what_works_and_no_more)
{
	struct uv_world w = uv_world_new();
	struct ib_uverbs_ex_query_device_resp r;
	struct mlx5_ib_query_device_resp tail;

	CHECK_INT(query_device_ex(&w, &r, sizeof r, &tail, sizeof tail), 0);
	CHECK_INT(r.response_length, 304);
	CHECK_INT(be64toh(r.base.node_guid), 0x0200c0fffe000001);
	CHECK_INT(r.base.vendor_id, 0x2c9);
	CHECK_INT(r.base.vendor_part_id, 4125);
	CHECK_INT(r.base.atomic_cap, 1);
	CHECK_INT(r.base.phys_port_cnt, 1);
	CHECK_INT(r.base.max_qp_rd_atom, 16);
	CHECK_INT(r.base.max_res_rd_atom, 16 * 262144);
	CHECK_INT(r.base.device_cap_flags, 0x25321806);
	CHECK_INT(r.device_cap_flags_ex, 0x425321806);
	CHECK_INT(r.base.max_srq, 1 << 23);
	CHECK_INT(r.base.max_srq_wr, 32767);
	CHECK_INT(r.base.max_srq_sge, 31);
	CHECK_INT(r.base.max_mw, 1 << 24);
	CHECK_INT(r.base.max_ah, 1 << 24);
	CHECK_INT(r.base.max_mcast_grp, 4096);
	CHECK_INT(r.base.max_mcast_qp_attach, 240);
	CHECK_INT(r.base.max_total_mcast_qp_attach, 4096 * 240);
	CHECK_INT(r.odp_caps.general_caps, 3);
	CHECK_INT(r.odp_caps.per_transport_caps.rc_odp_caps, 0x3f);
	CHECK_INT(r.odp_caps.per_transport_caps.uc_odp_caps, 0);
	CHECK_INT(r.odp_caps.per_transport_caps.ud_odp_caps, 1);
	CHECK_INT(r.max_dm_size, 131072);
	CHECK_INT(r.timestamp_mask, INT64_MAX);
	CHECK_INT(r.hca_core_clock, 1000000);
	CHECK_INT(tail.response_length, 104);
	CHECK_INT(tail.flags, MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_PAD);
	uv_world_end(&w);
}

Test(uv_device, query_device_is_cut_to_what_the_caller_knows)
{
	struct uv_world w = uv_world_new();
	uint8_t r[512], tail[200];
	uint32_t length;

	for (size_t bytes = 184; bytes <= 304; bytes += 8) {
		memset(r, 0xee, sizeof r);
		CHECK_INT(query_device_ex(&w, r, bytes, NULL, 0), 0);
		memcpy(&length, r + 180, sizeof length);
		CHECK_INT(length, bytes);
		CHECK_INT(r[bytes], 0xee);
	}
	CHECK_REFUSED(query_device_ex(&w, r, 183, NULL, 0), -ENOSPC, WHY_CMD_ATTRIBUTES);
	memset(r, 0xee, sizeof r);
	memset(tail, 0xee, sizeof tail);
	CHECK_INT(query_device_ex(&w, r, 400, tail, 112), 0);
	memcpy(&length, r + 180, sizeof length);
	CHECK_INT(length, 304);
	CHECK_INT(r[399], 0);
	CHECK_INT(r[400], 0xee);
	memcpy(&length, tail + 4, sizeof length);
	CHECK_INT(length, 104);
	CHECK_INT(tail[103], 0);
	CHECK_INT(tail[104], 0xee);	/* the driver's part is not filled up */
	CHECK_INT(query_device_ex(&w, r, 304, tail, 40), 0);
	memcpy(&length, tail + 4, sizeof length);
	CHECK_INT(length, 40);
	CHECK_REFUSED(query_device_ex(&w, r, 304, tail, 4), -EINVAL, WHY_CMD_ATTRIBUTES);
	uv_world_end(&w);
}

/* --- ports --- */

static int query_port(const struct uv_world *w, uint64_t port,
		      struct ib_uverbs_query_port_resp_ex *r)
{
	struct cmd c = cmd_new(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);

	cmd_u64(&c, UVERBS_ATTR_QUERY_PORT_PORT_NUM, port);
	cmd_out(&c, UVERBS_ATTR_QUERY_PORT_RESP, r, sizeof *r);
	return cmd_run(w, &c);
}

Test(uv_device, ethernet_port)
{
	struct uv_world w = uv_world_new();
	struct ib_uverbs_query_port_resp_ex r;

	CHECK_INT(query_port(&w, 1, &r), 0);
	CHECK_INT(r.legacy_resp.state, 4);
	CHECK_INT(r.legacy_resp.phys_state, 5);
	CHECK_INT(r.legacy_resp.link_layer, 2);
	CHECK_INT(r.legacy_resp.flags, IB_UVERBS_QPF_GRH_REQUIRED);
	CHECK_INT(r.legacy_resp.max_mtu, 5);
	CHECK_INT(r.legacy_resp.active_mtu, 5);
	CHECK_INT(r.legacy_resp.lid, 0);
	CHECK_INT(r.legacy_resp.pkey_tbl_len, 1);
	CHECK_INT(r.legacy_resp.max_msg_sz, 1u << 30);
	w.dev->port.is_down = true;
	CHECK_INT(query_port(&w, 1, &r), 0);
	CHECK_INT(r.legacy_resp.state, 1);
	CHECK_INT(r.legacy_resp.phys_state, 3);
	CHECK_REFUSED(query_port(&w, 0, &r), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(query_port(&w, 2, &r), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(query_port(&w, 257, &r), -EINVAL, WHY_CMD_VALUE);
	uv_world_end(&w);
}

Test(uv_device, infiniband_port_has_lids)
{
	struct uv_world w = uv_world_new();
	struct ib_uverbs_query_port_resp_ex r;

	w.dev->profile = hw_profile_find("connectx-6");
	w.dev->lid = 0x1234;
	CHECK_INT(query_port(&w, 1, &r), 0);
	CHECK_INT(r.legacy_resp.link_layer, 1);
	CHECK_INT(r.legacy_resp.flags, 0);
	CHECK_INT(r.legacy_resp.lid, 0x1234);
	CHECK_INT(r.legacy_resp.sm_lid, 1);
	CHECK_INT(r.legacy_resp.lmc, 0);
	CHECK_INT(r.legacy_resp.pkey_tbl_len, 128);
	w.dev->port.is_down = true;
	w.dev->port.sm_lid = 7;
	w.dev->lmc = 2;
	w.dev->port.bad_pkeys = 3;
	CHECK_INT(query_port(&w, 1, &r), 0);
	CHECK_INT(r.legacy_resp.state, 1);
	CHECK_INT(r.legacy_resp.phys_state, 2);
	CHECK_INT(r.legacy_resp.sm_lid, 7);
	CHECK_INT(r.legacy_resp.lmc, 2);
	CHECK_INT(r.legacy_resp.bad_pkey_cntr, 3);
	uv_world_end(&w);
}

Test(uv_device, mlx5_query_port_says_that_it_says_nothing)
{
	struct uv_world w = uv_world_new();
	struct mlx5_ib_uapi_query_port r = { .flags = 9 };
	struct cmd c = cmd_new(UVERBS_OBJECT_DEVICE, MLX5_IB_METHOD_QUERY_PORT);

	cmd_u32(&c, MLX5_IB_ATTR_QUERY_PORT_PORT_NUM, 1);
	cmd_out(&c, MLX5_IB_ATTR_QUERY_PORT, &r, sizeof r);
	CHECK_INT(cmd_run(&w, &c), 0);
	CHECK_INT(r.flags, 0);
	uv_world_end(&w);
}

/* --- GIDs --- */

static int gid_entry(const struct uv_world *w, uint64_t index, struct ib_uverbs_gid_entry *e)
{
	struct cmd c = cmd_new(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY);

	cmd_u64(&c, UVERBS_ATTR_QUERY_GID_ENTRY_PORT, 1);
	cmd_u64(&c, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, index);
	cmd_u32(&c, UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, 0);
	cmd_out(&c, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, e, sizeof *e);
	return cmd_run(w, &c);
}

Test(uv_device, gid_entries)
{
	struct uv_world w = uv_world_new();
	struct ib_uverbs_gid_entry e;
	uint64_t before = world_why.made;

	CHECK_INT(gid_entry(&w, 2, &e), 0);
	CHECK_INT(memcmp(e.gid, w.dev->gid[2].raw, 16), 0);
	CHECK_INT(e.gid_type, 2);
	CHECK_INT(e.gid_index, 2);
	CHECK_INT(e.port_num, 1);
	CHECK_INT(e.netdev_ifindex, 7);
	CHECK_INT(gid_entry(&w, 1, &e), -ENODATA);	/* a hole */
	CHECK_INT(gid_entry(&w, 3, &e), -ENODATA);	/* behind the last */
	CHECK_INT(gid_entry(&w, 254, &e), -ENODATA);
	CHECK_INT(world_why.made, before);
	CHECK_REFUSED(gid_entry(&w, 255, &e), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(gid_entry(&w, 1ull << 32, &e), -EINVAL, WHY_CMD_VALUE);
	uv_world_end(&w);
}

static int gid_table(const struct uv_world *w, uint64_t row_bytes, void *out, size_t bytes,
		     uint64_t *count)
{
	struct cmd c = cmd_new(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE);

	cmd_u64(&c, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, row_bytes);
	cmd_u32(&c, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, 0);
	cmd_out(&c, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, out, bytes);
	cmd_out(&c, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, count, sizeof *count);
	return cmd_run(w, &c);
}

Test(uv_device, gid_table_has_no_holes_and_the_callers_row_size)
{
	struct uv_world w = uv_world_new();
	uint8_t out[40 * 8];
	uint32_t index;
	uint64_t count;

	memset(out, 0xee, sizeof out);
	CHECK_INT(gid_table(&w, 40, out, 40 * 4, &count), 0);
	CHECK_INT(count, 2);
	memcpy(&index, out + 40 + 16, sizeof index);
	CHECK_INT(index, 2);
	CHECK_INT(out[39], 0);
	CHECK_INT(out[80], 0xee);
	CHECK_INT(gid_table(&w, 16, out, 32, &count), 0);	/* a prefix only */
	CHECK_INT(memcmp(out + 16, w.dev->gid[2].raw, 16), 0);
	CHECK_REFUSED(gid_table(&w, 32, out, 32, &count), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(gid_table(&w, 0, out, 32, &count), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(gid_table(&w, 24, out, 32, &count), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(gid_table(&w, 1ull << 60, out, 64, &count), -EINVAL, WHY_CMD_VALUE);
	uv_world_end(&w);
}

/* --- pages --- */

Test(uv_device, clock_pages_follow_every_command)
{
	struct uv_world w = uv_world_new();
	struct ib_uverbs_query_port_resp_ex r;
	uint64_t before, cycles;
	uint64_t *counter, *info;
	void *at;

	CHECK_INT(uv_mmap(w.file, NULL, 4096, PROT_READ, MAP_SHARED, 0x500000, &at), 0);
	counter = at;
	CHECK_INT(uv_mmap(w.file, NULL, 4096, PROT_READ, MAP_SHARED, 0x700000, &at), 0);
	info = at;
	before = world_now_ns();
	CHECK_INT(query_port(&w, 1, &r), 0);
	cycles = be64toh(*counter);
	cr_assert(cycles >= before && cycles <= world_now_ns());
	CHECK_INT(info[2], cycles);
	uv_clock_refresh(w.file);
	cr_assert_geq(be64toh(*counter), cycles);
	uv_world_end(&w);
}

Test(uv_device, pages_are_shared_memory_of_their_own)
{
	struct uv_world w = uv_world_new();
	uint32_t uar;
	uint64_t *first, *again, *second;
	void *at;

	CHECK_INT(uv_mmap(w.file, NULL, 4096, PROT_WRITE, MAP_SHARED, w.page_offset, &at), 0);
	first = at;
	CHECK_INT(uv_mmap(w.file, NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, w.page_offset,
			  &at), 0);
	again = at;
	CHECK_INT(uar_alloc(&w, MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF, &uar), 0);
	CHECK_INT(uv_mmap(w.file, NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, w.page_offset,
			  &at), 0);
	second = at;
	first[0x100] = 5;
	second[0x100] = 6;
	CHECK_INT(again[0x100], 5);
	CHECK_INT(uar_free(&w, uar), 0);
	CHECK_REFUSED(uv_mmap(w.file, NULL, 4096, PROT_WRITE, MAP_SHARED, w.page_offset, &at),
		      -EINVAL, WHY_CMD_VALUE);
	CHECK_INT(uar_alloc(&w, MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF, &uar), 0);
	CHECK_INT(second[0x100], 0);		/* a page is handed out clean */
	CHECK_INT(uar_alloc(&w, 2, &uar), -EOPNOTSUPP);
	uv_world_end(&w);
}

Test(uv_device, mmap_rules)
{
	static const struct { uint64_t offset; size_t bytes; int prot, flags, rc; } rows[] = {
		{ 0x000000, 4096, PROT_WRITE, MAP_SHARED, -EINVAL },	/* no static pages */
		{ 0x100000, 4096, PROT_WRITE, MAP_SHARED, -ENOSYS },
		{ 0x500000, 4096, PROT_READ, MAP_SHARED, 0 },
		{ 0x500000, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, -EPERM },
		{ 0x500000, 8192, PROT_READ, MAP_SHARED, -EINVAL },
		{ 0x700000, 4096, PROT_READ, MAP_SHARED, 0 },
		{ 0x700000, 4096, PROT_WRITE, MAP_SHARED, -EPERM },
		{ 0x701000, 4096, PROT_READ, MAP_SHARED, -EOPNOTSUPP },
		{ 0x803000, 4096, PROT_READ, MAP_SHARED, -EINVAL },	/* not allocated */
		{ 0x600000, 4096, PROT_WRITE, MAP_SHARED, -EINVAL },
		{ 0xa01000, 4096, PROT_WRITE, MAP_SHARED, -EINVAL },
		{ 0x901000, 8192, PROT_WRITE, MAP_SHARED, -EINVAL },
		{ 0x901000, 0, PROT_WRITE, MAP_SHARED, -EINVAL },
		{ 0x901001, 4096, PROT_WRITE, MAP_SHARED, -EINVAL },
		{ 0x901000, 4096, PROT_WRITE, MAP_PRIVATE, -EINVAL },
		{ 0x901000, 4096, PROT_WRITE | PROT_EXEC, MAP_SHARED, -EPERM },
		{ 0x902000, 4096, PROT_WRITE, MAP_SHARED, -EINVAL },	/* not allocated */
		{ 0xfffffffffff01000, 4096, PROT_WRITE, MAP_SHARED, -EINVAL },
		{ 0x901000, 4096, PROT_WRITE, MAP_SHARED, 0 },
	};
	struct uv_world w = uv_world_new();

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		void *at;
		int rc = uv_mmap(w.file, NULL, rows[i].bytes, rows[i].prot, rows[i].flags,
				 rows[i].offset, &at);

		cr_assert(rc == rows[i].rc, "row %zu: %d", i, rc);
	}
	uv_world_end(&w);
}

Test(uv_device, static_pages_of_an_older_client)
{
	struct uv_world w = uv_world_bare("");
	struct mlx5_ib_alloc_ucontext_req_v2 ask = context_request();
	struct mlx5_ib_alloc_ucontext_resp r;
	void *at;

	ask.lib_caps = MLX5_LIB_CAP_4K_UAR;
	CHECK_INT(context_get(&w, &ask, sizeof ask, &r), 0);
	CHECK_INT(uv_mmap(w.file, NULL, 4096, PROT_WRITE, MAP_SHARED, 0x000000, &at), 0);
	CHECK_INT(uv_mmap(w.file, NULL, 4096, PROT_WRITE, MAP_SHARED, 0x207000, &at), 0);
	CHECK_INT(uv_mmap(w.file, NULL, 4096, PROT_WRITE, MAP_SHARED, 0x008000, &at), -EINVAL);
	CHECK_INT(uv_mmap(w.file, NULL, 4096, PROT_WRITE, MAP_SHARED, 0x901000, &at), -EINVAL);
	uv_world_end(&w);
}

Test(uv_device, there_is_an_end_to_pages)
{
	struct uv_world w = uv_world_new();
	uint32_t uar, last = OTHER;
	int rc, count = 1;

	while (!(rc = uar_alloc(&w, 0, &uar))) {
		last = uar;
		count++;
	}
	CHECK_INT(rc, -ENOMEM);
	CHECK_INT(count, 1023);
	CHECK_INT(uar_free(&w, last), 0);
	CHECK_INT(uar_alloc(&w, 0, &uar), 0);
	uv_world_end(&w);
}
