/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to PostgreSQL from inside, and the statements that it has under way. */
#ifndef DUDA_POSTGRES_CONN_TYPE_H
#define DUDA_POSTGRES_CONN_TYPE_H

#include <duda/sql_backend.h>
#include <libpq-fe.h>

#include "cancel.h"
#include "conn/package_conn.h"
#include "migrate.h"
#include "prepared.h"
#include "resolver.h"
#include "statement.h"

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
    struct postgres_host_list places;
};

/* A statement of a handler, copied. Freed by the connection after on_over. */
struct postgres_query {
    struct package_request request;                                 /* the first: a request is its job */
    void (*on_done)(void *ctx, const struct postgres_query *query); /* NULL: nobody waits for it */
    void *ctx;
    bool is_query;     /* it may be prepared, and repeated: see statement.h */
    bool is_abandoned; /* its handler does not wait any more: it need not be done */
    bool is_cancelled; /* the server was told to stop it */
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

struct postgres_conn {
    struct package_conn
        link; /* the first: a link is its connection. It runs migrations while GREETING, a COPY while EXCLUSIVE */
    const struct postgres_settings *settings;
    struct postgres_resolver *hosts; /* of the database */
    PGconn *pg;
    struct mk_watcher *watcher;
    int fd;        /* a duplicate of libpq's socket, while it is watched; -1: it is not */
    bool has_more; /* when it is up: to send, so that it waits for room */
    bool is_held, cannot_hold;
    bool prepared_now; /* the first of sent has its first result behind it */
    struct postgres_migration migrate;
    unsigned first_host; /* of the attempt */
    struct postgres_prepared_list prepared;
    struct postgres_cancel *cancel; /* under way */
    bool retires;                   /* gets no more statements, and is closed after the last one */
    uint64_t retired_ms;            /* when it last was, since its server takes no writes; 0: never */

    /* The owner's, beside its struct package_conn_ops. */
    bool is_reserved; /* by a transaction, or a COPY */
    bool is_changed;  /* what reserves it has changed its session: nobody else is to inherit it */
    void *copying;    /* whose COPY it is; NULL: none, or not any more */
    void (*on_statement_done)(struct postgres_conn *c);                           /* a statement is over */
    void (*on_notify)(struct postgres_conn *c, const char *channel, mk_str text); /* NULL: of no interest */
    void *owner;
};

#endif
