/* SPDX-License-Identifier: BSD-2-Clause */
/* What must be true of a completion; see check.h. */
#include "check.h"
#include <string.h>

/* expected-statuses.md, "Error CQE bytes".  Two rows of the table are uncertain about the
 * vendor byte, so a list of what real parts are known to say is accepted. */
static const struct expected_error expected_errors[] = {
	{ IBV_WC_LOC_LEN_ERR, 0x01, { 0x69 }, { 0x69 } },
	{ IBV_WC_LOC_QP_OP_ERR, 0x02, { 0x68 }, { 0xd6 } },
	{ IBV_WC_LOC_PROT_ERR, 0x04, { 0x51, 0x52, 0x53 }, { 0x51, 0x32 } },
	{ IBV_WC_WR_FLUSH_ERR, 0x05, { 0xf9 }, { 0xf9 } },
	{ IBV_WC_MW_BIND_ERR, 0x06, { 0x25 }, { 0 } },
	{ IBV_WC_REM_INV_REQ_ERR, 0x12, { 0x8a }, { 0x8a } },
	{ IBV_WC_REM_ACCESS_ERR, 0x13, { 0x88 }, { 0 } },
	{ IBV_WC_REM_OP_ERR, 0x14, { 0x89 }, { 0 } },
	{ IBV_WC_RETRY_EXC_ERR, 0x15, { 0x81 }, { 0 } },
	{ IBV_WC_RNR_RETRY_EXC_ERR, 0x16, { 0x87 }, { 0 } },
};

const struct expected_error *expected_error_find(enum ibv_wc_status status)
{
	for (size_t i = 0; i < ROWS(expected_errors); i++)
		if (expected_errors[i].status == status)
			return &expected_errors[i];
	return NULL;
}

void check_none(const char *row, const struct done *d)
{
	cr_expect(!d->found, "%s: unexpected completion: wr_id %lu, %s", row,
		  (unsigned long)d->wc.wr_id, ibv_wc_status_str(d->wc.status));
}

void check_ok(const char *row, const struct done *d, uint64_t wr_id, enum ibv_wc_opcode opcode)
{
	cr_assert(d->found, "%s: no completion for wr_id %lu", row, (unsigned long)wr_id);
	cr_expect_eq(d->wc.wr_id, wr_id, "%s: wr_id is %lu, want %lu", row,
		     (unsigned long)d->wc.wr_id, (unsigned long)wr_id);
	cr_assert_eq(d->wc.status, IBV_WC_SUCCESS, "%s: wr_id %lu: %s (vendor 0x%x)", row,
		     (unsigned long)d->wc.wr_id, ibv_wc_status_str(d->wc.status),
		     d->wc.vendor_err);
	cr_expect_eq(d->wc.opcode, opcode, "%s: wc opcode is %d, want %d", row, d->wc.opcode,
		     opcode);
}

static bool is_listed(uint8_t value, const uint8_t list[3])
{
	return value && (value == list[0] || value == list[1] || value == list[2]);
}

static uint32_t get32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Bytes 52 to 63, all but the signature and bits 1 to 3 of the last. */
static void check_bytes(const char *row, const struct done *d, const struct expected_error *x,
			uint32_t qpn, int wqe_opcode, int wqe_index)
{
	const uint8_t *c = d->cqe;
	unsigned kind = c[63] >> 4;

	cr_expect(!c[52] && !c[53], "%s: hardware syndrome is %02x %02x", row, c[52], c[53]);
	cr_expect_eq(c[54], d->wc.vendor_err, "%s: vendor byte", row);
	cr_expect_eq(c[55], x->syndrome, "%s: syndrome is 0x%02x, want 0x%02x", row, c[55],
		     x->syndrome);
	cr_expect_eq(get32(c + 56) & 0xffffff, qpn, "%s: QPN in the CQE is 0x%x, want 0x%x", row,
		     get32(c + 56) & 0xffffff, qpn);
	if (wqe_opcode >= 0)
		cr_expect_eq(c[56], wqe_opcode, "%s: WQE opcode is 0x%02x, want 0x%02x", row,
			     c[56], wqe_opcode);
	if (wqe_index >= 0)
		cr_expect_eq(c[60] << 8 | c[61], wqe_index, "%s: WQE index is %d, want %d", row,
			     c[60] << 8 | c[61], wqe_index);
	cr_expect_eq(kind, wqe_opcode >= 0 ? 13u : 14u, "%s: CQE opcode is %u", row, kind);
}

