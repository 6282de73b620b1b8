/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC domains, and the handles of target QPs; see xrcd.h.
 */
#include <errno.h>
#include <stdlib.h>
#include "emu/obj/event_desc.h"
#include "emu/obj/xrcd.h"

static struct xrc_domain *domain_find(const struct emu_dev *dev, const struct xrc_file *file)
{
	for (struct xrc_domain *d = file->exists ? dev->xrc_domains : NULL; d; d = d->next)
		if (d->file.exists && d->file.dev == file->dev && d->file.ino == file->ino)
			return d;
	return NULL;
}

/* Two files with one name would be two of 2^64.  Of one emulated host: another one's table is not
 * this one's, whatever files they share. */
static uint64_t file_name(const struct emu_dev *dev, const struct xrc_file *file)
{
	uint64_t mixed = (file->dev * UINT64_C(0xbf58476d1ce4e5b9) ^ file->ino ^
			  dev->node_guid * UINT64_C(0x94d049bb133111eb)) *
			 UINT64_C(0x9e3779b97f4a7c15);

	return mixed ^ mixed >> 29 ? mixed ^ mixed >> 29 : 1;
}

/* What other processes have is the registry's business; without one they have nothing. */
static int domain_hold(struct emu_dev *dev, const struct xrcd_init *init,
		       struct xrc_domain *domain)
{
	const struct xrc_registry *r = &dev->xrc_registry;

	domain->token = -1;
	if (!r->hold || !init->file.exists)
		return init->creates ? 0 : -EAGAIN;
	domain->name = file_name(dev, &init->file);
	domain->token = r->hold(r->ctx, domain->name, init->creates, init->is_exclusive);
	return domain->token < 0 ? domain->token : 0;
}

static int domain_create(struct emu_dev *dev, const struct xrcd_init *init,
			 struct xrc_domain **out)
{
	struct xrc_domain *domain = calloc(1, sizeof *domain);
	int rc;

	if (!domain)
		return -ENOMEM;
	rc = domain_hold(dev, init, domain);
	if (rc) {
		free(domain);
		return rc;
	}
	domain->file = init->file;
	domain->next = dev->xrc_domains;
	dev->xrc_domains = domain;
	*out = domain;
	return 0;
}

static void domain_close(struct emu_dev *dev, struct xrc_domain *domain)
{
	struct xrc_domain **at = &dev->xrc_domains;

	if (--domain->opens)
		return;
	while (*at != domain)
		at = &(*at)->next;
	*at = domain->next;
	if (domain->token >= 0)
		dev->xrc_registry.drop(dev->xrc_registry.ctx, domain->token);
	free(domain);
}

static int domain_open(struct emu_dev *dev, const struct xrcd_init *init, struct xrc_domain **out)
{
	struct xrc_domain *domain = domain_find(dev, &init->file);
	int rc = 0;

	if (!init->file.exists && !init->creates)
		rc = -EINVAL;
	else if (domain && init->is_exclusive)
		rc = -EINVAL;
	else if (!domain)
		rc = domain_create(dev, init, &domain);
	if (rc)
		return rc;
	domain->opens++;
	*out = domain;
	return 0;
}

int xrcd_open(struct emu_dev *dev, const struct xrcd_init *init, struct emu_xrcd **out)
{
	struct emu_xrcd *xrcd = calloc(1, sizeof *xrcd);
	int rc = xrcd ? domain_open(dev, init, &xrcd->domain) : -ENOMEM;

	if (rc) {
		free(xrcd);
		dev_why(dev, .why = rc == -ENOMEM ? WHY_CMD_LIMIT : WHY_XRCD_OPEN,
			.side = WHY_SIDE_COMMAND, .addr = init->file.ino,
			.bytes = init->creates, .found = init->is_exclusive);
		return rc;
	}
	xrcd->obj.type = OBJ_XRCD;
	*out = xrcd;
	return 0;
}

int xrcd_close(struct emu_dev *dev, struct emu_xrcd *xrcd)
{
	if (xrcd->obj.users) {
		dev_why(dev, .why = WHY_CMD_BUSY, .side = WHY_SIDE_COMMAND,
			.found = xrcd->obj.users);
		return -EBUSY;
	}
	domain_close(dev, xrcd->domain);
	free(xrcd);
	return 0;
}

