/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the inline functions and macros of the public headers do, which is part of the interface
 * as layouts are: it is compiled into programs.
 * Method: a context whose table is ours, and functions of our own in the place of the library's.
 * Built twice, with our headers and with the system's, so that no expectation is only ours.
 */
#include <criterion/criterion.h>
#include <infiniband/verbs.h>

/* --- the library ------------------------------------------------------------ */

static const char *called;
static uint64_t called_iova;
static unsigned int called_access;

static void *note(const char *name)
{
	static int object;

	called = name;
	return &object;
}

struct ibv_mr *(ibv_reg_mr)(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	(void)pd, (void)addr, (void)length;
	called_access = (unsigned int)access;
	return note("reg_mr");
}

struct ibv_mr *(ibv_reg_mr_iova)(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				 int access)
{
	(void)pd, (void)addr, (void)length;
	called_iova = iova;
	called_access = (unsigned int)access;
	return note("reg_mr_iova");
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	(void)pd, (void)addr, (void)length;
	called_iova = iova;
	called_access = access;
	return note("reg_mr_iova2");
}

int(ibv_query_port)(struct ibv_context *context, uint8_t port_num,
		    struct _compat_ibv_port_attr *port_attr)
{
	(void)context, (void)port_num;
	((struct ibv_port_attr *)port_attr)->lid = 7;
	note("query_port");
	return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	(void)context;
	attr->max_qp = 5;
	note("query_device");
	return 0;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	(void)pd, (void)attr;
	return note("create_srq");
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	(void)pd, (void)attr;
	return note("create_qp");
}

/* --- the driver ------------------------------------------------------------- */

static int driver_error;
static size_t driver_size;
static struct ibv_wq driver_wq;

static int query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		      size_t size)
{
	(void)context, (void)port_num, (void)attr;
	driver_size = size;
	note("driver query_port");
	return 0;
}

static int query_device_ex(struct ibv_context *context,
			   const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t size)
{
	(void)context, (void)input, (void)attr;
	driver_size = size;
	return driver_error;
}

static struct ibv_srq *create_srq_ex(struct ibv_context *context,
				     struct ibv_srq_init_attr_ex *attr)
{
	(void)context, (void)attr;
	return note("driver create_srq_ex");
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	(void)context, (void)attr;
	return note("driver create_qp_ex");
}

static struct ibv_wq *create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr)
{
	(void)context, (void)attr;
	return &driver_wq;
}

static int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	(void)qp, (void)mw, (void)bind;
	note("driver bind_mw");
	return 0;
}

static struct verbs_context world(void)
{
	struct verbs_context v = { .sz = sizeof(v) };

	v.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	called = "nothing";
	errno = 0;
	return v;
}

/* --- finding an operation --------------------------------------------------- */

Test(operation, an_old_context_has_none)
{
	struct verbs_context v = world();

	v.context.abi_compat = NULL;
	cr_assert_null(verbs_get_ctx(&v.context));
	v.query_port = query_port;
	cr_assert_null(verbs_get_ctx_op(&v.context, query_port));
}

Test(operation, a_table_has_what_its_size_reaches)
{
	struct verbs_context v = world();

	v.create_wq = create_wq;
	cr_assert_eq(verbs_get_ctx_op(&v.context, create_wq), &v);
	v.sz = sizeof(v) - offsetof(struct verbs_context, create_wq);
	cr_assert_eq(verbs_get_ctx_op(&v.context, create_wq), &v);
	v.sz -= 1;
	cr_assert_null(verbs_get_ctx_op(&v.context, create_wq));
}

Test(operation, a_missing_one_is_not_supported)
{
	struct verbs_context v = world();
	struct ibv_wq wq = { .context = &v.context };
	struct ibv_pd pd = { .context = &v.context };
	struct ibv_srq srq = { .context = &v.context };
	struct ibv_ops_wr ops = { 0 }, *bad = NULL;

	cr_assert_eq(ibv_destroy_wq(&wq), EOPNOTSUPP);
	cr_assert_eq(ibv_post_srq_ops(&srq, &ops, &bad), EOPNOTSUPP);
	cr_assert_eq(bad, &ops);
	cr_assert_null(ibv_alloc_null_mr(&pd));
	cr_assert_eq(errno, EOPNOTSUPP);
	errno = 0;
	cr_assert_null(ibv_alloc_mw(&pd, IBV_MW_TYPE_1));
	cr_assert_eq(errno, EOPNOTSUPP);
}

