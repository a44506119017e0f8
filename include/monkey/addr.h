/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of clients, and networks of them. */
#ifndef MONKEY_ADDR_H
#define MONKEY_ADDR_H

#include <monkey/buf.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The peer of a connection. An IPv4 address is stored as ::ffff:a.b.c.d. */
struct mk_addr {
    uint8_t ip[16];  /**< network byte order */
    uint16_t port;   /**< host byte order; 0 when it is not known */
    uint8_t is_unix; /**< 1: a unix socket, without an address */
};

/** "192.0.2.7", "192.0.2.7:80", "2001:db8::1", "[2001:db8::1]" or "[2001:db8::1]:80"; without a port it is 0.
 * False when it is none of these. Any thread. */
MK_API bool mk_addr_parse(mk_str text, struct mk_addr *out);
/** The address alone: IPv4 dotted, IPv6 bare, "unix:" for a unix socket. */
MK_API void mk_addr_format(const struct mk_addr *p, struct mk_buf *out);
/** What counts as one client where each gets a share: an IPv4 address, an IPv6 network of 64 bits (one client
 * owns all of it), or all unix sockets. `out->ip` is the same for the same client; its port is 0. */
MK_API void mk_addr_client(const struct mk_addr *p, struct mk_addr *out);

/** A network: all addresses that share the first `bits` bits. */
struct mk_network {
    uint8_t ip[16];
    uint8_t bits;    /**< of 128; an IPv4 network has 96 more than its written length */
    uint8_t is_unix; /**< 1: peers of unix sockets */
    uint8_t is_all;  /**< 1: every peer; the rest does not matter */
};

/**
 * Reads "192.0.2.7", "192.0.2.0/24", "192.0.2.0/255.255.255.0", "2001:db8::/32", "unix:" or "all". False when
 * it is none of these, or has bits set behind its length.
 *
 * Each family is its own: "0.0.0.0/0" has all IPv4 clients and no other, "::/0" all IPv6 clients, "unix:"
 * those of unix sockets, and "all" has every client.
 */
MK_API bool mk_network_parse(mk_str text, struct mk_network *out);
/** Is the client in that network? An IPv4 client of a socket for both families (::ffff:a.b.c.d) is IPv4. */
MK_API bool mk_network_contains(const struct mk_network *n, const struct mk_addr *p);

/** Networks with numbers, made by mk_config_network_set(). A look-up takes about as long in 10,000 networks as in ten. */
struct mk_network_set;
/** No number. */
#define MK_NETWORK_NONE UINT32_MAX
/** The lowest number, not below `from`, of the networks that have the client; MK_NETWORK_NONE if there is none, or no
 * set (NULL). So rules in an order ask for the first one that is about a client, and then for the one after it. */
MK_API uint32_t mk_network_set_next(const struct mk_network_set *s, const struct mk_addr *p, uint32_t from);

/** Is the client in one of the networks? */
static inline bool mk_network_set_contains(const struct mk_network_set *s, const struct mk_addr *p)
{
    return mk_network_set_next(s, p, 0) != MK_NETWORK_NONE;
}

#ifdef __cplusplus
}
#endif

#endif
