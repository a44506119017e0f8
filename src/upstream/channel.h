/* SPDX-License-Identifier: Apache-2.0 */
/* A connection of one worker to one server: dialled, used by one exchange at a time, kept while it is idle.
 */
#ifndef MK_UPSTREAM_CHANNEL_H
#define MK_UPSTREAM_CHANNEL_H

#include "base/list.h"
#include "net/stream.h"
#include "upstream/resolver.h"

struct mk_health_check;
struct mk_upstream_conn;
struct mk_backend;
struct mk_tls_session;

enum mk_channel_state {
    MK_CHANNEL_CONNECTING,
    MK_CHANNEL_HANDSHAKE, /* of TLS */
    MK_CHANNEL_OPEN,
    MK_CHANNEL_IDLE, /* open, and in the pool */
    MK_CHANNEL_FAILED,
};

struct mk_channel {
    struct mk_list link; /* in a list of its backend */
    const struct mk_upstream_server *server;
    struct mk_worker *worker;
    struct mk_tls_session **session; /* the last one with this server, to be resumed */
    struct mk_backend *backend;      /* in the pool */
    struct mk_stream stream;
    struct mk_watcher *watcher;
    struct mk_alarm *alarm;                                 /* for connecting; NULL until it is needed */
    struct mk_turn_end *later;                              /* the same for what TLS holds */
    void (*on_ready)(struct mk_channel *c, unsigned which); /* of its user, or of the pool */
    struct mk_health_check *check;                          /* that it serves, in place of a user */
    struct mk_upstream_conn *user;                          /* NULL: idle */
    uint64_t idle_since_ms;
    uint64_t until_ms;      /* of one whose request was cancelled: when it is closed */
    size_t discards;        /* of the same: so many more bytes of the response */
    struct mk_addr to;      /* where it leads */
    unsigned names_version; /* of the addresses that this was one of */
    unsigned slot;          /* within the budget */
    bool has_slot;
    bool was_used;
    bool is_unix;
    bool has_written;
    bool is_prompt; /* TCP_NODELAY is set */
    uint8_t state;  /* enum mk_channel_state */
    int error;      /* why it failed */
};

/* Begins to connect to the address. NULL: no memory or descriptor, or refused at once, with *error. The
 * caller sets backend and on_ready. */
struct mk_channel *mk_channel_dial(const struct mk_upstream_server *server, const struct mk_addr *to,
                                   struct mk_worker *w, struct mk_tls_session **session, int *error);
/* Ends it in any state. */
void mk_channel_close(struct mk_channel *c);

/* Is this event of an idle one nothing but room to write, bytes that were read before it came, or what TLS
 * says besides: a ticket, new keys? */
bool mk_channel_is_quiet(struct mk_channel *c, unsigned which);

ssize_t mk_channel_read(struct mk_channel *c, char *room, size_t cap);
ssize_t mk_channel_write(struct mk_channel *c, mk_str bytes, bool more);

#endif
