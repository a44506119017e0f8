/* SPDX-License-Identifier: Apache-2.0 */
/* Listeners of a running server. Any thread may add and close listeners; each worker applies the changes in
 * its own loop. All members are protected by the lock of the server, except the acceptors, which belong to
 * the loop of their worker. */
#ifndef MK_LIB_LIVE_LISTENERS_H
#define MK_LIB_LIVE_LISTENERS_H

#include <monkey/state_machine.h>

#include "lib/server_type.h"

enum mk_live_slot_state {
    MK_LIVE_SLOT_NEW, /* the worker does not accept from the socket yet */
    MK_LIVE_SLOT_ACCEPTING,
    MK_LIVE_SLOT_STOPPING, /* events of the acceptor may still arrive in this loop iteration */
    MK_LIVE_SLOT_DONE,
    MK_LIVE_SLOT_STATES
};

extern const struct mk_state_machine mk_live_slot_machine;

/* One worker that accepts from one socket. */
struct mk_live_slot {
    struct mk_acceptor acceptor;
    struct mk_loop_task end; /* runs at the end of the iteration in which the acceptor was stopped */
    struct mk_live_listener *listener;
    unsigned socket;       /* index in `fds` */
    struct mk_state state; /* enum mk_live_slot_state */
};

struct mk_live_listener {
    struct mk_live_listener *next;
    struct mk_server *server;
    struct mk_sockaddr addr;
    bool tls, http2;
    bool owns_file; /* we created the file of the unix socket, and must remove it */
    bool is_closing;
    const struct mk_vhosts *hosts;
    int *fds; /* one for each worker, or a single one that they share; -1: closed */
    unsigned n_fds;
    struct mk_live_slot *slots;
    unsigned n_slots;
};

/* Moves the sockets that the configuration lists from s->listeners to the list. Call it when the workers
 * exist and before they start. */
mk_err mk_live_listeners_create(struct mk_server *s) MK_MUST_USE;

/* Creates a listener without sockets for `listen`, with room for n_fds sockets. NULL: out of memory. */
struct mk_live_listener *mk_live_listener_new(struct mk_server *s, const struct mk_listen *listen,
                                              unsigned n_fds) MK_MUST_USE;
/* Closes the sockets, and frees the listener. No worker may use it. */
void mk_live_listener_free(struct mk_live_listener *l);
/* Appends the listener to the list: the workers begin to accept. -ESHUTDOWN: the server is stopping. */
mk_err mk_live_listeners_add(struct mk_server *s, struct mk_live_listener *l) MK_MUST_USE;
/* Closes the listener of this address: each worker accepts the connections in its queue first. -ENOENT:
 * there is none. */
mk_err mk_live_listeners_close(struct mk_server *s, const struct mk_sockaddr *addr) MK_MUST_USE;

/* Returns the i-th open listener; NULL: there is none. Call this and the next two functions while holding the
 * lock. */
struct mk_live_listener *mk_live_listeners_at(const struct mk_server *s, size_t i);
struct mk_live_listener *mk_live_listeners_find(const struct mk_server *s, const struct mk_sockaddr *addr);
/* Does some listener have that port, even if it is closing? */
bool mk_live_listeners_has_port(const struct mk_server *s, unsigned port);

/* Call this and the next two functions in the thread of the worker. Starts accepting from new listeners, and
 * stops accepting from closing listeners. Returns an error if a listener could not be started. */
mk_err mk_live_listeners_sync(struct mk_lib_worker *r) MK_MUST_USE;
/* Ends the slots of the worker at the end of the loop iteration. Call it when the worker accepts no more
 * connections. */
void mk_live_listeners_drain(struct mk_lib_worker *r);
/* Releases the slots of the worker. Call it when the worker has ended. */
void mk_live_listeners_leave(struct mk_lib_worker *r);

/* Closes all sockets. Call it while holding the lock, when no worker accepts. */
void mk_live_listeners_close_all(struct mk_server *s);
/* Frees the list, when no worker runs. */
void mk_live_listeners_free(struct mk_server *s);

#endif
