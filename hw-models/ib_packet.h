/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An InfiniBand packet as meaning: what transports produce and consume and
 * wires carry.
 *
 * A packet here may be a super-packet: one message, or a large part of it,
 * that counts as packet_count packets of mtu_bytes.  First, middle, last and
 * only then speak of the super-packet.  PSNs, ACKs and counters come out as if
 * it had been cut.
 *
 * Source: IBTA volume 1, chapter 9 (headers), annex A17 (RoCEv2).
 */
#ifndef HW_MODELS_IB_PACKET_H
#define HW_MODELS_IB_PACKET_H
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

enum ib_rc_opcode {
	RC_SEND_FIRST = 0x00, RC_SEND_MIDDLE, RC_SEND_LAST, RC_SEND_LAST_IMM,
	RC_SEND_ONLY, RC_SEND_ONLY_IMM,
	RC_WRITE_FIRST, RC_WRITE_MIDDLE, RC_WRITE_LAST, RC_WRITE_LAST_IMM,
	RC_WRITE_ONLY, RC_WRITE_ONLY_IMM,
	RC_READ_REQUEST,
	RC_READ_RESPONSE_FIRST, RC_READ_RESPONSE_MIDDLE, RC_READ_RESPONSE_LAST,
	RC_READ_RESPONSE_ONLY,
	RC_ACKNOWLEDGE, RC_ATOMIC_ACKNOWLEDGE,
	RC_COMPARE_SWAP, RC_FETCH_ADD,
	RC_SEND_LAST_INVAL = 0x16, RC_SEND_ONLY_INVAL = 0x17,
	/* Ours: nobody has published how these travel.  The payload is two masks of 8 bytes, in
	 * host order; dma_bytes is the size of the operands.  They stay inside of a fabric. */
	RC_MASKED_COMPARE_SWAP = 0x1e, RC_MASKED_FETCH_ADD = 0x1f,
	/* Of IB_RELAY only: between a target QP and a handle of it elsewhere; a piece of a READ's
	 * answer is wanted; the target has failed, and what its message holds is to be flushed. */
	RELAY_HANDLE = 0x1b, RELAY_FETCH = 0x1c, RELAY_END = 0x1d,
};

/* BTH opcode: transport [7:5], operation [4:0].  UC, UD and XRC have the operations of RC, as far
 * as they have them.  DC has no public wire format; its packets stay inside of a fabric.  So do
 * those of a relay: from the process that has an XRC target QP to the one that has the receive
 * queue, and back.  RD, which nobody has, stands for an Ethernet frame: it is the payload. */
enum ib_transport {
	IB_RC = 0x00, IB_UC = 0x20, IB_ETHERNET = 0x40, IB_UD = 0x60, IB_XRC = 0xa0, IB_DC = 0xc0,
	IB_RELAY = 0xe0,
	IB_TRANSPORT_MASK = 0xe0,
};

static inline uint8_t ib_operation(uint8_t opcode)
{
	return opcode & ~IB_TRANSPORT_MASK & 0xff;
}

static inline bool ib_is_answer(uint8_t opcode)
{
	uint8_t operation = ib_operation(opcode);

	return operation >= RC_READ_RESPONSE_FIRST && operation <= RC_ATOMIC_ACKNOWLEDGE;
}

/* Goes to the owner of a receive queue, and not of a QP. */
static inline bool ib_is_for_queue(uint8_t opcode)
{
	return (opcode & IB_TRANSPORT_MASK) == IB_RELAY && !ib_is_answer(opcode) &&
	       ib_operation(opcode) != RELAY_HANDLE;
}

static inline bool ib_is_masked_atomic(uint8_t operation)
{
	return operation == RC_MASKED_COMPARE_SWAP || operation == RC_MASKED_FETCH_ADD;
}

static inline bool ib_is_atomic(uint8_t operation)
{
	return operation == RC_COMPARE_SWAP || operation == RC_FETCH_ADD ||
	       ib_is_masked_atomic(operation);
}

#define IB_MASKS_BYTES	16		/* of a masked atomic */

#define IB_MULTICAST_QPN 0xffffffu

/* AETH syndrome: [7:5] kind, [4:0] value. */
enum {
	AETH_ACK_UNLIMITED = 0x1f,
	AETH_RNR_NAK = 0x20,		/* | timer code */
	AETH_NAK_SEQUENCE = 0x60,
	AETH_NAK_INVALID_REQUEST = 0x61,
	AETH_NAK_REMOTE_ACCESS = 0x62,
	AETH_NAK_REMOTE_OPERATION = 0x63,
};

/*
 * A packet without a GRH goes by LIDs.  They travel in the GID fields in a form that
 * no GID has, so that everything that compares addresses has one rule.
 */
