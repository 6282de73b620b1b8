/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port of a device function: what somebody outside may change while programs run.
 *
 * GIDs and the LID are in struct emu_dev itself.  Source: device-abi B.8, B.10, F.4.
 */
#ifndef EMU_OBJ_PORT_H
#define EMU_OBJ_PORT_H
#include <stdbool.h>
#include <stdint.h>

#define PORT_PKEYS_MAX		128
#define PORT_PKEY_DEFAULT	0xffffu

struct emu_dev;
struct emu_qp;

struct emu_port {
	uint16_t pkey[PORT_PKEYS_MAX];	/* by index; 0: none.  Ethernet has the first only */
	uint32_t bad_pkeys;		/* packets that came with another one */
};

/* As a port is when nobody has changed anything. */
void port_begin(struct emu_dev *dev);

/* The QP's partition is the one at its index of the table. */
void port_pkey_apply(struct emu_qp *qp);
#endif
