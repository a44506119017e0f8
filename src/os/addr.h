/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of sockets: written by people, printed for people, and kept small for each connection. */
#ifndef MK_OS_ADDR_H
#define MK_OS_ADDR_H

#include <monkey/address.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/buf.h"
#include "base/err.h"

struct mk_addr {
    socklen_t len;
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un un;
    };
};

enum { MK_ADDR_TEXT = 128 }; /* room for the longest printed address and its NUL */

/* PORT, ADDRESS:PORT, [ADDRESS6]:PORT, *:PORT or unix:/path. A bare PORT means `host` (an address without
 * port, as in "127.0.0.1" or "0.0.0.0"). Names are not resolved. -EINVAL when it is none of these. */
mk_err mk_addr_parse(mk_str text, mk_str host, struct mk_addr *out) MK_MUST_USE;
/* As it would be written in a configuration. */
void mk_addr_print(const struct mk_addr *a, struct mk_buf *out);
bool mk_addr_eq(const struct mk_addr *a, const struct mk_addr *b);
uint16_t mk_addr_port(const struct mk_addr *a);
void mk_addr_set_port(struct mk_addr *a, uint16_t port);
/* 0.0.0.0 or ::? */
bool mk_addr_is_any(const struct mk_addr *a);
/* What this socket listens on. */
mk_err mk_addr_of_socket(int fd, struct mk_addr *out) MK_MUST_USE;

/* Who is at the other end: struct mk_peer, 20 bytes. */
void mk_peer_set(struct mk_peer *p, const struct mk_addr *a);

#endif
