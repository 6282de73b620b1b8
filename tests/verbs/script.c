/* SPDX-License-Identifier: BSD-2-Clause */
/* A device that does nothing; see script.h. */
#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "hw-models/mlx5_cqe.h"
#include "include/seam/channel.h"
#include "script.h"

#define PAGE_BYTES	4096u

struct script script;

struct ib_uverbs_attr *script_attr(struct ib_uverbs_ioctl_hdr *header, unsigned id)
{
	for (unsigned i = 0; i < header->num_attrs; i++)
		if (header->attrs[i].attr_id == id)
			return &header->attrs[i];
	return NULL;
}

void *script_memory(struct ib_uverbs_ioctl_hdr *header, unsigned id)
{
	struct ib_uverbs_attr *attr = script_attr(header, id);

	return attr ? (void *)(uintptr_t)attr->data : NULL;
}

uint64_t script_value(struct ib_uverbs_ioctl_hdr *header, unsigned id)
{
	struct ib_uverbs_attr *attr = script_attr(header, id);

	return attr ? attr->data : 0;
}

bool script_is(const struct ib_uverbs_ioctl_hdr *header, uint16_t object, uint16_t method)
{
	return header->object_id == object && header->method_id == method;
}

static void put(struct ib_uverbs_ioctl_hdr *header, unsigned id, uint32_t value)
{
	uint32_t *out = script_memory(header, id);

	if (out)
		*out = value;
}

/* --- answers --- */

static void answer_context(struct ib_uverbs_ioctl_hdr *header)
{
	struct mlx5_ib_alloc_ucontext_resp *answer = script_memory(header, UVERBS_ATTR_UHW_OUT);

	put(header, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, 1);
	answer->bf_reg_size = SCRIPT_BF_BYTES;
	answer->cache_line_size = 64;
	answer->max_sq_desc_sz = 1024;
	answer->max_rq_desc_sz = 512;
	answer->max_send_wqebb = 32768;
	answer->max_recv_wr = 32768;
	answer->max_srq_recv_wr = 32767;
	answer->num_ports = 1;
	answer->cqe_version = 1;
	answer->eth_min_inline = script.eth_inline_mode;
}

static void answer_port(struct ib_uverbs_ioctl_hdr *header)
{
	struct ib_uverbs_query_port_resp_ex *answer =
		script_memory(header, UVERBS_ATTR_QUERY_PORT_RESP);

	answer->legacy_resp.link_layer = script.link_layer;
	answer->legacy_resp.flags = script.port_flags;
}

