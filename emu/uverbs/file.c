/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Open device files: handles, event descriptors, doorbell pages; see file.h.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "emu/engine/engine.h"
#include "emu/obj/ah.h"
#include "emu/obj/flow.h"
#include "emu/obj/srq.h"
#include "emu/obj/wq.h"
#include "emu/uverbs/file.h"
#include "emu/uverbs/shared.h"
#include "emu/uverbs/uverbs.h"
#include "include/base/file_limit.h"

#define SWEEP_AT_FIRST	16u

/* --- handles --- */

int file_handle_add(struct uv_file *file, struct emu_obj *obj)
{
	uint32_t number;
	int ret = numbers_take(&file->handles, obj, &number);

	if (!ret && file->handle_base && number > UV_HANDLE_OWN_MASK) {
		numbers_give(&file->handles, number);
		ret = -ENOMEM;
	}
	if (ret)
		return ret;
	obj->handle = file->handle_base | number;
	if (number >= file->handle_end)
		file->handle_end = number + 1;
	return 0;
}

static bool is_own(const struct uv_file *file, uint32_t handle)
{
	return uv_handle_base(handle) == file->handle_base;
}

/* What stands for an object elsewhere has taken itself out. */
void file_handle_drop(struct uv_file *file, uint32_t handle)
{
	if (is_own(file, handle))
		numbers_give(&file->handles, handle - file->handle_base);
}

struct emu_obj *file_handle_at(const struct uv_file *file, uint32_t number)
{
	return numbers_find(&file->handles, number);
}

static struct emu_obj *object_of(struct uv_file *file, uint32_t handle)
{
	struct emu_obj *obj;

	if (!is_own(file, handle))
		return shared_find(file, handle);
	obj = numbers_find(&file->handles, handle - file->handle_base);
	return obj && !obj->is_let_go ? obj : NULL;
}

int file_handle_find(struct uv_file *file, uint64_t handle, enum obj_type type,
		     struct emu_obj **out)
{
	struct emu_obj *obj;

	if (handle > INT64_MAX)
		return -EINVAL;
	obj = handle <= UINT32_MAX ? object_of(file, (uint32_t)handle) : NULL;
	if (!obj)
		return -ENOENT;
	if (obj->type != type && !(type == OBJ_QP && obj->type == OBJ_QP_OPEN))
		return -EINVAL;
	*out = obj;
	return 0;
}

/* --- event descriptors --- */

static bool fd_is(const struct uv_event_fd *e, int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_dev == e->dev && st.st_ino == e->ino;
}

static void event_fd_remove(struct uv_file *file, unsigned index)
{
	file->event_fd[index] = file->event_fd[--file->event_fd_count];
}

/* Let go of channels that the application has closed.  A copy made with dup() keeps a channel
 * usable only as long as its first number or a CQ does. */
static void event_fds_sweep(struct uv_file *file)
{
	for (unsigned i = file->event_fd_count; i-- > 0;) {
		struct uv_event_fd *e = &file->event_fd[i];

		if (channel_obj(e->channel)->users || e->channel == file->async ||
		    fd_is(e, e->fd))
			continue;
		channel_destroy(e->channel);
		event_fd_remove(file, i);
	}
	file->event_fd_sweep_at = file->event_fd_count * 2 + SWEEP_AT_FIRST;
}

