/* SPDX-License-Identifier: Apache-2.0 */
/* The internals of a PostgreSQL connection, and its statements in flight. */
#ifndef DUDA_POSTGRES_CONN_TYPE_H
#define DUDA_POSTGRES_CONN_TYPE_H

#include <duda/sql_backend.h>
#include <libpq-fe.h>

#include "cancel.h"
#include "common/package_conn.h"
#include "migrate.h"
#include "prepared.h"
#include "resolver.h"
#include "statement.h"

struct postgres_settings {
    mk_str name, server;
    uint32_t meter;
    mk_str user;     /* of the database, NUL-terminated; absent: that of `server`, or libpq's default */
    mk_str password; /* likewise */
    mk_str migrations_folder, migrations_of;
    const struct duda_sql_migration *migrations;
    unsigned connections, waiting_max;
    uint32_t timeout_ms;
    uint64_t result_max;
    bool prepares;
    struct postgres_host_list host_list;
    mk_str test_schema; /* the only schema of all connections; absent: the usual search_path */
};

/* The progress of preparing a statement before its execution. */
enum postgres_prepare_step {
    POSTGRES_PREPARE_NONE, /* nothing to prepare */
    POSTGRES_PREPARE_SENT,
    POSTGRES_PREPARE_DONE,
};

/* A copy of a handler's statement. The connection frees it after on_done(). */
struct postgres_query {
    struct package_request request;                                 /* must be first: a request is its
                                                                     * query */
    void (*on_done)(void *ctx, const struct postgres_query *query); /* NULL: no handler waits for it */
    void *ctx;
    bool is_query;     /* the statement may be prepared and retried: see statement.h */
    bool is_abandoned; /* the handler no longer waits: the statement may be skipped */
    bool is_cancelled; /* a cancel request was sent for it */
    bool is_suspect;   /* a cancel request for another statement may have hit this one */
    enum postgres_prepare_step prepare;
    bool repeats; /* the statement failed and will be sent again */
    unsigned n_repeats;
    struct postgres_prepared *prepared; /* NULL: not prepared. Belongs to the connection that the statement
                                         * was sent over */
    struct postgres_prepared *suspect_prepared; /* the prepared statement that the failed attempt used */
    mk_str text;                                /* NUL-terminated */
    size_t n;
    const char **values;
    int *lengths, *formats;
    PGresult *result; /* the result, unless an error is set */
    int error;        /* the first error */
    char error_text[300];
};

/* The handlers that may use a connection. Only conn_use.c changes these states. */
enum postgres_conn_use {
    POSTGRES_CONN_SHARED,        /* all handlers, while the connection is up */
    POSTGRES_CONN_RESERVED,      /* a transaction or a COPY of one handler */
    POSTGRES_CONN_RESERVED_LAST, /* likewise; the connection closes when the handler releases it */
    POSTGRES_CONN_RETIRED,       /* none: the connection closes after its last statement */
};

/* Small packets are held back with TCP_CORK until the flush. */
enum postgres_cork { POSTGRES_CORK_OFF, POSTGRES_CORK_ON, POSTGRES_CORK_UNSUPPORTED };

struct postgres_conn {
    struct package_conn base; /* must be first: cast from package_conn. A COPY runs in EXCLUSIVE */
    const struct postgres_settings *settings;
    struct postgres_resolver *hosts; /* of the database */
    PGconn *pg;
    struct mk_watcher *watcher;
    int fd;                  /* watched duplicate of libpq's socket; -1: none */
    unsigned watched_events; /* MK_WRITABLE: output waits until the socket is writable */
    enum postgres_cork cork;
    struct postgres_migration migrate;
    unsigned first_host; /* first host to try in this attempt */
    struct postgres_prepared_list prepared;
    struct postgres_cancel *cancel; /* cancel request in progress */
    struct mk_state use;            /* an enum postgres_conn_use */
    bool is_read_only;              /* the transaction may not write: see retry.c */
    uint64_t retired_ms;            /* when it was last retired because its server was read-only; 0: never */

    /* Set by the owner, in addition to struct package_conn_ops. */
    void *copying;                                      /* owner of the active COPY; NULL: no COPY */
    void (*on_statement_done)(struct postgres_conn *c); /* a statement has ended */
    void (*on_notify)(struct postgres_conn *c, const char *channel, mk_str text); /* NULL: ignored */
    void *owner;
};

#endif
