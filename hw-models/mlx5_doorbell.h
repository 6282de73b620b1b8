/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5 doorbells: records in the application's memory and offsets in a UAR page.
 *
 * Used by whatever follows the application's producer and consumer indexes.  A
 * record is always written before the UAR is, so the record alone is the truth
 * and a UAR write is only a hint.
 *
 * Source: device-abi C.5, C.9.4 and B.5.
 */
#ifndef HW_MODELS_MLX5_DOORBELL_H
#define HW_MODELS_MLX5_DOORBELL_H
#include "hw-models/fields.h"

#define MLX5_DB_RECORD_BYTES	8
#define MLX5_DB_CQ_INDEX_BITS	24

/*
 * Record of a QP.  A shared or separate receive queue has only the first word.
 *
 *        31                  16 15            0
 *   +0  | 0                    | rq_produced  |
 *   +4  | 0                    | sq_produced  |
 */
#define MLX5_DB_QP_FIELDS(F, W)                                                      \
	/* record     field        dw msb lsb  meaning */                            \
	F(mlx5_db_qp, rq_produced,  0, 15,  0, "receive WQEs posted so far")         \
	F(mlx5_db_qp, sq_produced,  1, 15,  0, "64-byte blocks of send WQEs so far")
FIELD_FORMAT(mlx5_db_qp, MLX5_DB_QP_FIELDS, MLX5_DB_RECORD_BYTES);

/*
 * Record of a CQ.  Its second word asks for an event.
 *
 *        31 30 29 28 27 25  24  23            0
 *   +0  | 0                   | consumed      |
 *   +4  | 0   | arm_sn| 0  |sol| arm_consumed |
 */
#define MLX5_DB_CQ_FIELDS(F, W)                                                      \
	/* record     field         dw msb lsb  meaning */                           \
	F(mlx5_db_cq, consumed,      0, 23,  0, "CQEs polled so far")                \
	F(mlx5_db_cq, arm_sn,        1, 29, 28, "must be the device's, else ignored") \
	F(mlx5_db_cq, arm_solicited, 1, 24, 24, "only for a solicited or error CQE") \
	F(mlx5_db_cq, arm_consumed,  1, 23,  0, "`consumed` at the time of arming")
FIELD_FORMAT(mlx5_db_cq, MLX5_DB_CQ_FIELDS, MLX5_DB_RECORD_BYTES);

/*
 * The 8 bytes that arm a CQ at MLX5_UAR_CQ_ARM.
 *
 *        31 30 29 28 27 25  24  23            0
 *   +0  | as the second word of the CQ record |
 *   +4  | 0                   | cqn           |
 */
#define MLX5_UAR_ARM_FIELDS(F, W)                                                    \
	/* register    field         dw msb lsb  meaning */                          \
	F(mlx5_uar_arm, arm_sn,        0, 29, 28, "as in the record")                \
	F(mlx5_uar_arm, arm_solicited, 0, 24, 24, "as in the record")                \
	F(mlx5_uar_arm, arm_consumed,  0, 23,  0, "as in the record")                \
	F(mlx5_uar_arm, cqn,           1, 23,  0, "which CQ")
FIELD_FORMAT(mlx5_uar_arm, MLX5_UAR_ARM_FIELDS, 8);

/* Offsets in a UAR page.  A send doorbell is the first 8 bytes of a control segment. */
enum mlx5_uar {
	MLX5_UAR_CQ_ARM = 0x20,
	MLX5_UAR_EQ = 0x40,
	MLX5_UAR_SEND_FIRST = 0x800,	/* any 8-byte aligned offset from here on */
	MLX5_UAR_SEND_BYTES = 0x100,	/* one BlueFlame buffer; libmlx5 takes turns with two */
	MLX5_UAR_BYTES = 0x1000,
};
#endif
