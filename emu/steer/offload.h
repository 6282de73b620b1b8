/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a NIC does to a frame: checksums, segmentation, VLAN tags, FCS.
 *
 * Source: device-abi C.3.7; RFC 1071, 9293; IEEE 802.1Q, 802.3 (FCS).
 */
#ifndef EMU_STEER_OFFLOAD_H
#define EMU_STEER_OFFLOAD_H
#include <stdbool.h>
#include <stdint.h>
#include "emu/steer/frame.h"

/* cs_flags of an Ethernet segment. */
enum { OFFLOAD_L3 = 0x40, OFFLOAD_L4 = 0x80, OFFLOAD_INNER_L3 = 0x10, OFFLOAD_INNER_L4 = 0x20 };

#define FCS_BYTES	4
#define VLAN_BYTES	4

/* Write the checksums that @flags ask for, where the frame has such headers; others stay.  The
 * checksum of UDP is never 0. */
void offload_checksums(uint8_t *frame, uint32_t bytes, unsigned flags);

/*
 * TCP segmentation.  Segment @index of a message whose header (Ethernet to TCP) is @header and
 * whose payload of @payload_bytes is cut every @mss bytes: its header is written to @out (as long
 * as the given one) with lengths, IPv4 identification, sequence number and flags (FIN, PSH: the
 * last one only; CWR: the first one only) of the segment.  Checksums are for offload_checksums().
 * False: the header is none of TCP over IP.
 */
bool offload_segment(const uint8_t *header, uint32_t header_bytes, uint32_t payload_bytes,
		     uint32_t mss, uint32_t index, uint8_t *out);

/* Room for VLAN_BYTES more is behind the frame.  The new length. */
uint32_t offload_vlan_insert(uint8_t *frame, uint32_t bytes, uint16_t tci);

/* CRC-32 of IEEE 802.3 as it stands on the wire. */
void offload_fcs(const uint8_t *frame, uint32_t bytes, uint8_t out[FCS_BYTES]);
#endif
