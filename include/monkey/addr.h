/* SPDX-License-Identifier: Apache-2.0 */
/* Client addresses and networks. */
#ifndef MONKEY_ADDR_H
#define MONKEY_ADDR_H

#include <monkey/buf.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The address of a peer. IPv4 addresses are stored as ::ffff:a.b.c.d. */
struct mk_addr {
    uint8_t ip[16];  /**< network byte order */
    uint16_t port;   /**< host byte order; 0 if unknown */
    uint8_t is_unix; /**< 1: a Unix socket, which has no address */
};

/**
 * Parses "192.0.2.7", "192.0.2.7:80", "2001:db8::1", "[2001:db8::1]" or "[2001:db8::1]:80"; the port
 * is 0 if omitted. Returns false for any other form. Thread-safe.
 *
 *     struct mk_addr addr;
 *     if (!mk_addr_parse(MK_STR("192.0.2.1"), &addr))
 *         return -EINVAL;
 *     mk_addr_format(&addr, &out);
 */
MK_API bool mk_addr_parse(mk_str text, struct mk_addr *out);
/** Appends the address without its port: dotted IPv4, IPv6 without brackets, or "unix:" for a Unix socket. */
MK_API void mk_addr_format(const struct mk_addr *addr, struct mk_buf *out);
/** Maps an address to the client that per-client limits apply to: a single IPv4 address, an IPv6 /64 network
 * (one client owns the whole network), or all Unix sockets together. Equal clients yield equal `out->ip`; the
 * port is 0. */
MK_API void mk_addr_client_prefix(const struct mk_addr *addr, struct mk_addr *out);

/** A network: all addresses that share the first `bits` bits. */
struct mk_network {
    uint8_t ip[16];
    uint8_t bits;    /**< prefix length, 0 to 128; for IPv4, the prefix length as written plus 96 */
    uint8_t is_unix; /**< 1: the network consists of all Unix socket peers */
    uint8_t is_all;  /**< 1: the network contains every peer; the other members are ignored */
};

/**
 * Parses "192.0.2.7", "192.0.2.0/24", "192.0.2.0/255.255.255.0", "2001:db8::/32", "unix:" or "all". Returns
 * false for any other form, and for a network with host bits set.
 *
 * Address families are separate: "0.0.0.0/0" contains all IPv4 clients, "::/0" all IPv6 clients, and "unix:"
 * all Unix socket clients. Only "all" contains every client.
 *
 *     struct mk_network office;
 *     bool is_colleague = mk_network_parse(MK_STR("192.0.2.0/24"), &office) &&
 *                         mk_network_contains(&office, mk_request_client_addr(request));
 */
MK_API bool mk_network_parse(mk_str text, struct mk_network *out);
/** Does the network contain this client? An IPv4 client of a dual-stack socket (::ffff:a.b.c.d) counts
 * as IPv4. */
MK_API bool mk_network_contains(const struct mk_network *network, const struct mk_addr *addr);

/** A set of numbered networks, created by mk_config_network_set(). A lookup in 10,000 networks takes
 * about as long as in ten. */
struct mk_network_set;
/** No network of the set matches. */
#define MK_NETWORK_NONE UINT32_MAX
/** Returns the lowest number, at or above `from`, of the networks that contain the client; MK_NETWORK_NONE if
 * no such network exists or `set` is NULL. Ordered rules use this function to find the first rule for a
 * client, and then the next one. */
MK_API uint32_t mk_network_set_next(const struct mk_network_set *set, const struct mk_addr *addr,
                                    uint32_t from);

/** Does any network of the set contain this client? */
static inline bool mk_network_set_contains(const struct mk_network_set *set, const struct mk_addr *addr)
{
    return mk_network_set_next(set, addr, 0) != MK_NETWORK_NONE;
}

#ifdef __cplusplus
}
#endif

#endif
