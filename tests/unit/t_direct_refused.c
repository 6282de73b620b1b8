/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-sided operations that may not be executed in a peer's place: nothing has happened there, the
 * request goes by packet, and its owner says why not.
 *
 * Method: two functions with a wire that counts, see direct_world.h; one thing is spoiled at a
 * time.
 */
#include "tests/unit/direct_world.h"

TestSuite(direct_refused, .init = start, .fini = stop, .timeout = 50);

static struct emu_mr *other_mr(uint32_t rights)
{
	return end_register(b, b->w.a.data, BIG, rights);
}

static void spoil_nothing(struct work_row *row)
{
	(void)row;
}

static void spoil_index(struct work_row *row)
{
	row->rkey = b->w.a.mr->key + 0x200;
}

static void spoil_tag(struct work_row *row)
{
	row->rkey = b->w.a.mr->key ^ 1;
}

static void spoil_pd(struct work_row *row)
{
	cr_assert_eq(pd_create(&b->w.dev, &b->w.pd), 0);
	row->rkey = other_mr(ALL_RIGHTS)->key;
}

static void spoil_rights(struct work_row *row)
{
	row->rkey = other_mr(KEY_LOCAL_WRITE)->key;
}

static void spoil_range(struct work_row *row)
{
	row->remote = (uintptr_t)b->w.a.data + BIG - 4 - (row->opcode >= OP_CAS ? 4 : 0);
	row->rkey = end_register(b, b->w.a.data, BIG - 8, ALL_RIGHTS)->key;
}

static void spoil_destroyed(struct work_row *row)
{
	struct emu_mr *mr = other_mr(ALL_RIGHTS);

	row->rkey = mr->key;
	cr_assert_eq(mr_destroy(&b->w.dev, mr), 0);
}

static void spoil_qp_rights(struct work_row *row)
{
	(void)row;
	b->w.a.qp->resp->access = 0;
}

static void spoil_alignment(struct work_row *row)
{
	row->remote = (uintptr_t)b->w.a.data + 4;
}

static void spoil_resources(struct work_row *row)
{
	(void)row;
	b->w.a.qp->resp->resource_limit = 0;
}

static void spoil_local_key(struct work_row *row)
{
	row->lkey = a->w.a.mr->key ^ 1;
}

static void spoil_local_rights(struct work_row *row)
{
	row->lkey = end_register(a, a->w.a.data, BIG, KEY_REMOTE_READ)->key;
}

static void spoil_local_memory(struct work_row *row)
{
	(void)row;
	munmap(a->w.a.data, BIG);
}

static void spoil_remote_memory(struct work_row *row)
{
	uint8_t *at = pages_new(8192);

	row->rkey = end_register(b, at, 8192, ALL_RIGHTS)->key;
	row->remote = (uintptr_t)at;
	munmap(at, 8192);
}

static void spoil_peer(struct work_row *row)
{
	(void)row;
	b->w.a.qp->resp->peer_qpn++;
}

static void spoil_sgid(struct work_row *row)
{
	(void)row;
	b->w.a.qp->resp->sgid[15]++;
}

static void spoil_dgid(struct work_row *row)
{
	(void)row;
	b->w.a.qp->resp->dgid[0]++;
}

static void spoil_mtu(struct work_row *row)
{
	(void)row;
	b->w.a.qp->resp->mtu_bytes *= 2;
}

static void spoil_pkey(struct work_row *row)
{
	(void)row;
	b->w.a.qp->resp->pkey = 0x8001;
}

static void spoil_state(struct work_row *row)
{
	(void)row;
	qp_state_set(b->w.a.qp, QP_ERR);
}

static void spoil_rtr(struct work_row *row)
{
	(void)row;
	qp_state_set(b->w.a.qp, QP_RTR);
}

static void spoil_transport(struct work_row *row)
{
	(void)row;
	b->w.a.qp->type = QPT_UC;
	qp_state_set(b->w.a.qp, QP_RTS);
}

static void spoil_psn(struct work_row *row)
{
	(void)row;
	b->w.a.qp->resp->psn_expected++;
}

static void spoil_sequence(struct work_row *row)
{
	(void)row;
	b->w.a.qp->resp->is_in_message = true;
}

enum { ACCESS = 0x13, INVALID = 0x12, LOCAL = 0x04, RETRY = 0x15, GOOD = 0, DO_W = 1, DO_R = 2,
	DO_A = 4, ONE_SIDED = 7 };

