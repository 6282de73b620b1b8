/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who this process is on the fabric; see self.h.
 */
#include "emu/self.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "emu/identity.h"
#include "hw-models/profile.h"
#include "include/base/cancel.h"

const char *self_env(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

bool self_env_is_set(const char *name)
{
	const char *value = self_env(name);

	return value && strcmp(value, "0");
}

bool self_env_says(const char *name, const char *word)
{
	const char *value = self_env(name);

	return value && !strcmp(value, word);
}

static uint64_t fnv1a(const char *text, size_t bytes)
{
	uint64_t hash = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ (uint8_t)text[i]) * 0x100000001b3ull;
	return hash;
}

/* The same number for every process of this host. */
static uint64_t host_id(void)
{
	char text[65] = "";
	FILE *file = fopen("/etc/machine-id", "re");
	size_t bytes = file ? fread(text, 1, sizeof text - 1, file) : 0;

	if (file)
		fclose(file);
	if (!bytes && !gethostname(text, sizeof text - 1))
		bytes = strlen(text);
	return fnv1a(text, bytes);
}

static void list_profiles(void)
{
	for (unsigned i = 0; i < hw_profile_count; i++)
		fprintf(stderr, "%s%s", i ? ", " : "", hw_profiles[i].name);
	fprintf(stderr, ", hw\n");
}

static int identity_read(struct emu_identity *out)
{
	struct identity_host host = { .host_id = host_id() };
	struct ifaddrs *addresses = NULL;

	out->profile = hw_profile_find(self_env("VERBENA_NIC"));
	if (!out->profile) {
		fprintf(stderr, "verbena: VERBENA_NIC=%s is no NIC; known are ",
			self_env("VERBENA_NIC"));
		list_profiles();
		return -EINVAL;
	}
	if (identity_node_parse(self_env("VERBENA_NODE"), &host.node)) {
		fprintf(stderr, "verbena: VERBENA_NODE=%s is not a number from 1 to %d\n",
			self_env("VERBENA_NODE"), IDENTITY_NODE_MAX);
		return -EINVAL;
	}
	if (!getifaddrs(&addresses))
		host.addresses = addresses;
	identity_fill(&host, out);
	if (addresses)
		freeifaddrs(addresses);
	return 0;
}

/* Read once, so that sysfs and the device tell the same story, and a complaint is made once. */
int self_identity(struct emu_identity *out)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct emu_identity known;
	static int state = 1;		/* 1: not read yet, else the result */
	int held = cancel_hold();
	int error;

	pthread_mutex_lock(&lock);
	if (state == 1)
		state = identity_read(&known);
	error = state;
	if (!error)
		*out = known;
	pthread_mutex_unlock(&lock);
	cancel_release(held);
	return error;
}

static unsigned node(void)
{
	unsigned number = 0;

	identity_node_parse(self_env("VERBENA_NODE"), &number);
	return number;
}

void self_port(struct fabric_port *out)
{
	int held = cancel_hold();

	if (fabric_port_read(self_env("VERBENA_FABRIC"), node(), out))
		fabric_port_default(out);	/* joining that fabric will fail */
	cancel_release(held);
}

int emu_identity(struct emu_identity *out)
{
	struct fabric_port port;
	int error = self_identity(out);

	if (error)
		return error;
	self_port(&port);
	identity_set_port(out, &port);
	return 0;
}

uint64_t emu_identity_stamp(void)
{
	return fabric_port_stamp(self_env("VERBENA_FABRIC"), node());
}

/* --- saying who we are --- */

/* "connectx-6dx" is sold as "ConnectX-6 Dx". */
static const char *product_name(const char *profile, char out[32])
{
	const char *model = strchr(profile, '-');
	int digits = model ? (int)strspn(model + 1, "0123456789") : 0;

	if (strncmp(profile, "connectx-", 9) || !digits)
		return profile;
	if (model[1 + digits])
		snprintf(out, 32, "ConnectX-%.*s %c%s", digits, model + 1,
			 model[1 + digits] & ~0x20, model + 2 + digits);
	else
		snprintf(out, 32, "ConnectX-%s", model + 1);
	return out;
}

void self_say_emulated(const struct hw_profile *profile)
{
	static bool has_spoken;	/* it would be noise with every open */
	char product[32];

	if (has_spoken || self_env_is_set("VERBENA_QUIET"))
		return;
	has_spoken = true;
	fprintf(stderr, "verbena: emulated %s (%s) " EMU_DEVICE_NAME ", not real hardware\n",
		product_name(profile->name, product), profile->name);
}
