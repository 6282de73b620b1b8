/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which work requests are recorded.
 *
 * The order matters only in that each WQE begins where the one before it ended.
 */
#include "golden.h"

#define SIG	IBV_SEND_SIGNALED
#define SOL	IBV_SEND_SOLICITED
#define FENCE	IBV_SEND_FENCE
#define INLINE	IBV_SEND_INLINE
#define GIB	(UINT32_C(1) << 30)

#define SEND		IBV_WR_SEND
#define SEND_IMM	IBV_WR_SEND_WITH_IMM
#define SEND_INV	IBV_WR_SEND_WITH_INV
#define WRITE		IBV_WR_RDMA_WRITE
#define WRITE_IMM	IBV_WR_RDMA_WRITE_WITH_IMM
#define READ		IBV_WR_RDMA_READ
#define CAS		IBV_WR_ATOMIC_CMP_AND_SWP
#define FADD		IBV_WR_ATOMIC_FETCH_AND_ADD

#define ROW(name_, opcode_, flags_, pieces_, ...) \
	{ .name = name_, .opcode = opcode_, .flags = flags_, .pieces = pieces_, __VA_ARGS__ }
#define LIST(rows_) { .requests = rows_, .count = sizeof rows_ / sizeof *rows_ }
#define BYTES(...) .bytes = { __VA_ARGS__ }
#define EACH(n) .bytes = { n, n, n, n }

#define NOT_ATOMIC	": atomic without exactly its bytes of result"
#define NOT_TO_INLINE	": inline data where data must be returned"
#define PAST_THE_END	": inline data runs past the end"

