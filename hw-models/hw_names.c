/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of the values in hw.h, for messages and traces.
 *
 * Any integer may be given: what has no name is "?".
 */
#include "hw-models/hw.h"
#include "hw-models/mlx5_opcode.h"

static const char *const fault_names[HW_FAULT_COUNT] = {
	[HW_OK] = "ok",
	[HW_FAULT_OPCODE_UNKNOWN] = "no such opcode",
	[HW_FAULT_OPCODE_TRANSPORT] = "opcode not available on this transport",
	[HW_FAULT_OPMOD] = "opcode modifier not defined for this opcode",
	[HW_FAULT_DS_SHORT] = "ends before its mandatory segments",
	[HW_FAULT_DS_LONG] = "more units than the queue or a WQE holds",
	[HW_FAULT_INLINE_LENGTH] = "inline data runs past the end",
	[HW_FAULT_INLINE_OPCODE] = "inline data where data must be returned",
	[HW_FAULT_QPN] = "another QP's number",
	[HW_FAULT_INDEX] = "not the producer index of this slot",
	[HW_FAULT_ATOMIC_SGE] = "atomic without exactly its bytes of result",
	[HW_FAULT_UMR_POINTER] = "translation of a key is not in the WQE",
	[HW_FAULT_UMR_OFFSET] = "part of a translation, or a signature behind it",
	[HW_FAULT_UMR_LENGTH] = "translation of a key runs past the end",
	[HW_FAULT_UMR_INTERLEAVED] = "translation of a key is interleaved",
	[HW_FAULT_ETH_HEADER] = "inline header of a frame is missing or runs past the end",
};

const char *hw_fault_name(enum hw_fault fault)
{
	return (unsigned)fault < HW_FAULT_COUNT ? fault_names[fault] : "?";
}

/* An operation is called as its opcode is; only messages ask, so a search will do. */
const char *hw_op_name(enum hw_op op)
{
	if (op == HW_OP_NONE)
		return "NONE";
	for (unsigned i = 0; i < sizeof mlx5_opcodes / sizeof *mlx5_opcodes; i++) {
		if (mlx5_opcodes[i].op == op)
			return mlx5_opcodes[i].name;
	}
	return "?";
}
