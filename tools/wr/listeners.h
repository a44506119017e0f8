/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the listening sockets of a port, the processes that hold them, and which of these processes form one
 * server. */
#ifndef WR_LISTENERS_H
#define WR_LISTENERS_H

#include "base/err.h"
#include "wr/proc_parse.h"

struct wr_holder {
    pid_t pid;
    char name[64];
    size_t socket; /* index of its first listening socket */
};

struct wr_listeners {
    struct wr_listener *sockets;
    size_t n, cap;
    struct wr_holder *holders; /* sorted by pid; wr and process 1 are left out */
    size_t n_holders, cap_holders;
    bool init_holds;
};

/* Returns false with errno if out of memory or /proc is unreadable. */
bool wr_listeners_read(struct wr_listeners *l, unsigned port) MK_MUST_USE;
void wr_listeners_fini(struct wr_listeners *l);
/* Keeps the sockets that accept connections to the first reachable address: sockets bound to that address,
 * else wildcard sockets. Returns false and keeps all if no address is reachable. */
bool wr_listeners_filter(struct wr_listeners *l, const struct mk_sockaddr *to, size_t n) MK_MUST_USE;
/* Finds the holders. Two holders belong to the same server if they share a socket, if one is an ancestor of
 * the other, or if they have the same name and listen on the same address. Returns false
 * with errno if out of memory or /proc is unreadable. */
bool wr_listeners_find_holders(struct wr_listeners *l) MK_MUST_USE;
/* Returns the index of a holder's server, which all holders of that server share. */
size_t wr_listeners_server_of(const struct wr_listeners *l, const struct wr_holder *h);

#endif