/* Who it is for, and what it ends with when the packet has been judged.  -2: not looked at. */
static const struct refusal_row {
	const char *name;
	void (*spoil)(struct work_row *row);
	unsigned ops;
	int status;
} refusal_rows[] = {
	{ "key index",     spoil_index,         ONE_SIDED, ACCESS },
	{ "key tag",       spoil_tag,           ONE_SIDED, ACCESS },
	{ "PD",            spoil_pd,            ONE_SIDED, ACCESS },
	{ "key rights",    spoil_rights,        ONE_SIDED, ACCESS },
	{ "range",         spoil_range,         ONE_SIDED, ACCESS },
	{ "destroyed key", spoil_destroyed,     ONE_SIDED, ACCESS },
	{ "QP rights",     spoil_qp_rights,     ONE_SIDED, INVALID },
	{ "alignment",     spoil_alignment,     DO_A,      INVALID },
	{ "resources",     spoil_resources,     DO_R | DO_A, INVALID },
	{ "local key",     spoil_local_key,     DO_R,      LOCAL },
	{ "local rights",  spoil_local_rights,  DO_R,      LOCAL },
	{ "local memory",  spoil_local_memory,  DO_W | DO_R, LOCAL },
	{ "remote memory", spoil_remote_memory, ONE_SIDED, ACCESS },
	{ "peer",          spoil_peer,          ONE_SIDED, GOOD },
	{ "sgid",          spoil_sgid,          ONE_SIDED, GOOD },
	{ "dgid",          spoil_dgid,          ONE_SIDED, GOOD },
	{ "MTU",           spoil_mtu,           ONE_SIDED, -2 },
	{ "P_Key",         spoil_pkey,          ONE_SIDED, GOOD },
	{ "state",         spoil_state,         ONE_SIDED, -2 },
	{ "RTR",           spoil_rtr,           ONE_SIDED, GOOD },
	{ "transport",     spoil_transport,     ONE_SIDED, -2 },
	{ "PSN",           spoil_psn,           ONE_SIDED, -2 },
	{ "sequence",      spoil_sequence,      ONE_SIDED, INVALID },
};

static const struct { unsigned bit; uint8_t opcode; } one_sided[] = {
	{ DO_W, OP_WRITE }, { DO_R, OP_READ }, { DO_A, OP_ADD },
};

/* Each of them breaks the connection. */
static void check_refusal(const struct refusal_row *row, uint8_t opcode)
{
	struct work_row work = { .opcode = opcode, .bytes = 8, .swap_add = 1 };
	uint64_t before = 77;
	uint32_t gate;

	memset(b->w.a.data, 77, 64);
	row->spoil(&work);
	gate = b->w.a.qp->resp->psn_expected;
	post(work);
	ring(a);
	/* A source that can't be read is found by the wire, which sends nothing then. */
	if (row->spoil != spoil_local_memory || opcode != OP_WRITE)
		cr_assert_eq(a->wire.sent, 1, "%s: opcode %#x: %u packets", row->name, opcode,
			     a->wire.sent);
	memset(&before, 77, sizeof before);
	for (int i = 0; i < 8; i++)
		cr_assert_eq(word_of(b)[i], before, "%s: opcode %#x wrote", row->name, opcode);
	cr_assert_eq(b->w.a.qp->resp->psn_expected, gate, "%s", row->name);
	if (row->status == -2)
		return;
	settle();
	cr_assert_eq(outcome(a), row->status, "%s: opcode %#x", row->name, opcode);
}

#define REFUSAL(sentence, row_name)               \
	Test(direct_refused, sentence)            \
	{                                         \
		refuse_all(row_name);             \
	}

/* Each opcode has new ends. */
static void refuse_all(const char *row_name)
{
	for (size_t i = 0; i < sizeof refusal_rows / sizeof *refusal_rows; i++) {
		if (strcmp(refusal_rows[i].name, row_name))
			continue;
		for (size_t op = 0; op < 3; op++) {
			if (!(refusal_rows[i].ops & one_sided[op].bit))
				continue;
			check_refusal(&refusal_rows[i], one_sided[op].opcode);
			start();
		}
		return;
	}
	cr_assert(false, "no row %s", row_name);
}

