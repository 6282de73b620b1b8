/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checksum of the Internet.  Used by frame.c to check and by offload.c to write.
 *
 * Source: RFC 1071; RFC 8200 8.1 (pseudo-header).
 */
#ifndef EMU_STEER_SUM_H
#define EMU_STEER_SUM_H
#include "emu/steer/frame.h"

/* Of the bytes in front of it that were added, an even number; folded to 16 bits, not inverted. */
uint16_t sum_add(uint16_t sum, const uint8_t *bytes, uint32_t count);

/* Of all that the checksum of L4 covers, up to l->l4_end, which is not 0: 0xffff if it is right,
 * and what to invert if its field is 0. */
uint16_t sum_l4(const uint8_t *frame, const struct frame_layer *l);
#endif
