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

static const struct {
	const char *text;
	uint8_t wqe[128];
} rows[] = {
	{ "NOP qp 0x11d index 0x1234 ds 1 signaled fence strong", { CTRL(0x00, 1, 0x68) } },
	{ "SEND qp 0x11d index 0x1234 ds 1 bytes 0", { CTRL(0x0a, 1, 0x00) } },
	{ "SEND qp 0x11d index 0x1234 ds 3 signaled solicited fence reads bytes 72"
	  " [0x7f0000002000 +64 lkey 0x00001234] [0x7f0000002000 +8 lkey 0x00001234]",
	  { CTRL(0x0a, 3, 0x8a), DATA(64), DATA(8) } },
	{ "SEND qp 0x11d index 0x1234 ds 2 bytes 2147483648 [0x7f0000002000 +2147483648"
	  " lkey 0x00001234]", { CTRL(0x0a, 2, 0x00), DATA(0) } },
	{ "SEND_IMM qp 0x11d index 0x1234 ds 2 fence small imm deadbeef bytes 5"
	  " [inline 5: 01020304 05]",
	  { CTRL(0x0b, 2, 0x20), 0x80, 0, 0, 5, 1, 2, 3, 4, 5 } },
	{ "SEND_INVAL qp 0x11d index 0x1234 ds 1 inval 0xdeadbeef bytes 0", { CTRL(0x01, 1, 0) } },
	{ "RDMA_WRITE qp 0x11d index 0x1234 ds 5 raddr 0x7f0000001000 rkey 0x00301c04 bytes 33"
	  " [inline 33: 01020304 00000000 00000000 00000000 00000000 00000000 00000000 00000000"
	  " ...]",
	  { CTRL(0x08, 5, 0), RADDR, 0x80, 0, 0, 33, 1, 2, 3, 4 } },
	{ "RDMA_WRITE qp 0x11d index 0x1234 ds 5 raddr 0x7f0000001000 rkey 0x00301c04 bytes 32"
	  " [inline 32: 01020304 00000000 00000000 00000000 00000000 00000000 00000000 00000000"
	  "]",
	  { CTRL(0x08, 5, 0), RADDR, 0x80, 0, 0, 32, 1, 2, 3, 4 } },
	{ "RDMA_WRITE_IMM qp 0x11d index 0x1234 ds 2 imm deadbeef raddr 0x7f0000001000"
	  " rkey 0x00301c04 bytes 0", { CTRL(0x09, 2, 0), RADDR } },
	{ "RDMA_READ qp 0x11d index 0x1234 ds 3 signaled raddr 0x7f0000001000 rkey 0x00301c04"
	  " bytes 16 [0x7f0000002000 +16 lkey 0x00001234]",
	  { CTRL(0x10, 3, 0x08), RADDR, DATA(16) } },
	{ "ATOMIC_CS qp 0x11d index 0x1234 ds 4 raddr 0x7f0000001000 rkey 0x00301c04"
	  " compare 0xfffffffffffffffe swap 0x5 bytes 8 [0x7f0000002000 +8 lkey 0x00001234]",
	  { CTRL(0x11, 4, 0), RADDR, ATOMIC, DATA(8) } },
	{ "ATOMIC_FA qp 0x11d index 0x1234 ds 4 raddr 0x7f0000001000 rkey 0x00301c04 add 0x5"
	  " bytes 8 [0x7f0000002000 +8 lkey 0x00001234]",
	  { CTRL(0x12, 4, 0), RADDR, ATOMIC, DATA(8) } },
	{ "UMR qp 0x11d index 0x1234 ds 12 signaled: opcode not available on this transport",
	  { CTRL(0x25, 12, 0x08) } },
	{ "opcode 0x3f qp 0x11d index 0x1234 ds 1: no such opcode", { CTRL(0x3f, 1, 0) } },
	{ "ATOMIC_CS qp 0x11d index 0x1234 ds 3: atomic without exactly 8 bytes of result",
	  { CTRL(0x11, 3, 0), RADDR, ATOMIC } },
};

#define ROW_COUNT (sizeof rows / sizeof *rows)

Test(dump, says_exactly_this)
{
	for (size_t i = 0; i < ROW_COUNT; i++) {
		char out[512];
		int length = mlx5_dump(rows[i].wqe, HW_WQE_DS_MAX, HW_RC, out, sizeof out);

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
			length = mlx5_dump(rows[i].wqe, HW_WQE_DS_MAX, HW_RC, out, bytes);
			cr_assert(length == (int)full, "row %zu in %zu bytes", i, bytes);
			cr_assert(strlen(out) == bytes - 1, "row %zu in %zu bytes", i, bytes);
			cr_assert(!memcmp(out, rows[i].text, bytes - 1));
			cr_assert(out[bytes] == 0x5a, "row %zu wrote past %zu", i, bytes);
		}
		cr_assert(mlx5_dump(rows[i].wqe, HW_WQE_DS_MAX, HW_RC, NULL, 0) == (int)full);
	}
}