static const struct request send_rows[] = {
	/* each operation, plain */
	ROW("send", SEND, SIG, 1, BYTES(64)),
	ROW("send_imm", SEND_IMM, SIG, 1, BYTES(64)),
	ROW("send_inv", SEND_INV, SIG, 1, BYTES(64)),
	ROW("write", WRITE, SIG, 1, BYTES(64)),
	ROW("write_imm", WRITE_IMM, SIG, 1, BYTES(64)),
	ROW("read", READ, SIG, 1, BYTES(64)),
	ROW("cas", CAS, SIG, 1, BYTES(8)),
	ROW("fadd", FADD, SIG, 1, BYTES(8)),

	/* flags */
	ROW("send_unsignaled", SEND, 0, 1, BYTES(64)),
	ROW("send_solicited", SEND, SOL, 1, BYTES(64)),
	ROW("send_imm_signaled_solicited", SEND_IMM, SIG | SOL, 1, BYTES(1)),
	ROW("send_fenced", SEND, FENCE, 1, BYTES(64)),
	ROW("send_all_flags", SEND, SIG | SOL | FENCE | INLINE, 1, BYTES(9)),
	ROW("write_unsignaled", WRITE, 0, 1, BYTES(64)),
	ROW("write_fenced", WRITE, SIG | FENCE, 1, BYTES(64)),
	ROW("write_imm_solicited", WRITE_IMM, SOL, 1, BYTES(64)),
	ROW("read_unsignaled", READ, 0, 1, BYTES(64)),
	ROW("read_fenced", READ, SIG | FENCE, 1, BYTES(64)),
	ROW("cas_unsignaled_fenced", CAS, FENCE, 1, BYTES(8)),
	ROW("fadd_unsignaled", FADD, 0, 1, BYTES(8)),

	/* no bytes: pieces of no bytes are left out */
	ROW("send_0_pieces", SEND, SIG, 0, BYTES(0)),
	ROW("send_0_bytes", SEND, SIG, 1, BYTES(0)),
	ROW("send_imm_0_bytes", SEND_IMM, SIG, 0, BYTES(0)),
	ROW("send_inv_0_bytes", SEND_INV, SIG | SOL, 0, BYTES(0)),
	ROW("send_inline_0_bytes", SEND, SIG | INLINE, 1, BYTES(0)),
	ROW("write_0_pieces", WRITE, SIG, 0, BYTES(0)),
	ROW("write_imm_0_bytes", WRITE_IMM, SIG, 1, BYTES(0)),
	ROW("read_0_pieces", READ, SIG, 0, BYTES(0)),
	ROW("send_empty_between", SEND, SIG, 3, BYTES(64, 0, 8)),
	ROW("write_empty_first", WRITE, SIG, 4, BYTES(0, 0, 5, 6)),
	ROW("read_empty_last", READ, SIG, 2, BYTES(64, 0)),

	/* pieces */
	ROW("send_2_pieces", SEND, 0, 2, BYTES(1, 4096)),
	ROW("send_3_pieces", SEND, SIG, 3, BYTES(64, 8, 100)),
	ROW("send_4_pieces", SEND, 0, 4, BYTES(1, 2, 3, 4)),
	ROW("send_imm_7_pieces", SEND_IMM, SIG, 7, BYTES(65536, 1, 4095, 17)),
	ROW("send_inv_2_pieces", SEND_INV, 0, 2, BYTES(12, 13)),
	ROW("send_30_pieces", SEND, SIG, 30, BYTES(16, 1, 4096, 3)),
	ROW("write_2_pieces", WRITE, SIG, 2, BYTES(4096, 1)),
	ROW("write_3_pieces", WRITE, 0, 3, BYTES(1, 2, 3)),
	ROW("write_30_pieces", WRITE, SIG, 30, EACH(16)),
	ROW("write_imm_5_pieces", WRITE_IMM, SIG, 5, BYTES(4, 3, 2, 1)),
	ROW("read_2_pieces", READ, SIG, 2, BYTES(100, 200)),
	ROW("read_30_pieces", READ, SIG, 30, BYTES(65536, 65535, 1, 2)),

	/* addresses that are not those of a buffer */
	ROW("write_high_address", WRITE, SIG, 1, BYTES(64), .remote_addr = 0xfedcba9876543211),
	ROW("read_zero_based", READ, SIG, 1, BYTES(64), .remote_addr = 1),
	ROW("cas_high_address", CAS, SIG, 1, BYTES(8), .remote_addr = 0x8000000000000000),

	/* lengths: a gigabyte is the longest message, 31 bits are what a piece can say */
	ROW("send_1gib", SEND, SIG, 1, BYTES(GIB)),
	ROW("write_1gib", WRITE, SIG, 1, BYTES(GIB)),
	ROW("read_1gib", READ, SIG, 1, BYTES(GIB)),
	ROW("write_4_times_1gib", WRITE, SIG, 4, EACH(GIB)),
	ROW("read_1gib_and_1", READ, SIG, 2, BYTES(GIB, 1)),
	ROW("send_2gib_less_1", SEND, SIG, 1, BYTES(0x7fffffff)),
	ROW("write_65536", WRITE, 0, 1, BYTES(65536)),
	/* a length of 2^31 sets the bit that means inline */
	ROW("send_2gib", SEND, SIG, 1, BYTES(0x80000000), .outcome = " bytes 0"),
	ROW("send_4gib_less_1", SEND, SIG, 1, BYTES(0xffffffff), .outcome = PAST_THE_END),
	ROW("read_2gib", READ, SIG, 1, BYTES(0x80000000), .outcome = NOT_TO_INLINE),

	/* inline: around a unit, around a block */
	ROW("send_inline_1", SEND, SIG | INLINE, 1, BYTES(1)),
	ROW("send_inline_11", SEND, SIG | INLINE, 1, BYTES(11)),
	ROW("send_inline_12", SEND, SIG | INLINE, 1, BYTES(12)),
	ROW("send_inline_13", SEND, 0 | INLINE, 1, BYTES(13)),
	ROW("send_inline_31", SEND, SIG | INLINE, 1, BYTES(31)),
	ROW("send_inline_32", SEND, SIG | INLINE, 1, BYTES(32)),
	ROW("send_inline_33", SEND, SIG | INLINE, 1, BYTES(33)),
	ROW("send_inline_44", SEND, SIG | INLINE, 1, BYTES(44)),
	ROW("send_inline_45", SEND, SIG | INLINE, 1, BYTES(45)),
	ROW("send_inline_200", SEND, SIG | INLINE, 1, BYTES(200)),
	ROW("send_inline_236", SEND, SIG | INLINE, 1, BYTES(236)),
	ROW("send_inline_237", SEND, SIG | INLINE, 1, BYTES(237)),
	ROW("send_inline_812", SEND, SIG | INLINE, 1, BYTES(812)),
	ROW("send_imm_inline_8", SEND_IMM, SIG | INLINE, 1, BYTES(8)),
	ROW("send_inv_inline_8", SEND_INV, SIG | INLINE, 1, BYTES(8)),
	ROW("send_inline_3_pieces", SEND, SIG | INLINE, 3, BYTES(5, 7, 11)),
	ROW("send_inline_empty_between", SEND, SIG | INLINE, 4, BYTES(5, 0, 7, 0)),
	ROW("send_inline_30_pieces", SEND, SIG | INLINE, 30, BYTES(1, 2, 3, 4)),
	ROW("write_inline_8", WRITE, SIG | INLINE, 1, BYTES(8)),
	ROW("write_inline_28", WRITE, SIG | INLINE, 1, BYTES(28)),
	ROW("write_inline_29", WRITE, SIG | INLINE, 1, BYTES(29)),
	ROW("write_inline_812", WRITE, SIG | INLINE, 1, BYTES(812)),
	ROW("write_inline_2_pieces", WRITE, INLINE, 2, BYTES(64, 1)),
	ROW("write_imm_inline_16", WRITE_IMM, SIG | INLINE, 1, BYTES(16)),
	/* libmlx5 writes what the hardware refuses */
	ROW("read_inline", READ, SIG | INLINE, 1, BYTES(8), .outcome = NOT_TO_INLINE),
	ROW("cas_inline", CAS, SIG | INLINE, 1, BYTES(8), .outcome = NOT_TO_INLINE),

	/* atomics whose result has no place of 8 bytes; ibv_post_send() writes 8 always */
	ROW("fadd_0_pieces", FADD, SIG, 0, BYTES(0), .outcome = NOT_ATOMIC),
	ROW("cas_0_bytes", CAS, SIG, 1, BYTES(0), .outcome = NOT_ATOMIC),
	ROW("fadd_2_pieces", FADD, SIG, 2, BYTES(8, 8), .outcome = NOT_ATOMIC),
	ROW("fadd_16_bytes", FADD, SIG, 1, BYTES(16), .apis = API_OLD),
	ROW("fadd_16_bytes", FADD, SIG, 1, BYTES(16), .apis = API_EX, .outcome = NOT_ATOMIC),

	/* what follows a UMR is fenced; its own fence is stronger */
	ROW("local_inv", IBV_WR_LOCAL_INV, SIG, 0),
	ROW("send_after_local_inv", SEND, SIG, 1, BYTES(64)),
	ROW("send_second_after_local_inv", SEND, SIG, 1, BYTES(64)),
	ROW("local_inv_again", IBV_WR_LOCAL_INV, 0, 0),
	ROW("write_fenced_after_local_inv", WRITE, FENCE, 1, BYTES(64)),

	/* over the end of the ring */
	ROW("send_wraps_before_piece_3", SEND, SIG, 4, EACH(64), .place = AT_LAST_BLOCK),
	ROW("send_fills_last_block", SEND, SIG, 3, EACH(64), .place = AT_LAST_BLOCK),
	ROW("send_30_pieces_wraps", SEND, 0, 30, BYTES(1, 2, 3, 4), .place = AT_LAST_BLOCK),
	ROW("send_empty_piece_at_wrap", SEND, SIG, 5, BYTES(9, 8, 7, 0), .place = AT_LAST_BLOCK),
	ROW("write_wraps_before_piece_2", WRITE, SIG, 3, EACH(64), .place = AT_LAST_BLOCK),
	ROW("write_fills_last_block", WRITE, SIG, 2, EACH(64), .place = AT_LAST_BLOCK),
	ROW("write_imm_wraps", WRITE_IMM, SIG, 6, BYTES(1, 2, 3, 4), .place = AT_LAST_BLOCK),
	ROW("read_wraps", READ, SIG, 5, BYTES(10, 20, 30, 40), .place = AT_LAST_BLOCK),
	ROW("cas_fills_last_block", CAS, SIG, 1, BYTES(8), .place = AT_LAST_BLOCK),
	ROW("fadd_fills_last_block", FADD, 0, 1, BYTES(8), .place = AT_LAST_BLOCK),
	ROW("send_inline_44_at_end", SEND, SIG | INLINE, 1, BYTES(44), .place = AT_LAST_BLOCK),
	ROW("send_inline_45_wraps", SEND, SIG | INLINE, 1, BYTES(45), .place = AT_LAST_BLOCK),
	ROW("send_inline_200_wraps", SEND, SIG | INLINE, 1, BYTES(200), .place = AT_LAST_BLOCK),
	ROW("send_inline_812_wraps", SEND, INLINE, 1, BYTES(812), .place = AT_LAST_BLOCK),
	ROW("send_inline_piece_ends_at_end", SEND, SIG | INLINE, 3, BYTES(40, 4, 9),
	    .place = AT_LAST_BLOCK),
	ROW("send_inline_piece_wraps", SEND, SIG | INLINE, 3, BYTES(40, 9, 4),
	    .place = AT_LAST_BLOCK),
	ROW("write_inline_28_at_end", WRITE, SIG | INLINE, 1, BYTES(28), .place = AT_LAST_BLOCK),
	ROW("write_inline_29_wraps", WRITE, SIG | INLINE, 1, BYTES(29), .place = AT_LAST_BLOCK),
	ROW("write_inline_100_wraps", WRITE, SIG | INLINE, 1, BYTES(100),
	    .place = AT_LAST_BLOCK),

	/* over the end of the 16-bit counter */
	ROW("send_index_ffff", SEND, SIG, 1, BYTES(64), .place = AT_INDEX_WRAP),
	ROW("send_index_0000", SEND, SIG, 1, BYTES(64)),
	ROW("write_wraps_index_ffff", WRITE, SIG, 7, BYTES(4, 3, 2, 1), .place = AT_INDEX_WRAP),
	ROW("read_after_index_wrap", READ, 0, 1, BYTES(8)),
};
const struct request_list send_requests = LIST(send_rows);

