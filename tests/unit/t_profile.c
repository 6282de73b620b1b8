/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Profiles: VERBENA_NIC names one, and their limits are such that libmlx5 44 can reach them.
 *
 * Method: the size formulas of libmlx5's create_qp, typed here independently.
 */
#include <criterion/criterion.h>
#include <string.h>
#include "hw-models/hw.h"
#include "hw-models/profile.h"

Test(profile, names_find_their_row_and_the_default_is_the_6dx)
{
	static const struct {
		const char *name;
		uint16_t pci;
		uint32_t part;
		enum hw_link link;
	} rows[] = {
		{ NULL, 0x101d, 4125, HW_LINK_ETHERNET }, { "", 0x101d, 4125, HW_LINK_ETHERNET },
		{ "connectx-6dx", 0x101d, 4125, HW_LINK_ETHERNET },
		{ "connectx-5", 0x1017, 4119, HW_LINK_ETHERNET },
		{ "connectx-7", 0x1021, 4129, HW_LINK_ETHERNET },
		{ "connectx-6", 0x101b, 4123, HW_LINK_INFINIBAND },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct hw_profile *p = hw_profile_find(rows[i].name);

		cr_assert_not_null(p);
		cr_assert_eq(p->pci_device, rows[i].pci);
		cr_assert_eq(p->vendor_part_id, rows[i].part);
		cr_assert_eq(p->link, rows[i].link);
	}
	cr_assert_null(hw_profile_find("connectx-6d"));
	cr_assert_null(hw_profile_find("hw"));
}

Test(profile, rows_are_complete)
{
	for (unsigned i = 0; i < hw_profile_count; i++) {
		const struct hw_profile *p = &hw_profiles[i];

		cr_assert_eq(hw_profile_find(p->name), p);
		cr_assert_not_null(strstr(p->board_id, "EMULATED"));
		cr_assert(p->hca_type && p->fw_ver && p->active_speed && p->active_width);
		cr_assert(p->max_mtu >= 1 && p->max_mtu <= 5);
		cr_assert(p->gid_table && p->pkey_table && p->comp_vectors && p->core_clock_khz);
		cr_assert(p->max_cq && p->max_cqe && p->max_mr && p->max_pd && p->max_qp);
	}
}

/* libmlx5 sizes an RC request for every operation it could become: control, UMR control, key
 * context and inline lists take 192 bytes; then the scatter list, in blocks of 64. */
static unsigned send_bytes(unsigned sges)
{
	return (192 + 16 * sges + 63) / 64 * 64;
}

Test(profile, libmlx5_accepts_the_limits_that_are_told)
{
	for (unsigned i = 0; i < hw_profile_count; i++) {
		const struct hw_profile *p = &hw_profiles[i];

		cr_assert_leq(p->max_qp_wr * send_bytes(1) / 64, p->max_send_wqebb);
		cr_assert_leq(p->max_qp_wr, 0x7fffffffu / p->max_sq_desc_bytes);
		cr_assert_leq(send_bytes(p->max_sge), p->max_sq_desc_bytes);
		cr_assert_leq(16 * p->max_sge, p->max_rq_desc_bytes);
		cr_assert_leq(p->max_sge, HW_SGE_MAX);
		cr_assert_leq(p->max_rd_atomic, 16);
		cr_assert_eq(p->max_send_wqebb & (p->max_send_wqebb - 1), 0);
	}
}
