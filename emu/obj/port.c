/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port; see port.h.
 */
#include "emu/obj/port.h"
#include "emu/obj/obj.h"

void port_begin(struct emu_dev *dev)
{
	dev->port = (struct emu_port){ .pkey = { PORT_PKEY_DEFAULT } };
}

void port_pkey_apply(struct emu_qp *qp)
{
	qp->pkey = qp->dev->port.pkey[qp->attr.pkey_index % PORT_PKEYS_MAX];
	qp->resp->pkey = qp->pkey;
}