/* A QP made with sq_sig_all. */
static const struct request signal_all_rows[] = {
	ROW("all_signaled_send", SEND, 0, 1, BYTES(64)),
	ROW("all_signaled_write_inline", WRITE, INLINE, 1, BYTES(20)),
	ROW("all_signaled_read_signaled", READ, SIG, 1, BYTES(64)),
	ROW("all_signaled_fadd_fenced", FADD, FENCE, 1, BYTES(8)),
};
const struct request_list signal_all_requests = LIST(signal_all_rows);

#define BIND		IBV_WR_BIND_MW
#define LW		IBV_ACCESS_LOCAL_WRITE
#define RR		IBV_ACCESS_REMOTE_READ
#define RW		IBV_ACCESS_REMOTE_WRITE
#define AT		IBV_ACCESS_REMOTE_ATOMIC

/* Windows.  ibv_bind_mw() is for type 1 and is counted as the old interface; each use of it takes
 * the next tag. */
#define TYPE_1 .window = 1, .apis = API_OLD
#define TYPE_2 .window = 2

static const struct request window_rows[] = {
	ROW("bind_1", BIND, SIG, 1, BYTES(4096), TYPE_1, .access = RR | RW | AT),
	ROW("send_after_bind", SEND, SIG, 1, BYTES(64)),
	ROW("bind_1_read", BIND, 0, 1, BYTES(1), TYPE_1, .access = RR),
	ROW("bind_1_write_fenced", BIND, SIG | FENCE, 1, BYTES(65537), TYPE_1, .access = RW),
	ROW("bind_1_no_rights", BIND, SIG, 1, BYTES(64), TYPE_1),
	ROW("bind_1_local_write", BIND, SIG, 1, BYTES(64), TYPE_1, .access = LW | AT),
	ROW("bind_1_2gib", BIND, SIG, 1, BYTES(0x80000000), TYPE_1, .access = RR),
	ROW("unbind_1", BIND, SIG, 0, BYTES(0), TYPE_1),
	ROW("bind_1_wraps", BIND, SIG, 1, BYTES(64), TYPE_1, .access = RR, .place = AT_LAST_BLOCK),
	ROW("bind_2", BIND, SIG, 1, BYTES(4096), TYPE_2, .access = RR | RW | AT),
	ROW("bind_2_again", BIND, 0, 1, BYTES(8), TYPE_2, .access = AT),
	ROW("write_after_bind", WRITE, FENCE, 1, BYTES(64)),
	ROW("bind_2_zero_based", BIND, SIG, 1, BYTES(64), TYPE_2,
	    .access = RR | IBV_ACCESS_ZERO_BASED),
	ROW("bind_2_2gib", BIND, SIG, 1, BYTES(0x80000000), TYPE_2, .access = RW),
	ROW("bind_2_no_bytes", BIND, SIG, 0, BYTES(0), TYPE_2),
	ROW("bind_2_wraps", BIND, SIG, 1, BYTES(64), TYPE_2, .access = RR, .place = AT_LAST_BLOCK),
	ROW("local_inv_wraps", IBV_WR_LOCAL_INV, SIG, 0, .place = AT_LAST_BLOCK),
	ROW("send_after_wrapped_local_inv", SEND, SIG | SOL, 2, BYTES(64, 1)),
};
const struct request_list window_requests = LIST(window_rows);

