/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WQEs that the real libmlx5 wrote decode to what was posted.
 *
 * Method: each fixtures/wqe/NAME.hex holds the bytes of one WQE, recorded from an RC
 * queue, and NAME.txt the line that mlx5_dump() must make of it.  Where that line cuts
 * inline data short, a second one has all of it.  Queues of other types have folders of their
 * own.  fixtures/recv is the same for receive WQEs, and fixtures/srq for those of shared queues;
 * a file there is as long as the stride.  In a .hex file white space is free and #
 * starts a comment.  The directory above is VERBENA_FIXTURES, from the environment or from
 * the build.  No fixtures is a failure: this test would otherwise say nothing.
 */
#include <criterion/criterion.h>
#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "hw-models/hw.h"

#ifndef VERBENA_FIXTURES
#define VERBENA_FIXTURES "fixtures"
#endif
#define LINE_BYTES 4096

struct fixture {
	const char *path;
	enum hw_transport transport;	/* of send WQEs */
	uint8_t *bytes;			/* not one more than the file has, for the sanitizers */
	size_t count;
	char *want;			/* first line of the text        */
	char *more;			/* its second line, or ""         */
};

/* The whole file as a string; the caller frees it. */
static char *file_read(const char *path)
{
	size_t bytes = 0;
	char *text = malloc(65536);
	FILE *file = fopen(path, "r");

	cr_assert(file, "%s can't be opened", path);
	cr_assert(text);
	bytes = fread(text, 1, 65535, file);
	fclose(file);
	text[bytes] = '\0';
	return text;
}

static unsigned digit_value(char c)
{
	if (isdigit((unsigned char)c))
		return (unsigned)(c - '0');
	return (unsigned)(tolower((unsigned char)c) - 'a' + 10);
}

static size_t hex_parse(const char *text, const char *path, uint8_t *out)
{
	size_t digits = 0;

	for (; *text; text++) {
		if (*text == '#') {
			text += strcspn(text, "\n");
			if (!*text)
				break;
		}
		if (isspace((unsigned char)*text))
			continue;
		cr_assert(isxdigit((unsigned char)*text), "%s: '%c' is no digit", path, *text);
		cr_assert(digits < 2 * HW_WQE_BYTES_MAX, "%s: longer than a WQE", path);
		out[digits / 2] = (uint8_t)(out[digits / 2] << 4 | digit_value(*text));
		digits++;
	}
	cr_assert(digits % 2 == 0, "%s: half a byte at the end", path);
	return digits / 2;
}

static void text_split(struct fixture *f)
{
	size_t first = strcspn(f->want, "\n");

	f->more = f->want + first + (f->want[first] == '\n');
	f->want[first] = '\0';
	f->more[strcspn(f->more, "\n")] = '\0';
}

static void fixture_read(const char *hex_path, struct fixture *f)
{
	uint8_t whole[HW_WQE_BYTES_MAX] = { 0 };
	char *hex = file_read(hex_path), *text_path = strdup(hex_path);

	f->path = hex_path;
	f->count = hex_parse(hex, hex_path, whole);
	cr_assert(f->count >= 16, "%s: %zu bytes are no WQE", hex_path, f->count);
	f->bytes = malloc(f->count);
	cr_assert(f->bytes);
	memcpy(f->bytes, whole, f->count);
	strcpy(text_path + strlen(text_path) - 3, "txt");
	f->want = file_read(text_path);
	text_split(f);
	free(text_path);
	free(hex);
}

static void fixture_free(struct fixture *f)
{
	free(f->bytes);
	free(f->want);
}

/* ---- send ---- */

static void check_inline(const struct fixture *f)
{
	char line[LINE_BYTES] = "inline ";
	size_t at = strlen(line);
	struct hw_work work;

	if (!*f->more)
		return;
	cr_assert(mlx5_work_read(f->bytes, HW_WQE_DS_MAX, f->transport, &work) == HW_OK);
	for (unsigned i = 0; i < work.sge_count; i++) {
		cr_assert(work.sge[i].inline_bytes, "%s: piece %u is not inline", f->path, i);
		for (uint32_t k = 0; k < work.sge[i].bytes; k++)
			at += (size_t)sprintf(line + at, "%02x", work.sge[i].inline_bytes[k]);
	}
	cr_expect(!strcmp(line, f->more), "%s\n  has  %s\n  want %s", f->path, line, f->more);
}

static void check_send(const struct fixture *f)
{
	unsigned units = mlx5_work_units(f->bytes);
	char line[LINE_BYTES];

	cr_assert(f->count >= units * 16u, "%s: %zu bytes, but ds says %u units", f->path,
		  f->count, units);
	mlx5_dump(f->bytes, HW_WQE_DS_MAX, f->transport, line, sizeof line);
	cr_expect(!strcmp(line, f->want), "%s\n  is   %s\n  want %s", f->path, line, f->want);
	check_inline(f);
}

/* ---- receive ---- */

static void recv_print(const struct hw_recv *recv, char *out)
{
	size_t at = (size_t)sprintf(out, "bytes %llu", (unsigned long long)recv->bytes);

	for (unsigned i = 0; i < recv->sge_count; i++)
		at += (size_t)sprintf(out + at, " [0x%llx +%u lkey 0x%08x]",
				      (unsigned long long)recv->sge[i].addr, recv->sge[i].bytes,
				      recv->sge[i].lkey);
}

static void check_recv(const struct fixture *f)
{
	char line[LINE_BYTES];
	struct hw_recv recv;
	enum hw_fault fault = mlx5_recv_read(f->bytes, f->count, &recv);

	if (fault)
		strcpy(line, hw_fault_name(fault));
	else
		recv_print(&recv, line);
	cr_expect(!strcmp(line, f->want), "%s\n  is   %s\n  want %s", f->path, line, f->want);
}

static void check_shared(const struct fixture *f)
{
	char line[LINE_BYTES];
	struct hw_recv recv;
	uint16_t next;
	enum hw_fault fault = mlx5_srq_read(f->bytes, f->count, &recv, &next);
	int at = sprintf(line, "next %u ", next);

	if (fault)
		strcpy(line + at, hw_fault_name(fault));
	else
		recv_print(&recv, line + at);
	cr_expect(!strcmp(line, f->want), "%s\n  is   %s\n  want %s", f->path, line, f->want);
}

/* ---- cases ---- */

static void each_fixture(const char *kind, enum hw_transport transport,
			 void (*check)(const struct fixture *f))
{
	const char *folder = getenv("VERBENA_FIXTURES");
	char pattern[LINE_BYTES];
	glob_t found;

	snprintf(pattern, sizeof pattern, "%s/%s/*.hex", folder ? folder : VERBENA_FIXTURES, kind);
	cr_assert(glob(pattern, 0, NULL, &found) == 0, "no fixture matches %s", pattern);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct fixture f = { .transport = transport };

		fixture_read(found.gl_pathv[i], &f);
		check(&f);
		fixture_free(&f);
	}
	globfree(&found);
}

Test(golden, wqes_of_libmlx5_decode_to_what_was_posted)
{
	each_fixture("wqe", HW_RC, check_send);
}

Test(golden, wqes_of_unreliable_queues_do_too)
{
	each_fixture("wqe_uc", HW_UC, check_send);
}

Test(golden, receives_of_libmlx5_decode_to_what_was_posted)
{
	each_fixture("recv", HW_RC, check_recv);
}

Test(golden, receives_of_shared_queues_do_too)
{
	each_fixture("srq", HW_RC, check_shared);
}