void check_error(const char *row, const struct done *d, uint64_t wr_id,
		 enum ibv_wc_status status, uint32_t qpn, int wqe_opcode, int wqe_index)
{
	static const uint8_t nothing[64];
	const struct expected_error *x = expected_error_find(status);

	cr_assert(d->found, "%s: no completion for wr_id %lu", row, (unsigned long)wr_id);
	cr_expect_eq(d->wc.wr_id, wr_id, "%s: wr_id is %lu, want %lu", row,
		     (unsigned long)d->wc.wr_id, (unsigned long)wr_id);
	cr_assert_eq(d->wc.status, status, "%s: wr_id %lu: %s (vendor 0x%x), want %s", row,
		     (unsigned long)d->wc.wr_id, ibv_wc_status_str(d->wc.status),
		     d->wc.vendor_err, ibv_wc_status_str(status));
	cr_expect_eq(d->wc.qp_num, qpn, "%s: qp_num is 0x%x, want 0x%x", row, d->wc.qp_num, qpn);
	cr_assert_not_null(x);
	cr_expect(is_listed((uint8_t)d->wc.vendor_err,
			    wqe_opcode >= 0 ? x->vendor_send : x->vendor_recv),
		  "%s: vendor_err 0x%x does not go with %s", row, d->wc.vendor_err,
		  ibv_wc_status_str(status));
	if (memcmp(d->cqe, nothing, 64))
		check_bytes(row, d, x, qpn, wqe_opcode, wqe_index);
}

void await_ok(struct pair *p, uint64_t wr_id, enum ibv_wc_opcode opcode)
{
	struct done d;

	end_await(&p->a, SEND_CQ, &d);
	check_ok("requester", &d, wr_id, opcode);
}

/* Any WQE opcode: the shorthand does not know which was posted. */
void await_error(struct pair *p, uint64_t wr_id, enum ibv_wc_status status)
{
	struct done d;

	end_await(&p->a, SEND_CQ, &d);
	check_error("requester", &d, wr_id, status, p->ia.qpn, d.cqe[56], -1);
}

void await_recv_ok(struct pair *p, uint64_t wr_id, uint32_t bytes)
{
	struct done d;

	peer_await(&p->peer, RECV_CQ, &d);
	check_ok("responder", &d, wr_id, IBV_WC_RECV);
	cr_expect_eq(d.wc.byte_len, bytes, "responder: byte_len is %u, want %u", d.wc.byte_len,
		     bytes);
}

void await_recv_error(struct pair *p, uint64_t wr_id, enum ibv_wc_status status)
{
	struct done d;

	peer_await(&p->peer, RECV_CQ, &d);
	check_error("responder", &d, wr_id, status, p->ib.qpn, -1, -1);
}

void check_quiet(struct pair *p)
{
	struct done d;

	for (enum end_queue q = SEND_CQ; q <= RECV_CQ; q++) {
		end_glance(&p->a, q, &d);
		check_none("requester's queues", &d);
		peer_glance(&p->peer, q, &d);
		check_none("responder's queues", &d);
	}
}

void check_states(const char *row, struct pair *p, enum ibv_qp_state a, enum ibv_qp_state b)
{
	enum ibv_qp_state got_a = end_state(&p->a), got_b = peer_state(&p->peer);

	cr_expect_eq(got_a, a, "%s: requester's QP is in state %d, want %d", row, got_a, a);
	cr_expect_eq(got_b, b, "%s: responder's QP is in state %d, want %d", row, got_b, b);
}

void must_open(struct end *e)
{
	struct end_opts opts;
	int error;

	end_defaults(&opts);
	error = end_open(e, &opts, NULL);
	cr_assert_eq(error, 0, "open: %s", strerror(error));
}

void must_post(struct pair *p, const struct work *work)
{
	int err = end_post(&p->a, work);

	cr_assert_eq(err, 0, "post of wr_id %lu: %s", (unsigned long)work->wr_id, strerror(err));
}

void must_recv(struct pair *p, const struct work *work)
{
	int err = peer_post_recv(&p->peer, work);

	cr_assert_eq(err, 0, "post_recv of wr_id %lu: %s", (unsigned long)work->wr_id,
		     strerror(err));
}
