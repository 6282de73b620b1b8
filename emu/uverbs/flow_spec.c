/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Specs of flow rules; see flow_spec.h.
 */
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>
#include "emu/uverbs/file.h"
#include "emu/uverbs/flow_spec.h"

#define COUNT(array)	(sizeof(array) / sizeof *(array))

enum { ETHERTYPE_IPV4 = 0x0800, ETHERTYPE_IPV6 = 0x86dd,
       ETHERTYPE_MPLS = 0x8847, ETHERTYPE_MPLS_MULTICAST = 0x8848 };
#define GROUP_BIT	1	/* of a MAC address's first byte */

static int refuse(struct uv_call *call)
{
	return uv_refuse(call, WHY_FLOW_SPEC, -EINVAL);
}

/* --- what there is --- */

enum field_sort {
	FIELD_PLAIN,
	FIELD_PROTOCOL,		/* of IP: others imply one, too, and all must agree */
	FIELD_VLAN,		/* the frame must have a tag then */
	FIELD_LABEL,		/* of an IPv6 flow, 20 bits */
	FIELD_MPLS,		/* where it goes depends on the spec before */
	FIELD_ABSENT,		/* the hardware does not look there */
};

/* Where @bytes of a filter go.  LAYER: STEER_OUTER or STEER_INNER, as the spec's type says. */
enum { LAYER = STEER_OUTER };
struct field {
	uint8_t from, bytes, sort, block, to;
};

static const struct field eth_fields[] = {
	{ 0, 6, FIELD_PLAIN, LAYER, STEER_DMAC }, { 6, 6, FIELD_PLAIN, LAYER, STEER_SMAC },
	{ 12, 2, FIELD_PLAIN, LAYER, STEER_ETHERTYPE }, { 14, 2, FIELD_VLAN, LAYER, STEER_VLAN },
};
static const struct field ipv4_fields[] = {
	{ 0, 4, FIELD_PLAIN, LAYER, STEER_SRC_IPV4 },
	{ 4, 4, FIELD_PLAIN, LAYER, STEER_DST_IPV4 },
	{ 9, 1, FIELD_PLAIN, LAYER, STEER_IP_CLASS },
	{ 8, 1, FIELD_PROTOCOL, LAYER, STEER_IP_PROTOCOL },
	{ .from = 10, .bytes = 2, .sort = FIELD_ABSENT },	/* TTL, flags */
};
static const struct field ipv6_fields[] = {
	{ 0, 16, FIELD_PLAIN, LAYER, STEER_SRC_IP }, { 16, 16, FIELD_PLAIN, LAYER, STEER_DST_IP },
	{ 37, 1, FIELD_PLAIN, LAYER, STEER_IP_CLASS },
	{ 36, 1, FIELD_PROTOCOL, LAYER, STEER_IP_PROTOCOL },
	{ .from = 32, .bytes = 4, .sort = FIELD_LABEL },
	{ .from = 38, .bytes = 1, .sort = FIELD_ABSENT },	/* hop limit */
};
static const struct field tcp_fields[] = {
	{ 0, 2, FIELD_PLAIN, LAYER, STEER_TCP_DPORT },
	{ 2, 2, FIELD_PLAIN, LAYER, STEER_TCP_SPORT },
};
static const struct field udp_fields[] = {
	{ 0, 2, FIELD_PLAIN, LAYER, STEER_UDP_DPORT },
	{ 2, 2, FIELD_PLAIN, LAYER, STEER_UDP_SPORT },
};
static const struct field vxlan_fields[] = {
	{ 1, 3, FIELD_PLAIN, STEER_MISC, STEER_VXLAN_VNI },
};
static const struct field gre_fields[] = {
	{ .from = 0, .bytes = 2, .sort = FIELD_ABSENT },	/* flags and version */
	{ 2, 2, FIELD_PLAIN, STEER_MISC, STEER_GRE_PROTOCOL },
	{ 4, 4, FIELD_PLAIN, STEER_MISC, STEER_GRE_KEY },
};
static const struct field mpls_fields[] = {
	{ .from = 0, .bytes = 4, .sort = FIELD_MPLS },
};
static const struct field esp_fields[] = {
	{ .from = 0, .bytes = 8, .sort = FIELD_ABSENT },
};

#define FIELDS(array)	.field = array, .count = COUNT(array)

