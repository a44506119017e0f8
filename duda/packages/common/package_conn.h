/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to a server, re-established when it is lost: its state, its backoff, log messages about an
 * outage, errors for handlers, and the requests in flight. The owner transports the bytes: package_stream.h
 * uses the `upstream` plugin; other owners use a client library. Compiled into each package that uses it. */
#ifndef DUDA_PACKAGES_COMMON_PACKAGE_CONN_H
#define DUDA_PACKAGES_COMMON_PACKAGE_CONN_H

#include <errno.h>
#include <monkey/buf.h>
#include <monkey/state_machine.h>
#include <monkey/worker.h>

#include "package_request_queue.h"

/* Do not compare these by order: use package_conn_is_opening() and package_conn_is_ready(). */
enum package_conn_state {
    PACKAGE_CONN_DOWN,
    PACKAGE_CONN_RESOLVING, /* looks up the server */
    PACKAGE_CONN_CONNECTING,
    PACKAGE_CONN_HANDSHAKE, /* connected, not ready yet: authenticates, checks the server */
    PACKAGE_CONN_MIGRATING, /* connected, not ready yet: changes the database, without a time limit */
    PACKAGE_CONN_READY,
    PACKAGE_CONN_EXCLUSIVE /* up, and reserved for one handler */
};

enum { PACKAGE_CONN_ERROR_MAX = 512 };

struct package_conn;

struct package_conn_ops {
    const char *section; /* name in the log: "REDIS" */
    /* Starts an attempt: moves to RESOLVING or CONNECTING, and later to READY with package_conn_mark_ready().
     * May fail at once. */
    void (*connect)(struct package_conn *conn);
    /* Frees the resources of the connection, in any state. */
    void (*close)(struct package_conn *conn);
    /* Each of these callbacks may be NULL. None of them may free the connection. */
    void (*on_up)(struct package_conn *conn);
    void (*on_down)(struct package_conn *conn, int error); /* called when all sent requests have ended */
    void (*on_timeout)(
        struct package_conn *conn);          /* an attempt or a reply timed out: the connection closes next */
    void (*send)(struct package_conn *conn); /* at the end of an iteration, while up: sends `waiting` */
    /* Ends a request and returns it to the owner. On an error, is_sent says whether the server may have
     * received the request. */
    void (*finish)(struct package_conn *conn, struct package_request *r, int error, bool is_sent);
};

struct package_conn {
    const struct package_conn_ops *ops;
    struct mk_worker *worker;
    mk_str name;   /* of the section */
    mk_str server; /* shown in log messages; empty: only the section name is shown */
    uint32_t timeout_ms;
    bool fails_fast; /* requests fail as soon as an attempt fails, because another server may take over */
    bool stays_up;   /* reconnects even if no request waits */

    struct mk_state state;                /* an enum package_conn_state: package_conn_set_state() */
    uint64_t since_ms;                    /* start of the last attempt */
    uint64_t retry_ms;                    /* no attempt starts before this time */
    uint32_t backoff_ms;                  /* maximum delay after the last attempt; 0: it succeeded */
    uint64_t failing_ms;                  /* start of the outage, which is logged; 0: no outage */
    struct package_request_queue waiting; /* waits for the connection, or for the end of the iteration */
    struct package_request_queue sent;    /* in reply order */
    struct mk_deferred *deferred;
    struct mk_timer timer;
    uint64_t timer_ms; /* 0: not set */
    int error;         /* of the last failure, which error_text describes */
    size_t reason_at;  /* offset of the reason in error_text */
    char error_text
        [PACKAGE_CONN_ERROR_MAX]; /* "[REDIS] main, unix:/run/redis: Connection refused"; empty: no error */
};

/* `conn` must be zeroed. Returns 0 or -ENOMEM; call package_conn_fini() in both cases. */
int package_conn_init(struct package_conn *conn, struct mk_worker *w, const struct package_conn_ops *ops,
                      mk_str name, uint32_t timeout_ms);
/* Ends all requests with -ECANCELED. Does nothing if the connection was never initialized. */
void package_conn_fini(struct package_conn *conn);

/* ---- States ---- */

static inline bool package_conn_is_in_state(const struct package_conn *conn, enum package_conn_state state)
{
    return conn->state.current == state;
}
void package_conn_set_state(struct package_conn *conn, enum package_conn_state to);
/* Returns whether an attempt is in progress. */
bool package_conn_is_opening(const struct package_conn *conn);
/* Returns whether the state is READY or EXCLUSIVE. */
bool package_conn_is_ready(const struct package_conn *conn);
/* Returns whether the last attempt has failed. The log then shows an outage. */
static inline bool package_conn_is_failing(const struct package_conn *conn)
{
    return conn->failing_ms;
}
/* Returns whether all attempts have failed for at least Timeout. */
bool package_conn_is_unavailable(const struct package_conn *conn);

/* Starts an attempt if the connection is down and the backoff has passed. Handlers call
 * package_conn_stay_up() or package_conn_enqueue() instead, which defer it to the end of the loop iteration:
 * connecting with a library or TLS needs more stack than a handler has. */
void package_conn_open(struct package_conn *conn);
/* Connects at the end of the loop iteration, and reconnects whenever the connection is lost, until the caller
 * clears stays_up. */
void package_conn_stay_up(struct package_conn *conn);
/* Records that the attempt has succeeded, and sends the waiting requests. */
void package_conn_mark_ready(struct package_conn *conn);
/* Closes the connection because of an error that the peer or the kernel reported. Does nothing if the
 * connection is down. */
void package_conn_fail(struct package_conn *conn, int error, const char *reason);
/* Like package_conn_fail(), with a negated errno value from the connection itself as error and reason. */
void package_conn_fail_errno(struct package_conn *conn, int e);

/* ---- Errors ---- */

/* Maps an error of connect() to a result that handlers may return. -ENOENT, for a missing socket path, would
 * become 404; -EACCES and -EPERM, for a socket that we may not use, would become 403. */
static inline int package_conn_map_errno(int e)
{
    return e == -ENOENT ? -ECONNREFUSED : e == -EACCES || e == -EPERM ? -ENOKEY : e;
}

/* Returns the message for an errno value of a connection. */
const char *package_conn_strerror(int e);
/* Sets conn->error_text. */
void package_conn_set_error(struct package_conn *conn, mk_str reason);
/* Copies the error of another connection to the same server. */
void package_conn_copy_error(struct package_conn *conn, const struct package_conn *from);
/* Returns conn->error_text without section and server. */
const char *package_conn_error_reason(const struct package_conn *conn);

/* ---- Requests ---- */

/* Checks whether another request may be sent or queued. Returns 0, -EBUSY if `max` requests are already
 * waiting or sent, or -ECONNREFUSED if the server is unavailable and it is too early to try again. */
int package_conn_check_capacity(const struct package_conn *conn, size_t max);
/* Appends to `waiting`. The caller has set due_ms. */
void package_conn_enqueue(struct package_conn *conn, struct package_request *r);
/* Appends to `sent`, for owners that send at once. */
void package_conn_add_sent(struct package_conn *conn, struct package_request *r);
/* Ends the first request in `sent`. */
void package_conn_finish_first_sent(struct package_conn *conn, int error);

#endif
