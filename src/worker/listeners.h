/* SPDX-License-Identifier: Apache-2.0 */
/* The listening sockets. The master opens them and keeps them as long as their address is configured: queued
 * connections survive crashes, reloads and upgrades.
 *
 * An address has one socket per worker (SO_REUSEPORT), so that the kernel distributes connections. A unix
 * socket, or a socket inherited without SO_REUSEPORT, is shared by all workers. */
#ifndef MK_WORKER_LISTENERS_H
#define MK_WORKER_LISTENERS_H

#include "base/log.h"
#include "setup/settings.h"

enum { MK_LISTENERS_MAX = 64, MK_LISTENER_SOCKETS_MAX = 512, MK_LISTENERS_BACKLOG = 4096 };

struct mk_listener {
    struct mk_sockaddr addr; /* with the port that the kernel assigned for port 0 */
    struct mk_sockaddr requested;
    int *fds;
    unsigned n_fds;
    unsigned n_settled; /* number of sockets in use by serving workers */
    bool shared;        /* one socket shared by all workers */
    bool lent;          /* inherited from the predecessor during an upgrade: its socket file is not ours
                         * yet */
    bool managed; /* from a service manager: its socket file is never ours, and the master never closes it */
    unsigned n_managed; /* number of sockets from the service manager: they come first */
    bool wanted;        /* required by the configuration being applied */
};

struct mk_listeners {
    struct mk_listener at[MK_LISTENERS_MAX];
    unsigned n;
};

/* Takes over sockets passed in the environment by a service manager, or by the predecessor during an
 * upgrade. */
void mk_listeners_inherit(struct mk_listeners *l, struct mk_log *log);

/* Stores the service manager's sockets as Listen addresses in `out`. Returns their number, at most
 * MK_LISTENERS_MAX. */
size_t mk_listeners_list_managed(const struct mk_listeners *l, struct mk_listen *out);

/* Opens one socket. Port 0 is replaced with the port that the kernel assigned. With `quiet`, the socket does
 * not listen before mk_sock_start_listening(). */
mk_err mk_listener_open_socket(struct mk_sockaddr *addr, bool reuse_port, bool quiet, int *fd) MK_MUST_USE;

/* Opens the `expected` addresses that are not open yet, with sockets for that many workers. On error, closes
 * what it opened and sets *failed to the address. */
mk_err mk_listeners_open(struct mk_listeners *l, const struct mk_listens *expected, unsigned workers,
                         const struct mk_listen **failed) MK_MUST_USE;
/* Closes the sockets opened since the last mk_listeners_close_unwanted(), because their workers failed to
 * start. Leaves new addresses to the next mk_listeners_close_unwanted(). */
void mk_listeners_close_new(struct mk_listeners *l);
/* Closes the addresses that were not expected in the last mk_listeners_open(), except for the sockets of the service
 * manager: an earlier configuration that returns may need them. From then on, mk_listeners_close_new() does not close
 * the sockets of the other addresses. */
void mk_listeners_close_unwanted(struct mk_listeners *l, bool remove_files);
void mk_listeners_close_all(struct mk_listeners *l, bool remove_files);

/* Call it when we serve and the predecessor is about to exit: takes over the socket files of the
 * predecessor. */
void mk_listeners_own_socket_files(struct mk_listeners *l);

/* Must worker `index` of `workers` accept from this socket? Every socket has a worker, even with more sockets
 * than workers. */
bool mk_listener_is_for_worker(const struct mk_listener *one, unsigned socket, unsigned index,
                               unsigned workers);

/* The configured Listen of this socket; NULL: none. */
const struct mk_listen *mk_listener_find_listen(const struct mk_listener *one,
                                                const struct mk_listens *expected);

/* Writes the environment variable that passes the sockets to a successor, as "NAME=value". With `on`, all
 * sockets survive an exec from now on; without it, they are close-on-exec again. */
void mk_listeners_export(struct mk_listeners *l, struct mk_buf *out, bool on);

#endif