/* A filter may be longer than @bytes if its mask is zero there; or shorter. */
static const struct spec_row {
	uint32_t type;
	uint8_t bytes;
	bool has_no_inner;
	bool is_absent;			/* also with nothing in its mask */
	uint8_t number_at, number_bits;	/* a number that must be less than it has room for */
	uint8_t ip_version, protocol;	/* what it implies; 0: nothing */
	const struct field *field;
	unsigned count;
} spec_rows[] = {
	{ .type = FLOW_ETH, .bytes = 16, FIELDS(eth_fields) },
	{ .type = FLOW_IPV4, .bytes = 12, .ip_version = 4, FIELDS(ipv4_fields) },
	{ .type = FLOW_IPV6, .bytes = 39, .ip_version = 6, .number_at = 32, .number_bits = 20,
	  FIELDS(ipv6_fields) },
	{ .type = FLOW_ESP, .bytes = 8, .is_absent = true, FIELDS(esp_fields) },
	{ .type = FLOW_TCP, .bytes = 4, .protocol = IPPROTO_TCP, FIELDS(tcp_fields) },
	{ .type = FLOW_UDP, .bytes = 4, .protocol = IPPROTO_UDP, FIELDS(udp_fields) },
	{ .type = FLOW_VXLAN, .bytes = 4, .has_no_inner = true, .number_bits = 24,
	  FIELDS(vxlan_fields) },
	{ .type = FLOW_GRE, .bytes = 8, .protocol = IPPROTO_GRE, FIELDS(gre_fields) },
	{ .type = FLOW_MPLS, .bytes = 4, FIELDS(mpls_fields) },
};

static const struct spec_row *row_find(uint32_t type)
{
	for (size_t i = 0; i < COUNT(spec_rows); i++)
		if (spec_rows[i].type == (type & ~(uint32_t)FLOW_INNER))
			return type & FLOW_INNER && spec_rows[i].has_no_inner ? NULL :
			       &spec_rows[i];
	return NULL;
}

static bool is_zero(const uint8_t *bytes, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (bytes[i])
			return false;
	return true;
}

/* --- the list --- */

static bool number_fits(const struct spec_row *row, const uint8_t *filter)
{
	uint32_t number;

	memcpy(&number, filter + row->number_at, sizeof number);
	return !row->number_bits || be32toh(number) >> row->number_bits == 0;
}

/* Half of what is behind the header is the value, the other half the mask. */
static int filter_read(struct uv_call *call, const uint8_t *bytes, unsigned size,
		       struct flow_spec *out)
{
	const struct spec_row *row = row_find(out->type);
	unsigned given = size / 2, taken;

	if (!row || !given || given % 4)
		return refuse(call);
	taken = given < row->bytes ? given : row->bytes;
	memcpy(out->value, bytes, taken);
	memcpy(out->mask, bytes + given, taken);
	if (!is_zero(bytes + given + taken, given - taken) || !number_fits(row, out->value) ||
	    !number_fits(row, out->mask))
		return refuse(call);
	return 0;
}

/* Behind the header of an action is a number, and one that is reserved. */
static uint32_t action_number(const uint8_t *bytes)
{
	uint32_t number;

	memcpy(&number, bytes, sizeof number);
	return number;
}

enum { ACTION_BYTES = 8 };

static int tag_read(struct uv_call *call, const uint8_t *bytes, unsigned size,
		    struct flow_spec *out)
{
	if (size != ACTION_BYTES)
		return refuse(call);
	out->tag = action_number(bytes);
	return 0;
}

static int drop_read(struct uv_call *call, const uint8_t *bytes, unsigned size,
		     struct flow_spec *out)
{
	(void)bytes;
	(void)out;
	return size ? refuse(call) : 0;
}

static int object_read(struct uv_call *call, const uint8_t *bytes, enum obj_type type,
		       struct emu_obj **out)
{
	int ret = file_handle_find(call->file, action_number(bytes), type, out);

	return ret ? uv_refuse(call, WHY_CMD_HANDLE, ret) : 0;
}

/* Actions of the other sort are objects, and there are none. */
static int handle_read(struct uv_call *call, const uint8_t *bytes, unsigned size,
		       struct flow_spec *out)
{
	struct emu_obj *obj;

	(void)out;
	if (size != ACTION_BYTES)
		return uv_refuse(call, WHY_FLOW_SPEC, -EOPNOTSUPP);
	return object_read(call, bytes, OBJ_NONE, &obj);
}

static int count_read(struct uv_call *call, const uint8_t *bytes, unsigned size,
		      struct flow_spec *out)
{
	struct emu_obj *obj;
	int ret = size == ACTION_BYTES ? object_read(call, bytes, OBJ_COUNTERS, &obj) :
					 refuse(call);

	if (!ret)
		out->counters = (struct emu_counters *)obj;
	return ret;
}

static int (*const action_reads[])(struct uv_call *, const uint8_t *, unsigned,
				   struct flow_spec *) = {
	tag_read, drop_read, handle_read, count_read,	/* from FLOW_TAG on */
};

