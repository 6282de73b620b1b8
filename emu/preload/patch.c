/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lending time: the calls that never enter the kernel.
 *
 * libibverbs jumps to the driver through tables in the context, in extended CQs and in
 * extended QPs.  The entries that ring a doorbell or find a CQ empty are replaced by ones
 * that call the original and then let the engine run.  A program that reaches the driver
 * in another way still works: the NIC thread finds its doorbells.  For that it is told who gets
 * raw queues from mlx5dv, and which contexts were opened past us (by dlsym() or a library that
 * is linked statically).  Only dlsym(library, "mlx5dv_init_obj") on top of a patched context is
 * seen by nobody; what such a program rings is found when something else wakes the NIC.
 *
 * An original is known by its slot number, which each replacement has built in; so there is
 * nothing to look up in a poll and nothing to free with the object.  Drivers have a handful of
 * variants of an entry; what finds no slot stays as it was.
 *
 * The only file of the emulator that includes verbs.h.
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdlib.h>
#include "emu/emu.h"
#include "emu/preload/files.h"
#include "emu/preload/real.h"
#include "emu/preload/shim.h"

#define SLOTS_4(X, what)	X(0, what) X(1, what) X(2, what) X(3, what)
#define SLOTS_32(X, what)						\
	SLOTS_4(X, what)						\
	X(4, what)  X(5, what)  X(6, what)  X(7, what)  X(8, what)  X(9, what)  X(10, what)	\
	X(11, what) X(12, what) X(13, what) X(14, what) X(15, what) X(16, what) X(17, what)	\
	X(18, what) X(19, what) X(20, what) X(21, what) X(22, what) X(23, what) X(24, what)	\
	X(25, what) X(26, what) X(27, what) X(28, what) X(29, what) X(30, what) X(31, what)

typedef void entry_fn(void);	/* any entry; cast back before it is called */

/* The replacements of one entry, and the originals behind them. */
struct slots {
	entry_fn *const *replacement;
	entry_fn **original;
	unsigned count;
};

static pthread_mutex_t slots_lock = PTHREAD_MUTEX_INITIALIZER;

/* The replacement for @entry; @entry itself if it is one, is NULL, or no slot is left. */
static entry_fn *slot_replacement(const struct slots *s, entry_fn *entry)
{
	entry_fn *found = entry;

	if (!entry)
		return entry;
	for (unsigned i = 0; i < s->count; i++)
		if (s->replacement[i] == entry)
			return entry;
	pthread_mutex_lock(&slots_lock);
	for (unsigned i = 0; i < s->count; i++) {
		if (s->original[i] && s->original[i] != entry)
			continue;
		__atomic_store_n(&s->original[i], entry, __ATOMIC_RELEASE);
		found = s->replacement[i];
		break;
	}
	pthread_mutex_unlock(&slots_lock);
	return found;
}

/* Does not name the type of the member, which differs from entry to entry. */
#define REPLACE(member, slots) \
	((member) = (__typeof__(member))slot_replacement(&(slots), (entry_fn *)(member)))

#define ROW(n, what)	(entry_fn *)what##_##n,
#define SLOTS_TABLE(what, EACH)							\
	static entry_fn *const what##_replacements[] = { EACH(ROW, what) };	\
	static const struct slots what##_slots = {				\
		what##_replacements, (entry_fn **)what##_originals,		\
		sizeof what##_replacements / sizeof *what##_replacements,	\
	};

/* poll_cq: an empty CQ is a thread with time to lend. */
static int (*poll_cq_originals[4])(struct ibv_cq *, int, struct ibv_wc *);

static inline int poll_cq(unsigned slot, struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
	int found = poll_cq_originals[slot](cq, count, wc);

	if (found || !count)
		return found;
	emu_lend();
	return poll_cq_originals[slot](cq, count, wc);
}

#define POLL_CQ(n, what)							\
	static int poll_cq_##n(struct ibv_cq *cq, int count, struct ibv_wc *wc)	\
	{									\
		return poll_cq(n, cq, count, wc);				\
	}
