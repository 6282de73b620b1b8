/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets for f_packet.c: from the input, and what is true of those that the device sends.
 */
#ifndef TESTS_FUZZ_PACKET_H
#define TESTS_FUZZ_PACKET_H
#include "emu/wire/wire.h"
#include "tests/fuzz/rig.h"

#define PEER_QPN	0xabcde			/* of the fuzzer, which is everybody's peer */
extern const uint8_t peer_gid[16];

/* What a peer of one of the rig's QPs could send next, but for what the input says against it.
 * Its spans stay as they are until the next call. */
void packet_make(struct input *in, struct ib_packet *out);
/* A packet that leaves the device. */
void packet_check(const struct ib_packet *p);

/* The wire: once a process; for each input. */
extern struct wire packet_wire;
void packet_wire_begin(void);
void packet_wire_reset(void);

/* What a peer and the wire do: a packet; one through the ring; what becomes of the device's. */
void packet_do_send(struct input *in);
void packet_do_ring(struct input *in);
void packet_do_fate(struct input *in);
/* What the device does itself in the memory of a peer. */
void packet_do_execute(struct input *in);
/* What a broken peer does in the device's. */
void packet_do_break(struct input *in);
#endif
