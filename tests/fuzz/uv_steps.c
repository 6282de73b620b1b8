/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an application does besides commands; see uv.h.
 */
#include <endian.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "emu/mem/mem.h"
#include "emu/uverbs/uverbs.h"
#include "hw-models/mlx5_opcode.h"
#include "hw-models/mlx5_wqe.h"
#include "tests/fuzz/uv.h"

enum { MAPS_MAX = 8 };

static void *maps[MAPS_MAX];
static unsigned map_count;

int uv_do_raw(struct input *in)
{
	uint8_t choice = take8(in);
	size_t bytes = take8(in);

	take(in, uv_memory->command, bytes);
	return choice & 1 ? (int)uv_write(uv_file, uv_memory->command, bytes) :
			    uv_ioctl(uv_file, uv_memory->command);
}

/* The first page of the file, or one that the input says; over a queue, if it says so. */
int uv_do_mmap(struct input *in)
{
	static const int flags[] = { MAP_SHARED, MAP_PRIVATE, MAP_SHARED | MAP_ANONYMOUS, 0 };
	static const uint8_t commands[] = { 9, 0, 2, 3, 1, 4, 5, 6, 7, 8, 10, 255 };
	uint8_t choice = take8(in), command = take8(in), index = take8(in);
	uint64_t offset = (uint64_t)commands[command % sizeof commands] << 20 |
			  (uint64_t)(index ^ 1) << 12 | (choice & 1 ? take64(in) : 0);
	bool is_fixed = choice & 2;
	void *hint = is_fixed ? uv_memory->queue[index % UV_QUEUE_PAGES] : NULL, *at = NULL;
	int result = uv_mmap(uv_file, hint, choice & 4 ? take16(in) : UV_PAGE,
			     (choice >> 3 & 7) ^ (PROT_READ | PROT_WRITE),
			     flags[choice >> 6] | (is_fixed ? MAP_FIXED : 0), offset, &at);

	uv_is_torn |= is_fixed;
	if (result || is_fixed)
		return result;
	if (map_count < MAPS_MAX)
		maps[map_count++] = at;
	else
		munmap(at, UV_PAGE);
	return 0;
}

static bool is_open(const struct uv_event_fd *e)
{
	struct stat st;

	return !fstat(e->fd, &st) && st.st_dev == e->dev && st.st_ino == e->ino;
}

/* Read an event from a channel, or close it. */
int uv_do_descriptor(struct input *in)
{
	uint8_t choice = take8(in), event[64];
	const struct uv_event_fd *e;

	if (!uv_file->event_fd_count)
		return 0;
	e = &uv_file->event_fd[(choice >> 1) % uv_file->event_fd_count];
	if (is_open(e) && choice & 1)
		close(e->fd);
	else if (is_open(e))
		assert(recv(e->fd, event, sizeof event, MSG_DONTWAIT) > 0 || errno == EAGAIN);
	return 0;
}

void uv_let_go(void)
{
	for (unsigned i = 0; i < uv_file->event_fd_count; i++)
		if (is_open(&uv_file->event_fd[i]))
			close(uv_file->event_fd[i].fd);
	while (map_count)
		munmap(maps[--map_count], UV_PAGE);
}

static void data_make(struct mlx5_data *data, const struct emu_mr *mr, uint8_t choice)
{
	mlx5_data_set_byte_count(data, choice);
	mlx5_data_set_lkey(data, mr ? mr->key : 0);
	mlx5_data_set_addr(data, mr ? mr->iova : 0);
}

/* To itself, without a byte: there is no room for more in one block. */
static void datagram_make(const struct emu_qp *qp, be32_t wqe[16])
{
	struct mlx5_datagram *av = (void *)(wqe + 4);

	mlx5_ctrl_set_opcode((void *)wqe, MLX5_OPCODE_SEND);
	mlx5_ctrl_set_ds((void *)wqe, 4);
	mlx5_datagram_set_is_extended(av, 1);
	mlx5_datagram_set_dest_qpn(av, qp->qpn);
	memcpy((uint8_t *)av + 32, device.gid[0].raw, 16);
}

