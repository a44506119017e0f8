/* SPDX-License-Identifier: Apache-2.0 */
/* The listening sockets. The master opens them and keeps them as long as their address is configured:
 * connections that wait in their queues outlive crashes, reloads and upgrades.
 *
 * An address has one socket for each worker (SO_REUSEPORT), so that the kernel spreads connections; one that
 * was inherited, or of a unix socket, has a single one that all workers share. */
#ifndef MK_SERVER_LISTENERS_H
#define MK_SERVER_LISTENERS_H

#include "base/log.h"
#include "server/settings.h"

enum { MK_LISTENERS_MAX = 64, MK_LISTENER_SOCKETS_MAX = 512, MK_LISTENERS_BACKLOG = 4096 };

struct mk_listener {
    struct mk_addr addr; /* with the port that the system chose, where 0 was asked for */
    struct mk_addr asked;
    int *fds;
    unsigned n_fds;
    unsigned n_settled; /* of them: those that the workers know who serve */
    bool shared;        /* a single socket for all workers */
    bool lent;          /* by the process that we are to succeed: its file is not ours yet */
    bool managed;       /* by a service manager: its file is never ours */
    bool wanted;        /* by the configuration being applied */
};

struct mk_listeners {
    struct mk_listener at[MK_LISTENERS_MAX];
    unsigned n;
};

/* Takes over sockets from the environment: those of a service manager, or of the process that started us as
 * its successor. */
void mk_listeners_inherit(struct mk_listeners *l, struct mk_log *log);

/* What a service manager handed over, in the form of a configuration: n addresses, at most MK_LISTENERS_MAX.
 */
size_t mk_listeners_managed(const struct mk_listeners *l, struct mk_listen *out);

/* Opens what is wanted and not open yet, with sockets for so many workers. On an error everything that was
 * opened by this call is closed again, and *failed says where it happened. */
mk_err mk_listeners_open(struct mk_listeners *l, const struct mk_listens *wanted, unsigned workers,
                         const struct mk_listen **failed) MK_MUST_USE;
/* Closes the sockets that mk_listeners_open has opened since the last mk_listeners_close_unwanted: those who
 * were to serve them do not. */
void mk_listeners_close_new(struct mk_listeners *l);
/* Closes what the last mk_listeners_open did not want; the rest is settled. */
void mk_listeners_close_unwanted(struct mk_listeners *l, bool remove_files);
void mk_listeners_close_all(struct mk_listeners *l, bool remove_files);

/* We serve, and our predecessor is about to end: what it lent us is ours. */
void mk_listeners_own(struct mk_listeners *l);

/* Is this socket one for worker `index` of `workers`? Every socket is somebody's, whatever the numbers. */
bool mk_listener_serves(const struct mk_listener *one, unsigned socket, unsigned index, unsigned workers);

/* What the configuration that has opened it says of it; NULL: nothing. */
const struct mk_listen *mk_listener_listen(const struct mk_listener *one, const struct mk_listens *wanted);

/* The variable that hands the sockets to a successor, as "NAME=value"; all of them survive an exec from now
 * on, or (false) no longer do. */
void mk_listeners_export(struct mk_listeners *l, struct mk_buf *out, bool on);

#endif
