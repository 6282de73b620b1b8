/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Can a peer hurt the device?
 *
 * Two QPs, and the fuzzer is the peer of both: it sends packets at its pleasure, also into the
 * bytes of a shared-memory ring behind its writer's back, and lets the wire be full or broken.
 * Meanwhile the application posts, so that there is something to answer and to acknowledge.
 */
#include "tests/fuzz/packet.h"

enum { DEADLINES_MAX = 2000, DEADLINES_FOR_EVER = 50 };

static void (*const steps[])(struct input *) = {
	packet_do_send, packet_do_ring, rig_do_post, rig_do_recv, packet_do_fate, rig_do_clock,
	rig_do_poll, rig_do_modify, rig_do_rekey, rig_do_record, rig_do_hide, rig_do_arm,
	packet_do_execute, packet_do_break, rig_do_cq, rig_do_shared,
	rig_do_port, rig_do_group,
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct input in = { bytes, bytes + size };
	bool is_for_ever, is_quiet;

	if (!rig_memory) {
		packet_wire_begin();
		rig_begin(&packet_wire);
	}
	packet_wire_reset();
	rig_open(&in, PEER_QPN, peer_gid);
	is_for_ever = rig.config.rnr_retry == RIG_FOR_EVER;
	while (input_has_more(&in)) {
		steps[take8(&in) % (sizeof steps / sizeof *steps)](&in);
		rig_watch();
	}
	is_quiet = device_settle(is_for_ever ? DEADLINES_FOR_EVER : DEADLINES_MAX);
	assert(is_quiet || is_for_ever);
	rig_check(is_quiet);
	rig_close();
	return 0;
}