static int spec_read(struct uv_call *call, const struct ib_uverbs_flow_spec_hdr *header,
		     const uint8_t *bytes, struct flow_spec *out)
{
	unsigned size = header->size - (unsigned)sizeof *header;

	*out = (struct flow_spec){ .type = header->type };
	if (header->size < sizeof *header || header->reserved)
		return refuse(call);
	if (header->type < FLOW_TAG)
		return filter_read(call, bytes, size, out);
	if (header->type - FLOW_TAG >= COUNT(action_reads))
		return refuse(call);
	return action_reads[header->type - FLOW_TAG](call, bytes, size, out);
}

int flow_specs_read(struct uv_call *call, const uint8_t *bytes, unsigned size, unsigned count,
		    struct flow_spec *out)
{
	struct ib_uverbs_flow_spec_hdr header;

	for (unsigned i = 0; i < count; i++) {
		int ret = size < sizeof header ? refuse(call) : 0;

		if (ret)
			return ret;
		memcpy(&header, bytes, sizeof header);
		ret = header.size > size ? refuse(call) :
		      spec_read(call, &header, bytes + sizeof header, &out[i]);
		if (ret)
			return ret;
		bytes += header.size;
		size -= header.size;
	}
	return size ? refuse(call) : 0;
}

/* --- what it asks for --- */

static unsigned layer_of(const struct flow_spec *spec)
{
	return spec->type & FLOW_INNER ? STEER_INNER : STEER_OUTER;
}

static void bytes_set(struct flow_match *out, unsigned block, unsigned at,
		      const struct flow_spec *spec, const struct field *f)
{
	memcpy(out->mask.block[block] + at, spec->mask + f->from, f->bytes);
	memcpy(out->value.block[block] + at, spec->value + f->from, f->bytes);
}

/* False: another one was asked for. */
static bool protocol_set(struct flow_match *out, unsigned layer, uint8_t mask, uint8_t value)
{
	uint8_t *old_mask = &out->mask.block[layer][STEER_IP_PROTOCOL];
	uint8_t *old_value = &out->value.block[layer][STEER_IP_PROTOCOL];

	if (mask && *old_mask)
		return mask == *old_mask && value == *old_value;
	if (mask) {
		*old_mask = mask;
		*old_value = value;
	}
	return true;
}

static void version_set(struct flow_match *out, unsigned layer, uint8_t version)
{
	uint8_t *value = &out->value.block[layer][STEER_FLAGS];

	out->mask.block[layer][STEER_FLAGS] |= STEER_IP_VERSION_MASK;
	*value = (uint8_t)((*value & ~STEER_IP_VERSION_MASK) |
			   (unsigned)version << STEER_IP_VERSION_SHIFT);
}

static void vlan_set(struct flow_match *out, unsigned layer, const struct flow_spec *spec,
		     const struct field *f)
{
	if (is_zero(spec->mask + f->from, f->bytes))
		return;
	bytes_set(out, layer, f->to, spec, f);
	out->mask.block[layer][STEER_FLAGS] |= STEER_FLAG_CVLAN;
	out->value.block[layer][STEER_FLAGS] |= STEER_FLAG_CVLAN;
}

/* Where the label stands depends on what is in front of it. */
static unsigned mpls_place(const struct flow_spec *spec, uint32_t type_before)
{
	if (type_before == FLOW_UDP)
		return STEER_MPLS_OVER_UDP;
	if (type_before == FLOW_GRE)
		return STEER_MPLS_OVER_GRE;
	return spec->type & FLOW_INNER ? STEER_INNER_MPLS : STEER_OUTER_MPLS;
}

static bool field_set(struct flow_match *out, const struct flow_spec *spec, const struct field *f,
		      uint32_t type_before)
{
	unsigned layer = layer_of(spec);
	unsigned label = layer == STEER_INNER ? STEER_INNER_FLOW_LABEL : STEER_OUTER_FLOW_LABEL;

	switch ((enum field_sort)f->sort) {
	case FIELD_PLAIN:
		bytes_set(out, f->block == LAYER ? layer : f->block, f->to, spec, f);
		break;
	case FIELD_PROTOCOL:
		return protocol_set(out, layer, spec->mask[f->from], spec->value[f->from]);
	case FIELD_VLAN:
		vlan_set(out, layer, spec, f);
		break;
	case FIELD_LABEL:
		bytes_set(out, STEER_MISC, label, spec, f);
		break;
	case FIELD_MPLS:
		bytes_set(out, STEER_MISC2, mpls_place(spec, type_before), spec, f);
		break;
	case FIELD_ABSENT:
		break;
	}
	return true;
}