static void answer_event_file(struct ib_uverbs_ioctl_hdr *header)
{
	script_attr(header, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE)->data =
		(uint64_t)open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void answer_uar(struct ib_uverbs_ioctl_hdr *header)
{
	uint64_t *offset = script_memory(header, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET);

	*offset = (uint64_t)script.maps * PAGE_BYTES;
	put(header, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, PAGE_BYTES);
	put(header, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, script.maps + 16);
}

static void answer_cq(struct ib_uverbs_ioctl_hdr *header)
{
	struct mlx5_ib_create_cq_resp *answer = script_memory(header, UVERBS_ATTR_UHW_OUT);

	put(header, UVERBS_ATTR_CREATE_CQ_RESP_CQE,
	    (uint32_t)script_value(header, UVERBS_ATTR_CREATE_CQ_CQE));
	answer->cqn = ++script.next_number;
}

static void answer_qp(struct ib_uverbs_ioctl_hdr *header)
{
	put(header, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, ++script.next_number);
}

static void answer_srq(struct ib_uverbs_ioctl_hdr *header)
{
	struct mlx5_ib_create_srq_resp *answer = script_memory(header, UVERBS_ATTR_UHW_OUT);

	answer->srqn = ++script.next_number;
	put(header, UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, answer->srqn);
}

static void answer_device(struct ib_uverbs_ioctl_hdr *header)
{
	struct ib_uverbs_ex_query_device_resp *answer =
		script_memory(header, UVERBS_ATTR_CORE_OUT);
	struct mlx5_ib_query_device_resp *driver = script_memory(header, UVERBS_ATTR_UHW_OUT);

	answer->base.device_cap_flags = script.device_caps;
	driver->tso_caps.max_tso = script.tso_bytes_max;
	driver->tso_caps.supported_qpts = script.tso_bytes_max ? 1 << IBV_QPT_RAW_PACKET : 0;
}

static void answer_write(struct ib_uverbs_ioctl_hdr *header)
{
	const struct ib_uverbs_resize_cq *resize;
	struct ib_uverbs_resize_cq_resp *resized;
	uint64_t command = script_value(header, UVERBS_ATTR_WRITE_CMD);

	if (command == IB_USER_VERBS_CMD_RESIZE_CQ) {
		resize = script_memory(header, UVERBS_ATTR_CORE_IN);
		resized = script_memory(header, UVERBS_ATTR_CORE_OUT);
		resized->cqe = resize->cqe;
	}
	if (command == (0x80000000 | IB_USER_VERBS_EX_CMD_QUERY_DEVICE))
		answer_device(header);
	if (script.on_write)
		script.on_write(command);
}

static const struct answer {
	uint16_t object, method;
	void (*give)(struct ib_uverbs_ioctl_hdr *header);
} answers[] = {
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT, answer_context },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE, answer_write },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT, answer_port },
	{ UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC, answer_event_file },
	{ MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC, answer_uar },
	{ UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, answer_cq },
	{ UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, answer_qp },
	{ UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, answer_srq },
};

static void remember(struct ib_uverbs_ioctl_hdr *header)
{
	cr_assert_lt(script.commands, SCRIPT_COMMANDS_MAX);
	script.command[script.commands++] = (struct script_command){
		.object = header->object_id, .method = header->method_id,
		.write_command = script_value(header, UVERBS_ATTR_WRITE_CMD),
	};
}

static int take_command(struct channel *c, struct ib_uverbs_ioctl_hdr *header)
{
	(void)c;
	remember(header);
	if (script.fail_error && header->object_id == script.fail_object &&
	    header->method_id == script.fail_method) {
		int error = script.fail_error;

		script.fail_error = 0;
		return -error;
	}
	for (unsigned i = 0; i < sizeof answers / sizeof *answers; i++)
		if (script_is(header, answers[i].object, answers[i].method))
			answers[i].give(header);
	if (script.on_command)
		script.on_command(header);
	return 0;
}

static int take_map(struct channel *c, void *hint, size_t bytes, int prot, int flags,
		    uint64_t offset, void **out)
{
	void *at = mmap(hint, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)c;
	(void)prot;
	(void)flags;
	(void)offset;
	cr_assert(at != MAP_FAILED && script.maps < SCRIPT_MAPS_MAX);
	script.map[script.maps++] = at;
	*out = at;
	return 0;
}

static void take_close(struct channel *c)
{
	close(c->fd);
}

static void take_rang(uint32_t qpn)
{
	script.rang++;
	script.rang_qpn = qpn;
	if (script.on_rang)
		script.on_rang();
}

static void take_posted(uint32_t qpn)
{
	(void)qpn;
	script.posted_recv++;
}

static void take_idle(void)
{
	script.idle++;
	if (script.on_idle)
		script.on_idle();
}

static void take_armed(struct channel *c, uint32_t cq_handle)
{
	(void)c;
	(void)cq_handle;
	script.armed++;
}

static const struct channel_ops ops = {
	.command = take_command, .map = take_map, .close = take_close, .rang = take_rang,
	.posted_recv = take_posted, .idle = take_idle, .armed = take_armed,
};

/* --- the provider --- */

static int list_one(struct channel_device *out, unsigned max)
{
	cr_assert(max);
	if (script.is_unplugged)
		return 0;
	*out = (struct channel_device){ .name = "script0", .dev_name = "uverbs0", .node_type = 1 };
	return 1;
}

