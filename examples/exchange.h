/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two programs tell each other over TCP what they need to know before RDMA can begin.
 *
 * An endpoint travels as text of fixed length with a NUL behind it, LID:QPN:PSN:GID in lower-case
 * hexadecimal.  rdma-core's programs speak the same, so either side may be one of theirs.
 * The peer may be anybody who found the port: nothing that it sends is trusted.
 */
#ifndef EXAMPLES_EXCHANGE_H
#define EXAMPLES_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <infiniband/verbs.h>

enum { GID_DIGITS = 32 };

struct endpoint {
	unsigned lid, qpn, psn;
	union ibv_gid gid;
};

/* A TCP connection to @host; a listening socket; the next client of one. */
int tcp_connect(const char *host, int port);
int tcp_listen(int port, int client_count);
int tcp_accept(int listener);

/* All of it, or the program fails; @what names it in the message. */
void tcp_send(int socket, const void *bytes, size_t size, const char *what);
void tcp_receive(int socket, void *bytes, size_t size, const char *what);

/* The same for a word, which must come as it was agreed. */
void tcp_send_word(int socket, const char *word);
void tcp_expect_word(int socket, const char *word);

void endpoints_send(int socket, const struct endpoint *endpoint, unsigned count);
void endpoints_receive(int socket, struct endpoint *endpoint, unsigned count);

/* "  local address:  LID ..., QPN ..., PSN ..., GID ..." */
void endpoint_print(const char *whose, const struct endpoint *endpoint);

/* @digits has room for GID_DIGITS + 1. */
void gid_to_digits(const union ibv_gid *gid, char *digits);
bool gid_from_digits(const char *digits, union ibv_gid *gid_out);

/* As an IPv6 address, in a buffer that the next call uses again. */
const char *gid_text(const union ibv_gid *gid);

#endif