static int event_fds_grow(struct uv_file *file)
{
	unsigned size = file->event_fd_size ? file->event_fd_size * 2 : 8;
	struct uv_event_fd *grown;

	if (file->event_fd_count < file->event_fd_size)
		return 0;
	grown = realloc(file->event_fd, size * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	file->event_fd = grown;
	file->event_fd_size = size;
	return 0;
}

int file_event_fd_add(struct uv_file *file, struct emu_obj *obj, int fd)
{
	struct stat st;
	int ret;

	if (file->event_fd_count >= file->event_fd_sweep_at)
		event_fds_sweep(file);
	ret = event_fds_grow(file);
	if (ret)
		return ret;
	if (fstat(fd, &st))
		return -errno;
	file->event_fd[file->event_fd_count++] = (struct uv_event_fd){
		.channel = (struct emu_channel *)obj, .fd = fd,
		.dev = st.st_dev, .ino = st.st_ino,
	};
	if (obj->type == OBJ_ASYNC) {
		channel_subscribe((struct emu_channel *)obj, &file->dev->async);
		if (!file->async)
			file->async = (struct emu_channel *)obj;
	}
	return 0;
}

void file_event_fd_drop(struct uv_file *file, struct emu_obj *obj)
{
	for (unsigned i = file->event_fd_count; i-- > 0;)
		if (channel_obj(file->event_fd[i].channel) == obj)
			event_fd_remove(file, i);
	if (file->async && channel_obj(file->async) == obj)
		file->async = NULL;
}

/* By identity and not by number: a number that was closed and opened again is no channel. */
int file_event_fd_find(struct uv_file *file, int64_t fd, enum obj_type type, struct emu_obj **out)
{
	struct stat st;

	if (fd != (int)fd)
		return -EINVAL;
	if (fstat((int)fd, &st))
		return -EBADF;
	for (unsigned i = 0; i < file->event_fd_count; i++) {
		struct uv_event_fd *e = &file->event_fd[i];

		if (e->dev != st.st_dev || e->ino != st.st_ino)
			continue;
		*out = channel_obj(e->channel);
		return (*out)->type == type ? 0 : -EBADF;
	}
	return -EBADF;
}

/* --- doorbell pages --- */

static int pages_open(struct uv_pages *pages)
{
	int fd = file_limit_check(UV_PAGES_END * UV_PAGE_BYTES);
	struct stat st;
	void *view;

	if (fd < 0)
		return fd;
	fd = memfd_create("verbena-uar", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, UV_PAGES_END * UV_PAGE_BYTES) || fstat(fd, &st))
		goto fail;
	view = mmap(NULL, UV_PAGES_END * UV_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    0);
	if (view == MAP_FAILED)
		goto fail;
	pages->fd = fd;
	pages->dev = st.st_dev;
	pages->ino = st.st_ino;
	pages->view = view;
	return 0;
fail:
	close(fd);
	return -ENOMEM;
}

static void pages_close(struct uv_pages *pages)
{
	struct stat st;

	if (pages->fd < 0)
		return;
	munmap(pages->view, UV_PAGES_END * UV_PAGE_BYTES);
	if (!fstat(pages->fd, &st) && st.st_dev == pages->dev && st.st_ino == pages->ino)
		close(pages->fd);
	pages->fd = -1;
}

int file_page_take(struct uv_file *file)
{
	struct uv_pages *pages = &file->pages;
	int ret;

	for (unsigned i = 1; i < UV_PAGES; i++) {
		if (pages->is_used[i])
			continue;
		memset(pages->view + i * UV_PAGE_BYTES, 0, UV_PAGE_BYTES);
		ret = engine_page_add(file->dev->engine, pages->view + i * UV_PAGE_BYTES);
		if (ret)
			return ret;
		pages->is_used[i] = 1;
		return (int)i;
	}
	return -ENOMEM;
}

void file_page_give(struct uv_file *file, uint32_t page)
{
	assert(page < UV_PAGES && file->pages.is_used[page]);
	engine_page_remove(file->dev->engine, file->pages.view + page * UV_PAGE_BYTES);
	file->pages.is_used[page] = 0;
}

bool file_page_is_used(const struct uv_file *file, uint32_t page)
{
	return page < UV_PAGES && file->pages.is_used[page];
}

void file_clock_begin(struct uv_file *file)
{
	uint8_t *view = file->pages.view;

	if (!file->clock.counter)
		clock_pages_add(file->dev, &file->clock, view + UV_PAGE_COUNTER * UV_PAGE_BYTES,
				view + UV_PAGE_CLOCK_INFO * UV_PAGE_BYTES);
}

/* --- objects --- */

static void pd_object_destroy(struct uv_file *file, struct emu_obj *obj)
{
	int ret = pd_destroy(file->dev, (struct emu_pd *)obj);

	assert(!ret);
}

static void mr_object_destroy(struct uv_file *file, struct emu_obj *obj)
{
	int ret = mr_destroy(file->dev, (struct emu_mr *)obj);

	assert(!ret);
}

static void mw_object_destroy(struct uv_file *file, struct emu_obj *obj)
{
	int ret = mw_destroy(file->dev, (struct emu_mw *)obj);

	assert(!ret);
}

static void cq_object_destroy(struct uv_file *file, struct emu_obj *obj)
{
	uint32_t comp_events, async_events;
	int ret;

	engine_cq_forget(file->dev->engine, (struct emu_cq *)obj);
	ret = cq_destroy(file->dev, (struct emu_cq *)obj, &comp_events, &async_events);

	assert(!ret);
}

