/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port of a function: partitions.
 *
 * Method: the RC world, whose QPs are moved to other partitions with modify_qp.
 */
#include "tests/unit/rc_world.h"

#define CHECK_INT(got, want) cr_assert_eq((long long)(got), (long long)(want))

Test(port, partition_keys_match_by_number_and_one_full_member)
{
	static const struct { uint16_t a, b; bool match; } rows[] = {
		{ 0xffff, 0xffff, true },  { 0xffff, 0x7fff, true },  { 0x7fff, 0xffff, true },
		{ 0x7fff, 0x7fff, false }, { 0x8001, 0x8001, true },  { 0x8001, 0x0001, true },
		{ 0x0001, 0x0001, false }, { 0x8001, 0x8002, false }, { 0x8000, 0x8000, false },
		{ 0x8000, 0, false },      { 0, 0, false },           { 0xffff, 0, false },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		cr_assert_eq(ib_pkeys_match(rows[i].a, rows[i].b), rows[i].match, "row %zu", i);
}

static int to_partition(struct world *w, struct emu_qp *qp, uint16_t index)
{
	struct qp_attr at = { .state = QP_RESET, .port = 1, .pkey_index = index };
	int rc = qp_modify(&w->dev, qp, &at, A_STATE);

	at.state = QP_INIT;
	return rc ? rc : qp_modify(&w->dev, qp, &at, A_STATE | A_PKEY | A_PORT | A_ACCESS);
}

Test(port, a_qp_has_the_partition_at_its_index)
{
	struct world *w = world_new();
	struct emu_qp *qp = w->a.qp;

	w->dev.profile = hw_profile_find("connectx-6");
	w->dev.port.pkey[5] = 0x8005;
	w->dev.port.pkey[127] = 0x7fff;
	CHECK_INT(qp->pkey, 0xffff);
	CHECK_INT(to_partition(w, qp, 5), 0);
	CHECK_INT(qp->pkey, 0x8005);
	CHECK_INT(qp->resp->pkey, 0x8005);
	CHECK_INT(to_partition(w, qp, 127), 0);
	CHECK_INT(qp->pkey, 0x7fff);
	CHECK_INT(to_partition(w, qp, 1), 0);		/* an empty entry matches nobody */
	CHECK_INT(qp->pkey, 0);
	CHECK_INT(to_partition(w, qp, 128), -EINVAL);
	CHECK_INT(to_partition(w, qp, 0), 0);
	CHECK_INT(qp->pkey, 0xffff);
}
