/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One RAW_PACKET QP that does what it is told, word by word:
 *
 *	rule MAC	frames for this address come here, too; "all": all frames
 *	unrule		all rules are taken away
 *	post N		N more receives
 *	take N		N frames are awaited and printed in hex, and their receives posted again
 *	use N		the same, but they are not posted again
 *	events		from now on frames are awaited asleep
 *	send		frames come in hex from standard input, until a line that is empty
 *	nap N		nothing for N milliseconds, without looking at a queue
 *	say WORD	prints it, so that others know where this one is
 *	line		waits for a line of standard input
 *
 * p_port_pcap.py and p_port_tap.py drive it.  Exit status: 0; 1: a verb failed.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RECEIVES	64u		/* at most */
#define SENDS		16u
#define FRAME_BYTES	9600u
#define RULES_MAX	16u

static struct {
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq, *send_cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *memory;		/* receives, then one for sending */
	struct ibv_flow *rule[RULES_MAX];
	unsigned rule_count, posted;
	bool has_events;
} me;

static void need(bool is_fine, const char *what)
{
	if (is_fine)
		return;
	fprintf(stderr, "frames: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Of a receive, or behind them for sending. */
static uint8_t *buffer(uint64_t number)
{
	return me.memory + number * FRAME_BYTES;
}

static void qp_ready(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	need(!ibv_modify_qp(me.qp, &attr, IBV_QP_STATE | IBV_QP_PORT), "INIT");
	attr.qp_state = IBV_QPS_RTR;
	need(!ibv_modify_qp(me.qp, &attr, IBV_QP_STATE), "RTR");
	attr.qp_state = IBV_QPS_RTS;
	need(!ibv_modify_qp(me.qp, &attr, IBV_QP_STATE), "RTS");
}

static void begin(void)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = SENDS, .max_recv_wr = RECEIVES, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RAW_PACKET, .sq_sig_all = 1,
	};
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_pd *pd;

	need(list && *list, "devices");
	me.context = ibv_open_device(*list);
	need(me.context, "open");
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(me.context);
	me.channel = ibv_create_comp_channel(me.context);
	need(pd && me.channel, "domain and channel");
	me.cq = init.recv_cq = ibv_create_cq(me.context, RECEIVES, NULL, me.channel, 0);
	me.send_cq = init.send_cq = ibv_create_cq(me.context, SENDS, NULL, NULL, 0);
	need(me.cq && me.send_cq, "CQs");
	me.qp = ibv_create_qp(pd, &init);
	need(me.qp, "QP");
	me.memory = calloc(RECEIVES + 1, FRAME_BYTES);
	me.mr = ibv_reg_mr(pd, me.memory, (RECEIVES + 1) * (size_t)FRAME_BYTES,
			   IBV_ACCESS_LOCAL_WRITE);
	need(me.mr, "region");
	qp_ready();
}

/* --- rules --- */

static struct ibv_flow *rule_all(void)
{
	struct ibv_flow_attr attr = {
		.type = IBV_FLOW_ATTR_ALL_DEFAULT, .size = sizeof attr, .port = 1,
	};

	return ibv_create_flow(me.qp, &attr);
}

static struct ibv_flow *rule_address(const char *text)
{
	struct { struct ibv_flow_attr attr; struct ibv_flow_spec_eth eth; } rule = {
		.attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof rule, .num_of_specs = 1,
			  .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof rule.eth },
	};
	uint8_t *mac = rule.eth.val.dst_mac;

	need(sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", mac, mac + 1, mac + 2, mac + 3, mac + 4,
		    mac + 5) == 6, "address");
	memset(rule.eth.mask.dst_mac, 0xff, 6);
	return ibv_create_flow(me.qp, &rule.attr);
}

static void do_rule(const char *text)
{
	need(me.rule_count < RULES_MAX, "rules");
	me.rule[me.rule_count] = !strcmp(text, "all") ? rule_all() : rule_address(text);
	need(me.rule[me.rule_count++], "rule");
}

static void do_unrule(const char *text)
{
	(void)text;
	while (me.rule_count)
		need(!ibv_destroy_flow(me.rule[--me.rule_count]), "no rule");
}

/* --- receives --- */

