/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Captures in place of a cable: one is played, the other recorded.
 *
 * The first is mapped, so no descriptor stays open, and a frame is copied out when its turn has
 * come: somebody may cut the file or write into it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "emu/uplink/capture.h"
#include "emu/uplink/record.h"

#define PATH_BYTES	4096
#define FRAME_BYTES	16384		/* a longer one is told of, but not all of it there */

struct uplink_pcap {
	struct uplink uplink;
	pid_t pid;			/* a forked child has another one */
	void *map;			/* NULL: nothing is played */
	size_t map_bytes;
	struct capture capture, after;	/* at the oldest frame; behind it */
	char in[PATH_BYTES];
	struct record *record;		/* NULL: nothing is recorded */
	uint8_t frame[FRAME_BYTES];
};

static struct uplink_pcap *pcap(struct uplink *u)
{
	return (struct uplink_pcap *)u;
}

/* --- playing --- */

static int in_map(struct uplink_pcap *p, int fd, const char **what)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode)) {
		*what = "is not a file";
		return -EINVAL;
	}
	p->map_bytes = (size_t)st.st_size;
	if (!p->map_bytes)
		return 0;		/* its reader says so */
	p->map = mmap(NULL, p->map_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p->map != MAP_FAILED)
		return 0;
	p->map = NULL;
	return -errno;
}

static int in_check(struct uplink_pcap *p, struct uplink_said *said)
{
	enum capture_fault fault = capture_check(&p->capture, p->map, p->map_bytes);

	if (fault == CAPTURE_END) {
		capture_begin(&p->capture, p->map, p->map_bytes);
		return 0;
	}
	snprintf(said->text, sizeof said->text, "%.400s %s (byte %llu)", p->in,
		 capture_fault_text(fault), (unsigned long long)p->capture.next);
	return -EINVAL;
}

static int in_open(struct uplink_pcap *p, struct uplink_said *said)
{
	int fd = open(p->in, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	const char *what = "cannot be opened";
	int error = fd < 0 ? -errno : in_map(p, fd, &what);

	if (fd >= 0)
		close(fd);
	if (!error)
		return in_check(p, said);
	snprintf(said->text, sizeof said->text, "%.400s %s", p->in, what);
	return error;
}

/* The file has changed since it was checked. */
static bool in_end(struct uplink_pcap *p, enum capture_fault fault)
{
	fprintf(stderr, "verbena: %s %s (byte %llu): playing ends\n", p->in,
		capture_fault_text(fault), (unsigned long long)p->after.next);
	p->capture.next = p->capture.bytes;
	return false;
}

static bool pcap_receive(struct uplink *u, struct iovec *out)
{
	struct uplink_pcap *p = pcap(u);
	struct capture_frame frame;
	enum capture_fault fault;

	p->after = p->capture;
	fault = capture_next(&p->after, &frame);
	if (fault == CAPTURE_END)
		return false;
	if (fault)
		return in_end(p, fault);
	*out = (struct iovec){ p->frame, frame.bytes };
	if (frame.bytes <= sizeof p->frame && capture_copy(&p->capture, &frame, p->frame))
		return in_end(p, CAPTURE_MEMORY);
	return true;
}

static void pcap_release(struct uplink *u)
{
	pcap(u)->capture = pcap(u)->after;
}

/* --- recording --- */

static int pcap_send(struct uplink *u, const void *frame, uint32_t bytes)
{
	return record_frame(pcap(u)->record, frame, bytes);
}

/* --- life --- */

static void pcap_close(struct uplink *u)
{
	struct uplink_pcap *p = pcap(u);

	if (p->record)
		record_close(p->record);
	if (p->pid != getpid())
		return;
	if (p->map)
		munmap(p->map, p->map_bytes);
	free(p);
}

/* By what it can: plays, records. */
static const struct uplink_ops pcap_ops[2][2] = {
	[true][false] = { .name = "pcap", .receive = pcap_receive, .release = pcap_release,
			  .close = pcap_close },
	[false][true] = { .name = "pcap", .send = pcap_send, .close = pcap_close },
	[true][true] = { .name = "pcap", .receive = pcap_receive, .release = pcap_release,
			 .send = pcap_send, .close = pcap_close },
};

/* "in,out" */
static int names_split(const char *names, char in[PATH_BYTES], const char **out)
{
	size_t length = strcspn(names, ",");

	if (length >= PATH_BYTES)
		return -ENAMETOOLONG;
	memcpy(in, names, length);
	in[length] = 0;
	*out = names[length] ? names + length + 1 : "";
	return *in || **out ? 0 : -EINVAL;
}

int uplink_pcap_open(const char *names, struct uplink **out, struct uplink_said *said)
{
	struct uplink_pcap *p = calloc(1, sizeof *p);
	const char *record;
	int error;

	snprintf(said->text, sizeof said->text, "%.400s", names);
	if (!p)
		return -ENOMEM;
	p->pid = getpid();
	error = names_split(names, p->in, &record);
	if (error == -EINVAL)
		snprintf(said->text, sizeof said->text, "no file is named");
	if (!error && *p->in)
		error = in_open(p, said);
	if (!error && *record)
		error = record_open(record, &p->record, said);
	if (error) {
		pcap_close(&p->uplink);
		return error;
	}
	p->uplink.ops = &pcap_ops[p->map != NULL][p->record != NULL];
	*out = &p->uplink;
	return 0;
}