/* --- which function is called ------------------------------------------------ */

Test(registration, constant_rights_go_to_the_old_function)
{
	char memory[1];

	ibv_reg_mr(NULL, memory, 1, IBV_ACCESS_LOCAL_WRITE);
	cr_assert_str_eq(called, "reg_mr");
	ibv_reg_mr_iova(NULL, memory, 1, 0x1000, IBV_ACCESS_REMOTE_READ);
	cr_assert_str_eq(called, "reg_mr_iova");
	cr_assert_eq(called_iova, 0x1000);
}

Test(registration, optional_rights_go_to_the_new_one)
{
	char memory[1];

	ibv_reg_mr(NULL, memory, 1, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
	cr_assert_str_eq(called, "reg_mr_iova2");
	cr_assert_eq(called_iova, (uintptr_t)memory);
	cr_assert_eq(called_access, 1u | 1u << 20);
	ibv_reg_mr_iova(NULL, memory, 1, 0x2000, IBV_ACCESS_RELAXED_ORDERING);
	cr_assert_str_eq(called, "reg_mr_iova2");
	cr_assert_eq(called_iova, 0x2000);
}

Test(registration, rights_known_at_run_time_go_to_the_new_one)
{
	volatile int access = IBV_ACCESS_LOCAL_WRITE;
	char memory[1];

	ibv_reg_mr(NULL, memory, 1, access);
	cr_assert_str_eq(called, "reg_mr_iova2");
	ibv_reg_mr_iova(NULL, memory, 1, 0x3000, access);
	cr_assert_str_eq(called, "reg_mr_iova2");
	cr_assert_eq(called_iova, 0x3000);
}

Test(port, is_asked_of_the_driver_by_size)
{
	struct verbs_context v = world();
	struct ibv_port_attr attr;

	v.query_port = query_port;
	cr_assert_eq(ibv_query_port(&v.context, 1, &attr), 0);
	cr_assert_str_eq(called, "driver query_port");
	cr_assert_eq(driver_size, sizeof(attr));
}

Test(port, is_else_what_the_old_function_says)
{
	struct verbs_context v = world();
	struct ibv_port_attr attr;

	memset(&attr, 0xff, sizeof(attr));
	cr_assert_eq(ibv_query_port(&v.context, 1, &attr), 0);
	cr_assert_str_eq(called, "query_port");
	cr_assert_eq(attr.lid, 7);
	cr_assert_eq(attr.port_cap_flags2, 0);
}

Test(device, falls_back_where_the_driver_cannot)
{
	static const int errors[] = { EOPNOTSUPP, ENOSYS };
	struct verbs_context v = world();
	struct ibv_device_attr_ex attr;

	v.query_device_ex = query_device_ex;
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		memset(&attr, 0xff, sizeof(attr));
		driver_error = errors[i];
		cr_assert_eq(ibv_query_device_ex(&v.context, NULL, &attr), 0);
		cr_assert_eq(attr.orig_attr.max_qp, 5);
		cr_assert_eq(attr.phys_port_cnt_ex, 0);
	}
	v.query_device_ex = NULL;
	cr_assert_eq(ibv_query_device_ex(&v.context, NULL, &attr), 0);
	cr_assert_str_eq(called, "query_device");
}

Test(device, other_errors_are_told)
{
	struct ibv_query_device_ex_input input = { .comp_mask = 1 };
	struct verbs_context v = world();
	struct ibv_device_attr_ex attr;

	v.query_device_ex = query_device_ex;
	driver_error = EIO;
	cr_assert_eq(ibv_query_device_ex(&v.context, NULL, &attr), EIO);
	cr_assert_eq(driver_size, sizeof(attr));
	cr_assert_eq(ibv_query_device_ex(&v.context, &input, &attr), EINVAL);
	cr_assert_str_eq(called, "nothing");
}

