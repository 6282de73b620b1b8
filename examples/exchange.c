/* SPDX-License-Identifier: BSD-2-Clause */
/* What the two sides of a pingpong tell each other over TCP; see exchange.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "examples/exchange.h"
#include "examples/fail.h"

#define ENDPOINT_FORMAT "%04x:%06x:%06x:%s"

enum { ENDPOINT_BYTES = 4 + 1 + 6 + 1 + 6 + 1 + GID_DIGITS + 1 };

/* --- connections --------------------------------------------------------- */

static struct addrinfo *look_up(const char *host, int port)
{
	struct addrinfo wanted = {
		.ai_socktype = SOCK_STREAM,
		.ai_flags = host ? 0 : AI_PASSIVE,
	};
	struct addrinfo *found;
	char service[8];
	int error;

	snprintf(service, sizeof service, "%d", port);
	error = getaddrinfo(host, service, &wanted, &found);
	if (error)
		fail("cannot find the host %s: %s", host ? host : "of this program",
		     gai_strerror(error));
	return found;
}

static int try_connect(int fd, const struct addrinfo *address)
{
	return connect(fd, address->ai_addr, address->ai_addrlen);
}

static int try_bind(int fd, const struct addrinfo *address)
{
	int yes = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
	return bind(fd, address->ai_addr, address->ai_addrlen);
}

/* A socket for the first address that @try succeeds with; -1 and errno if there is none. */
static int first_that(int (*try)(int fd, const struct addrinfo *address), const char *host,
		      int port)
{
	struct addrinfo *found = look_up(host, port);
	int fd = -1, error = 0;

	for (const struct addrinfo *a = found; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
		if (fd >= 0 && try(fd, a) == 0)
			break;
		error = errno;
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	freeaddrinfo(found);
	errno = error;
	return fd;
}

int tcp_connect(const char *host, int port)
{
	int fd = first_that(try_connect, host, port);

	if (fd < 0)
		fail_errno(errno, "connect to %s port %d (is the server started?)", host, port);
	return fd;
}

int tcp_listen(int port, int client_count)
{
	int fd = first_that(try_bind, NULL, port);

	if (fd < 0 || listen(fd, client_count))
		fail_errno(errno, "wait for clients at port %d", port);
	return fd;
}

int tcp_accept(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		fail_errno(errno, "accept a client");
	return fd;
}

void tcp_send(int socket, const void *bytes, size_t size, const char *what)
{
	for (size_t sent = 0; sent < size;) {
		ssize_t n = send(socket, (const char *)bytes + sent, size - sent, MSG_NOSIGNAL);

		if (n < 0)
			fail_errno(errno, "send %s to the peer", what);
		sent += (size_t)n;
	}
}

void tcp_receive(int socket, void *bytes, size_t size, const char *what)
{
	for (size_t received = 0; received < size;) {
		ssize_t n = recv(socket, (char *)bytes + received, size - received, 0);

		if (n < 0)
			fail_errno(errno, "receive %s from the peer", what);
		if (n == 0)
			fail("the peer closed the connection before it sent %s", what);
		received += (size_t)n;
	}
}

void tcp_send_word(int socket, const char *word)
{
	tcp_send(socket, word, strlen(word) + 1, "the closing word");
}

void tcp_expect_word(int socket, const char *word)
{
	char got[8] = "";

	tcp_receive(socket, got, strlen(word) + 1, "the closing word");
	if (strcmp(got, word))
		fail("the peer did not say \"%s\", as agreed", word);
}

/* --- endpoints ----------------------------------------------------------- */

void gid_to_digits(const union ibv_gid *gid, char *digits)
{
	for (size_t i = 0; i < sizeof gid->raw; i++)
		sprintf(digits + 2 * i, "%02x", gid->raw[i]);
}

bool gid_from_digits(const char *digits, union ibv_gid *gid_out)
{
	if (strlen(digits) != GID_DIGITS || strspn(digits, "0123456789abcdefABCDEF") != GID_DIGITS)
		return false;
	for (size_t i = 0; i < sizeof gid_out->raw; i++)
		sscanf(digits + 2 * i, "%2hhx", &gid_out->raw[i]);
	return true;
}

const char *gid_text(const union ibv_gid *gid)
{
	static char text[INET6_ADDRSTRLEN];

	return inet_ntop(AF_INET6, gid->raw, text, sizeof text);
}

void endpoints_send(int socket, const struct endpoint *endpoint, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		char text[ENDPOINT_BYTES], digits[GID_DIGITS + 1];

		gid_to_digits(&endpoint[i].gid, digits);
		snprintf(text, sizeof text, ENDPOINT_FORMAT, endpoint[i].lid, endpoint[i].qpn,
			 endpoint[i].psn, digits);
		tcp_send(socket, text, sizeof text, "my address");
	}
}

static bool endpoint_parse(const char *text, struct endpoint *out)
{
	char digits[GID_DIGITS + 1];

	return sscanf(text, "%4x:%6x:%6x:%32s", &out->lid, &out->qpn, &out->psn, digits) == 4 &&
	       gid_from_digits(digits, &out->gid);
}

void endpoints_receive(int socket, struct endpoint *endpoint, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		char text[ENDPOINT_BYTES];

		tcp_receive(socket, text, sizeof text, "its address");
		text[sizeof text - 1] = '\0';
		if (!endpoint_parse(text, &endpoint[i]))
			fail("what the peer sent is no address of the form LID:QPN:PSN:GID");
	}
}

void endpoint_print(const char *whose, const struct endpoint *endpoint)
{
	printf("  %-15s LID 0x%04x, QPN 0x%06x, PSN 0x%06x, GID %s\n", whose, endpoint->lid,
	       endpoint->qpn, endpoint->psn, gid_text(&endpoint->gid));
}
