/* SPDX-License-Identifier: Apache-2.0 */
/* The listening sockets. The master opens them and keeps them as long as their address is configured: queued
 * connections survive crashes, reloads and upgrades.
 *
 * An address has one socket for each worker (SO_REUSEPORT), so that the kernel distributes connections; an
 * inherited address or a unix socket has a single one that all workers share. */
#ifndef MK_WORKER_LISTENERS_H
#define MK_WORKER_LISTENERS_H

#include "base/log.h"
#include "settings/settings.h"

enum { MK_LISTENERS_MAX = 64, MK_LISTENER_SOCKETS_MAX = 512, MK_LISTENERS_BACKLOG = 4096 };

struct mk_listener {
    struct mk_sockaddr addr; /* with the port that the system chose if 0 was requested */
    struct mk_sockaddr requested;
    int *fds;
    unsigned n_fds;
    unsigned n_settled; /* how many of them the serving workers use */
    bool shared;        /* a single socket for all workers */
    bool lent;          /* from the predecessor in an upgrade: its socket file is not ours yet */
    bool managed;       /* from a service manager: its socket file is never ours */
    bool wanted;        /* by the configuration being applied */
};

struct mk_listeners {
    struct mk_listener at[MK_LISTENERS_MAX];
    unsigned n;
};

/* Takes over sockets from the environment: from a service manager, or from the predecessor in an upgrade. */
void mk_listeners_inherit(struct mk_listeners *l, struct mk_log *log);

/* The sockets from a service manager, as Listen addresses: returns how many, at most MK_LISTENERS_MAX. */
size_t mk_listeners_list_managed(const struct mk_listeners *l, struct mk_listen *out);

/* Opens the wanted addresses that are not open yet, with sockets for that many workers. On an error it closes
 * everything that it opened, and *failed is the address. */
mk_err mk_listeners_open(struct mk_listeners *l, const struct mk_listens *wanted, unsigned workers,
                         const struct mk_listen **failed) MK_MUST_USE;
/* Closes the sockets that mk_listeners_open() opened since the last mk_listeners_close_unwanted(): their
 * workers failed to start. */
void mk_listeners_close_new(struct mk_listeners *l);
/* Closes the addresses that the last mk_listeners_open() did not want; the rest is settled. */
void mk_listeners_close_unwanted(struct mk_listeners *l, bool remove_files);
void mk_listeners_close_all(struct mk_listeners *l, bool remove_files);

/* We serve, and our predecessor is about to end: its socket files are ours now. */
void mk_listeners_own_socket_files(struct mk_listeners *l);

/* True if worker `index` of `workers` must accept from this socket. Every socket has a worker, even if there
 * are more sockets than workers. */
bool mk_listener_is_for_worker(const struct mk_listener *one, unsigned socket, unsigned index,
                               unsigned workers);

/* The Listen of the configuration for this socket; NULL: none. */
const struct mk_listen *mk_listener_find_listen(const struct mk_listener *one,
                                                const struct mk_listens *wanted);

/* The environment variable that passes the sockets to a successor, as "NAME=value". From now on all sockets
 * survive an exec, or (false) are close-on-exec again. */
void mk_listeners_export(struct mk_listeners *l, struct mk_buf *out, bool on);

#endif
