/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices of other vendors: with VERBENA_NIC=hw the system's libibverbs drives them, and only then
 * is it loaded.
 *
 * Method: a library that notes how it is called (foreign_library.c) is named as the system's, and a
 * folder with one device of ours stands for sysfs.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "script.h"
#include "tests/verbs/foreign_library.h"
#include "verbs/extra.h"
#include "verbs/foreign.h"

#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

static char sysfs[64];

/* --- a sysfs with mlx5_0 of ours --- */

static void file_write(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", sysfs, name);
	f = fopen(path, "we");
	cr_assert(f, "%s", path);
	fputs(text, f);
	fclose(f);
}

static void folder_make(const char *name)
{
	char path[256];

	snprintf(path, sizeof path, "%s/%s", sysfs, name);
	cr_assert_eq(mkdir(path, 0700), 0);
}

static void sysfs_make(void)
{
	snprintf(sysfs, sizeof sysfs, "/tmp/t_foreign.XXXXXX");
	cr_assert(mkdtemp(sysfs));
	folder_make("class");
	folder_make("class/infiniband_verbs");
	file_write("class/infiniband_verbs/abi_version", "6\n");
	folder_make("class/infiniband_verbs/uverbs0");
	folder_make("class/infiniband_verbs/uverbs0/device");
	file_write("class/infiniband_verbs/uverbs0/ibdev", "mlx5_0\n");
	file_write("class/infiniband_verbs/uverbs0/abi_version", "1\n");
	file_write("class/infiniband_verbs/uverbs0/dev", "231:192\n");
	file_write("class/infiniband_verbs/uverbs0/device/vendor", "0x15b3\n");
	file_write("class/infiniband_verbs/uverbs0/device/device", "0x101d\n");
	setenv("SYSFS_PATH", sysfs, 1);
}

static void sysfs_remove(void)
{
	char command[96];

	snprintf(command, sizeof command, "rm -r %s", sysfs);
	cr_assert_eq(system(command), 0);
}

TestSuite(foreign, .init = sysfs_make, .fini = sysfs_remove);

/* --- the other library --- */

static void hardware_with(const char *library)
{
	setenv("VERBENA_NIC", "hw", 1);
	setenv("VERBENA_SYSTEM_IBVERBS", library, 1);
}

static struct ibv_device *device_named(struct ibv_device **list, const char *name)
{
	for (; *list; list++)
		if (!strcmp(ibv_get_device_name(*list), name))
			return *list;
	return NULL;
}

static struct fake_state *state_of(struct ibv_device *device)
{
	return ((struct fake_device *)device)->state;
}

/* A context of the other library; the list is gone. */
static struct ibv_context *foreign_open(struct fake_state **state)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_device *device;
	struct ibv_context *context;

	cr_assert(list);
	device = device_named(list, "other_1");
	cr_assert(device);
	*state = state_of(device);
	context = ibv_open_device(device);
	cr_assert(context, "errno %d", errno);
	ibv_free_device_list(list);
	return context;
}

static bool is_mapped(const char *name)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	bool found = false;
	char line[512];

	cr_assert(maps);
	while (fgets(line, sizeof line, maps))
		found = found || strstr(line, name);
	fclose(maps);
	return found;
}

/* --- the list --- */

Test(foreign, comes_behind_ours_in_the_list)
{
	struct ibv_device **list;
	int count = -1;

	hardware_with(FAKE_IBVERBS);
	list = ibv_get_device_list(&count);
	cr_assert(list);
	cr_assert_eq(count, 3);
	cr_assert_str_eq(list[0]->name, "mlx5_0");
	cr_assert(vb_device_is_ours(list[0]));
	cr_assert_str_eq(list[1]->name, "other_0");
	cr_assert_not(vb_device_is_ours(list[1]));
	cr_assert_str_eq(list[2]->name, "other_1", "ours of the same name was left out");
	cr_assert_null(list[3]);
	ibv_free_device_list(list);
}

Test(foreign, list_is_kept_until_ours_is_freed)
{
	struct ibv_device **one, **other;
	struct fake_state *state;

	hardware_with(FAKE_IBVERBS);
	one = ibv_get_device_list(NULL);
	other = ibv_get_device_list(NULL);
	cr_assert(one && other);
	state = state_of(one[1]);
	cr_assert_eq(state->lists, 2);
	ibv_free_device_list(one);
	cr_assert_eq(state->lists, 1);
	cr_assert_str_eq(other[1]->name, "other_0");
	cr_assert_str_eq(other[0]->name, "mlx5_0");
	ibv_free_device_list(other);
	cr_assert_eq(state->lists, 0);
}