static inline void ib_lid_as_gid(uint16_t lid, uint8_t gid[16])
{
	const uint8_t form[16] = { 0, 'L', 'I', 'D', [14] = lid >> 8 & 0xff, [15] = lid & 0xff };

	memcpy(gid, form, sizeof form);
}

/* What a port lists as its own: 2^lmc LIDs from @base on, a multiple of that. */
static inline void ib_lids_as_gid(uint16_t base, uint8_t lmc, uint8_t gid[16])
{
	ib_lid_as_gid(base, gid);
	gid[13] = lmc;
}

static inline bool ib_is_lid(const uint8_t gid[16])
{
	static const uint8_t form[14] = { 0, 'L', 'I', 'D' };

	return !memcmp(gid, form, sizeof form);
}

static inline uint16_t ib_gid_lid(const uint8_t gid[16])
{
	return (uint16_t)(gid[14] << 8 | gid[15]);
}

/* Is a packet for @gid for who lists @own?  Any bytes are good. */
static inline bool ib_gid_is_of(const uint8_t gid[16], const uint8_t own[16])
{
	uint8_t base[16];

	if (!ib_is_lid(gid))
		return !memcmp(gid, own, sizeof base);
	memcpy(base, own, sizeof base);
	base[13] = 0;
	return ib_is_lid(base) && !((ib_gid_lid(gid) ^ ib_gid_lid(base)) >> (own[13] & 7));
}

/* IPv4 addresses are GIDs in the form of a mapped address. */
static inline bool ib_is_ipv4(const uint8_t gid[16])
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid, prefix, sizeof prefix);
}

/* ffxx:..., or an IPv4 group. */
static inline bool ib_is_multicast(const uint8_t gid[16])
{
	return gid[0] == 0xff || (ib_is_ipv4(gid) && gid[12] >> 4 == 0xe);
}

/* Do two partition keys let their owners talk?  Of one partition at least one must be a full
 * member (bit 15); number 0 is no partition.  Source: IBTA volume 1, 10.9.3. */
static inline bool ib_pkeys_match(uint16_t a, uint16_t b)
{
	return !((a ^ b) & 0x7fff) && a & 0x7fff && (a | b) & 0x8000;
}

/* What stands before the BTH. */
enum ib_l3 {
	IB_L3_NONE,			/* InfiniBand within a subnet */
	IB_L3_GRH,			/* InfiniBand, RoCE v1 */
	IB_L3_IPV6, IB_L3_IPV4,		/* RoCE v2; IPv4 addresses are the ends of the GIDs */
	IB_L3_COUNT
};

/* What a receiver of datagrams is told of the way, or a DC target of its initiator, or the owner
 * of a receive queue of a target QP. */
struct ib_extra {
	uint32_t qkey;			/* DETH */
	uint32_t srqn;			/* XRCETH */
	union {
		struct {
			uint64_t dc_key;
			uint64_t dc_session;	/* grows; see emu/obj/dc.h */
			uint32_t dc_first_psn;	/* of the session */
		};
		struct {
			uint64_t relay_domain;	/* the name of the target's */
			uint64_t relay_turn;	/* of the request; its outcome has the same */
			uint32_t relay_mtu_bytes;	/* the target's */
		};
		uint32_t flow_number;		/* of an Ethernet frame: the rule that it matched */
	};
	uint32_t flow_label;
	uint16_t slid, dlid;		/* InfiniBand; dlid as addressed, path bits included */
	uint8_t traffic_class, hop_limit, sl;
	uint8_t l3;			/* enum ib_l3 */
};

struct ib_packet {
	uint8_t opcode;			/* BTH: transport [7:5], operation [4:0] */
	bool is_solicited;
	bool wants_ack;
	uint8_t aeth_syndrome;		/* AETH, where the opcode has one */
	uint16_t pkey;
	uint32_t mtu_bytes;		/* of the sender's path */
	uint32_t packet_count;		/* MTU packets this stands for, at least 1 */
	uint32_t psn;			/* of the first of them */
	uint32_t dest_qpn;
	uint32_t src_qpn;		/* not on an RC wire: for explanations only */
	uint32_t msn;			/* AETH */
	uint32_t imm;			/* ImmDt bytes as on the wire, or IETH rkey in host order */
	uint32_t rkey;			/* RETH, AtomicETH */
	uint32_t dma_bytes;		/* RETH: the whole message */
	uint64_t va;			/* RETH, AtomicETH */
	uint64_t swap_add, compare;	/* AtomicETH */
	uint64_t original;		/* AtomicAckETH */
	uint8_t sgid[16], dgid[16];
	uint32_t payload_bytes;		/* sum of the spans */
	unsigned span_count;
	const struct iovec *span;	/* owned by whoever produced the packet, valid until
					 * it is told the packet's fate or asked for the next */
	struct ib_extra extra;		/* means nothing on RC and UC, and comes last: the
					 * rest is cleared for each packet of those */
};
#endif