SLOTS_4(POLL_CQ, )
SLOTS_TABLE(poll_cq, SLOTS_4)

/* start_poll: the same.  next_poll is not touched: whoever drains a CQ comes back to start_poll,
 * and in between the driver holds the CQ's lock. */
static int (*start_poll_originals[32])(struct ibv_cq_ex *, struct ibv_poll_cq_attr *);

static inline int start_poll(unsigned slot, struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	int error = start_poll_originals[slot](cq, attr);

	if (error != ENOENT)
		return error;
	emu_lend();
	return start_poll_originals[slot](cq, attr);
}

#define START_POLL(n, what)							\
	static int start_poll_##n(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)	\
	{									\
		return start_poll(n, cq, attr);					\
	}
SLOTS_32(START_POLL, )
SLOTS_TABLE(start_poll, SLOTS_32)

/* post_send: a failed list may have posted its beginning, so the doorbell counts either way. */
static int (*post_send_originals[4])(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);

#define POST_SEND(n, what)							\
	static int post_send_##n(struct ibv_qp *qp, struct ibv_send_wr *wr,	\
				 struct ibv_send_wr **bad_wr)			\
	{									\
		int error = post_send_originals[n](qp, wr, bad_wr);		\
										\
		emu_rang(qp->qp_num);						\
		return error;							\
	}
SLOTS_4(POST_SEND, )
SLOTS_TABLE(post_send, SLOTS_4)

/* post_recv: receives are found in the record when a message comes; but a QP that has failed
 * flushes what is posted to it. */
static int (*post_recv_originals[4])(struct ibv_qp *, struct ibv_recv_wr *, struct ibv_recv_wr **);

#define POST_RECV(n, what)							\
	static int post_recv_##n(struct ibv_qp *qp, struct ibv_recv_wr *wr,	\
				 struct ibv_recv_wr **bad_wr)			\
	{									\
		int error = post_recv_originals[n](qp, wr, bad_wr);		\
										\
		emu_posted_recv(qp->qp_num);					\
		return error;							\
	}
SLOTS_4(POST_RECV, )
SLOTS_TABLE(post_recv, SLOTS_4)

static int (*bind_mw_originals[4])(struct ibv_qp *, struct ibv_mw *, struct ibv_mw_bind *);

#define BIND_MW(n, what)							\
	static int bind_mw_##n(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind) \
	{									\
		int error = bind_mw_originals[n](qp, mw, bind);			\
										\
		emu_rang(qp->qp_num);						\
		return error;							\
	}
SLOTS_4(BIND_MW, )
SLOTS_TABLE(bind_mw, SLOTS_4)

static int (*req_notify_cq_originals[4])(struct ibv_cq *, int);

static void cq_armed(const struct ibv_cq *cq)
{
	struct shim_file *file = files_known(cq->context->cmd_fd);

	if (!file)
		return;
	if (files_device(file))
		emu_armed(files_device(file), cq->handle);
	files_put(file);
}

#define REQ_NOTIFY_CQ(n, what)							\
	static int req_notify_cq_##n(struct ibv_cq *cq, int solicited_only)	\
	{									\
		int error = req_notify_cq_originals[n](cq, solicited_only);	\
										\
		cq_armed(cq);							\
		return error;							\
	}
SLOTS_4(REQ_NOTIFY_CQ, )
SLOTS_TABLE(req_notify_cq, SLOTS_4)

/* wr_complete rings; wr_abort does not.  The driver exchanges wr_complete when the QP changes its
 * state, so wr_start, which it leaves alone, puts ours back. */
static int (*wr_complete_originals[8])(struct ibv_qp_ex *);

#define WR_COMPLETE(n, what)							\
	static int wr_complete_##n(struct ibv_qp_ex *qp)			\
	{									\
		int error = wr_complete_originals[n](qp);			\
										\
		emu_rang(qp->qp_base.qp_num);					\
		return error;							\
	}
#define SLOTS_8(X, what) SLOTS_4(X, what) X(4, what) X(5, what) X(6, what) X(7, what)
SLOTS_8(WR_COMPLETE, )
SLOTS_TABLE(wr_complete, SLOTS_8)