#define NOT_HERE	": opcode not available on this transport"
#define FOREIGN		.is_foreign = true, .apis = API_OLD, .outcome = NOT_HERE

static const struct request uc_rows[] = {
	ROW("send", SEND, SIG, 1, BYTES(64)),
	ROW("send_imm", SEND_IMM, SIG | SOL, 1, BYTES(64)),
	ROW("send_inv", SEND_INV, SIG, 1, BYTES(64)),
	ROW("write", WRITE, SIG, 1, BYTES(64)),
	ROW("write_imm", WRITE_IMM, 0, 3, BYTES(64, 0, 8)),
	ROW("send_fenced", SEND, SIG | FENCE, 1, BYTES(64)),
	ROW("send_0_pieces", SEND, SIG, 0, BYTES(0)),
	ROW("write_imm_0_bytes", WRITE_IMM, SIG, 1, BYTES(0)),
	ROW("write_30_pieces", WRITE, SIG, 30, EACH(16)),
	ROW("write_1gib", WRITE, SIG, 1, BYTES(GIB)),
	ROW("send_inline_45", SEND, SIG | INLINE, 1, BYTES(45)),
	ROW("write_inline_812", WRITE, SIG | INLINE, 1, BYTES(812)),
	ROW("send_inline_3_pieces", SEND, SIG | INLINE, 3, BYTES(5, 7, 11)),
	ROW("local_inv", IBV_WR_LOCAL_INV, SIG, 0),
	ROW("send_after_local_inv", SEND, SIG, 1, BYTES(64)),
	ROW("bind_1", BIND, SIG, 1, BYTES(4096), TYPE_1, .access = RW),
	ROW("bind_2", BIND, SIG, 1, BYTES(4096), TYPE_2, .access = RW),
	ROW("send_wraps_before_piece_3", SEND, SIG, 4, EACH(64), .place = AT_LAST_BLOCK),
	ROW("write_wraps_before_piece_2", WRITE, SIG, 3, EACH(64), .place = AT_LAST_BLOCK),
	ROW("write_inline_100_wraps", WRITE, SIG | INLINE, 1, BYTES(100), .place = AT_LAST_BLOCK),
	/* libmlx5 does not look whether the transport has the operation */
	ROW("read", READ, SIG, 1, BYTES(64), FOREIGN),
	ROW("cas", CAS, SIG, 1, BYTES(8), FOREIGN),
	ROW("fadd_0_pieces", FADD, SIG, 0, BYTES(0), FOREIGN),
};
const struct request_list uc_requests = LIST(uc_rows);

