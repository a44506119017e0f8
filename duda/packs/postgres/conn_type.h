/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to PostgreSQL from inside, and the statements that it has under way. */
#ifndef DUDA_POSTGRES_CONN_TYPE_H
#define DUDA_POSTGRES_CONN_TYPE_H

#include <duda/sql_backend.h>
#include <libpq-fe.h>
#include <monkey/worker.h>

#include "cancel.h"
#include "hosts.h"
#include "prepared.h"
#include "statement.h"
#include "upgrade.h"

struct postgres_settings {
    mk_str name, server;
    uint32_t meter;
    mk_str password; /* a NUL follows; absent: what `server` says */
    mk_str migrations_folder, migrations_of;
    const struct duda_sql_migration *migrations;
    unsigned connections, waiting_max;
    uint32_t timeout_ms;
    uint64_t result_max;
    bool prepares;
    struct postgres_places places;
};

/* A statement of a handler, copied. Freed by the connection after on_over. */
struct postgres_job {
    struct postgres_job *next;
    void (*on_over)(void *ctx, const struct postgres_job *job); /* NULL: nobody waits for it */
    void *ctx;
    uint64_t due_ms;
    bool is_query;     /* it may be prepared, and repeated: see statement.h */
    bool is_abandoned; /* its handler does not wait any more: it need not be done */
    bool is_suspect;   /* a request to cancel another one may have come when this was at work */
    bool prepares;
    bool repeats; /* it has failed, and shall be sent again */
    unsigned n_repeats;
    struct postgres_prepared *prepared; /* NULL: it is not; of the connection it was sent to */
    struct postgres_prepared *doubted;  /* with which it has failed before */
    mk_str text;                        /* a NUL follows */
    size_t n;
    const char **values;
    int *lengths, *formats;
    PGresult *result; /* unless there is an error */
    int error;        /* the first of what went wrong */
    char problem[300];
};

enum postgres_state {
    POSTGRES_DOWN,
    POSTGRES_RESOLVING,
    POSTGRES_CONNECTING,
    POSTGRES_UPGRADING,
    POSTGRES_UP,
    POSTGRES_COPYING
};

struct postgres_conn {
    const struct postgres_settings *settings;
    struct mk_worker *worker;
    struct postgres_hosts *hosts; /* of the database */
    PGconn *pg;
    struct mk_watcher *watcher;
    int fd;        /* a duplicate of libpq's socket, while it is watched; -1: it is not */
    bool has_more; /* when it is up: to send, so that it waits for room */
    bool is_held, cannot_hold;
    enum postgres_state state;
    struct postgres_job *sent, **sent_end; /* in the order of their replies */
    unsigned n_sent;
    bool prepared_now; /* the first of sent has its first result behind it */
    struct postgres_upgrade upgrade;
    uint64_t since_ms, retry_ms;
    unsigned first_host; /* of the attempt */
    bool is_reported;
    struct postgres_prepared_list prepared;
    struct postgres_cancel *cancel; /* under way */
    bool retires;                   /* gets no more statements, and is closed after the last one */
    uint64_t retired_ms;            /* when it last was, since its server takes no writes; 0: never */
    char why[300];

    /* The owner's. */
    bool is_reserved; /* by a transaction, or a COPY */
    bool is_changed;  /* what reserves it has changed its session: nobody else is to inherit it */
    void *copying;    /* whose COPY it is; NULL: none, or not any more */
    void (*on_up)(struct postgres_conn *c);
    void (*on_down)(struct postgres_conn *c, int error);
    void (*on_free)(struct postgres_conn *c);                                     /* a statement is over */
    void (*on_notify)(struct postgres_conn *c, const char *channel, mk_str text); /* NULL: of no interest */
    void *owner;
};

#endif
