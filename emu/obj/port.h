/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port of a device function, and what somebody outside may change of it while programs run.
 *
 * The GIDs and the LIDs are in struct emu_dev itself.  Source: device-abi B.8, B.10, F.4.
 */
#ifndef EMU_OBJ_PORT_H
#define EMU_OBJ_PORT_H
#include <stdbool.h>
#include <stdint.h>

#define PORT_PKEYS_MAX		128
#define PORT_PKEY_DEFAULT	0xffffu
#define PORT_SM_LID_DEFAULT	1
#define PORT_LMC_MAX		7		/* LID mask control: a port has 2^LMC LIDs */

struct emu_dev;
struct emu_gid;
struct emu_qp;

struct emu_port {
	bool is_down;			/* nothing is sent or received */
	uint16_t sm_lid;
	uint16_t pkey[PORT_PKEYS_MAX];	/* by index; 0: none.  Ethernet has the first only */
	uint32_t bad_pkeys;		/* packets that came with another one */
	uint32_t qkey_violations;
};

/* As a port is when nobody has changed anything. */
void port_begin(struct emu_dev *dev);

/* What a port is to be from now on, and what has happened since it was as it is. */
struct port_change {
	bool is_down;
	bool was_down;			/* in between, or is now */
	bool is_reregistered;		/* the subnet manager wants clients to register again */
	uint16_t lid, sm_lid;
	uint8_t lmc;
	uint16_t pkey[PORT_PKEYS_MAX];
	const struct emu_gid *gid;
	unsigned gid_count;
};
/* Changes the port and its QPs; tells the async files of every difference if @is_told. */
void port_change(struct emu_dev *dev, const struct port_change *to, bool is_told);
/* An event that is no object's, about a port or (0) about all of the device. */
void device_event(struct emu_dev *dev, unsigned port, uint32_t type);

/* One by which the port can be reached; all 0: it has none. */
void port_address(const struct emu_dev *dev, uint8_t gid[16]);

/* The QP's partition is the one at its index of the table. */
void port_pkey_apply(struct emu_qp *qp);
#endif