/* VERBENA_FLOW_MASKS=full: all of a number, or nothing; a VLAN tag is three numbers. */
static bool is_full(const struct field *f, const uint8_t *mask)
{
	static const uint8_t label[4] = { 0, 0x0f, 0xff, 0xff };
	uint16_t tag;

	if (is_zero(mask, f->bytes))
		return true;
	if (f->sort == FIELD_LABEL)
		return !memcmp(mask, label, sizeof label);
	if (f->sort == FIELD_VLAN) {
		tag = (uint16_t)(mask[0] << 8 | mask[1]);
		return (tag >> 13 == 0 || tag >> 13 == 7) &&
		       ((tag & 0xfff) == 0 || (tag & 0xfff) == 0xfff);
	}
	for (unsigned i = 0; i < f->bytes; i++)
		if (mask[i] != 0xff)
			return false;
	return true;
}

static int fields_check(struct uv_call *call, const struct flow_spec *spec,
			const struct spec_row *row)
{
	for (unsigned i = 0; i < row->count; i++) {
		const struct field *f = &row->field[i];

		if (f->sort == FIELD_ABSENT &&
		    (row->is_absent || !is_zero(spec->mask + f->from, f->bytes)))
			return uv_refuse(call, WHY_FLOW_SPEC, -EOPNOTSUPP);
		if (call->dev->options.wants_full_masks && !is_full(f, spec->mask + f->from))
			return refuse(call);
	}
	return 0;
}

static int filter_match(struct uv_call *call, const struct flow_spec *spec, uint32_t type_before,
			struct flow_match *out)
{
	const struct spec_row *row = row_find(spec->type);
	int ret = fields_check(call, spec, row);

	if (ret)
		return ret;
	if (row->ip_version)
		version_set(out, layer_of(spec), row->ip_version);
	if (row->protocol && !protocol_set(out, layer_of(spec), 0xff, row->protocol))
		return refuse(call);
	for (unsigned i = 0; i < row->count; i++)
		if (!field_set(out, spec, &row->field[i], type_before))
			return refuse(call);
	return 0;
}

static int action_match(struct uv_call *call, const struct flow_spec *spec,
			struct flow_match *out)
{
	if (spec->type == FLOW_DROP)
		out->drops = true;
	if (spec->type == FLOW_COUNT) {
		if (out->counters)
			return refuse(call);
		out->counters = spec->counters;
	}
	if (spec->type == FLOW_TAG) {
		if (spec->tag >= FLOW_TAG_END)
			return refuse(call);
		out->has_tag = true;
		out->tag = spec->tag;
	}
	return 0;
}

/* The last Ethertype of the list that is looked at, with its mask; and the last spec of IP. */
struct network {
	uint16_t mask, ethertype;
	uint8_t ip_version;
};

static struct network network_of(const struct flow_spec *spec, unsigned count, uint32_t inner)
{
	struct network n = { 0 };
	uint16_t mask, ethertype;

	for (; count--; spec++) {
		memcpy(&mask, spec->mask + 12, sizeof mask);
		memcpy(&ethertype, spec->value + 12, sizeof ethertype);
		if (spec->type == (FLOW_ETH | inner) && mask)
			n = (struct network){ be16toh(mask), be16toh(ethertype), n.ip_version };
		if (spec->type == (FLOW_IPV4 | inner) || spec->type == (FLOW_IPV6 | inner))
			n.ip_version = row_find(spec->type)->ip_version;
	}
	return n;
}

/* An Ethertype beside a spec of IP must be its own, or MPLS, which IP may be behind. */
static bool network_fits(struct network n)
{
	if (!n.mask || !n.ip_version)
		return true;
	if (n.mask != 0xffff)
		return false;
	return n.ethertype == ETHERTYPE_MPLS || n.ethertype == ETHERTYPE_MPLS_MULTICAST ||
	       n.ethertype == (n.ip_version == 4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6);
}

/* By the first spec alone. */
static bool is_multicast(const struct flow_spec *spec, unsigned count)
{
	if (count && spec->type == FLOW_ETH)
		return spec->mask[0] & spec->value[0] & GROUP_BIT;
	return count && spec->type == FLOW_IPV4 && spec->value[4] >> 4 == 0xe;
}

int flow_specs_match(struct uv_call *call, const struct flow_spec *spec, unsigned count,
		     struct flow_match *out)
{
	uint32_t type_before = 0;
	int ret = 0;

	*out = (struct flow_match){ .is_multicast = is_multicast(spec, count) };
	if (!network_fits(network_of(spec, count, 0)) ||
	    !network_fits(network_of(spec, count, FLOW_INNER)))
		return refuse(call);
	for (unsigned i = 0; !ret && i < count; i++) {
		ret = spec[i].type < FLOW_TAG ? filter_match(call, &spec[i], type_before, out) :
						action_match(call, &spec[i], out);
		type_before = spec[i].type;
	}
	return ret;
}

bool flow_key_fits(const union steer_key *mask, const union steer_key *value)
{
	for (size_t i = 0; i < COUNT(mask->word); i++)
		if (value->word[i] & ~mask->word[i])
			return false;
	return true;
}