static void qp_object_destroy(struct uv_file *file, struct emu_obj *obj)
{
	struct emu_qp *qp = file_qp(obj);
	uint32_t events;
	int ret;

	engine_mcast_forget(file->dev->engine, qp);
	engine_qp_forget(file->dev->engine, qp);
	ret = qp_destroy(file->dev, qp, &events);
	assert(!ret);
}

void file_qp_open_close(struct uv_file *file, struct emu_qp_open *open, uint32_t *events_out)
{
	struct emu_qp *qp = open->qp;
	uint32_t events;
	int ret;

	if (!qp_open_close(open, events_out)) {
		engine_far_watch(file->dev->engine, qp);
		return;
	}
	if (qp->type == QPT_XRC_FAR)
		engine_far_ask(file->dev->engine, qp, FAR_CLOSE, NULL, 0);
	engine_qp_forget(file->dev->engine, qp);
	ret = qp_destroy(file->dev, qp, &events);
	assert(!ret);
}

static void qp_open_object_destroy(struct uv_file *file, struct emu_obj *obj)
{
	uint32_t events;

	file_qp_open_close(file, (struct emu_qp_open *)obj, &events);
}

static void xrcd_object_destroy(struct uv_file *file, struct emu_obj *obj)
{
	int ret = xrcd_close(file->dev, (struct emu_xrcd *)obj);

	assert(!ret);
}

static void srq_object_destroy(struct uv_file *file, struct emu_obj *obj)
{
	uint32_t events;
	int ret = srq_destroy(file->dev, (struct emu_srq *)obj, &events);

	assert(!ret);
}

static void wq_object_destroy(struct uv_file *file, struct emu_obj *obj)
{
	uint32_t events;
	struct emu_wq *wq = (struct emu_wq *)obj;
	int ret;

	engine_qp_forget(file->dev->engine, wq->qp);
	ret = wq_destroy(file->dev, wq, &events);
	assert(!ret);
}

static void rwq_table_object_destroy(struct uv_file *file, struct emu_obj *obj)
{
	int ret = rwq_table_destroy(file->dev, (struct emu_rwq_table *)obj);

	assert(!ret);
}

static void uar_object_destroy(struct uv_file *file, struct emu_obj *obj)
{
	struct uv_uar *uar = (struct uv_uar *)obj;

	file_page_give(file, uar->page);
	free(uar);
}

static void flow_object_destroy(struct uv_file *file, struct emu_obj *obj)
{
	(void)file;
	flow_destroy((struct emu_flow *)obj);
}

static void matcher_object_destroy(struct uv_file *file, struct emu_obj *obj)
{
	int ret = matcher_destroy(file->dev, (struct emu_matcher *)obj);

	assert(!ret);
}

static void counters_object_destroy(struct uv_file *file, struct emu_obj *obj)
{
	int ret = counters_destroy(file->dev, (struct emu_counters *)obj);

	assert(!ret);
}

static void ah_object_destroy(struct uv_file *file, struct emu_obj *obj)
{
	(void)file;
	ah_destroy((struct emu_ah *)obj);
}

static void dm_object_destroy(struct uv_file *file, struct emu_obj *obj)
{
	struct uv_dm *dm = (struct uv_dm *)obj;

	assert(!obj->users);
	file_device_give(file, dm->page);
	free(dm);
}

static void channel_object_destroy(struct uv_file *file, struct emu_obj *obj)
{
	(void)file;
	channel_destroy((struct emu_channel *)obj);
}

static void (*const destroys[OBJ_TYPE_COUNT])(struct uv_file *, struct emu_obj *) = {
	[OBJ_PD] = pd_object_destroy, [OBJ_MR] = mr_object_destroy,
	[OBJ_MW] = mw_object_destroy, [OBJ_DM] = dm_object_destroy,
	[OBJ_CQ] = cq_object_destroy, [OBJ_QP] = qp_object_destroy,
	[OBJ_UAR] = uar_object_destroy, [OBJ_CHANNEL] = channel_object_destroy,
	[OBJ_ASYNC] = channel_object_destroy,
	[OBJ_SRQ] = srq_object_destroy, [OBJ_XRCD] = xrcd_object_destroy,
	[OBJ_QP_OPEN] = qp_open_object_destroy,
	[OBJ_FLOW] = flow_object_destroy, [OBJ_MATCHER] = matcher_object_destroy,
	[OBJ_COUNTERS] = counters_object_destroy,
	[OBJ_AH] = ah_object_destroy,
	[OBJ_WQ] = wq_object_destroy, [OBJ_RWQ_TABLE] = rwq_table_object_destroy,
};

