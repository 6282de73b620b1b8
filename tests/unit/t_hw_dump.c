/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one line of a WQE is complete and stable: fixtures hold it.
 *
 * Each row is bytes and the exact text; a change of the text has to be made here on
 * purpose.
 */
#include <criterion/criterion.h>
#include <string.h>
#include "hw-models/hw.h"

#define CTRL(opcode, ds, flags) \
	0x00, 0x12, 0x34, opcode, 0x00, 0x01, 0x1d, ds, 0, 0, 0, flags, 0xde, 0xad, 0xbe, 0xef
#define RADDR 0, 0, 0x7f, 0, 0, 0, 0x10, 0, 0x00, 0x30, 0x1c, 0x04, 0, 0, 0, 0
#define DATA(bytes) 0, 0, 0, bytes, 0, 0, 0x12, 0x34, 0, 0, 0x7f, 0, 0, 0, 0x20, 0
#define ATOMIC 0, 0, 0, 0, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe

#define CTRL_MOD(opmod, opcode, ds) \
	opmod, 0x12, 0x34, opcode, 0x00, 0x01, 0x1d, ds, 0, 0, 0, 0, 0xde, 0xad, 0xbe, 0xef
#define NEAR(x) 0x11, 0x22, 0x33, 0x44, 0, 0, 0, 9, x, 0, 0x01, 0x1d, 0x32, 0x85, 0xc0, 0x00
#define FAR(grh) 0, 0, 0, 0, 2, 3, 4, 5, 6, 7, 0xa0, 0x40, grh, 0x30, 0x12, 0x34, \
	0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 3, 4, 0xff, 0xfe, 5, 6, 7
#define XRC 0, 0, 0x01, 0x23, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
#define ZERO16 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
#define UMR(flags, units, m3, m2, m1, m0) \
	flags, 0, 0, 0, 0, units, 0, 0, 0, 0, 0, 0, m3, m2, m1, m0, ZERO16, ZERO16
#define KEY(free, access) free, 0, access, 0, 0x00, 0x01, 0x1d, 0x42, 0, 0, 0, 0, 0, 0, 0, 0, \
	0, 0, 0x7f, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 64, ZERO16, ZERO16