Test(foreign, alone_if_there_is_none_of_ours)
{
	struct ibv_device **list;
	int count = -1;

	hardware_with(FAKE_IBVERBS);
	setenv("SYSFS_PATH", "/nowhere", 1);
	list = ibv_get_device_list(&count);
	cr_assert(list);
	cr_assert_eq(count, FAKE_DEVICES);
	cr_assert_str_eq(list[1]->name, "mlx5_0", "nobody else has that name");
	ibv_free_device_list(list);
}

Test(foreign, context_survives_the_list)
{
	struct fake_state *state;
	struct ibv_context *context;

	hardware_with(FAKE_IBVERBS);
	context = foreign_open(&state);
	cr_assert_eq(state->lists, 0);
	cr_assert_eq(state->contexts, 1);
	cr_assert_eq(ibv_close_device(context), 0);
	cr_assert_eq(state->contexts, 0);
}

/* What it was made with stays, and programs jump through it. */
Test(foreign, tables_are_left_alone)
{
	struct fake_state *state;
	struct ibv_context *context;
	struct fake_context *fake;
	struct ibv_cq cq = { 0 };

	hardware_with(FAKE_IBVERBS);
	context = foreign_open(&state);
	fake = fake_context_of(context);
	cr_assert_eq(memcmp(&fake->verbs, &fake->as_made, sizeof fake->verbs), 0);
	cq.context = context;
	cr_assert_eq(ibv_poll_cq(&cq, 7, NULL), 7);
	cr_assert_eq(state->polled, &cq);
	ibv_close_device(context);
}

/* --- verbs --- */

/* One of everything, all of a foreign context. */
static struct things {
	struct ibv_context *context;
	struct ibv_device *device;
	struct ibv_pd pd;
	struct ibv_mr mr;
	struct ibv_dm dm;
	struct ibv_ah ah;
	struct ibv_comp_channel channel;
	struct ibv_cq cq;
	struct ibv_srq srq;
	struct ibv_qp qp;
} t;

/* Where a verb puts what it would tell; nobody writes there. */
static union {
	struct ibv_qp_attr qp_attr;
	struct ibv_qp_init_attr qp_init;
	struct ibv_srq_attr srq_attr;
	struct ibv_srq_init_attr srq_init;
	struct ibv_ah_attr ah_attr;
	struct ibv_device_attr device_attr;
	struct _compat_ibv_port_attr *port_attr;
	struct ibv_gid_entry gid_entry;
	struct ibv_async_event event;
	struct ibv_wc wc;
	struct ibv_grh grh;
	struct ibv_ece ece;
	union ibv_gid gid;
	struct ibv_cq *cq;
	void *pointer;
	uint8_t mac[6];
	uint16_t vlan;
	unsigned type;
	__be16 pkey;
} out;

/* A verb, its answer where the library lacks it, the object that it must get first, and what else
 * it is called with. */