void file_object_destroy(struct uv_file *file, struct emu_obj *obj)
{
	struct emu_proxy *proxy = obj->proxy;

	shared_forget(file, obj);
	destroys[obj->type](file, obj);
	free(proxy);
}

/* Users before what they use. */
static const enum obj_type close_order[] = {
	OBJ_FLOW,
	OBJ_MATCHER,
	OBJ_COUNTERS,
	OBJ_AH,
	OBJ_QP,
	OBJ_QP_OPEN,
	OBJ_SRQ,
	OBJ_XRCD,
	OBJ_RWQ_TABLE,
	OBJ_WQ,
	OBJ_CQ,
	OBJ_MW,
	OBJ_MR,
	OBJ_DM,
	OBJ_PD,
	OBJ_UAR,
};

/* By an alias, or by what has one: everything else that could need it is gone before. */
static bool is_needed(const struct emu_obj *obj)
{
	return obj->aliases || (obj->users && (obj->type == OBJ_PD || obj->type == OBJ_DM));
}

static void objects_close(struct uv_file *file, enum obj_type type)
{
	for (uint32_t number = 0; number < file->handle_end; number++) {
		struct emu_obj *obj = numbers_find(&file->handles, number);

		if (!obj || obj->type != type || is_needed(obj))
			continue;
		numbers_give(&file->handles, number);
		file_object_destroy(file, obj);
	}
}

static void proxies_close(struct uv_file *file, enum obj_type type)
{
	for (unsigned i = 0; i < UV_PROXY_BUCKETS; i++)
		for (struct emu_proxy *p = file->proxy[i], *next; p; p = next) {
			next = p->next;
			if (p->obj->type == type && !is_needed(p->obj))
				file_object_destroy(file, p->obj);
		}
}

static void event_fds_close(struct uv_file *file)
{
	for (unsigned i = 0; i < file->event_fd_count; i++)
		channel_destroy(file->event_fd[i].channel);
	free(file->event_fd);
	file->event_fd = NULL;
	file->event_fd_count = 0;
}

/* --- the file --- */

static void file_number_take(struct uv_file *file)
{
	uint64_t *used = file->dev->file_numbers;
	uint32_t number = 0;

	while (number < ABROAD_FILES && used[number / 64] >> number % 64 & 1)
		number++;
	file->number = number;
	if (number < ABROAD_FILES)
		used[number / 64] |= UINT64_C(1) << number % 64;
}

static void file_number_give(struct uv_file *file)
{
	if (file->number < ABROAD_FILES)
		file->dev->file_numbers[file->number / 64] &=
			~(UINT64_C(1) << file->number % 64);
}

int uv_file_open(struct emu_dev *dev, struct uv_file **out)
{
	struct uv_file *file = calloc(1, sizeof *file);
	int ret;

	if (!file)
		return -ENOMEM;
	file->dev = dev;
	file->pages.fd = -1;
	file->kept_fd = -1;
	file->event_fd_sweep_at = SWEEP_AT_FIRST;
	file_number_take(file);
	ret = numbers_init(&file->handles, 0, NULL, NULL);
	/* Now, so that a lack of memory or descriptors is told of when the device is opened: the
	 * driver makes do without pages, and then fails at its first CQ. */
	if (!ret)
		ret = pages_open(&file->pages);
	if (ret) {
		file_number_give(file);
		numbers_free(&file->handles);
		free(file);
		return ret;
	}
	*out = file;
	return 0;
}

/* Lock held. */
static void identify(struct uv_file *file, const struct uv_identity *id)
{
	file->dev_of_fd = id->dev;
	file->ino = id->ino;
	shared_file_tell(file);
}

void uv_file_identify(struct uv_file *file, struct uv_identity *id)
{
	const struct abroad *abroad = &file->dev->abroad;

	engine_enter(file->dev->engine);
	identify(file, id);
	id->number = file->number;
	id->slot = abroad->self;
	id->generation = abroad->generation;
	engine_leave(file->dev->engine);
}

