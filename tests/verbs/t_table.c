/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * User indexes: each names one queue, none is given twice, and all but the last can be given.
 *
 * Method: a context that is nothing but a table.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include "verbs/context.h"

#define INDEXES	(1u << 24)
#define NOBODY	(INDEXES - 1)	/* what a queue without an index tells the device */
#define BLOCK	16384u

static struct vb_context context;

Test(table, finds_what_was_added_and_nothing_else)
{
	struct vb_queue a = { .kind = VB_QP }, b = { .kind = VB_SRQ };

	cr_assert_null(vb_queue_find(&context, 0));
	cr_assert_eq(vb_queue_add(&context, &a), 0);
	cr_assert_eq(vb_queue_add(&context, &b), 0);
	cr_assert_neq(a.user_index, b.user_index);
	cr_assert_eq(vb_queue_find(&context, a.user_index), &a);
	cr_assert_eq(vb_queue_find(&context, b.user_index), &b);
	vb_queue_remove(&context, &a);
	cr_assert_null(vb_queue_find(&context, a.user_index));
	cr_assert_eq(vb_queue_find(&context, b.user_index), &b);
	cr_assert_null(vb_queue_find(&context, INDEXES - 1), "no block is there");
	vb_table_end(&context);
}

/* A late completion must not find the queue that came after the one it meant. */
Test(table, an_index_that_was_given_up_rests)
{
	struct vb_queue a = { .kind = VB_QP }, b = { .kind = VB_QP };
	uint32_t before;

	cr_assert_eq(vb_queue_add(&context, &a), 0);
	before = a.user_index;
	vb_queue_remove(&context, &a);
	cr_assert_eq(vb_queue_add(&context, &b), 0);
	cr_assert_neq(b.user_index, before);
	vb_table_end(&context);
}

Test(table, a_full_block_is_left_and_used_again)
{
	struct vb_queue *q = calloc(BLOCK + 2, sizeof *q);

	for (unsigned i = 0; i <= BLOCK; i++) {
		cr_assert_eq(vb_queue_add(&context, &q[i]), 0);
		cr_assert_eq(q[i].user_index, i);
	}
	vb_queue_remove(&context, &q[77]);
	/* The block that the last index came from has room; when it has none, this place is found.
	 */
	cr_assert_eq(vb_queue_add(&context, &q[BLOCK + 1]), 0);
	cr_assert_eq(q[BLOCK + 1].user_index, BLOCK + 1);
	cr_assert_null(vb_queue_find(&context, 77));
	vb_table_end(&context);
	free(q);
}

/* One queue stands at all places: only the last index counts for it. */
Test(table, is_full_after_all_but_one, .timeout = 60)
{
	struct vb_queue everybody = { .kind = VB_QP }, late = { .kind = VB_QP };

	for (uint32_t i = 0; i < NOBODY; i++) {
		bool is_good = !vb_queue_add(&context, &everybody) && everybody.user_index == i;

		if (!is_good)
			cr_assert(is_good, "index %u was %u", i, everybody.user_index);
	}
	cr_assert_eq(vb_queue_add(&context, &late), ENOMEM);
	cr_assert_null(vb_queue_find(&context, NOBODY));
	everybody.user_index = 0x123456;
	vb_queue_remove(&context, &everybody);
	cr_assert_eq(vb_queue_add(&context, &late), 0);
	cr_assert_eq(late.user_index, 0x123456);
	cr_assert_eq(vb_queue_add(&context, &late), ENOMEM);
	vb_table_end(&context);
}
