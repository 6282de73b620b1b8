/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a program puts in front of its messages to a queue that matches tags.
 */
#ifndef _TM_TYPES_H
#define _TM_TYPES_H

#include <stdint.h>
#include <linux/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ibv_tmh.opcode */
enum ibv_tmh_op {
	IBV_TMH_NO_TAG = 0, /* nothing to match */
	IBV_TMH_RNDV = 1,   /* a struct ibv_rvh follows: the receiver reads the message itself */
	IBV_TMH_FIN = 2,    /* a message was read */
	IBV_TMH_EAGER = 3,  /* the message follows */
};

struct ibv_tmh {
	uint8_t opcode;
	uint8_t reserved[3];
	__be32 app_ctx; /* comes out as ibv_wc_tm_info.priv */
	__be64 tag;
};

/* Where the message lies. */
struct ibv_rvh {
	__be64 va;
	__be32 rkey;
	__be32 len;	/* bytes */
};

#ifdef __cplusplus
}
#endif
#endif
