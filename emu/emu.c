/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device function of this process: made with the first open file, gone with the last.
 *
 * Puts the layers together and holds nothing of their work.  All contexts of a process
 * share the one function.
 *
 * Threads: `life` orders opening and closing; calls on open files take no lock here but a
 * look at the list of files, because a file that fork() left behind must answer EIO.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "emu/abroad.h"
#include "emu/card.h"
#include "emu/clocks.h"
#include "emu/emu.h"
#include "emu/engine/engine.h"
#include "emu/fabric/fabric.h"
#include "emu/fabric/rules.h"
#include "emu/identity.h"
#include "emu/left.h"
#include "emu/lenders.h"
#include "emu/mem/mem.h"
#include "emu/obj/flow.h"
#include "emu/obj/obj.h"
#include "emu/obj/relay.h"
#include "emu/options.h"
#include "emu/port.h"
#include "emu/port_rules.h"
#include "emu/port_uplink.h"
#include "emu/self.h"
#include "emu/share/share.h"
#include "emu/uverbs/uverbs.h"
#include "emu/wire/wire.h"
#include "hw-models/ib_packet.h"
#include "hw-models/profile.h"
#include "include/base/cancel.h"

/* An application that opens more contexts than this is told -EMFILE. */
#define EMU_FILES_MAX 256

struct emu_function {
	struct emu_dev dev;
	struct why_ring why;
	struct fabric *fabric;
	struct wire *wire;
	struct share *share;		/* NULL: peers can't execute here, nor we there */
	struct engine *engine;
	struct rules *rules;		/* flow rules of all functions */
	struct port_uplink uplink;
	pid_t pid;
	struct port_watch port;
	int cq_blocks;			/* handed out; nobody else sees these numbers */
};

static pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER;
static struct emu_function *function;
static struct open_file {
	struct uv_file *uv;
	struct uv_identity id;		/* dev, ino 0: unknown */
	unsigned users;			/* emu_open(), emu_adopt() */
	int watch;			/* see emu_watch(); -1 */
	bool is_patched, rings_itself;
} files[EMU_FILES_MAX];
static unsigned file_count;

static int complained;		/* about this errno, since an open worked */

static int complain(const char *doing, const char *what, int error)
{
	if (error && __atomic_exchange_n(&complained, error, __ATOMIC_RELAXED) != error)
		fprintf(stderr, "verbena: cannot %s " EMU_DEVICE_NAME ": %s: %s\n", doing, what,
			strerror(-error));
	return error;
}

int emu_complain(const char *what, int error)
{
	return complain("open", what, error);
}

/* Before there is a QP, or a queue that QPs of other processes deliver to, nothing can happen that
 * needs the NIC thread. */
static int lease_served(struct emu_function *f, enum fabric_space space)
{
	int error = complain("start", "thread", engine_nic_start(f->engine));

	return error ? error : fabric_lease(f->fabric, space);
}

static int lease_qpns(void *ctx)
{
	return lease_served(ctx, FABRIC_QPN);
}

static int lease_keys(void *ctx)
{
	return fabric_lease(((struct emu_function *)ctx)->fabric, FABRIC_KEY);
}

static int lease_srqns(void *ctx)
{
	return lease_served(ctx, FABRIC_SRQN);
}

/* In the words of ibv_open_xrcd(). */
static int domain_hold(void *ctx, uint64_t name, bool creates, bool is_exclusive)
{
	int token = fabric_name_hold(((struct emu_function *)ctx)->fabric, name, creates,
				     is_exclusive);

	return token == -ENOENT ? -EAGAIN : token == -EEXIST ? -EINVAL :
	       token == -ENOSPC ? -ENOMEM : token;
}

static void domain_drop(void *ctx, int token)
{
	fabric_name_drop(((struct emu_function *)ctx)->fabric, token);
}

static int next_block(int *blocks)
{
	return *blocks < (int)NUMBER_BLOCKS ? (*blocks)++ : -ENOMEM;
}

static int lease_cqns(void *ctx)
{
	return next_block(&((struct emu_function *)ctx)->cq_blocks);
}

/* A domain may be shared, and then somebody must answer for its memory. */
static int lease_pdns(void *ctx)
{
	return lease_served(ctx, FABRIC_PDN);
}

static void dev_fill(struct emu_function *f, const struct emu_identity *id)
{
	struct emu_dev *dev = &f->dev;

	pthread_mutex_init(&dev->lock, NULL);
	dev->profile = id->profile;
	strcpy(dev->name, EMU_DEVICE_NAME);
	dev->node_guid = id->node_guid;
	memcpy(dev->mac, id->mac, sizeof dev->mac);
	port_begin(dev);
	clocks_begin(dev);
	options_read(&dev->options);
	dev->why = &f->why;
	f->why.is_printing = self_env_is_set("VERBENA_EXPLAIN");
}