static const struct {
	const char *text;
	uint8_t wqe[192];
	enum hw_transport transport;
} rows[] = {
	{ "NOP qp 0x11d index 0x1234 ds 1 signaled fence strong", { CTRL(0x00, 1, 0x68) }, HW_RC },
	{ "SEND qp 0x11d index 0x1234 ds 1 bytes 0", { CTRL(0x0a, 1, 0x00) }, HW_RC },
	{ "SEND qp 0x11d index 0x1234 ds 3 signaled solicited fence reads bytes 72"
	  " [0x7f0000002000 +64 lkey 0x00001234] [0x7f0000002000 +8 lkey 0x00001234]",
	  { CTRL(0x0a, 3, 0x8a), DATA(64), DATA(8) }, HW_RC },
	{ "SEND qp 0x11d index 0x1234 ds 2 bytes 2147483648 [0x7f0000002000 +2147483648"
	  " lkey 0x00001234]", { CTRL(0x0a, 2, 0x00), DATA(0) }, HW_RC },
	{ "SEND_IMM qp 0x11d index 0x1234 ds 2 fence small imm deadbeef bytes 5"
	  " [inline 5: 01020304 05]",
	  { CTRL(0x0b, 2, 0x20), 0x80, 0, 0, 5, 1, 2, 3, 4, 5 }, HW_RC },
	{ "SEND_INVAL qp 0x11d index 0x1234 ds 1 inval 0xdeadbeef bytes 0",
	  { CTRL(0x01, 1, 0) }, HW_RC },
	{ "RDMA_WRITE qp 0x11d index 0x1234 ds 5 raddr 0x7f0000001000 rkey 0x00301c04 bytes 33"
	  " [inline 33: 01020304 00000000 00000000 00000000 00000000 00000000 00000000 00000000"
	  " ...]",
	  { CTRL(0x08, 5, 0), RADDR, 0x80, 0, 0, 33, 1, 2, 3, 4 }, HW_RC },
	{ "RDMA_WRITE qp 0x11d index 0x1234 ds 5 raddr 0x7f0000001000 rkey 0x00301c04 bytes 32"
	  " [inline 32: 01020304 00000000 00000000 00000000 00000000 00000000 00000000 00000000"
	  "]",
	  { CTRL(0x08, 5, 0), RADDR, 0x80, 0, 0, 32, 1, 2, 3, 4 }, HW_RC },
	{ "RDMA_WRITE_IMM qp 0x11d index 0x1234 ds 2 imm deadbeef raddr 0x7f0000001000"
	  " rkey 0x00301c04 bytes 0", { CTRL(0x09, 2, 0), RADDR }, HW_RC },
	{ "RDMA_READ qp 0x11d index 0x1234 ds 3 signaled raddr 0x7f0000001000 rkey 0x00301c04"
	  " bytes 16 [0x7f0000002000 +16 lkey 0x00001234]",
	  { CTRL(0x10, 3, 0x08), RADDR, DATA(16) }, HW_RC },
	{ "ATOMIC_CS qp 0x11d index 0x1234 ds 4 raddr 0x7f0000001000 rkey 0x00301c04"
	  " compare 0xfffffffffffffffe swap 0x5 bytes 8 [0x7f0000002000 +8 lkey 0x00001234]",
	  { CTRL(0x11, 4, 0), RADDR, ATOMIC, DATA(8) }, HW_RC },
	{ "ATOMIC_FA qp 0x11d index 0x1234 ds 4 raddr 0x7f0000001000 rkey 0x00301c04 add 0x5"
	  " bytes 8 [0x7f0000002000 +8 lkey 0x00001234]",
	  { CTRL(0x12, 4, 0), RADDR, ATOMIC, DATA(8) }, HW_RC },
	{ "TSO qp 0x11d index 0x1234 ds 12 signaled: opcode not available on this transport",
	  { CTRL(0x0e, 12, 0x08) }, HW_RC },
	{ "opcode 0x3f qp 0x11d index 0x1234 ds 1: no such opcode", { CTRL(0x3f, 1, 0) }, HW_RC },
	{ "ATOMIC_CS qp 0x11d index 0x1234 ds 3: atomic without exactly its bytes of result",
	  { CTRL(0x11, 3, 0), RADDR, ATOMIC }, HW_RC },
	{ "ATOMIC_MASKED_CS qp 0x11d index 0x1234 ds 4 raddr 0x7f0000001000 rkey 0x00301c04"
	  " compare 0x5 swap 0x0 compare_mask 0xfffffffe swap_mask 0xffffffff bytes 4"
	  " [0x7f0000002000 +4 lkey 0x00001234]",
	  { CTRL_MOD(8, 0x14, 4), RADDR, ATOMIC, DATA(4) }, HW_RC },
	{ "ATOMIC_MASKED_FA qp 0x11d index 0x1234 ds 4 raddr 0x7f0000001000 rkey 0x00301c04"
	  " add 0x5 boundary 0xfffffffffffffffe bytes 8 [0x7f0000002000 +8 lkey 0x00001234]",
	  { CTRL_MOD(9, 0x15, 4), RADDR, ATOMIC, DATA(8) }, HW_RC },
	{ "SEND qp 0x11d index 0x1234 ds 4 to 0x11d rate 3 sl 2 path 5 lid 0xc000 loopback"
	  " sgid_index 3 hop_limit 64 tclass 160 flow 0x1234 rmac 020304050607"
	  " rgid fe80000000000000020304fffe050607 qkey 0x11223344 bytes 0",
	  { CTRL(0x0a, 4, 0), NEAR(0x80), FAR(0) }, HW_UD },
	{ "SEND qp 0x11d index 0x1234 ds 2 to 0x11d rate 3 sl 2 path 5 lid 0xc000 loopback"
	  " qkey 0x11223344 bytes 0", { CTRL(0x0a, 2, 0), NEAR(0) }, HW_UD },
	{ "RDMA_WRITE qp 0x11d index 0x1234 ds 5 to 0x11d rate 3 sl 2 path 5 lid 0xc000 loopback"
	  " grh sgid_index 3 hop_limit 64 tclass 160 flow 0x1234 rmac 020304050607"
	  " rgid fe80000000000000020304fffe050607 key 0x1122334400000009"
	  " raddr 0x7f0000001000 rkey 0x00301c04 bytes 0",
	  { CTRL(0x08, 5, 0), NEAR(0x80), FAR(0x40), RADDR }, HW_DCI },
	{ "SEND_IMM qp 0x11d index 0x1234 ds 2 srq 0x123 imm deadbeef bytes 0",
	  { CTRL(0x0b, 2, 0), XRC }, HW_XRC },
	{ "NOP qp 0x11d index 0x1234 ds 1", { CTRL(0x00, 1, 0) }, HW_UD },
	{ "UMR qp 0x11d index 0x1234 ds 12 key 0xdeadbeef if free mask 0x203c6041 becomes valid"
	  " tag 0x42 for qp 0x11d access -R-A start 0x7f0000002000 length 64 units 4 bytes 64"
	  " [0x7f0000002000 +64 lkey 0x00001234]",
	  { CTRL(0x25, 12, 0), UMR(0xb0, 4, 0x20, 0x3c, 0x60, 0x41), KEY(0, 0x50), DATA(64) },
	  HW_RC },
	{ "UMR qp 0x11d index 0x1234 ds 8 key 0xdeadbeef if of this qp mask 0x20006000"
	  " becomes free tag 0x42 for qp 0x11d units 0 bytes 0",
	  { CTRL(0x25, 8, 0), UMR(0x98, 0, 0x20, 0, 0x60, 0), KEY(0x40, 0) }, HW_XRC },
	{ "UMR qp 0x11d index 0x1234 ds 7: ends before its mandatory segments",
	  { CTRL(0x25, 7, 0), UMR(0x98, 0, 0x20, 0, 0x60, 0) }, HW_RC },
};