static int no_attribute(const struct channel_device *device, const char *name, char *out,
			size_t bytes)
{
	(void)device;
	(void)name;
	(void)out;
	(void)bytes;
	script.attributes_read++;
	return -ENOENT;
}

static int open_one(const struct channel_device *device, struct channel *out)
{
	(void)device;
	*out = (struct channel){ .ops = &ops, .fd = open("/dev/null", O_RDONLY | O_CLOEXEC) };
	return 0;
}

static int adopt_none(int fd, struct channel_device *out_device, struct channel *out)
{
	(void)fd;
	(void)out_device;
	(void)out;
	return -EOPNOTSUPP;
}

/* Linked in place of the emulator. */
const struct channel_provider channel_emulated = {
	.list = list_one, .read_attribute = no_attribute, .open = open_one, .adopt = adopt_none,
};

/* --- what tests call --- */

struct ibv_context *script_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	cr_assert(list && list[0]);
	context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	cr_assert(context);
	return context;
}

unsigned script_count(uint16_t object, uint16_t method)
{
	unsigned count = 0;

	for (unsigned i = 0; i < script.commands; i++)
		count += script.command[i].object == object && script.command[i].method == method;
	return count;
}

unsigned script_count_write(uint64_t write_command)
{
	unsigned count = 0;

	for (unsigned i = 0; i < script.commands; i++)
		count += script.command[i].object == UVERBS_OBJECT_DEVICE &&
			 script.command[i].method == UVERBS_METHOD_INVOKE_WRITE &&
			 script.command[i].write_command == write_command;
	return count;
}

void *script_keep(void *object)
{
	static void *kept[256];
	static unsigned count;

	cr_assert_lt(count, sizeof kept / sizeof *kept);
	kept[count++] = object;
	return object;
}

struct ibv_cq *script_cq(struct ibv_context *context, int cqe)
{
	struct ibv_cq *cq = ibv_create_cq(context, cqe, NULL, NULL, 0);

	cr_assert(cq);
	return cq;
}

void script_state(struct vb_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	cr_assert_eq(ibv_modify_qp(vb_qp_base(qp), &attr, IBV_QP_STATE), 0);
}

struct vb_qp *script_qp(const struct script_qp *want)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = want->type, .pd = want->pd, .send_cq = want->send_cq,
		.recv_cq = want->recv_cq, .srq = want->srq, .sq_sig_all = want->signals_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.cap = { .max_send_wr = want->depth, .max_recv_wr = want->depth,
			 .max_send_sge = want->sges, .max_recv_sge = want->sges,
			 .max_inline_data = want->inline_bytes },
	};
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = want->port };
	struct ibv_qp *qp;

	if (want->ops) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = want->ops;
	}
	if (want->tso_header) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
		attr.max_tso_header = want->tso_header;
	}
	qp = ibv_create_qp_ex(want->pd->context, &attr);
	cr_assert(qp, "ibv_create_qp_ex: errno %d", errno);
	cr_assert_eq(ibv_modify_qp(qp, &init, IBV_QP_STATE | (want->port ? IBV_QP_PORT : 0)), 0);
	script_state(vb_qp_of(qp), IBV_QPS_RTR);
	script_state(vb_qp_of(qp), IBV_QPS_RTS);
	return vb_qp_of(qp);
}

struct vb_qp *script_rc(struct ibv_context *context, uint32_t depth)
{
	struct ibv_cq *cq = script_cq(context, 63);

	return script_qp(&(struct script_qp){
		.type = IBV_QPT_RC, .pd = ibv_alloc_pd(context), .send_cq = cq, .recv_cq = cq,
		.depth = depth, .sges = 4, .inline_bytes = 64,
	});
}

void script_complete(struct vb_cq *cq, uint32_t index, const struct hw_cqe *cqe)
{
	uint8_t *at = cq->at + (size_t)(index & (cq->entries - 1)) * cq->entry_bytes;

	mlx5_cqe_write(at + cq->entry_bytes - MLX5_CQE_BYTES, cqe, !!(index & cq->entries));
}
