/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which paths the shim takes, what it shows there, and that it leaves all others alone.
 * Method: the shim's functions called by name beside the C library's.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include "emu/emu.h"
#include "emu/fabric/port.h"
#include "shim_world.h"

#define IB	"/sys/class/infiniband"
#define PORT	IB "/mlx5_0/ports/1"

/* The first line, without its end; "" and errno if it can't be read. */
static const char *line_of(const char *path)
{
	static char line[256];
	FILE *file = SHIM(fopen)(path, "r");

	line[0] = 0;
	if (!file)
		return line;
	if (!fgets(line, sizeof line, file))
		line[0] = 0;
	fclose(file);
	line[strcspn(line, "\n")] = 0;
	return line;
}

Test(preload_path, the_files_that_libibverbs_reads_are_there)
{
	static const struct { const char *path, *text; } row[] = {
		{ "/sys/class/infiniband_verbs/abi_version", "6" },
		{ "/sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_0" },
		{ "/sys/class/infiniband_verbs/uverbs0/dev", "231:192" },
		{ "/sys/class/infiniband_verbs/uverbs0/abi_version", "1" },
		{ IB "/mlx5_0/node_type", "1: CA" },
		{ IB "/mlx5_0/device/vendor", "0x15b3" },
		{ IB "/mlx5_0/device/device", "0x101d" },
		{ IB "/mlx5_0/device/modalias",
		  "pci:v000015B3d0000101Dsv000015B3sd00000000bc02sc00i00" },
		{ PORT "/state", "4: ACTIVE" },
		{ PORT "/phys_state", "5: LinkUp" },
		{ PORT "/link_layer", "Ethernet" },
		{ PORT "/pkeys/0", "0xffff" },
		{ PORT "/gid_attrs/types/0", "IB/RoCE v1" },
		{ PORT "/gid_attrs/types/1", "RoCE v2" },
		{ PORT "/counters/port_xmit_data", "0" },
		{ IB "//mlx5_0///node_type", "1: CA" },
		{ "/dev/infiniband/rdma_cm", "" },
		{ "/sys/class/infiniband_mad/abi_version", "" },
		{ IB "/mlx5_0/device/net/", "" },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		cr_expect_str_eq(line_of(row[i].path), row[i].text, "%s", row[i].path);
}

Test(preload_path, gids_of_sysfs_are_those_of_the_device)
{
	struct emu_identity id;
	char path[128], text[64];

	cr_assert_eq(emu_identity(&id), 0);
	for (unsigned i = 0; i < id.gid_count; i++) {
		const uint8_t *g = id.gid[i].raw;
		int at = 0;

		for (unsigned w = 0; w < 8; w++)
			at += snprintf(text + at, sizeof text - (size_t)at, "%s%02x%02x",
				       w ? ":" : "", g[2 * w], g[2 * w + 1]);
		snprintf(path, sizeof path, PORT "/gids/%u", i);
		cr_expect_str_eq(line_of(path), text);
	}
	snprintf(path, sizeof path, PORT "/gids/%u", id.gid_count);
	cr_expect_str_eq(line_of(path), "0000:0000:0000:0000:0000:0000:0000:0000");
}

static int set_down(void *ctx, struct fabric_port *port)
{
	port->is_down = *(const unsigned *)ctx;
	return 0;
}

static void port_set(unsigned is_down)
{
	struct fabric *visitor;

	cr_assert_eq(fabric_ports_change(getenv("VERBENA_FABRIC"), 0, set_down, &is_down,
					 &visitor), 0);
	fabric_visit_end(visitor);
}

Test(preload_path, sysfs_follows_the_port)
{
	char fabric[64];

	snprintf(fabric, sizeof fabric, "unit-sysfs-%d", (int)getpid());
	setenv("VERBENA_FABRIC", fabric, 1);
	cr_expect_str_eq(line_of(PORT "/state"), "4: ACTIVE");
	port_set(1);
	cr_expect_str_eq(line_of(PORT "/state"), "1: DOWN");
	cr_expect_str_eq(line_of(PORT "/phys_state"), "3: Disabled");
	port_set(0);
	cr_expect_str_eq(line_of(PORT "/state"), "4: ACTIVE");
	cr_expect_str_eq(line_of(PORT "/phys_state"), "5: LinkUp");
}

Test(preload_path, directories_list_one_device)
{
	DIR *dir = SHIM(opendir)(IB);
	unsigned found = 0;
	struct dirent *entry;

	cr_assert(dir);
	while ((entry = readdir(dir)))
		found += entry->d_name[0] != '.';
	closedir(dir);
	cr_expect_eq(found, 1);
}

Test(preload_path, the_class_directory_can_be_walked_by_descriptor)
{
	int dir = SHIM(open)("/sys/class/infiniband_verbs", O_RDONLY | O_DIRECTORY);
	int sub = SHIM(openat)(dir, "uverbs0", O_RDONLY | O_DIRECTORY);
	int fd = SHIM(openat)(sub, "ibdev", O_RDONLY);
	char text[16] = "";

	cr_assert_geq(fd, 0);
	cr_expect_eq(read(fd, text, sizeof text - 1), 7);
	cr_expect_str_eq(text, "mlx5_0\n");
}

Test(preload_path, the_device_is_a_character_device_in_every_stat)
{
	const char *path = "/dev/infiniband/uverbs0";
	struct stat st = { 0 };
	struct statx stx = { 0 };

	cr_assert_eq(SHIM(stat)(path, &st), 0);
	cr_expect(S_ISCHR(st.st_mode));
	cr_expect_eq(st.st_rdev, makedev(231, 192));
	memset(&st, 0, sizeof st);
	cr_assert_eq(SHIM(lstat)(path, &st), 0);
	cr_expect(S_ISCHR(st.st_mode));
	memset(&st, 0, sizeof st);
	cr_assert_eq(SHIM(fstatat)(AT_FDCWD, path, &st, 0), 0);
	cr_expect_eq(st.st_rdev, makedev(231, 192));
	cr_assert_eq(SHIM(statx)(AT_FDCWD, path, 0, STATX_BASIC_STATS, &stx), 0);
	cr_expect(S_ISCHR(stx.stx_mode));
	cr_expect_eq(stx.stx_rdev_minor, 192);
	cr_expect_eq(SHIM(access)(path, R_OK | W_OK), 0);
}

Test(preload_path, resolved_links_look_like_sysfs)
{
	char out[PATH_MAX];

	cr_assert(SHIM(realpath)(IB "/mlx5_0/device", out));
	cr_expect_str_eq(out, "/sys/devices/pcifffe:00/fffe:00:00.0");
	cr_expect_eq(SHIM(access)("/sys/devices/pcifffe:00/fffe:00:00.0/vendor", R_OK), 0);
	cr_assert(SHIM(realpath)("/dev/infiniband/uverbs0", out));
	cr_expect_str_eq(out, "/dev/infiniband/uverbs0");
}

Test(preload_path, sysfs_refuses_to_be_written)
{
	cr_expect_eq(SHIM(open)(IB "/mlx5_0/node_type", O_WRONLY), -1);
	cr_expect_eq(errno, EACCES);
	cr_expect_eq(SHIM(open)(IB "/new", O_RDWR | O_CREAT, 0600), -1);
	cr_expect_eq(errno, EACCES);
}

Test(preload_path, other_paths_are_the_hosts)
{
	static const char *const paths[] = {
		"/sys/class/net", "/sys/class", "/sys", "/dev/null", "/dev", "/etc/passwd", "/",
		".", "", "relative", "/sys/class/infinibandit", "/sys/class/infini",
		"/dev/infinibandit", "/sys/class/net/../infinibandit",
	};
	struct stat host, shim;

	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		int host_result = stat(paths[i], &host);
		int shim_result = SHIM(stat)(paths[i], &shim);

		cr_expect_eq(shim_result, host_result, "%s", paths[i]);
		if (!host_result)
			cr_expect_eq(shim.st_ino, host.st_ino, "%s", paths[i]);
	}
}

