/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is left in a fabric: seats, leases and files, and which of them belong to nobody.
 *
 *	fabric_audit NAME
 *
 * Prints "seats S dead D leases L stale T orphans O rings R", or "absent" if there is no such
 * fabric.  Orphans are files of members that are not there, rings those that nobody has mapped
 * yet.  Reads only: a fabric that is being used is not disturbed.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "emu/fabric/segment.h"

static const struct fabric_segment *segment_map(const char *dir)
{
	char path[512];
	void *at;
	int fd;

	snprintf(path, sizeof path, "%s/" FABRIC_SEGMENT_NAME, dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	at = mmap(NULL, sizeof(struct fabric_segment), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	return at == MAP_FAILED ? NULL : at;
}

static bool is_orphan(const struct fabric_segment *s, const char *name)
{
	unsigned slot, generation;

	return sscanf(name, "%u-%u-", &slot, &generation) == 2 &&
	       (slot >= FABRIC_MEMBERS_MAX || seated_generation(s, slot) != generation);
}

static void files_print(const struct fabric_segment *s, const char *dir)
{
	unsigned orphans = 0, rings = 0;
	DIR *d = opendir(dir);
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		orphans += is_orphan(s, entry->d_name);
		rings += strstr(entry->d_name, "-ring-") || strstr(entry->d_name, "-new-");
	}
	if (d)
		closedir(d);
	printf("orphans %u rings %u\n", orphans, rings);
}

static void seats_print(const struct fabric_segment *s)
{
	unsigned seats = 0, dead = 0;
	uint64_t seat;

	for (unsigned slot = 0; slot < FABRIC_MEMBERS_MAX; slot++) {
		enum fabric_life life = fabric_seat_life(s, slot, &seat);

		seats += seat_pid(seat) != 0;
		dead += seat_pid(seat) && life == FABRIC_DEAD;
	}
	printf("seats %u dead %u ", seats, dead);
}

static void leases_print(const struct fabric_segment *s)
{
	unsigned leases = 0, stale = 0;

	for (unsigned space = 0; space < FABRIC_SPACE_COUNT; space++) {
		for (unsigned block = 0; block < FABRIC_BLOCKS; block++) {
			uint32_t lease = s->lease[space][block];

			leases += lease != 0;
			stale += lease && !lease_is_valid(s, lease);
		}
	}
	printf("leases %u stale %u ", leases, stale);
}

int main(int argc, char **argv)
{
	const struct fabric_segment *s;
	char dir[256];

	if (argc != 2 || fabric_place_name(argv[1], dir, sizeof dir)) {
		fprintf(stderr, "usage: fabric_audit NAME\n");
		return 2;
	}
	s = segment_map(dir);
	if (!s) {
		puts(access(dir, F_OK) ? "absent" : "empty");
		return 0;
	}
	seats_print(s);
	leases_print(s);
	files_print(s, dir);
	return 0;
}