static void (*wr_start_originals[4])(struct ibv_qp_ex *);

#define WR_START(n, what)							\
	static void wr_start_##n(struct ibv_qp_ex *qp)				\
	{									\
		wr_start_originals[n](qp);					\
		REPLACE(qp->wr_complete, wr_complete_slots);			\
	}
SLOTS_4(WR_START, )
SLOTS_TABLE(wr_start, SLOTS_4)

/* query_rt_values reads a clock page, which does not count by itself. */
static int (*query_rt_values_originals[4])(struct ibv_context *, struct ibv_values_ex *);

static void clock_refresh(const struct ibv_context *context)
{
	struct shim_file *file = files_get(context->cmd_fd);

	if (!file)
		return;
	if (files_device(file))
		emu_clock_refresh(files_device(file));
	files_put(file);
}

#define QUERY_RT_VALUES(n, what)						\
	static int query_rt_values_##n(struct ibv_context *context,		\
				       struct ibv_values_ex *values)		\
	{									\
		clock_refresh(context);						\
		return query_rt_values_originals[n](context, values);		\
	}
SLOTS_4(QUERY_RT_VALUES, )
SLOTS_TABLE(query_rt_values, SLOTS_4)

static struct ibv_cq_ex *cq_ex_patch(struct ibv_cq_ex *cq)
{
	if (cq)
		REPLACE(cq->start_poll, start_poll_slots);
	return cq;
}

/* Extended CQs come from an inline function that jumps through the context. */
static struct ibv_cq_ex *(*create_cq_ex_originals[4])(struct ibv_context *,
						      struct ibv_cq_init_attr_ex *);

#define CREATE_CQ_EX(n, what)							\
	static struct ibv_cq_ex *create_cq_ex_##n(struct ibv_context *context,	\
						  struct ibv_cq_init_attr_ex *attr) \
	{									\
		return cq_ex_patch(create_cq_ex_originals[n](context, attr));	\
	}
SLOTS_4(CREATE_CQ_EX, )
SLOTS_TABLE(create_cq_ex, SLOTS_4)

static bool is_ours(const struct ibv_context *context)
{
	struct shim_file *file = files_get(context->cmd_fd);

	if (file)
		files_put(file);
	return file != NULL;
}

static struct ibv_context *context_patch(struct ibv_context *context)
{
	struct shim_file *file = context ? files_get(context->cmd_fd) : NULL;
	struct verbs_context *extended;

	if (!file)
		return context;
	if (files_device(file))
		emu_patched(files_device(file));
	files_put(file);
	REPLACE(context->ops.poll_cq, poll_cq_slots);
	REPLACE(context->ops.post_send, post_send_slots);
	REPLACE(context->ops.post_recv, post_recv_slots);
	REPLACE(context->ops.bind_mw, bind_mw_slots);
	REPLACE(context->ops.req_notify_cq, req_notify_cq_slots);
	extended = verbs_get_ctx_op(context, create_cq_ex);
	if (extended)
		REPLACE(extended->create_cq_ex, create_cq_ex_slots);
	extended = verbs_get_ctx_op(context, query_rt_values);
	if (extended)
		REPLACE(extended->query_rt_values, query_rt_values_slots);
	return context;
}

/*
 * The real function, in whatever library of the process has it: programs that load libibverbs
 * privately (Python, plugins) do not have it where RTLD_NEXT looks.
 */
static void *find_verb(const char *name, const char *version, const char *library)
{
	void *verb = dlvsym(RTLD_NEXT, name, version);
	void *handle;

	if (verb)
		return verb;
	handle = dlopen(library, RTLD_NOLOAD | RTLD_LAZY);
	if (handle) {
		verb = dlvsym(handle, name, version);
		dlclose(handle);	/* the count that NOLOAD added; the library stays */
	}
	if (!verb)
		errno = ENOSYS;
	return verb;
}

#define LIBIBVERBS	"libibverbs.so.1"
#define LIBMLX5		"libmlx5.so.1"

