/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What may ibv_modify_qp() do from here?  One table, as the kernel's core and driver have it.
 *
 * Source: device-abi E.1, E.2; IBTA volume 1, 10.3.1 and 11.2.4.2.
 */
#ifndef EMU_OBJ_QP_STATE_H
#define EMU_OBJ_QP_STATE_H
#include <stdbool.h>
#include <stdint.h>
#include "emu/diag/why.h"

enum qp_state { QP_RESET, QP_INIT, QP_RTR, QP_RTS, QP_SQD, QP_SQE, QP_ERR, QP_STATE_COUNT };
/* No application sees a DCR, a DC target's half of one conversation, nor a guest, which stands for
 * an XRC target QP of another process where its requests are executed (relay.h).  FAR stands for
 * one that was opened here (xrcd.h).  A WQ is the receive queue of that name (wq.h), and RSS a QP
 * that spreads frames over some. */
enum qp_type {
	QPT_RC, QPT_UC, QPT_UD, QPT_XRC_INI, QPT_XRC_TGT, QPT_DCI, QPT_DCT, QPT_DCR,
	QPT_XRC_GUEST, QPT_XRC_FAR, QPT_RAW, QPT_WQ, QPT_RSS, QPT_COUNT
};

enum {				/* attr_mask bits of the uverbs ABI */
	A_STATE = 1, A_CUR_STATE = 2, A_EN_SQD_NOTIFY = 4, A_ACCESS = 8, A_PKEY = 0x10,
	A_PORT = 0x20, A_QKEY = 0x40, A_AV = 0x80, A_MTU = 0x100, A_TIMEOUT = 0x200,
	A_RETRY = 0x400, A_RNR = 0x800, A_RQ_PSN = 0x1000, A_MAX_RD = 0x2000, A_ALT = 0x4000,
	A_MIN_RNR = 0x8000, A_SQ_PSN = 0x10000, A_MAX_DEST_RD = 0x20000, A_MIG = 0x40000,
	A_CAP = 0x80000, A_DEST_QPN = 0x100000,
	A_RATE_LIMIT = 0x2000000,
	A_KNOWN = 0x21fffff,
};

struct qp_path {
	uint8_t dgid[16];
	uint32_t flow_label;
	uint16_t dlid;
	uint8_t sgid_index, hop_limit, traffic_class, sl, src_path_bits, static_rate, is_global,
		port;
};

struct qp_attr {
	struct qp_path path, alt_path;
	uint32_t qkey, rq_psn, sq_psn, dest_qpn, access;
	uint16_t pkey_index, alt_pkey_index;
	uint8_t state, cur_state, path_mtu, mig_state, en_sqd_notify, max_rd_atomic,
		max_dest_rd_atomic, min_rnr_timer, port, timeout, retry_cnt, rnr_retry,
		alt_port, alt_timeout;
	uint32_t rate_limit;
};

/* Is the edge in the table, and is @mask what it needs and allows?  WHY_NONE, WHY_MODIFY_EDGE
 * or WHY_MODIFY_MASK; then *missing_out and *extra_out say which attributes. */
enum why qp_edge_check(enum qp_type type, enum qp_state from, enum qp_state to, uint32_t mask,
		       uint32_t *missing_out, uint32_t *extra_out);

const char *qp_state_name(enum qp_state state);
#endif