#define ROW_COUNT (sizeof rows / sizeof *rows)

static int dump(size_t i, char *out, size_t bytes)
{
	return mlx5_dump(rows[i].wqe, HW_WQE_DS_MAX, rows[i].transport, out, bytes);
}

Test(dump, says_exactly_this)
{
	for (size_t i = 0; i < ROW_COUNT; i++) {
		char out[512];
		int length = dump(i, out, sizeof out);

		cr_assert_str_eq(out, rows[i].text);
		cr_assert(length == (int)strlen(rows[i].text), "row %zu", i);
	}
}

/* As snprintf: whatever the size, the front of the text and the length of the whole. */
Test(dump, is_cut_at_any_size)
{
	for (size_t i = 0; i < ROW_COUNT; i++) {
		size_t full = strlen(rows[i].text);

		for (size_t bytes = 1; bytes <= full + 1; bytes++) {
			char out[512];
			int length;

			memset(out, 0x5a, sizeof out);
			length = dump(i, out, bytes);
			cr_assert(length == (int)full, "row %zu in %zu bytes", i, bytes);
			cr_assert(strlen(out) == bytes - 1, "row %zu in %zu bytes", i, bytes);
			cr_assert(!memcmp(out, rows[i].text, bytes - 1));
			cr_assert(out[bytes] == 0x5a, "row %zu wrote past %zu", i, bytes);
		}
		cr_assert(dump(i, NULL, 0) == (int)full);
	}
}