const struct recv_request recv_requests[] = {
	{ "room_1_piece_1", 1, 1, { 4096 }, NULL },
	{ "room_1_pieces_0", 1, 0, { 0 }, NULL },
	{ "room_1_empty", 1, 1, { 0 }, NULL },
	{ "room_1_1gib", 1, 1, { GIB }, NULL },
	{ "room_1_2gib_less_1", 1, 1, { 0x7fffffff }, NULL },
	{ "room_1_2gib", 1, 1, { 0x80000000 }, NOT_TO_INLINE + 2 },
	{ "room_4_pieces_0", 4, 0, { 0 }, NULL },
	{ "room_4_pieces_1", 4, 1, { 64 }, NULL },
	{ "room_4_pieces_2", 4, 2, { 64, 1 }, NULL },
	{ "room_4_pieces_3", 4, 3, { 1, 2, 3 }, NULL },
	{ "room_4_pieces_4", 4, 4, { 65536, 4096, 1, 100 }, NULL },
	{ "room_4_empty_between", 4, 4, { 64, 0, 0, 8 }, NULL },
	{ "room_4_empty_first", 4, 3, { 0, 7, 9 }, NULL },
	{ "room_4_empty_all", 4, 4, { 0 }, NULL },
	{ "room_4_4_times_1gib", 4, 4, { GIB, GIB, GIB, GIB }, NULL },
	{ "room_4_second_2gib", 4, 2, { 64, 0x80000000 }, NOT_TO_INLINE + 2 },
	{ "room_30_pieces_5", 30, 5, { 10, 20, 30, 40 }, NULL },
	{ "room_30_pieces_30", 30, 30, { 16, 1, 4096, 3 }, NULL },
	{ "room_30_pieces_32", 30, 32, { 1, 2, 3, 4 }, NULL },
	{ "room_30_empty_each_4th", 30, 32, { 1, 2, 0, 4 }, NULL },
};
const unsigned recv_request_count = sizeof recv_requests / sizeof *recv_requests;

