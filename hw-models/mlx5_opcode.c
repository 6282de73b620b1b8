/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of send opcodes, made from mlx5_opcodes.def.
 */
#include "hw-models/mlx5_opcode.h"

const struct mlx5_opcode_row mlx5_opcodes[256] = {
#define OPCODE(value, name_, op_, transports_, ...)                                  \
	[value] = { .name = #name_, .op = (op_), .transports = (transports_),        \
		    .segment = { __VA_ARGS__ } },
#include "hw-models/mlx5_opcodes.def"
#undef OPCODE
};
