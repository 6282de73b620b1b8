/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The frames of rows 13 to 13e: TCP over IPv4, of as many connections as there are rules.
 */
#ifndef BENCH_CONNECTIONS_H
#define BENCH_CONNECTIONS_H
#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

enum {
	CONNECTIONS_FEW = 100, CONNECTIONS_MANY = 100000,
	CONNECTION_DPORT = 443, CONNECTION_DST_IP = 0xc0a80001,
	CONNECTION_IP_AT = 14, CONNECTION_TCP_AT = 34,
	CONNECTION_FRAME_BYTES = 14 + 20 + 20 + 10,
};

/* What differs between connections, host order; each has its own address. */
static inline uint32_t connection_ip(uint32_t i)
{
	return 0x0a000000 + i;
}

static inline uint16_t connection_port(uint32_t i)
{
	return (uint16_t)(1024 + i * 7919);
}

/* Any of @count, each time another. */
static inline uint32_t connection_next(uint32_t *random, uint32_t count)
{
	*random = *random * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)*random * count >> 32);
}

/* All that frames have in common. */
static inline void connection_frame(uint8_t frame[CONNECTION_FRAME_BYTES])
{
	static const uint8_t start[] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 50 };
	const uint32_t ip = htonl(CONNECTION_DST_IP);
	const uint16_t port = htons(CONNECTION_DPORT);

	memset(frame, 0, CONNECTION_FRAME_BYTES);
	memcpy(frame, start, sizeof start);
	frame[CONNECTION_IP_AT + 8] = 64;
	frame[CONNECTION_IP_AT + 9] = 6;
	memcpy(frame + CONNECTION_IP_AT + 16, &ip, sizeof ip);
	memcpy(frame + CONNECTION_TCP_AT + 2, &port, sizeof port);
	frame[CONNECTION_TCP_AT + 12] = 0x50;
}

/* And what is this one's. */
static inline void connection_set(uint8_t frame[CONNECTION_FRAME_BYTES], uint32_t i)
{
	const uint32_t ip = htonl(connection_ip(i));
	const uint16_t port = htons(connection_port(i));

	memcpy(frame + CONNECTION_IP_AT + 12, &ip, sizeof ip);
	memcpy(frame + CONNECTION_TCP_AT, &port, sizeof port);
}
#endif