REFUSAL(an_unknown_key_is_refused, "key index")
REFUSAL(a_key_of_another_tag_is_refused, "key tag")
REFUSAL(a_key_of_another_pd_is_refused, "PD")
REFUSAL(a_key_without_the_right_is_refused, "key rights")
REFUSAL(a_range_behind_the_key_is_refused, "range")
REFUSAL(a_destroyed_key_is_refused, "destroyed key")
REFUSAL(a_qp_without_the_right_is_refused, "QP rights")
REFUSAL(an_unaligned_atomic_is_refused, "alignment")
REFUSAL(no_read_resources_are_a_refusal, "resources")
REFUSAL(a_bad_local_key_is_refused, "local key")
REFUSAL(a_local_key_without_the_right_is_refused, "local rights")
REFUSAL(unmapped_local_memory_is_refused, "local memory")
REFUSAL(unmapped_remote_memory_is_refused, "remote memory")
REFUSAL(another_qps_responder_is_refused, "peer")
REFUSAL(another_source_address_is_refused, "sgid")
REFUSAL(another_destination_address_is_refused, "dgid")
REFUSAL(another_mtu_is_refused, "MTU")
REFUSAL(another_partition_is_refused, "P_Key")
REFUSAL(a_closed_qp_is_refused, "state")
REFUSAL(a_qp_that_is_not_established_is_refused, "RTR")
REFUSAL(a_qp_of_another_transport_is_refused, "transport")
REFUSAL(another_psn_is_refused, "PSN")
REFUSAL(a_message_in_another_is_refused, "sequence")

/* The table above proves nothing if everything went by packet. */
Test(direct_refused, what_is_not_spoiled_is_executed)
{
	static const struct refusal_row none = { "nothing", spoil_nothing, ONE_SIDED, GOOD };

	for (size_t op = 0; op < 3; op++) {
		struct work_row work = { .opcode = one_sided[op].opcode, .bytes = 8 };

		none.spoil(&work);
		post(work);
		ring(a);
		EXPECT_EXECUTED();
	}
}

/* A key of memory at an odd offset: an aligned address, unaligned memory. */
Test(direct_refused, an_atomic_on_unaligned_memory_is_refused)
{
	struct key_entry entry = { .access = ALL_RIGHTS, .pdn = b->w.pd->pdn, .start = 4096,
		.bytes = 4096, .memory = (uintptr_t)b->w.a.data + 1 };
	uint32_t key;

	cr_assert_eq(key_create(&b->w.dev.keys, &entry, &key), 0);
	post((struct work_row){ .opcode = OP_ADD, .bytes = 8, .swap_add = 1, .remote = 4096,
		.rkey = key });
	ring(a);
	cr_assert_eq(a->wire.sent, 1);
	cr_assert(is_all(b->w.a.data, 0, 16));
	settle();
	cr_assert_eq(outcome(a), ACCESS);
}

/* --- scribblers --- */

static void scribble(void *at, size_t bytes, unsigned seed)
{
	uint8_t *byte = at;

	for (size_t i = 0; i < bytes; i++) {
		seed = seed * 1103515245u + 12345;
		byte[i] = seed % 5 ? (uint8_t)(seed >> 16) : 0;
	}
}

/* All by packets: this is about b's own engine. */
static void everything_at_once(void)
{
	a->e->share = NULL;
	a->e->is_direct = false;
	recv_post(&b->w.a, 64, 0, 4096);
	recv_post(&b->w.a, 64, 0, 4096);
	post((struct work_row){ .opcode = OP_READ, .bytes = 8 });
	post((struct work_row){ .opcode = OP_ADD, .bytes = 8 });
	post((struct work_row){ .opcode = OP_WRITE, .bytes = 100000 });
	post((struct work_row){ .opcode = OP_SEND, .bytes = 24 });
	ring(a);
}

Test(direct_refused, an_owner_lives_with_any_bytes_in_its_responders_and_keys, .timeout = 10)
{
	for (unsigned seed = 0; seed < 12; seed++) {
		struct emu_qp *qp = b->w.a.qp;
		uint32_t events;

		everything_at_once();
		if (seed % 2)
			engine_lend(b->e);	/* in the middle of answering */
		scribble(qp->resp, sizeof *qp->resp, seed);
		scribble(numbers_find(&b->w.dev.keys.indices, KEY_INDEX(b->w.a.mr->key)),
			 sizeof(struct key_entry), seed + 100);
		/* The PSN that comes is the one expected; else nobody would look further. */
		if (seed % 3)
			qp->resp->psn_expected = b->wire.queue[b->wire.head % QUEUED].p.psn;
		settle();
		take_to(QP_ERR);
		settle();
		cr_assert_eq(mr_destroy(&b->w.dev, b->w.a.mr), 0);
		engine_qp_forget(b->e, qp);
		cr_assert_eq(qp_destroy(&b->w.dev, qp, &events), 0);
		start();
	}
}