static int fabric_begin(struct emu_function *f, const struct emu_identity *id)
{
	uint8_t gid[FABRIC_GIDS_MAX][16];
	struct fabric_config config = {
		.name = self_env("VERBENA_FABRIC"),
		.gid = (const uint8_t (*)[16])gid,
		.gid_count = port_gids(id, gid),
	};
	char what[96];

	snprintf(what, sizeof what, "fabric \"%s\"", config.name ? config.name : "default");
	return emu_complain(what, fabric_join(&config, &f->fabric));
}

/* --- where responders and keys live --- */

static void *home_of_take(void *ctx, enum home_kind kind, uint32_t number, size_t bytes)
{
	static const enum share_kind kinds[] = {
		[HOME_RESPONDER] = SHARE_RESPONDER, [HOME_KEY] = SHARE_KEY,
	};
	void *entry = share_take(ctx, kinds[kind], number);

	return entry ? entry : calloc(1, bytes);	/* no room: peers use the ring */
}

static void home_of_give(void *ctx, void *entry)
{
	if (!share_owns(ctx, entry))
		free(entry);
}

static void home_of_quiesce(void *ctx)
{
	share_quiesce(ctx);
}

static void home_of_atomics_lock(void *ctx)
{
	share_atomics_lock(ctx);
}

static void home_of_atomics_unlock(void *ctx)
{
	share_atomics_unlock(ctx);
}

/* Yama lets only descendants of a process move its memory, unless it says otherwise. */
static void open_to_peers(void)
{
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = file ? fgetc(file) : '0';

	if (file)
		fclose(file);
	if (scope == '1')
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
}

/* Without a segment everything works, by packets. */
static void segment_begin(struct emu_function *f)
{
	static const size_t bytes[SHARE_KIND_COUNT] = {
		[SHARE_RESPONDER] = sizeof(struct rc_resp), [SHARE_KEY] = sizeof(struct key_entry),
		[SHARE_ABROAD] = sizeof(union abroad_entry),
	};
	bool is_closed = self_env_says("VERBENA_ONE_SIDED", "ring");

	if (share_create(f->fabric, bytes, is_closed, &f->share))
		return;
	f->dev.home = (struct home){
		.take = home_of_take, .give = home_of_give, .quiesce = home_of_quiesce,
		.atomics_lock = home_of_atomics_lock, .atomics_unlock = home_of_atomics_unlock,
		.ctx = f->share,
	};
	f->dev.keys.home = f->dev.home;
	if (!is_closed)
		open_to_peers();
}

static int numbers_begin(struct emu_function *f)
{
	struct emu_dev *dev = &f->dev;
	int error = key_table_init(&dev->keys, lease_keys, f);

	if (!error)
		error = numbers_init(&dev->qpns, 0, lease_qpns, f);
	if (!error)
		error = numbers_init(&dev->cqns, 1, lease_cqns, f);
	if (!error)
		error = numbers_init(&dev->pdns, 1, lease_pdns, f);
	if (!error)
		error = numbers_init(&dev->srqns, 1, lease_srqns, f);
	if (!error)
		error = numbers_init(&dev->wqns, 1, NULL, NULL);
	if (!error)
		error = flow_steering_begin(dev);
	dev->xrc_registry = (struct xrc_registry){ domain_hold, domain_drop, f };
	return error;
}

static void (*look_outside)(void);	/* see emu_look_with() */

void emu_look_with(void (*look)(void))
{
	look_outside = look;
}

static bool function_look(void *ctx)
{
	struct emu_function *f = ctx;

	if (look_outside)
		look_outside();
	return port_watch_look(&f->port);
}

/* Which emulated host this is; emu_identity() has refused what is no number. */
static uint32_t host_node(void)
{
	unsigned node = 0;

	identity_node_parse(self_env("VERBENA_NODE"), &node);
	return node;
}

static int engine_begin(struct emu_function *f)
{
	int error = wire_shm_open(f->fabric, &f->wire);

	if (!error)
		error = engine_create(&f->dev, f->wire, f->share, &f->engine);
	if (!error)
		error = port_rules_begin(&f->dev, f->engine, f->fabric, host_node(), &f->rules);
	if (error)
		return error;
	f->dev.engine = f->engine;
	port_watch_begin(&f->port, &f->dev, f->fabric);
	engine_look_with(f->engine, function_look, f, look_outside != NULL);
	return 0;
}