static void receive_post(uint64_t number)
{
	struct ibv_sge sge = { (uintptr_t)buffer(number), FRAME_BYTES, me.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = number, .sg_list = &sge, .num_sge = 1 }, *bad;

	need(!ibv_post_recv(me.qp, &wr, &bad), "receive");
}

static void do_post(const char *count)
{
	for (int i = atoi(count); i > 0; i--)
		receive_post(me.posted++ % RECEIVES);
}

static void event_await(void)
{
	struct ibv_cq *cq;
	void *context;

	need(!ibv_get_cq_event(me.channel, &cq, &context), "event");
	ibv_ack_cq_events(cq, 1);
}

static void completion_check(int got, const struct ibv_wc *wc)
{
	need(got == 1, "polling");
	if (!wc->status)
		return;
	fprintf(stderr, "frames: %s\n", ibv_wc_status_str(wc->status));
	exit(1);
}

static struct ibv_wc frame_await(void)
{
	struct ibv_wc wc;
	int got;

	while (!(got = ibv_poll_cq(me.cq, 1, &wc))) {
		if (!me.has_events)
			continue;
		need(!ibv_req_notify_cq(me.cq, 0), "arming");
		got = ibv_poll_cq(me.cq, 1, &wc);
		if (got)
			break;
		event_await();
	}
	completion_check(got, &wc);
	return wc;
}

static void frame_print(const uint8_t *at, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		printf("%02x", at[i]);
	putchar('\n');
	fflush(stdout);
}

static void take(const char *count, bool is_posted_again)
{
	for (int i = atoi(count); i > 0; i--) {
		struct ibv_wc wc = frame_await();

		frame_print(buffer(wc.wr_id), wc.byte_len);
		if (is_posted_again)
			receive_post(wc.wr_id);
	}
}

static void do_take(const char *count)
{
	take(count, true);
}

static void do_use(const char *count)
{
	take(count, false);
}

static void do_events(const char *text)
{
	(void)text;
	me.has_events = true;
}

/* --- sends --- */

static uint32_t frame_parse(const char *line, uint8_t *out)
{
	uint32_t bytes = 0;

	while (bytes < FRAME_BYTES && sscanf(line + 2 * bytes, "%2hhx", out + bytes) == 1)
		bytes++;
	return bytes;
}

static void send_await(void)
{
	struct ibv_wc wc;
	int got;

	while (!(got = ibv_poll_cq(me.send_cq, 1, &wc)))
		;
	completion_check(got, &wc);
}

static void do_send(const char *text)
{
	static char line[2 * FRAME_BYTES + 2];

	(void)text;
	while (fgets(line, sizeof line, stdin) && *line != '\n') {
		struct ibv_sge sge = { (uintptr_t)buffer(RECEIVES), 0, me.mr->lkey };
		struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1,
					  .opcode = IBV_WR_SEND }, *bad;

		sge.length = frame_parse(line, buffer(RECEIVES));
		need(!ibv_post_send(me.qp, &wr, &bad), "send");
		send_await();
	}
}

/* --- the rest --- */

static void do_nap(const char *milliseconds)
{
	long ms = atol(milliseconds);

	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

static void do_say(const char *word)
{
	puts(word);
	fflush(stdout);
}

static void do_line(const char *text)
{
	char line[256];

	(void)text;
	need(fgets(line, sizeof line, stdin), "line");
}

static const struct {
	const char *word;
	bool has_value;
	void (*run)(const char *value);
} words[] = {
	{ "rule", true, do_rule },	{ "unrule", false, do_unrule },
	{ "post", true, do_post },	{ "take", true, do_take },
	{ "use", true, do_use },	{ "events", false, do_events },
	{ "send", false, do_send },	{ "nap", true, do_nap },
	{ "say", true, do_say },	{ "line", false, do_line },
};

/* How many arguments it took. */
static int word_run(char **argument)
{
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (strcmp(words[i].word, argument[0]))
			continue;
		need(!words[i].has_value || argument[1], argument[0]);
		words[i].run(argument[1]);
		return words[i].has_value ? 2 : 1;
	}
	fprintf(stderr, "frames: no word is %s\n", argument[0]);
	exit(1);
}

int main(int argc, char **argv)
{
	(void)argc;
	begin();
	for (argv++; *argv; argv += word_run(argv))
		;
	do_unrule(NULL);
	need(!ibv_destroy_qp(me.qp), "no QP");
	need(!ibv_close_device(me.context), "close");
	return 0;
}