/* What came with the context there comes with it here. */
static int context_import(struct uv_file *file, const struct abroad_file *from)
{
	file->has_context = from->has_context;
	file->has_dynamic_pages = from->has_dynamic_pages;
	file->cqe_version = from->cqe_version;
	while (file->pages.static_count < from->static_pages) {
		int page = file_page_take(file);

		if (page < 0)
			return page;
		file->pages.static_count++;
	}
	return 0;
}

static int import_locked(struct uv_file *file, const struct uv_identity *id)
{
	const struct abroad *abroad = &file->dev->abroad;
	union abroad_entry entry;
	int ret;

	file->origin = (struct abroad_ref){ id->slot, id->generation,
					    ABROAD_OF_FILE(id->number) };
	if (!abroad->ctx)
		return -EOPNOTSUPP;
	/* The descriptor may be older than the fabric, and somebody else be what it names: we
	 * ourselves, too. */
	if (id->number >= ABROAD_FILES || id->slot == abroad->self)
		return -EIO;
	ret = abroad->read(abroad->ctx, &file->origin, &entry);
	if (ret == -ENOENT || (!ret && (entry.file.state != ABROAD_THERE ||
					entry.file.ino != id->ino || entry.file.dev != id->dev)))
		ret = -EIO;
	if (!ret)
		ret = context_import(file, &entry.file);
	if (ret)
		return ret;
	file->is_imported = true;
	file->handle_base = UV_HANDLE_FAR | abroad->self << UV_HANDLE_SLOT_SHIFT;
	identify(file, id);
	return 0;
}

int uv_file_import(struct emu_dev *dev, const struct uv_identity *id, struct uv_file **out)
{
	struct uv_file *file;
	int ret = uv_file_open(dev, &file);

	if (ret)
		return ret;
	engine_enter(dev->engine);
	ret = import_locked(file, id);
	engine_leave(dev->engine);
	if (ret)
		uv_file_close(file);
	else
		*out = file;
	return ret;
}

static void objects_close_all(struct uv_file *file)
{
	for (size_t i = 0; i < sizeof close_order / sizeof *close_order; i++) {
		objects_close(file, close_order[i]);
		proxies_close(file, close_order[i]);
	}
}

static bool is_empty(const struct uv_file *file)
{
	for (unsigned i = 0; i < UV_PROXY_BUCKETS; i++)
		if (file->proxy[i])
			return false;
	return !file->handles.taken;
}

/* Lock held. */
static void file_free(struct uv_file *file)
{
	shared_file_end(file);
	file_device_end(file);
	file_number_give(file);
	pages_close(&file->pages);
	numbers_free(&file->handles);
	if (file->kept_fd >= 0)
		close(file->kept_fd);
	free(file);
}

void files_end(struct emu_dev *dev)
{
	struct uv_file **at = &dev->closing, *file;

	while ((file = *at)) {
		objects_close_all(file);
		if (!is_empty(file)) {
			at = &file->next_closing;
			continue;
		}
		*at = file->next_closing;
		file_free(file);
	}
}

void uv_file_close(struct uv_file *file)
{
	struct emu_dev *dev = file->dev;

	engine_enter(dev->engine);
	objects_close_all(file);
	event_fds_close(file);
	for (uint32_t page = 0; page < UV_PAGES; page++)
		if (file->pages.is_used[page])
			file_page_give(file, page);
	clock_pages_remove(dev, &file->clock);
	file->next_closing = dev->closing;
	dev->closing = file;
	files_end(dev);
	engine_leave(dev->engine);
}

void uv_file_keeps(struct uv_file *file, int fd)
{
	file->kept_fd = fd;
}

int64_t uv_cqn(struct uv_file *file, uint32_t handle)
{
	struct emu_obj *obj;
	int64_t number = -ENOENT;

	pthread_mutex_lock(&file->dev->lock);
	if (!file_handle_find(file, handle, OBJ_CQ, &obj))
		number = ((struct emu_cq *)obj)->cqn;
	else if (!file_handle_find(file, handle, OBJ_QP, &obj))
		number = file_qp(obj)->qpn;
	pthread_mutex_unlock(&file->dev->lock);
	return number;
}

void uv_clock_refresh(struct uv_file *file)
{
	clock_pages_refresh(file->dev, &file->clock);
}