/* Any part of it may be missing. */
static void function_destroy(struct emu_function *f)
{
	if (f->engine) {
		engine_nic_stop(f->engine);
		port_uplink_end(&f->uplink);
		engine_far_abandon(f->engine);
		engine_destroy(f->engine);
	}
	guests_free(&f->dev);
	abroad_end(&f->dev);
	if (f->wire)
		f->wire->ops->close(f->wire);
	if (f->rules)
		rules_close(f->rules);
	key_table_free(&f->dev.keys);
	numbers_free(&f->dev.qpns);
	numbers_free(&f->dev.cqns);
	numbers_free(&f->dev.pdns);
	numbers_free(&f->dev.srqns);
	numbers_free(&f->dev.wqns);
	flow_steering_end(&f->dev);
	if (f->share)
		share_destroy(f->share);
	if (f->fabric)
		fabric_leave(f->fabric);
	pthread_mutex_destroy(&f->dev.lock);
	free(f);
}

static int function_create(const struct emu_identity *id, struct emu_function **out)
{
	struct emu_function *f = calloc(1, sizeof *f);
	int error;

	if (!f)
		return emu_complain("memory", -ENOMEM);
	f->pid = getpid();
	f->port.base = *id;
	dev_fill(f, id);
	error = emu_complain("fault handlers", mem_guard_init());
	if (!error)
		error = fabric_begin(f, id);
	if (!error)
		segment_begin(f);
	if (!error)
		abroad_begin(&f->dev, f->fabric, f->share);
	if (!error)
		error = emu_complain("number tables", numbers_begin(f));
	if (!error)
		error = emu_complain("engine", engine_begin(f));
	if (!error)
		error = port_uplink_begin(&f->uplink, &f->dev, f->engine, f->fabric, host_node());
	if (error)
		function_destroy(f);
	else
		*out = f;
	return error;
}

static void fork_prepare(void)
{
	pthread_mutex_lock(&life);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&life);
}

/*
 * The child has copies of everything and the right to nothing: threads are gone, locks may be
 * held for ever, the shared memory is the parent's.  It forgets the function, and keeps the
 * memory because the application's objects point into it.
 */
static void fork_child(void)
{
	static struct emu_function *abandoned __attribute__((used));

	pthread_mutex_init(&life, NULL);
	if (function) {
		port_uplink_abandon(&function->uplink);
		fabric_abandon(function->fabric);
		abandoned = function;
	}
	function = NULL;
	lenders_forget();
	file_count = 0;
}

static int begin_error;

static void begin(void)
{
	begin_error = lenders_init();
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}

/* --- who rings without telling --- */

static bool is_watched(const struct open_file *file)
{
	return !file->is_patched || file->rings_itself;
}

static struct open_file *file_find(const struct uv_file *uv)
{
	for (unsigned i = 0; i < file_count; i++)
		if (files[i].uv == uv)
			return &files[i];
	return NULL;
}

static void file_remember(struct uv_file *uv, const struct uv_identity *id)
{
	files[file_count++] = (struct open_file){ .uv = uv, .id = *id, .users = 1, .watch = -1 };
	engine_watch(function->engine, 1);
}

/* Its user has turned out to be one that rings without telling, or one that does not. */
static void file_change(struct uv_file *uv, bool is_patched, bool rings_itself)
{
	struct open_file *file;
	bool was_watched;

	pthread_mutex_lock(&life);
	file = file_find(uv);
	if (file) {
		was_watched = is_watched(file);
		file->is_patched |= is_patched;
		file->rings_itself |= rings_itself;
		if (is_watched(file) != was_watched)
			engine_watch(function->engine, was_watched ? -1 : 1);
	}
	pthread_mutex_unlock(&life);
}

void emu_patched(struct uv_file *uv)
{
	file_change(uv, true, false);
}

void emu_rings_itself(struct uv_file *uv)
{
	file_change(uv, false, true);
}

/* The function, made if there is none yet; with room for a file more. */
static int function_need(void)
{
	struct emu_identity id;
	int error = self_identity(&id);

	if (function && !lenders_are_admitted())
		fork_child();		/* of a fork that did not call it */
	if (!error && file_count == EMU_FILES_MAX)
		error = emu_complain("contexts", -EMFILE);
	if (!error && !function)
		error = function_create(&id, &function);
	if (!error && function->dev.is_fatal)
		error = emu_complain("device", -EIO);
	return error;
}

