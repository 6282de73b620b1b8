/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths: from an address vector to what the port can reach.
 *
 * The one place where addresses of ibv_modify_qp() and ibv_create_ah() are judged.
 * Source: device-abi B.9 (create_ah), E.2; api-inventory AH-4.
 */
#ifndef EMU_OBJ_PATH_H
#define EMU_OBJ_PATH_H
#include "emu/obj/obj.h"

/* -EINVAL: no such port, no GRH on RoCE, an index outside the table, no destination, source and
 * destination of different families; -ENODATA: an empty entry of the GID table. */
int path_check(const struct emu_dev *dev, const struct qp_path *path);
/* The same, wherever it leads. */
int path_source_check(const struct emu_dev *dev, const struct qp_path *path);

/* The MAC of @dgid on RoCE: a function of the address, since there is nobody to ask. */
void path_mac(const struct emu_dev *dev, const uint8_t dgid[16], uint8_t mac[6]);
#endif
