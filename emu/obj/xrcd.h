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
	struct emu_xrcd *xrcd;		/* NULL: the handle is in another process */
	struct emu_channel *async;	/* each opener hears of all events */
	uint64_t user_handle;
	struct emu_qp_open *next;
	uint32_t far_qpn;		/* in another process: what stands for the target there, */
	uint32_t far_events;		/* events that it has yet to hear of, a bit each, */
	uint64_t far_turn;		/* what it has asked for last, and what was said */
	int far_rc;
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

/*
 * A target QP of another process.  Its handle is of a QP here that has a number of its own, for
 * packets to come back to, and of the target's what was said last.
 */
struct xrc_far {
	uint32_t target_qpn;
	uint64_t turn;			/* of the last question; grows */
	bool is_answered;
	int rc;
};
/* What a handle may ask of its target. */
enum far_op { FAR_OPEN, FAR_CLOSE, FAR_MODIFY, FAR_QUERY, FAR_OP_COUNT };

#define QP_FAR_OPENS_MAX	4096u	/* of one target, in other processes */

/* -ENOMEM */
int qp_far_create(struct emu_dev *dev, struct emu_xrcd *xrcd, uint32_t target_qpn,
		  struct emu_qp **out);
/* At the target: a handle elsewhere; the domain stays for it.  -ENOMEM */
int qp_open_far(struct emu_dev *dev, struct emu_qp *qp, uint32_t far_qpn,
		struct emu_qp_open **out);
struct emu_qp_open *qp_open_far_find(const struct emu_qp *qp, uint32_t far_qpn);
/* All handles are elsewhere. */
bool qp_is_orphan(const struct emu_qp *qp);
#endif
