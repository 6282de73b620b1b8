/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The emulated NIC of this process, as the shim sees it.
 *
 * Configuration comes from the environment: VERBENA_NIC (profile), VERBENA_FABRIC,
 * VERBENA_NODE, VERBENA_QUIET, VERBENA_EXPLAIN.  The function is created with the first
 * emu_open() and lives until the last emu_close().
 *
 * Threads: any.  fork: the child loses the device; its files answer EIO.
 */
#ifndef EMU_EMU_H
#define EMU_EMU_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define EMU_PKEYS_MAX	128

struct hw_profile;
struct uv_file;

#define EMU_DEVICE_NAME	"mlx5_0"
#define EMU_UVERBS_NAME	"uverbs0"
#define EMU_DEV_MAJOR	231
#define EMU_DEV_MINOR	192

/* What this process would open: everything that sysfs says, without creating the device.
 * -EINVAL: VERBENA_NIC or VERBENA_NODE names nothing (a message is on stderr). */
struct emu_identity {
	const struct hw_profile *profile;
	uint64_t node_guid;
	unsigned gid_count;
	struct emu_identity_gid {
		uint8_t raw[16];
		uint8_t type;		/* 0 IB, 1 RoCE v1, 2 RoCE v2 */
		uint32_t netdev_ifindex;
		char netdev[16];
	} gid[32];
	uint8_t mac[6];
	struct emu_identity_port {	/* as it is now, see emu_identity_stamp() */
		bool is_down;
		uint16_t lid, sm_lid;	/* 0: addressed by GIDs only */
		uint8_t lmc;		/* the port has 2^lmc LIDs from that one on */
		uint16_t pkey[EMU_PKEYS_MAX];
	} port;
};
int emu_identity(struct emu_identity *out);
/* Another number when emu_identity() may tell something else: GIDs and port can be changed. */
uint64_t emu_identity_stamp(void);

/* Say on stderr that the device can't be opened: libibverbs tells its caller no more than an
 * errno, and often another one.  The same @error is told once until an open works, because
 * libibverbs tries again.  Returns @error; 0 says nothing. */
int emu_complain(const char *what, int error);

/* A memfd that can become the command descriptor of a file; or -errno. */
int emu_fd_create(bool closes_on_exec);
/* 0 or -errno, which was complained about; says once that the NIC is emulated.  Other processes
 * know the file by @fd, which is written to; -1: none of them will. */
int emu_open(int fd, struct uv_file **out);
/*
 * The file behind a command descriptor that was passed to us: one of this process, which then
 * must be closed once more, or one of another process, whose objects can be imported.  -EINVAL
 * it is no command descriptor, or one of another fabric or node; -EBADF it was not passed but
 * opened; -EIO its process is gone; -EOPNOTSUPP processes can't look into each other.
 */
int emu_adopt(int fd, struct uv_file **out);
void emu_close(struct uv_file *file);

/* The last descriptor of @file that is known here, @fd, is about to be closed.  If others have the
 * file yet, emu_close() leaves it open until nobody has. */
void emu_watch(struct uv_file *file, int fd);

/* The user of @file tells of the end of each import, by the second one. */
void emu_counts_imports(struct uv_file *file);
enum emu_import { EMU_IMPORT_PD, EMU_IMPORT_MR, EMU_IMPORT_DM };
void emu_unimport(struct uv_file *file, enum emu_import kind, uint32_t handle);
/* Give an object of the file behind @from_fd, which may have been passed to us, a handle in the one
 * behind @to_fd, which is of this process.  0 or -errno, of emu_adopt() too */
int emu_share(int from_fd, int to_fd, enum emu_import kind, uint32_t from_handle,
	      uint32_t *to_handle_out);

int emu_ioctl(struct uv_file *file, void *call);
ssize_t emu_write(struct uv_file *file, const void *command, size_t bytes);
int emu_mmap(struct uv_file *file, void *hint, size_t bytes, int prot, int flags,
	     uint64_t offset, void **out);

/* What a file's user does without being asked: until it is said to be patched, it is taken to
 * ring without telling; so is one whose queues the program got from the driver, for ever. */
void emu_patched(struct uv_file *file);		/* its posts and polls call the functions below */
void emu_rings_itself(struct uv_file *file);

/* The user of @file wants to hear of events, also of those that nothing here leads to. */
void emu_awaits_events(struct uv_file *file);

/*
 * Before the first emu_open(), by those who have no shim: @look is called by every command and
 * when the NIC thread has woken up, which it then does for some time after the last thing that
 * happened, to see what the program did behind the device's back.  It is called with the device's
 * lock, and calls nothing here.
 */
void emu_look_with(void (*look)(void));

/* Lend time.  Cheap; safe at any moment and for any number. */
void emu_rang(uint32_t qpn);
void emu_posted_recv(uint32_t qpn);
void emu_lend(void);
void emu_armed(struct uv_file *file, uint32_t cq_handle);
/* The clock pages of @file show the time of now. */
void emu_clock_refresh(struct uv_file *file);
/* The caller is about to read an event from the completion channel @fd: wait for it here.  0: now
 * read; -EINTR; -EBADF: it was closed meanwhile.  A cancellation point. */
int emu_doze(int fd);
#endif