/* There is a file, or one could not be opened. */
static int opened(int error, struct uv_file *uv, const struct uv_identity *id)
{
	if (!error) {
		file_remember(uv, id);
		lenders_admit(function->engine);
		__atomic_store_n(&complained, 0, __ATOMIC_RELAXED);
		self_say_emulated(function->dev.profile);
	} else if (!file_count) {
		function_destroy(function);
		function = NULL;
	}
	return error;
}

/* What can't be told to others serves this process. */
static void introduce(struct uv_file *uv, int fd, struct uv_identity *id)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return;
	id->dev = st.st_dev;
	id->ino = st.st_ino;
	uv_file_identify(uv, id);
	card_write(fd, fabric_dir(function->fabric), function->dev.node_guid, id);
}

static int open_locked(int fd, struct uv_file **out)
{
	struct uv_identity id = { 0 };
	int error = function_need();

	if (error)
		return error;
	error = emu_complain("context", uv_file_open(&function->dev, out));
	if (!error)
		introduce(*out, fd, &id);
	return opened(error, *out, &id);
}

static struct open_file *file_behind(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return NULL;
	for (unsigned i = 0; i < file_count; i++)
		if (files[i].id.ino == st.st_ino && files[i].id.dev == st.st_dev)
			return &files[i];
	return NULL;
}

static int import_locked(int fd, struct uv_file **out)
{
	struct uv_identity id = { 0 };
	int error = function_need();

	if (error)
		return error;
	error = card_read(fd, fabric_dir(function->fabric), function->dev.node_guid, &id);
	if (!error)
		error = uv_file_import(&function->dev, &id, out);
	return opened(error, *out, &id);
}

static int adopt_locked(int fd, struct uv_file **out)
{
	struct open_file *file = lenders_are_admitted() ? file_behind(fd) : NULL;

	if (!file)
		return card_is_one(fd) ? import_locked(fd, out) : -EINVAL;
	file->users++;
	*out = file->uv;
	return 0;
}

static int open_or_adopt(int (*how)(int fd, struct uv_file **out), int fd, struct uv_file **out)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int held = cancel_hold();
	int error;

	*out = NULL;
	pthread_once(&once, begin);
	pthread_mutex_lock(&life);
	error = begin_error ? emu_complain("threads", begin_error) : how(fd, out);
	pthread_mutex_unlock(&life);
	cancel_release(held);
	return error;
}

int emu_open(int fd, struct uv_file **out)
{
	return open_or_adopt(open_locked, fd, out);
}

int emu_adopt(int fd, struct uv_file **out)
{
	return open_or_adopt(adopt_locked, fd, out);
}

/* True: it is to be closed. */
static bool file_forget(const struct uv_file *uv)
{
	struct open_file *file = file_find(uv);

	if (!file)
		return false;
	if (--file->users)
		return false;
	if (left_is_open(file->uv, file->watch)) {
		file->users = 1;
		file->watch = -1;
		return false;
	}
	if (is_watched(file))
		engine_watch(function->engine, -1);
	*file = files[--file_count];
	return true;
}

static bool file_is_open(const struct uv_file *file)
{
	bool is_open;

	if (!lenders_are_admitted())
		return false;		/* also after a fork that fork_child() was not told of */
	pthread_mutex_lock(&life);
	is_open = file_find(file) && !function->dev.is_fatal;
	pthread_mutex_unlock(&life);
	return is_open;
}

static void close_locked(struct uv_file *file)
{
	struct emu_function *last = NULL;

	if (file_forget(file)) {
		uv_file_close(file);
		if (!file_count) {
			last = function;
			function = NULL;
		}
	}
	if (last)
		engine_doze_stop(last->engine);
	/* What a thread does not come out of stays for ever. */
	if (last && lenders_dismiss())
		function_destroy(last);
}

void emu_close(struct uv_file *file)
{
	int held = cancel_hold();
	int saved = errno;	/* a close() that succeeds tells why an earlier call failed */

	if (!lenders_are_admitted()) {	/* as above: the files are the parent's */
		cancel_release(held);
		return;
	}
	pthread_mutex_lock(&life);
	close_locked(file);
	pthread_mutex_unlock(&life);
	errno = saved;
	cancel_release(held);
}

void emu_watch(struct uv_file *uv, int fd)
{
	struct open_file *file;

	pthread_mutex_lock(&life);
	file = lenders_are_admitted() ? file_find(uv) : NULL;
	if (file && file->watch >= 0)
		close(file->watch);
	if (file)
		file->watch = card_watch(fd);
	pthread_mutex_unlock(&life);
}