static void send_make(struct input *in, const struct emu_qp *qp, const struct emu_mr *mr,
		      be32_t wqe[16])
{
	static const uint8_t opcodes[] = {
		MLX5_OPCODE_RDMA_WRITE, MLX5_OPCODE_RDMA_READ, MLX5_OPCODE_RDMA_WRITE_IMM,
		MLX5_OPCODE_SEND,
	};
	struct mlx5_ctrl *ctrl = (void *)wqe;
	struct mlx5_raddr *raddr = (void *)(wqe + 4);
	uint8_t opcode = opcodes[take8(in) % sizeof opcodes];
	bool has_raddr = opcode != MLX5_OPCODE_SEND;

	mlx5_ctrl_set_opcode(ctrl, opcode);
	mlx5_ctrl_set_wqe_index(ctrl, qp->req.sq_produced & 0xffff);
	mlx5_ctrl_set_qpn(ctrl, qp->qpn);
	mlx5_ctrl_set_ds(ctrl, has_raddr ? 3 : 2);
	mlx5_ctrl_set_completion(ctrl, MLX5_COMPLETION_ALWAYS);
	if (qp->type == QPT_UD) {
		datagram_make(qp, wqe);
		return;
	}
	if (has_raddr) {
		mlx5_raddr_set_remote_addr(raddr, mr ? mr->iova : 0);
		mlx5_raddr_set_rkey(raddr, mr ? mr->key : 0);
	}
	data_make((void *)(wqe + (has_raddr ? 8 : 4)), mr, take8(in));
}

/* One send, or one receive.  The queue may be anywhere, so the guarded copies are used. */
int uv_do_post(struct input *in)
{
	struct emu_obj *obj = uv_newest(in, OBJ_QP);
	const struct emu_mr *mr = (void *)uv_newest(in, OBJ_MR);
	struct emu_qp *qp = obj ? file_qp(obj) : NULL;
	be32_t wqe[16] = { { 0 } };
	uint32_t record;
	bool is_send = !(take8(in) & 1);

	if (!qp || (is_send ? !qp->sq_blocks : !qp->rq_count))
		return 0;
	if (is_send) {
		send_make(in, qp, mr, wqe);
		mem_copy_out(qp->sq_addr + (qp->req.sq_produced & (qp->sq_blocks - 1)) * 64, wqe,
			     sizeof wqe);
		record = htobe32(qp->req.sq_produced + 1);
	} else {
		data_make((void *)wqe, mr, take8(in));
		wqe[5] = be32_of(HW_LKEY_END);
		mem_copy_out(qp->rq_addr + (qp->answers.rq_produced & (qp->rq_count - 1)) *
			     qp->rq_stride, wqe, qp->rq_stride < 64 ? qp->rq_stride : 64);
		record = htobe32(qp->answers.rq_produced + 1);
	}
	mem_copy_out(qp->db_addr + (is_send ? 4 : 0), &record, sizeof record);
	if (is_send)
		engine_rang(engine, qp->qpn);
	else
		engine_posted_recv(engine, qp->qpn);
	return 0;
}

/* Doorbells, arming and polling, also of what does not exist. */
int uv_do_ring(struct input *in)
{
	uint8_t choice = take8(in);
	uint32_t handle = choice & 4 ? take32(in) : take8(in);
	int64_t cqn = uv_cqn(uv_file, handle);

	if (choice & 1)
		engine_armed(engine, cqn < 0 ? handle : (uint32_t)cqn);
	else if (choice & 2)
		engine_rang(engine, cqn < 0 ? handle : (uint32_t)cqn);
	else
		engine_lend(engine);
	return 0;
}

/* Bytes into queues, records and doorbell pages. */
int uv_do_poke(struct input *in)
{
	uint8_t choice = take8(in), bytes[64];
	size_t count = take8(in) % sizeof bytes;
	uint64_t at = (uintptr_t)uv_memory->queue[choice % UV_QUEUE_PAGES];

	if (choice & 0x80)
		at += UV_PAGE - 64;
	else if (choice & 0x40)
		at += take16(in) % UV_PAGE;
	else if (choice & 0x20 && uv_file->pages.fd >= 0)
		at = (uintptr_t)uv_file->pages.view + UV_PAGE + (take16(in) & 0xff8);
	take(in, bytes, count);
	mem_copy_out(at, bytes, count);
	return 0;
}

/* A page of queues can't be written, can't be read, or is not there any more; or all is well. */
int uv_do_hide(struct input *in)
{
	static const int rights[] = { PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE };
	uint8_t choice = take8(in), *page = uv_memory->queue[choice % UV_QUEUE_PAGES];

	uv_is_torn = true;
	if (choice >= 0xc0)
		munmap(page, UV_PAGE);
	else
		mprotect(page, UV_PAGE, rights[choice >> 6]);
	engine_lend(engine);
	return 0;
}

int uv_do_clock(struct input *in)
{
	clock_ns += (uint64_t)take8(in) << 20;
	if (engine_deadline_ns(engine) != UINT64_MAX && clock_ns < engine_deadline_ns(engine))
		clock_ns = engine_deadline_ns(engine);
	engine_lend(engine);
	return 0;
}