Test(srq, is_basic_if_the_short_form_says_it_all)
{
	enum { TYPE = IBV_SRQ_INIT_ATTR_TYPE, PD = IBV_SRQ_INIT_ATTR_PD };
	static const struct {
		uint32_t mask;
		enum ibv_srq_type type;
		const char *want;
	} rows[] = {
		{ PD, IBV_SRQT_BASIC, "create_srq" },
		{ PD, IBV_SRQT_XRC, "create_srq" },
		{ PD | TYPE, IBV_SRQT_BASIC, "create_srq" },
		{ PD | TYPE, IBV_SRQT_XRC, "driver create_srq_ex" },
		{ TYPE, IBV_SRQT_BASIC, "driver create_srq_ex" },
		{ 0, IBV_SRQT_BASIC, "driver create_srq_ex" },
		{ PD | IBV_SRQ_INIT_ATTR_CQ, IBV_SRQT_BASIC, "driver create_srq_ex" },
	};
	struct verbs_context v = world();

	v.create_srq_ex = create_srq_ex;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct ibv_srq_init_attr_ex attr = { .comp_mask = rows[i].mask,
						     .srq_type = rows[i].type };

		cr_assert_not_null(ibv_create_srq_ex(&v.context, &attr));
		cr_assert_str_eq(called, rows[i].want, "row %zu: %s", i, called);
	}
}

Test(qp, is_plain_if_only_the_domain_is_added)
{
	struct verbs_context v = world();
	struct ibv_qp_init_attr_ex attr = { .comp_mask = IBV_QP_INIT_ATTR_PD };

	v.create_qp_ex = create_qp_ex;
	ibv_create_qp_ex(&v.context, &attr);
	cr_assert_str_eq(called, "create_qp");
	attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	ibv_create_qp_ex(&v.context, &attr);
	cr_assert_str_eq(called, "driver create_qp_ex");
	attr.comp_mask = 0;
	ibv_create_qp_ex(&v.context, &attr);
	cr_assert_str_eq(called, "driver create_qp_ex");
}

/* --- what is done on the way -------------------------------------------------- */

Test(wq, begins_with_no_events)
{
	struct verbs_context v = world();
	struct ibv_wq_init_attr attr = { .wq_context = &attr };

	memset(&driver_wq, 0xff, sizeof(driver_wq));
	v.create_wq = create_wq;
	cr_assert_eq(ibv_create_wq(&v.context, &attr), &driver_wq);
	cr_assert_eq(driver_wq.wq_context, &attr);
	cr_assert_eq(driver_wq.events_completed, 0);
	cr_assert_eq(pthread_mutex_trylock(&driver_wq.mutex), 0);
}

Test(window, bind_is_checked)
{
	struct verbs_context v = world();
	struct ibv_pd pd = { .context = &v.context }, other = { .context = &v.context };
	struct ibv_mr mr = { .pd = &pd };
	struct ibv_mw mw = { .context = &v.context, .pd = &pd, .type = IBV_MW_TYPE_1 };
	struct ibv_mw_bind bind = { .bind_info = { .mr = &mr, .length = 1 } };

	v.context.ops.bind_mw = bind_mw;
	cr_assert_eq(ibv_bind_mw(NULL, &mw, &bind), 0);
	mr.pd = &other;
	cr_assert_eq(ibv_bind_mw(NULL, &mw, &bind), EPERM);
	bind.bind_info.mr = NULL;
	cr_assert_eq(ibv_bind_mw(NULL, &mw, &bind), EINVAL);
	bind.bind_info.length = 0;
	cr_assert_eq(ibv_bind_mw(NULL, &mw, &bind), 0);
	bind.bind_info.addr = 1;
	cr_assert_eq(ibv_bind_mw(NULL, &mw, &bind), EINVAL);
	bind.bind_info.addr = 0;
	mw.type = IBV_MW_TYPE_2;
	cr_assert_eq(ibv_bind_mw(NULL, &mw, &bind), EINVAL);
}

Test(number, of_a_key_counts_in_its_last_byte)
{
	cr_assert_eq(ibv_inc_rkey(0x12345600), 0x12345601u);
	cr_assert_eq(ibv_inc_rkey(0x123456ff), 0x12345600u);
	cr_assert_eq(ibv_inc_rkey(0xffffffff), 0xffffff00u);
}

Test(number, of_a_flow_becomes_a_port)
{
	cr_assert_eq(ibv_flow_label_to_udp_sport(0), 0xc000);
	cr_assert_eq(ibv_flow_label_to_udp_sport(0x3fff), 0xffff);
	cr_assert_eq(ibv_flow_label_to_udp_sport(0xfc000), 0xc03f);
	cr_assert_eq(ibv_flow_label_to_udp_sport(0x54321), 0xc334);
}

Test(number, of_a_type_is_a_bit)
{
	cr_assert_eq(ibv_is_qpt_supported(1 << IBV_QPT_UD, IBV_QPT_UD), 1);
	cr_assert_eq(ibv_is_qpt_supported(~(1u << IBV_QPT_UD), IBV_QPT_UD), 0);
}
