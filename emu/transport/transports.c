/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transports by QP type.
 *
 * A row without functions is of a type that can't be created.
 */
#include "emu/transport/dc.h"
#include "emu/transport/raw.h"
#include "emu/transport/rc.h"
#include "emu/transport/tp.h"
#include "emu/transport/uc.h"
#include "emu/transport/ud.h"
#include "emu/transport/xrc.h"

static const struct transport rc = {
	.name = "RC", .hw = HW_RC, .bth = IB_RC, .is_connected = true, .is_reliable = true,
	.is_direct = true,
	.request = { rc_req_next, rc_req_sent, rc_req_unreadable },
	.respond = { rc_resp_next, rc_resp_sent, rc_resp_unreadable },
	.take = rc_take, .timer = rc_timer,
};

static const struct transport uc = {
	.name = "UC", .hw = HW_UC, .bth = IB_UC, .is_connected = true,
	.request = { rc_req_next, uc_req_sent, rc_req_unreadable },
	.take = uc_take,
};

static const struct transport ud = {
	.name = "UD", .hw = HW_UD, .bth = IB_UD, .is_datagram = true,
	.request = { ud_req_next, uc_req_sent, rc_req_unreadable },
	.take = ud_take,
};

static const struct transport xrc_ini = {
	.name = "XRC", .hw = HW_XRC, .bth = IB_XRC, .is_connected = true, .is_reliable = true,
	.request = { xrc_req_next, rc_req_sent, rc_req_unreadable },
	.take = xrc_initiator_take, .timer = rc_timer,
};

static const struct transport xrc_tgt = {
	.name = "XRC", .hw = HW_XRC, .bth = IB_XRC, .is_connected = true, .is_reliable = true,
	.respond = { xrc_resp_next, rc_resp_sent, rc_resp_unreadable },
	.relay = { xrc_relay_next, xrc_relay_sent, NULL },	/* its payload is a copy */
	.take = xrc_target_take,
};

static const struct transport xrc_guest = {
	.name = "XRC", .hw = HW_XRC, .bth = IB_RELAY, .is_reliable = true,
	.relay = { xrc_guest_next, xrc_guest_sent, xrc_guest_unreadable },
};

/* Destinations change, so packets are checked where the session is. */
static const struct transport dci = {
	.name = "DC", .hw = HW_DCI, .bth = IB_DC, .is_reliable = true,
	.request = { dci_next, rc_req_sent, rc_req_unreadable },
	.take = dci_take, .timer = rc_timer,
};

static const struct transport dct = {
	.name = "DC", .hw = HW_DCI, .bth = IB_DC, .is_reliable = true, .take = dct_take,
};

static const struct transport dcr = {
	.name = "DC", .hw = HW_DCI, .bth = IB_DC, .is_reliable = true, .is_connected = true,
	.respond = { dcr_next, rc_resp_sent, rc_resp_unreadable },
};

/* Commands only: the target is elsewhere. */
static const struct transport xrc_far = { .name = "XRC", .hw = HW_XRC, .bth = IB_RELAY };

/* Frames come through rules, see raw_take(). */
static const struct transport raw = {
	.name = "RAW", .hw = HW_RAW, .bth = IB_ETHERNET,
	.request = { raw_req_next, raw_req_sent, rc_req_unreadable },
};

static const struct transport wq = { .name = "WQ", .hw = HW_RAW, .bth = IB_ETHERNET };

const struct transport *const transports[QPT_COUNT] = {
	[QPT_RC] = &rc, [QPT_UC] = &uc, [QPT_UD] = &ud, [QPT_XRC_INI] = &xrc_ini,
	[QPT_XRC_TGT] = &xrc_tgt, [QPT_DCI] = &dci, [QPT_DCT] = &dct, [QPT_DCR] = &dcr,
	[QPT_XRC_GUEST] = &xrc_guest, [QPT_XRC_FAR] = &xrc_far,
	[QPT_RAW] = &raw, [QPT_WQ] = &wq, [QPT_RSS] = &wq,
};
