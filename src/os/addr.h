/* SPDX-License-Identifier: Apache-2.0 */
/* Socket addresses: parsed from text, printed as text, and stored compactly per connection. */
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
 * port, as in "127.0.0.1" or "0.0.0.0"). Names are not resolved. -EINVAL for anything else. */
mk_err mk_addr_parse(mk_str text, mk_str host, struct mk_addr *out) MK_MUST_USE;
/* In the syntax of the configuration. */
void mk_addr_print(const struct mk_addr *a, struct mk_buf *out);
bool mk_addr_eq(const struct mk_addr *a, const struct mk_addr *b);
uint16_t mk_addr_port(const struct mk_addr *a);
void mk_addr_set_port(struct mk_addr *a, uint16_t port);
/* True for 0.0.0.0 and ::. */
bool mk_addr_is_any(const struct mk_addr *a);
/* The local address of a socket. */
mk_err mk_addr_of_socket(int fd, struct mk_addr *out) MK_MUST_USE;

/* Stores the peer's address in a struct mk_peer, 20 bytes. */
void mk_addr_to_peer(const struct mk_addr *a, struct mk_peer *p);

#endif