/* --- imports --- */

void emu_counts_imports(struct uv_file *file)
{
	if (file_is_open(file))
		uv_counts_imports(file);
}

/* Both are open.  Lock held. */
static int share_open(struct uv_file *from, int to_fd, enum emu_import kind, uint32_t handle,
		      uint32_t *handle_out)
{
	struct open_file *to = file_behind(to_fd);

	return to ? uv_share(from, to->uv, (enum uv_import)kind, handle, handle_out) : -EBADF;
}

/* For as long as the object is needed. */
static int share_passed(int from_fd, int to_fd, enum emu_import kind, uint32_t handle,
			uint32_t *handle_out)
{
	int fd = fcntl(from_fd, F_DUPFD_CLOEXEC, 0);
	struct uv_file *uv = NULL;
	int error = fd < 0 ? -errno : adopt_locked(fd, &uv);

	if (!error) {
		error = share_open(uv, to_fd, kind, handle, handle_out);
		uv_file_keeps(uv, fd);
		close_locked(uv);
	} else if (fd >= 0) {
		close(fd);
	}
	return error;
}

int emu_share(int from_fd, int to_fd, enum emu_import kind, uint32_t from_handle,
	      uint32_t *to_handle_out)
{
	int held = cancel_hold(), error = -EBADF;
	struct open_file *from;

	pthread_mutex_lock(&life);
	if (lenders_are_admitted() && file_behind(to_fd)) {
		from = file_behind(from_fd);
		error = from ? share_open(from->uv, to_fd, kind, from_handle, to_handle_out) :
			share_passed(from_fd, to_fd, kind, from_handle, to_handle_out);
	}
	pthread_mutex_unlock(&life);
	cancel_release(held);
	return error;
}

void emu_unimport(struct uv_file *file, enum emu_import kind, uint32_t handle)
{
	int held = cancel_hold();

	if (file_is_open(file))
		uv_unimport(file, (enum uv_import)kind, handle);
	cancel_release(held);
}

/* A system call that works leaves errno alone, whatever happened on the way. */
int emu_ioctl(struct uv_file *file, void *call)
{
	int held = cancel_hold(), said = errno;
	int result = file_is_open(file) ? uv_ioctl(file, call) : -EIO;

	errno = said;
	cancel_release(held);
	return result;
}

ssize_t emu_write(struct uv_file *file, const void *command, size_t bytes)
{
	int held = cancel_hold(), said = errno;
	ssize_t result = file_is_open(file) ? uv_write(file, command, bytes) : -EIO;

	errno = said;
	cancel_release(held);
	return result;
}

int emu_mmap(struct uv_file *file, void *hint, size_t bytes, int prot, int flags,
	     uint64_t offset, void **out)
{
	int held = cancel_hold();
	int error = file_is_open(file) ?
		uv_mmap(file, hint, bytes, prot, flags, offset, out) : -EIO;

	cancel_release(held);
	return error;
}

void emu_armed(struct uv_file *file, uint32_t cq_handle)
{
	int64_t cqn = file_is_open(file) ? uv_cqn(file, cq_handle) : -ENOENT;
	struct engine *e = lender_enter();

	if (!e)
		return;
	engine_armed(e, cqn < 0 ? UINT32_MAX : (uint32_t)cqn);	/* it also runs what was rung */
	lender_leave();
}

void emu_awaits_events(struct uv_file *file)
{
	int held = cancel_hold();

	pthread_mutex_lock(&life);
	if (file_find(file)) {
		engine_enter(function->engine);
		complain("start", "thread", engine_nic_start(function->engine));
		engine_leave(function->engine);
	}
	pthread_mutex_unlock(&life);
	cancel_release(held);
}

void emu_clock_refresh(struct uv_file *file)
{
	if (file_is_open(file))
		uv_clock_refresh(file);
}

#define EXIT_TRIES	50

/*
 * A program that exits without closing.  Its other threads may be anywhere and libraries may
 * still talk to peers, so nothing is taken down: the kernel does that.  But nobody would
 * remove the names of a fabric whose last member this is.
 */
static void __attribute__((destructor)) exit_watch(void)
{
	struct timespec nap = { .tv_nsec = 2000000 };

	/* exit() may have been called in a signal handler that interrupted an emu_open(). */
	for (int tries = 0; pthread_mutex_trylock(&life); tries++) {
		if (tries == EXIT_TRIES)
			return;
		nanosleep(&nap, NULL);
	}
	if (function && function->pid == getpid())
		fabric_exit(function->fabric);
	pthread_mutex_unlock(&life);
}