#define VERBS(ROW)									\
	ROW(ibv_get_device_guid, 0, t.device)						\
	ROW(ibv_get_device_index, -1, t.device)						\
	ROW(ibv_query_device, EOPNOTSUPP, t.context, &out.device_attr)			\
	ROW(ibv_query_port, EOPNOTSUPP, t.context, 1, out.port_attr)			\
	ROW(ibv_query_gid, -1, t.context, 1, 0, &out.gid)				\
	ROW(_ibv_query_gid_ex, EOPNOTSUPP, t.context,					\
	    1, 0, &out.gid_entry, 0, sizeof out.gid_entry)				\
	ROW(_ibv_query_gid_table, -EOPNOTSUPP, t.context,				\
	    &out.gid_entry, 1, 0, sizeof out.gid_entry)					\
	ROW(ibv_query_gid_type, -1, t.context, 1, 0, &out.type)				\
	ROW(ibv_query_pkey, -1, t.context, 1, 0, &out.pkey)				\
	ROW(ibv_get_pkey_index, -1, t.context, 1, 0)					\
	ROW(ibv_get_async_event, -1, t.context, &out.event)				\
	ROW(ibv_alloc_pd, 0, t.context)							\
	ROW(ibv_dealloc_pd, EOPNOTSUPP, &t.pd)						\
	ROW(ibv_import_pd, 0, t.context, 1)						\
	ROW(ibv_reg_mr, 0, &t.pd, &out, sizeof out, 0)					\
	ROW(ibv_reg_mr_iova, 0, &t.pd, &out, sizeof out, 0, 0)				\
	ROW(ibv_reg_mr_iova2, 0, &t.pd, &out, sizeof out, 0, 0)				\
	ROW(ibv_reg_dmabuf_mr, 0, &t.pd, 0, 4096, 0, -1, 0)				\
	ROW(ibv_rereg_mr, -1, &t.mr, 0, NULL, NULL, 0, 0)				\
	ROW(ibv_dereg_mr, EOPNOTSUPP, &t.mr)						\
	ROW(ibv_import_mr, 0, &t.pd, 1)							\
	ROW(ibv_import_dm, 0, t.context, 1)						\
	ROW(ibv_create_ah, 0, &t.pd, &out.ah_attr)					\
	ROW(ibv_init_ah_from_wc, -1, t.context, 1, &out.wc, &out.grh, &out.ah_attr)	\
	ROW(ibv_resolve_eth_l2_from_gid, -EOPNOTSUPP, t.context, &out.ah_attr, out.mac, &out.vlan) \
	ROW(ibv_destroy_ah, EOPNOTSUPP, &t.ah)						\
	ROW(ibv_create_comp_channel, 0, t.context)					\
	ROW(ibv_destroy_comp_channel, EOPNOTSUPP, &t.channel)				\
	ROW(ibv_create_cq, 0, t.context, 1, NULL, NULL, 0)				\
	ROW(ibv_resize_cq, EOPNOTSUPP, &t.cq, 1)					\
	ROW(ibv_destroy_cq, EOPNOTSUPP, &t.cq)						\
	ROW(ibv_get_cq_event, -1, &t.channel, &out.cq, &out.pointer)			\
	ROW(ibv_create_srq, 0, &t.pd, &out.srq_init)					\
	ROW(ibv_modify_srq, EOPNOTSUPP, &t.srq, &out.srq_attr, 0)			\
	ROW(ibv_query_srq, EOPNOTSUPP, &t.srq, &out.srq_attr)				\
	ROW(ibv_destroy_srq, EOPNOTSUPP, &t.srq)					\
	ROW(ibv_create_qp, 0, &t.pd, &out.qp_init)					\
	ROW(ibv_qp_to_qp_ex, 0, &t.qp)							\
	ROW(ibv_modify_qp, EOPNOTSUPP, &t.qp, &out.qp_attr, 0)				\
	ROW(ibv_query_qp, EOPNOTSUPP, &t.qp, &out.qp_attr, 0, &out.qp_init)		\
	ROW(ibv_query_qp_data_in_order, 0, &t.qp, IBV_WR_SEND, 0)			\
	ROW(ibv_query_ece, EOPNOTSUPP, &t.qp, &out.ece)					\
	ROW(ibv_set_ece, EOPNOTSUPP, &t.qp, &out.ece)					\
	ROW(ibv_destroy_qp, EOPNOTSUPP, &t.qp)						\
	ROW(ibv_attach_mcast, EOPNOTSUPP, &t.qp, &out.gid, 0)				\
	ROW(ibv_detach_mcast, EOPNOTSUPP, &t.qp, &out.gid, 0)
/* These answer nothing. */
#define SILENT_VERBS(ROW)								\
	ROW(ibv_unimport_pd, &t.pd)							\
	ROW(ibv_unimport_mr, &t.mr)							\
	ROW(ibv_unimport_dm, &t.dm)							\
	ROW(ibv_ack_cq_events, &t.cq, 1)