static void count_user(struct emu_qp_open *open, int change)
{
	if (open->xrcd)
		open->xrcd->obj.users += change;
	if (open->async)
		channel_obj(open->async)->users += change;
}

static struct emu_qp_open *open_add(struct emu_dev *dev, struct emu_qp *qp,
				    const struct qp_open_init *init)
{
	struct emu_qp_open *open = calloc(1, sizeof *open);

	if (!open) {
		dev_why(dev, .why = WHY_CMD_LIMIT, .side = WHY_SIDE_COMMAND);
		return NULL;
	}
	open->obj.type = OBJ_QP_OPEN;
	open->qp = qp;
	open->xrcd = init->xrcd;
	open->async = init->async;
	open->user_handle = init->user_handle;
	open->next = qp->opens;
	qp->opens = open;
	count_user(open, 1);
	return open;
}

static bool can_be_opened(const struct emu_qp *qp)
{
	return qp && (qp->type == QPT_XRC_TGT || qp->type == QPT_XRC_FAR);
}

int qp_open(struct emu_dev *dev, struct emu_qp *qp, const struct qp_open_init *init,
	    struct emu_qp_open **out)
{
	if (!can_be_opened(qp) || qp->xrc_domain != init->xrcd->domain) {
		dev_why(dev, .why = WHY_CMD_VALUE, .side = WHY_SIDE_COMMAND,
			.qpn = qp ? qp->qpn : 0, .found = init->xrcd->domain->name);
		return -EINVAL;
	}
	*out = open_add(dev, qp, init);
	return *out ? 0 : -ENOMEM;
}

bool qp_open_close(struct emu_qp_open *open, uint32_t *events_out)
{
	struct emu_qp *qp = open->qp;
	struct emu_qp_open **at = &qp->opens;
	bool is_last;

	while (*at != open)
		at = &(*at)->next;
	*at = open->next;
	is_last = !qp->opens;
	*events_out = open->async ? channel_forget(open->async, open) : 0;
	count_user(open, -1);
	if (!open->xrcd)
		domain_close(qp->dev, qp->xrc_domain);
	free(open);
	return is_last;
}

/* --- handles of QPs of other processes --- */

int qp_far_create(struct emu_dev *dev, struct emu_xrcd *xrcd, uint32_t target_qpn,
		  struct emu_qp **out)
{
	const struct qp_init init = { .type = QPT_XRC_FAR, .xrc_domain = xrcd->domain };
	uint32_t events;
	int rc = qp_create(dev, &init, out);

	if (rc)
		return rc;
	(*out)->far = calloc(1, sizeof *(*out)->far);
	if (!(*out)->far) {
		qp_destroy(dev, *out, &events);
		return -ENOMEM;
	}
	(*out)->far->target_qpn = target_qpn;
	(*out)->far->turn = dev->now_ns();
	return 0;
}

struct emu_qp_open *qp_open_far_find(const struct emu_qp *qp, uint32_t far_qpn)
{
	struct emu_qp_open *open = qp->opens;

	while (open && (open->xrcd || open->far_qpn != far_qpn))
		open = open->next;
	return open;
}

int qp_open_far(struct emu_dev *dev, struct emu_qp *qp, uint32_t far_qpn,
		struct emu_qp_open **out)
{
	const struct qp_open_init nobody_here = { 0 };
	unsigned count = 0;

	for (const struct emu_qp_open *open = qp->opens; open; open = open->next)
		count++;
	*out = count < QP_FAR_OPENS_MAX ? open_add(dev, qp, &nobody_here) : NULL;
	if (!*out)
		return -ENOMEM;
	(*out)->far_qpn = far_qpn;
	qp->xrc_domain->opens++;
	return 0;
}

bool qp_is_orphan(const struct emu_qp *qp)
{
	const struct emu_qp_open *open = qp->opens;

	while (open && !open->xrcd)
		open = open->next;
	return !open && qp->opens;
}

#define EVENT_BITS	32

/* Those elsewhere hear of it by a packet: see transport/xrc_far.c. */
void qp_event(struct emu_qp *qp, uint32_t type)
{
	event_async_push(qp->async, qp, qp->user_handle, type);
	for (struct emu_qp_open *open = qp->opens; open; open = open->next) {
		event_async_push(open->async, open, open->user_handle, type);
		if (open->xrcd || type >= EVENT_BITS)
			continue;
		open->far_events |= 1u << type;
		qp->work |= QP_WORK_RELAY;
	}
}