/*
 * libibverbs looks for a driver among those that it has, and loads all that the system has if that
 * is not enough.  With ours there from the start it needs none of the other fifteen.
 */
static void driver_open(void)
{
	/* The first driver that is there wins, and this would be before one that the user names. */
	if (!getenv("RDMAV_DRIVERS") && !getenv("IBV_DRIVERS"))
		dlopen(LIBMLX5, RTLD_NOW);	/* without it libibverbs says what is missing */
}

static void driver_load(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, driver_open);
}

SHIM_EXPORT struct ibv_device **ibv_get_device_list(int *count)
{
	struct ibv_device **(*verb)(int *) =
		find_verb("ibv_get_device_list", "IBVERBS_1.1", LIBIBVERBS);

	if (verb && shim_is_on())
		driver_load();
	return verb ? verb(count) : NULL;
}

SHIM_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *(*verb)(struct ibv_device *) =
		find_verb("ibv_open_device", "IBVERBS_1.1", LIBIBVERBS);

	return verb ? context_patch(verb(device)) : NULL;
}

static void imports_count(const struct ibv_context *context)
{
	struct shim_file *file = context ? files_get(context->cmd_fd) : NULL;

	if (!file)
		return;
	if (files_device(file))
		emu_counts_imports(files_device(file));
	files_put(file);
}

/* A descriptor of another process becomes a device, so that libibverbs finds one. */
SHIM_EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct ibv_context *(*verb)(int) =
		find_verb("ibv_import_device", "IBVERBS_1.10", LIBIBVERBS);
	int error = verb && shim_is_on() ? device_adopt(cmd_fd) : 0;
	struct ibv_context *context;

	if (!verb)
		return NULL;
	if (error && error != -EINVAL) {
		errno = -error;
		return NULL;
	}
	context = context_patch(verb(cmd_fd));
	imports_count(context);
	return context;
}

/* The driver tells nobody. */
static void unimported(const struct ibv_context *context, enum emu_import kind, uint32_t handle)
{
	struct shim_file *file = files_get(context->cmd_fd);

	if (!file)
		return;
	if (files_device(file))
		emu_unimport(files_device(file), kind, handle);
	files_put(file);
}

SHIM_EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
	void (*verb)(struct ibv_pd *) = find_verb("ibv_unimport_pd", "IBVERBS_1.10", LIBIBVERBS);

	unimported(pd->context, EMU_IMPORT_PD, pd->handle);
	if (verb)
		verb(pd);
}

SHIM_EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
	void (*verb)(struct ibv_mr *) = find_verb("ibv_unimport_mr", "IBVERBS_1.10", LIBIBVERBS);

	unimported(mr->context, EMU_IMPORT_MR, mr->handle);
	if (verb)
		verb(mr);
}

SHIM_EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
	void (*verb)(struct ibv_dm *) = find_verb("ibv_unimport_dm", "IBVERBS_1.13", LIBIBVERBS);

	unimported(dm->context, EMU_IMPORT_DM, dm->handle);
	if (verb)
		verb(dm);
}

/* It does no more than read the channel, so a thread that would sleep there may do so in the
 * device. */
SHIM_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
				 void **cq_context)
{
	typedef int verb_fn(struct ibv_comp_channel *, struct ibv_cq **, void **);
	static verb_fn *found;
	verb_fn *verb = __atomic_load_n(&found, __ATOMIC_RELAXED);
	int error = 0;

	if (!verb) {
		verb = find_verb("ibv_get_cq_event", "IBVERBS_1.1", LIBIBVERBS);
		__atomic_store_n(&found, verb, __ATOMIC_RELAXED);
	}
	if (!verb)
		return -1;
	if (files_may_be_ours(channel->context->cmd_fd))
		error = emu_doze(channel->fd);
	if (!error)
		return verb(channel, cq, cq_context);
	errno = -error;
	return -1;
}