Test(preload_path, paths_too_long_are_refused_and_a_missing_one_is_the_kernels_to_refuse)
{
	int (*open_anything)(const char *, int, ...) = shim_symbol("open");
	char path[PATH_MAX];

	memset(path, 'x', sizeof path);
	memcpy(path, IB "/", sizeof IB);
	path[sizeof path - 1] = 0;
	cr_expect_eq(SHIM(open)(path, O_RDONLY), -1);
	cr_expect_eq(errno, ENAMETOOLONG);
	cr_expect_eq(open_anything(NULL, O_RDONLY), -1);
	cr_expect_eq(errno, EFAULT);
}

Test(preload_path, the_files_created_have_the_mode_that_was_asked)
{
	char path[] = "/tmp/t_preload_path-XXXXXX";
	int fd = mkstemp(path);
	struct stat st;

	cr_assert_geq(fd, 0);
	close(fd);
	unlink(path);
	fd = SHIM(open)(path, O_WRONLY | O_CREAT | O_EXCL, 0640);
	cr_assert_geq(fd, 0);
	cr_expect_eq(fstat(fd, &st), 0);
	cr_expect_eq(st.st_mode & 0740, 0640);
	unlink(path);
}

Test(preload_path, netlink_rdma_is_a_protocol_of_other_kernels)
{
	int fd;

	cr_expect_eq(SHIM(socket)(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 20), -1);
	cr_expect_eq(errno, EPROTONOSUPPORT);
	fd = SHIM(socket)(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);
	cr_expect_geq(fd, 0);
	close(fd);
}

Test(preload_path, another_profile_has_another_tree)
{
	char base[256];

	cr_assert(SHIM(realpath)(IB "/mlx5_0", base));
	setenv("VERBENA_NIC", "connectx-5", 1);
	/* What this process has shown stays: the device must not change under a program. */
	cr_expect_str_eq(line_of(IB "/mlx5_0/device/device"), "0x101d");
}

Test(preload_path, an_unknown_profile_shows_no_device)
{
	setenv("VERBENA_NIC", "connectx-0", 1);
	cr_expect_null(SHIM(opendir)(IB));
	cr_expect_eq(SHIM(open)("/dev/infiniband/uverbs0", O_RDWR), -1);
	cr_expect_eq(errno, EINVAL);
}

Test(preload_path, with_hw_every_path_is_the_hosts)
{
	static const char *const paths[] = {
		IB, "/sys/class/infiniband_verbs", "/dev/infiniband", "/dev/infiniband/uverbs0",
		"/dev/char/231:192", "/dev/infiniband/rdma_cm",
	};

	setenv("VERBENA_NIC", "hw", 1);
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		struct stat host, shim;
		int host_result = stat(paths[i], &host);

		cr_expect_eq(SHIM(stat)(paths[i], &shim), host_result, "%s", paths[i]);
		cr_expect_eq(SHIM(access)(paths[i], F_OK), access(paths[i], F_OK), "%s", paths[i]);
	}
	int host = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 20);
	int shim = SHIM(socket)(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 20);

	cr_expect_eq(host < 0, shim < 0);
}