#define CALL(name, refusal, object, ...)					\
	static const void *call_##name(intptr_t *answer)				\
	{										\
		*answer = (intptr_t)name(object, ##__VA_ARGS__);			\
		return object;								\
	}
VERBS(CALL)

#define CALL_SILENT(name, object, ...)							\
	static const void *call_##name(intptr_t *answer)				\
	{										\
		*answer = 0;								\
		name(object, ##__VA_ARGS__);						\
		return object;								\
	}
SILENT_VERBS(CALL_SILENT)

static const struct row {
	const char *name;
	const void *(*call)(intptr_t *answer);	/* the object */
	intptr_t refusal;
	bool is_silent;
} rows[FOREIGN_NAMES] = {
#define ROW(name, refusal, ...) [FOREIGN_##name] = { #name, call_##name, refusal, false },
	VERBS(ROW)
#undef ROW
#define ROW(name, ...) [FOREIGN_##name] = { #name, call_##name, 0, true },
	SILENT_VERBS(ROW)
#undef ROW
};

static const char *const names[FOREIGN_NAMES] = {
#define FOREIGN_VERB(name, answer) [FOREIGN_##name] = #name,
#include "verbs/foreign.def"
#undef FOREIGN_VERB
};

/* The list and what opens a device have tests of their own. */
static bool is_tested_elsewhere(int name)
{
	return name == FOREIGN_ibv_get_device_list || name == FOREIGN_ibv_free_device_list ||
	       name == FOREIGN_ibv_open_device || name == FOREIGN_ibv_close_device ||
	       name == FOREIGN_ibv_fork_init || name == FOREIGN_ibv_import_device;
}

static void things_begin(const char *library, struct fake_state **state)
{
	hardware_with(library);
	t.context = foreign_open(state);
	t.device = t.context->device;
	t.pd.context = t.mr.context = t.dm.context = t.ah.context = t.channel.context =
		t.cq.context = t.srq.context = t.qp.context = t.context;
	t.mr.pd = t.ah.pd = &t.pd;
}

Test(foreign, every_verb_goes_there)
{
	struct fake_state *state;
	intptr_t answer;
	const void *object;

	things_begin(FAKE_IBVERBS, &state);
	for (int i = 0; i < FOREIGN_NAMES; i++) {
		if (is_tested_elsewhere(i))
			continue;
		cr_assert(rows[i].call, "%s is not tested", names[i]);
		state->called = -1;
		errno = E2BIG;
		object = rows[i].call(&answer);
		cr_assert_eq(state->called, i, "%s", rows[i].name);
		cr_assert_eq(state->object, object, "%s", rows[i].name);
		cr_assert_eq(state->error_before, E2BIG, "%s: errno is one", rows[i].name);
		cr_assert_eq(errno, FAKE_ERROR, "%s: errno is %d", rows[i].name, errno);
		if (!rows[i].is_silent)
			cr_assert_eq(answer, FAKE_ANSWER, "%s", rows[i].name);
	}
	ibv_close_device(t.context);
}

Test(foreign, verb_that_it_lacks_is_refused)
{
	struct fake_state *state;
	intptr_t answer;

	things_begin(FAKE_OLD_IBVERBS, &state);
	for (int i = 0; i < FOREIGN_NAMES; i++) {
		if (is_tested_elsewhere(i))
			continue;
		errno = 0;
		rows[i].call(&answer);
		cr_assert_eq(errno, EOPNOTSUPP, "%s: errno is %d", rows[i].name, errno);
		cr_assert_eq(answer, rows[i].refusal, "%s answers %ld", rows[i].name,
			     (long)answer);
	}
	ibv_close_device(t.context);
	cr_assert_eq(state->contexts, 0);
}

/* --- made of others --- */

/* The way back needs two verbs, both there. */
Test(foreign, handle_from_a_completion)
{
	struct fake_state *state;

	things_begin(FAKE_OLD_IBVERBS, &state);
	errno = 0;
	cr_assert_null(ibv_create_ah_from_wc(&t.pd, &out.wc, &out.grh, 1));
	cr_assert_eq(errno, EOPNOTSUPP);
}

/* Its objects are acknowledged where programs wait for it. */
Test(foreign, events_are_acknowledged_in_the_object)
{
	struct ibv_async_event event = { .event_type = IBV_EVENT_QP_FATAL,
					 .element = { .qp = &t.qp } };
	struct fake_state *state;

	things_begin(FAKE_IBVERBS, &state);
	ibv_ack_async_event(&event);
	cr_assert_eq(t.qp.events_completed, 1);
}

Test(foreign, descriptor_that_is_not_ours_is_imported_there)
{
	int fd = dup(0);

	hardware_with(FAKE_IBVERBS);
	errno = 0;
	cr_assert_eq((intptr_t)ibv_import_device(fd), FAKE_ANSWER);
	cr_assert_eq(errno, FAKE_ERROR);
	cr_assert_eq(close(fd), 0, "it is the caller's");
}

/* --- fork --- */

Test(foreign, fork_safety_before_it_is_loaded)
{
	struct ibv_device **list;

	hardware_with(FAKE_IBVERBS);
	cr_assert_eq(ibv_fork_init(), 0);
	cr_assert_not(is_mapped("fake_ibverbs"), "nobody needs it yet");
	list = ibv_get_device_list(NULL);
	cr_assert_eq(state_of(list[1])->forks, 1);
	ibv_free_device_list(list);
}

Test(foreign, fork_safety_once_it_is_loaded)
{
	struct fake_state *state;
	struct ibv_context *context;

	hardware_with(FAKE_IBVERBS);
	context = foreign_open(&state);
	cr_assert_eq(state->forks, 0);
	cr_assert_eq(ibv_fork_init(), 0);
	cr_assert_eq(state->forks, 1);
	state->fork_answer = EINVAL;
	cr_assert_eq(ibv_fork_init(), EINVAL, "it has registered memory before");
	ibv_close_device(context);
}

Test(foreign, fork_safety_that_it_lacks_is_told)
{
	struct fake_state *state;
	struct ibv_context *context;

	hardware_with(FAKE_OLD_IBVERBS);
	context = foreign_open(&state);
	cr_assert_eq(ibv_fork_init(), EOPNOTSUPP);
	ibv_close_device(context);
}

/* --- without it --- */

static void only_ours_with(const char *library)
{
	struct ibv_device **list;
	int count = -1;

	hardware_with(library);
	list = ibv_get_device_list(&count);
	cr_assert(list, "%s: errno %d", library, errno);
	cr_assert_eq(count, 1);
	cr_assert_str_eq(list[0]->name, "mlx5_0");
	cr_assert_null(list[1]);
	ibv_free_device_list(list);
	cr_assert_eq(ibv_fork_init(), 0);
}

Test(foreign, system_without_a_library)
{
	only_ours_with("/nowhere/libibverbs.so.1");
}

Test(foreign, library_that_is_none)
{
	only_ours_with("/proc/self/status");
}

Test(foreign, library_that_is_ours)
{
	only_ours_with(OWN_IBVERBS);
	cr_assert_not(is_mapped(OWN_IBVERBS), "we would look for ourselves");
}

/* --- never beside emulated devices --- */

static void only_emulated(void)
{
	struct ibv_device **list;
	struct ibv_context *context;
	int count = -1;

	setenv("VERBENA_SYSTEM_IBVERBS", FAKE_IBVERBS, 1);
	cr_assert_eq(ibv_fork_init(), 0);
	list = ibv_get_device_list(&count);
	cr_assert(list);
	cr_assert_eq(count, 1);
	cr_assert_str_eq(list[0]->name, "script0");
	context = ibv_open_device(list[0]);
	cr_assert(context);
	ibv_free_device_list(list);
	cr_assert_null(ibv_import_device(0));
	cr_assert_eq(ibv_dealloc_pd(ibv_alloc_pd(context)), 0);
	ibv_close_device(context);
	cr_assert_not(is_mapped("fake_ibverbs"));
	cr_assert_not(is_mapped("libibverbs"));
}

Test(foreign, is_not_loaded_beside_an_emulated_device)
{
	unsetenv("VERBENA_NIC");
	only_emulated();
	setenv("VERBENA_NIC", "connectx-7", 1);
	only_emulated();
}

/* The kernel's interface may be the shim's, and that library would see the real one. */
Test(foreign, is_not_loaded_for_the_kernel_channel_alone)
{
	struct ibv_device **list;
	int count = -1;

	setenv("VERBENA_SYSTEM_IBVERBS", FAKE_IBVERBS, 1);
	unsetenv("VERBENA_NIC");
	setenv("VERBENA_CHANNEL", "kernel", 1);
	list = ibv_get_device_list(&count);
	cr_assert_eq(count, 1);
	ibv_free_device_list(list);
	cr_assert_not(is_mapped("fake_ibverbs"));
}