/* What is waited for may come from outside, and without a QP nobody else would look. */
SHIM_EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	int (*verb)(struct ibv_context *, struct ibv_async_event *) =
		find_verb("ibv_get_async_event", "IBVERBS_1.1", LIBIBVERBS);
	struct shim_file *file = files_known(context->cmd_fd);

	if (!verb)
		return -1;
	if (file) {
		if (files_device(file))
			emu_awaits_events(files_device(file));
		files_put(file);
	}
	return verb(context, event);
}

/* Every user of an extended QP gets it from here. */
SHIM_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct ibv_qp_ex *(*verb)(struct ibv_qp *) =
		find_verb("ibv_qp_to_qp_ex", "IBVERBS_1.6", LIBIBVERBS);
	struct ibv_qp_ex *extended = verb ? verb(qp) : NULL;

	if (extended && is_ours(qp->context)) {
		REPLACE(extended->wr_start, wr_start_slots);
		REPLACE(extended->wr_complete, wr_complete_slots);
	}
	return extended;
}

/* mlx5dv goes around the context's tables. */
SHIM_EXPORT struct ibv_context *mlx5dv_open_device(struct ibv_device *device,
						   struct mlx5dv_context_attr *attr)
{
	struct ibv_context *(*verb)(struct ibv_device *, struct mlx5dv_context_attr *) =
		find_verb("mlx5dv_open_device", "MLX5_1.7", LIBMLX5);

	return verb ? context_patch(verb(device, attr)) : NULL;
}

SHIM_EXPORT struct ibv_cq_ex *mlx5dv_create_cq(struct ibv_context *context,
					       struct ibv_cq_init_attr_ex *attr,
					       struct mlx5dv_cq_init_attr *mlx5_attr)
{
	struct ibv_cq_ex *(*verb)(struct ibv_context *, struct ibv_cq_init_attr_ex *,
				  struct mlx5dv_cq_init_attr *) =
		find_verb("mlx5dv_create_cq", "MLX5_1.1", LIBMLX5);
	struct ibv_cq_ex *cq = verb ? verb(context, attr, mlx5_attr) : NULL;

	return cq && is_ours(context) ? cq_ex_patch(cq) : cq;
}

/* Who has this can ring without telling. */
static void rings_itself(const struct ibv_context *context)
{
	struct shim_file *file = files_get(context->cmd_fd);

	if (!file)
		return;
	if (files_device(file))
		emu_rings_itself(files_device(file));
	files_put(file);
}

/* Programs built before rdma-core 15 mean MLX5_1.0, in which one field of a CQ differs; they can't
 * be told from others here. */
SHIM_EXPORT int mlx5dv_init_obj(struct mlx5dv_obj *obj, uint64_t types)
{
	int (*verb)(struct mlx5dv_obj *, uint64_t) =
		find_verb("mlx5dv_init_obj", "MLX5_1.2", LIBMLX5);
	int error = verb ? verb(obj, types) : ENOSYS;

	if (!error && types & MLX5DV_OBJ_QP)
		rings_itself(obj->qp.in->context);
	if (!error && types & MLX5DV_OBJ_CQ)
		rings_itself(obj->cq.in->context);
	return error;
}

SHIM_EXPORT struct mlx5dv_devx_uar *mlx5dv_devx_alloc_uar(struct ibv_context *context,
							  uint32_t flags)
{
	struct mlx5dv_devx_uar *(*verb)(struct ibv_context *, uint32_t) =
		find_verb("mlx5dv_devx_alloc_uar", "MLX5_1.7", LIBMLX5);
	struct mlx5dv_devx_uar *uar = verb ? verb(context, flags) : NULL;

	if (uar)
		rings_itself(context);
	return uar;
}

/* So is what this one reads. */
SHIM_EXPORT int mlx5dv_get_clock_info(struct ibv_context *context,
				      struct mlx5dv_clock_info *info)
{
	int (*verb)(struct ibv_context *, struct mlx5dv_clock_info *) =
		find_verb("mlx5dv_get_clock_info", "MLX5_1.4", LIBMLX5);

	if (!verb)
		return errno;
	clock_refresh(context);
	return verb(context, info);
}
