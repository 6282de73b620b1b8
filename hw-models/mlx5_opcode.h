/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Send opcodes as a table indexed by the opcode byte.
 *
 * Used inside hw-models by the decoder and the printer; everybody else sees
 * enum hw_op.  The rows are in mlx5_opcodes.def.
 */
#ifndef HW_MODELS_MLX5_OPCODE_H
#define HW_MODELS_MLX5_OPCODE_H
#include "hw-models/hw.h"

enum mlx5_opcode {
#define OPCODE(value, name, op, transports, ...) MLX5_OPCODE_##name = (value),
#include "hw-models/mlx5_opcodes.def"
#undef OPCODE
};

enum mlx5_on {
	ON_NONE = 0,
	ON_RC = 1 << HW_RC,
	ON_UC = 1 << HW_UC,
	ON_UD = 1 << HW_UD,
	ON_XRC = 1 << HW_XRC,
	ON_DCI = 1 << HW_DCI,
	ON_RAW = 1 << HW_RAW,
	ON_RELIABLE = ON_RC | ON_XRC | ON_DCI,
	ON_CONNECTED = ON_RELIABLE | ON_UC,
	ON_PEERS = ON_CONNECTED | ON_UD,
	ON_ALL = ON_PEERS | ON_RAW,
};

enum mlx5_segment {
	SEG_END,
	SEG_RADDR, SEG_ATOMIC, SEG_SOURCE, SEG_SINK, SEG_RESULT,
	SEG_MASKED, SEG_UMR, SEG_MKEY, SEG_KLM,
	SEG_COUNT
};

#define MLX5_OPCODE_SEGMENTS 4		/* SEG_END included */

struct mlx5_opcode_row {
	const char *name;		/* NULL: no such opcode */
	uint8_t op;			/* enum hw_op, HW_OP_NONE: can't be run yet */
	uint8_t transports;		/* bits of enum mlx5_on */
	uint8_t segment[MLX5_OPCODE_SEGMENTS];
};

extern const struct mlx5_opcode_row mlx5_opcodes[256];
#endif
