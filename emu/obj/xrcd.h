/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC domains: which target QPs may deliver into which shared receive queues.
 *
 * A domain is known by a file, so that processes can meet in it, or by nothing but the handle
 * that made it.  Every open gives a handle; the domain ends with the last of them.  A target QP
 * may be opened as well, by whoever has its domain and its number, and ends in the same way.
 *
 * Source: IBTA volume 1, annex A14; device-abi B.9 (open_xrcd, open_qp).
 */
#ifndef EMU_OBJ_XRCD_H
#define EMU_OBJ_XRCD_H
#include "emu/obj/obj.h"

/* A domain as this function knows it. */
struct xrc_domain {
	struct xrc_domain *next;
	uint64_t name;			/* the same in all processes of the fabric; 0: of no file */
	uint32_t opens;
	int token;			/* of the registry, or -1 */
	struct xrc_file file;
};

struct emu_xrcd {
	struct emu_obj obj;		/* users: what was made or opened through this handle */
	struct xrc_domain *domain;
};

struct xrcd_init {
	struct xrc_file file;		/* exists is false: the domain has none */
	bool creates, is_exclusive;
};
/* -EAGAIN there is no such domain, and it is not to be created; -EINVAL there is, and it must not
 * be; or no file and nothing to create; -ENOMEM; other errno of the fabric */
int xrcd_open(struct emu_dev *dev, const struct xrcd_init *init, struct emu_xrcd **out);
int xrcd_close(struct emu_dev *dev, struct emu_xrcd *xrcd);	/* -EBUSY */

/* A handle of a target QP: the creator's is the first. */
struct emu_qp_open {
	struct emu_obj obj;
	struct emu_qp *qp;
	struct emu_xrcd *xrcd;
	struct emu_channel *async;	/* each opener hears of all events */
	uint64_t user_handle;
	struct emu_qp_open *next;
};

struct qp_open_init {
	struct emu_xrcd *xrcd;
	struct emu_channel *async;
	uint64_t user_handle;
};
/* -EINVAL not a target QP of that domain; -ENOMEM */
int qp_open(struct emu_dev *dev, struct emu_qp *qp, const struct qp_open_init *init,
	    struct emu_qp_open **out);
/* The handle is gone.  True: it was the last, and the caller destroys the QP. */
bool qp_open_close(struct emu_qp_open *open, uint32_t *events_out);
#endif
