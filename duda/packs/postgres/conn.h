/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to PostgreSQL in pipeline mode: statements of several handlers are under way at once. */
#ifndef DUDA_POSTGRES_CONN_H
#define DUDA_POSTGRES_CONN_H

#include <duda/sql_backend.h>
#include <libpq-fe.h>
#include <monkey/worker.h>

#include "upgrade.h"

enum { POSTGRES_PREPARED_MAX = 256 };

struct postgres_settings {
    mk_str name, server;
    struct mk_meter *meter;
    mk_str migrations_folder;
    const struct duda_sql_migration *migrations;
    unsigned connections, waiting_max;
    uint32_t timeout_ms;
    uint64_t result_max;
};

/* A statement of a handler, copied. Freed by the connection after on_over. */
struct postgres_job {
    struct postgres_job *next;
    void (*on_over)(void *ctx, struct duda_sql_rows *rows); /* NULL: the handler does not wait any more */
    void *ctx;
    uint64_t due_ms;
    bool prepares;
    char statement[16]; /* its name at the server; empty: none */
    mk_str text;        /* a NUL follows */
    size_t n;
    const char **values;
    int *lengths, *formats;
    struct duda_sql_rows rows;
    char room[];
};

enum postgres_state { POSTGRES_DOWN, POSTGRES_CONNECTING, POSTGRES_UPGRADING, POSTGRES_UP };

struct postgres_conn {
    const struct postgres_settings *settings;
    struct mk_worker *worker;
    PGconn *pg;
    struct mk_watcher *watcher;
    int fd;
    enum postgres_state state;
    struct postgres_job *sent, **sent_end; /* in the order of their replies */
    unsigned n_sent;
    bool prepared_now; /* the first of sent has its first result behind it */
    struct postgres_upgrade upgrade;
    uint64_t since_ms, retry_ms;
    bool is_reported;
    unsigned n_prepared;
    char *prepared[POSTGRES_PREPARED_MAX]; /* their texts; the place is the name */
    char why[300];

    /* The owner's. */
    bool is_reserved; /* by a transaction */
    void (*on_up)(struct postgres_conn *c);
    void (*on_down)(struct postgres_conn *c, int error);
    void (*on_free)(struct postgres_conn *c); /* a statement is over */
    void *owner;
};

void postgres_conn_init(struct postgres_conn *c, struct mk_worker *w,
                        const struct postgres_settings *settings);
void postgres_conn_fini(struct postgres_conn *c);
/* Connects, if it is down and may try. */
void postgres_conn_open(struct postgres_conn *c);
/* Takes the job. Only if it is up. */
void postgres_conn_send(struct postgres_conn *c, struct postgres_job *job);
/* Sends what is gathered. */
void postgres_conn_flush(struct postgres_conn *c);
/* The clock. */
void postgres_conn_check(struct postgres_conn *c);
void postgres_conn_fail(struct postgres_conn *c, int error, const char *why);

struct postgres_job *postgres_job_new(mk_str text, const struct duda_sql_value *values, size_t n);
void postgres_job_free(struct postgres_job *job);

#endif
