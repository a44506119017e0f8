/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets that listen on a port here, who holds them, and which of these processes are one server. */
#ifndef WR_LISTENERS_H
#define WR_LISTENERS_H

#include "base/err.h"
#include "wr/proc_parse.h"

struct wr_holder {
    pid_t pid;
    char name[64];
    size_t socket; /* the first of its sockets */
};

struct wr_listeners {
    struct wr_listener *sockets;
    size_t n, cap;
    struct wr_holder *holders; /* by their numbers, without wr and process 1 */
    size_t n_holders, cap_holders;
    bool init_holds;
};

/* False: memory is out, or /proc cannot be read; errno says which. */
bool wr_listeners_read(struct wr_listeners *l, unsigned port) MK_MUST_USE;
void wr_listeners_fini(struct wr_listeners *l);
/* Keeps those that a client reaches at the first of the addresses where it reaches any: those bound to it,
 * else those of all addresses. False, and changes nothing, when there are none. */
bool wr_listeners_filter(struct wr_listeners *l, const struct mk_sockaddr *to, size_t n) MK_MUST_USE;
/* Finds the holders. A holder that shares a socket with another, is its child, or has the same name and
 * listens at the same address, belongs to the same server. False as above. */
bool wr_listeners_find_holders(struct wr_listeners *l) MK_MUST_USE;
/* The server that it belongs to: the same number for all its holders. */
size_t wr_listeners_server_of(const struct wr_listeners *l, const struct wr_holder *h);

#endif
