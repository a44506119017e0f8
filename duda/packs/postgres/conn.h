/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to PostgreSQL in pipeline mode: statements of several handlers are under way at once. */
#ifndef DUDA_POSTGRES_CONN_H
#define DUDA_POSTGRES_CONN_H

#include <duda/sql_backend.h>
#include <libpq-fe.h>
#include <monkey/worker.h>

#include "hosts.h"
#include "upgrade.h"

enum { POSTGRES_PREPARED_MAX = 256 };

struct postgres_settings {
    mk_str name, server;
    struct mk_meter *meter;
    mk_str password; /* a NUL follows; absent: what `server` says */
    mk_str migrations_folder;
    const struct duda_sql_migration *migrations;
    unsigned connections, waiting_max;
    uint32_t timeout_ms;
    uint64_t result_max;
    struct postgres_places places;
};

/* A statement that the server of a connection knows. */
struct postgres_prepared {
    char name[8];
    mk_str text; /* empty: the server did not want it */
};

/* A statement of a handler, copied. Freed by the connection after on_over. */
struct postgres_job {
    struct postgres_job *next;
    void (*on_over)(void *ctx, const struct postgres_job *job); /* NULL: the handler does not wait any more */
    void *ctx;
    uint64_t due_ms;
    bool once; /* it is not worth to be prepared */
    bool prepares;
    struct postgres_prepared *prepared; /* NULL: it is not; of the connection it was sent to */
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
    unsigned n_prepared;
    struct postgres_prepared *prepared[POSTGRES_PREPARED_MAX];
    char why[300];

    /* The owner's. */
    bool is_reserved; /* by a transaction, or a COPY */
    void *copying;    /* whose COPY it is; NULL: none, or not any more */
    void (*on_up)(struct postgres_conn *c);
    void (*on_down)(struct postgres_conn *c, int error);
    void (*on_free)(struct postgres_conn *c);                                     /* a statement is over */
    void (*on_notify)(struct postgres_conn *c, const char *channel, mk_str text); /* NULL: of no interest */
    void *owner;
};

void postgres_conn_init(struct postgres_conn *c, struct mk_worker *w,
                        const struct postgres_settings *settings, struct postgres_hosts *hosts);
void postgres_conn_fini(struct postgres_conn *c);
/* Connects, if it is down and may try. */
void postgres_conn_open(struct postgres_conn *c);
/* Goes on, if it waits for what has been found. */
void postgres_conn_found(struct postgres_conn *c);
/* Takes the job; one that is down fails it. */
void postgres_conn_send(struct postgres_conn *c, struct postgres_job *job);
/* Several statements follow in this turn: keeps them back until the flush, as far as it can. */
void postgres_conn_hold(struct postgres_conn *c);
/* Sends what is gathered. */
void postgres_conn_flush(struct postgres_conn *c);
/* The clock. */
void postgres_conn_check(struct postgres_conn *c);
/* Leaves the pipeline and sends a COPY: from now on the socket is the owner's. It must be idle. False: it
 * cannot; then it is to fail. */
bool postgres_conn_begin_copy(struct postgres_conn *c, const char *text, void *owner);
/* All results of the COPY were taken: it is up again. As above. */
bool postgres_conn_end_copy(struct postgres_conn *c);
void postgres_conn_fail(struct postgres_conn *c, int error, const char *why);

struct postgres_job *postgres_job_new(mk_str text, const struct duda_sql_value *values, size_t n);
/* Remembers an error. */
void postgres_job_fail(struct postgres_job *job, int error, mk_str base, const char *why);
void postgres_job_free(struct postgres_job *job);

#endif
