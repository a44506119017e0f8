/* SPDX-License-Identifier: Apache-2.0 */
/* Socket addresses: parsed from text, printed as text, and stored compactly per connection. */
#ifndef MK_OS_SOCKADDR_H
#define MK_OS_SOCKADDR_H

#include <monkey/addr.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/buf.h"
#include "base/err.h"

struct mk_sockaddr {
    socklen_t len;
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un un;
    };
};

enum { MK_SOCKADDR_TEXT_MAX = 128 }; /* space for the longest printed address and its NUL */

/* Parses PORT, ADDRESS:PORT, [ADDRESS6]:PORT, *:PORT or unix:/path. A bare PORT means that port of `host` (an
 * address without port, as in "127.0.0.1" or "0.0.0.0"). Names are not resolved. -EINVAL for anything
 * else. */
mk_err mk_sockaddr_parse(mk_str text, mk_str host, struct mk_sockaddr *out) MK_MUST_USE;
/* Writes the address in the syntax of the configuration. */
void mk_sockaddr_format(const struct mk_sockaddr *a, struct mk_buf *out);
bool mk_sockaddr_eq(const struct mk_sockaddr *a, const struct mk_sockaddr *b);
uint16_t mk_sockaddr_port(const struct mk_sockaddr *a);
void mk_sockaddr_set_port(struct mk_sockaddr *a, uint16_t port);
/* Is the address 0.0.0.0 or ::? */
bool mk_sockaddr_is_any(const struct mk_sockaddr *a);
/* Returns the local address of a socket. */
mk_err mk_sockaddr_getsockname(int fd, struct mk_sockaddr *out) MK_MUST_USE;

/* Converts the address to the compact struct mk_addr. */
void mk_sockaddr_to_addr(const struct mk_sockaddr *a, struct mk_addr *p);

#endif
