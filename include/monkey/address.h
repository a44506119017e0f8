/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of clients, and networks of them. */
#ifndef MONKEY_ADDRESS_H
#define MONKEY_ADDRESS_H

#include <monkey/buf.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Who is at the other end of a connection. An IPv4 address is stored as ::ffff:a.b.c.d. */
struct mk_peer {
    uint8_t ip[16];  /**< network byte order */
    uint16_t port;   /**< host byte order; 0 when it is not known */
    uint8_t is_unix; /**< 1: a unix socket, without an address */
};

/** "192.0.2.7", "192.0.2.7:80", "2001:db8::1", "[2001:db8::1]" or "[2001:db8::1]:80"; without a port it is 0.
 * False when it is none of these. Any thread. */
MK_API bool mk_peer_parse(mk_str text, struct mk_peer *out);
/** The address alone: IPv4 dotted, IPv6 bare, "unix:" for a unix socket. */
MK_API void mk_peer_print(const struct mk_peer *p, struct mk_buf *out);

/** A network: all addresses that share the first `bits` bits. */
struct mk_network {
    uint8_t ip[16];
    uint8_t bits;    /**< of 128; an IPv4 network has 96 more than its written length */
    uint8_t is_unix; /**< 1: peers of unix sockets */
};

/**
 * "192.0.2.7", "192.0.2.0/24", "192.0.2.0/255.255.255.0", "2001:db8::/32", "unix:", "all" (everybody,
 * those of unix sockets too; the same as "::/0"). False when it is none of these, or has bits set behind its
 * length.
 */
MK_API bool mk_network_parse(mk_str text, struct mk_network *out);
/** Is the client in that network? */
MK_API bool mk_network_has(const struct mk_network *n, const struct mk_peer *p);

#ifdef __cplusplus
}
#endif

#endif