/* The room is that of the entry as libmlx5 rounds it: a power of two less one piece. */
const struct recv_request shared_requests[] = {
	{ "room_1_piece_1", 1, 1, { 4096 }, NULL },
	{ "room_1_pieces_0", 1, 0, { 0 }, NULL },
	{ "room_1_empty", 1, 1, { 0 }, NULL },
	{ "room_1_2gib_less_1", 1, 1, { 0x7fffffff }, NULL },
	{ "room_1_2gib", 1, 1, { 0x80000000 }, NOT_TO_INLINE + 2 },
	{ "room_3_pieces_1", 3, 1, { 64 }, NULL },
	{ "room_3_pieces_3", 3, 3, { 1, 2, 3 }, NULL },
	{ "room_3_empty_between", 3, 3, { 64, 0, 8 }, NULL },
	{ "room_3_empty_all", 3, 3, { 0 }, NULL },
	{ "room_3_second_2gib", 3, 2, { 64, 0x80000000 }, NOT_TO_INLINE + 2 },
	{ "room_31_pieces_5", 31, 5, { 10, 20, 30, 40 }, NULL },
	{ "room_31_empty_each_4th", 31, 31, { 1, 2, 0, 4 }, NULL },
};
const unsigned shared_request_count = sizeof shared_requests / sizeof *shared_requests;
