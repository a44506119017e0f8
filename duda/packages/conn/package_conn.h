/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to a server that is opened again when it is lost: its state, when to try again, what the log says about an
 * outage, which error handlers get, and the requests under way. Transporting bytes is up to its owner: stream.h does so over
 * the plugin `upstream`, others by a library of the protocol. Compiled into each package that uses it. */
#ifndef DUDA_PACKAGES_CONN_H
#define DUDA_PACKAGES_CONN_H

#include <errno.h>
#include <monkey/buf.h>
#include <monkey/sm.h>
#include <monkey/worker.h>

#include "package_request_queue.h"

/* Not an order: ask package_conn_is_opening() and package_conn_is_ready(). */
enum package_conn_state {
    PACKAGE_CONN_DOWN,
    PACKAGE_CONN_RESOLVING, /* finds out where the server is */
    PACKAGE_CONN_CONNECTING,
    PACKAGE_CONN_HANDSHAKE, /* connected, not ready yet: logs in, checks the server */
    PACKAGE_CONN_READY,
    PACKAGE_CONN_EXCLUSIVE /* up, and one handler has the connection for itself */
};

enum { PACKAGE_CONN_ERROR_MAX = 512 };

struct package_conn;

struct package_conn_ops {
    const char *section; /* the log names it: "REDIS" */
    /* Begins an attempt: moves to RESOLVING or CONNECTING, and later to UP by package_conn_mark_ready(). May fail at once. */
    void (*connect)(struct package_conn *l);
    /* Frees what the connection needs, in any state. */
    void (*close)(struct package_conn *l);
    /* Each of these may be NULL. None may free the link. */
    void (*on_up)(struct package_conn *l);
    void (*on_down)(struct package_conn *l, int error); /* the requests that were sent have ended */
    void (*on_late)(
        struct package_conn *l); /* an attempt or a reply takes too long: it will be closed next */
    void (*send)(
        struct package_conn *l); /* at the end of a turn, while it is up: sends what is in `waiting` */
    /* A request ends; it belongs to the owner again. An error comes with is_sent: may the server have got it? */
    void (*finish)(struct package_conn *l, struct package_request *r, int error, bool is_sent);
};

struct package_conn {
    const struct package_conn_ops *ops;
    struct mk_worker *worker;
    mk_str name;   /* of the section */
    mk_str server; /* for the log; empty: the section says enough */
    uint32_t timeout_ms;
    bool fails_fast; /* another server may take over: no request waits for this one while attempts fail */
    bool stays_up;   /* it is opened again when it is lost, even if no request waits */

    struct mk_sm state;                   /* of enum package_conn_state: package_conn_set_state() */
    uint64_t since_ms;                    /* of the last attempt */
    uint64_t retry_ms;                    /* no attempt before this time */
    uint32_t backoff_ms;                  /* the longest pause after the last attempt; 0: it was up */
    uint64_t failing_ms;                  /* attempts fail since then, and the log says so; 0: they do not */
    struct package_request_queue waiting; /* for the connection, or the end of the turn */
    struct package_request_queue sent;    /* in the order of their replies */
    struct mk_deferred *turn;
    struct mk_timer timer;
    uint64_t timer_ms; /* 0: it is not set */
    size_t reason_at;  /* in `why` */
    char why
        [PACKAGE_CONN_ERROR_MAX]; /* "[REDIS] main, unix:/run/redis: Connection refused"; empty: nothing has happened */
};

/* `l` is zero. 0 or -ENOMEM; package_conn_fini() in both cases. */
int package_conn_init(struct package_conn *l, struct mk_worker *w, const struct package_conn_ops *ops,
                      mk_str name, uint32_t timeout_ms);
/* Requests end with -ECANCELED. Harmless if it was never initialized. */
void package_conn_fini(struct package_conn *l);

/* ---- States ---- */

static inline bool package_conn_is_in_state(const struct package_conn *l, enum package_conn_state state)
{
    return l->state.is == state;
}
void package_conn_set_state(struct package_conn *l, enum package_conn_state to);
/* An attempt is under way. */
bool package_conn_is_opening(const struct package_conn *l);
/* UP or EXCLUSIVE. */
bool package_conn_is_ready(const struct package_conn *l);
/* The last attempts have failed: the log has an outage. */
static inline bool package_conn_is_failing(const struct package_conn *l)
{
    return l->failing_ms;
}
/* They have for as long as Timeout. */
bool package_conn_is_unavailable(const struct package_conn *l);

/* Begins an attempt, if it is down and may try again. Handlers call package_conn_stay_up() or package_conn_enqueue(), which leave
 * that to the end of the turn: their stacks are too small for what libraries and TLS do to connect. */
void package_conn_open(struct package_conn *l);
/* Opens it at the end of the turn, and again whenever it is lost, until stays_up is cleared. */
void package_conn_stay_up(struct package_conn *l);
/* The attempt has succeeded. */
void package_conn_mark_ready(struct package_conn *l);
/* Closes it, because of what the peer or the kernel says, unless it is down. */
void package_conn_fail(struct package_conn *l, int error, const char *reason);
/* The same with a negated errno value of the connection itself. */
void package_conn_fail_errno(struct package_conn *l, int e);

/* ---- Errors ---- */

/* The result of a call that cannot connect, which handlers may return: without a socket at that path, -ENOENT would say
 * that an entry is missing (404); if we may not use it, -EACCES and -EPERM would say that the client may not (403). */
static inline int package_conn_map_errno(int e)
{
    return e == -ENOENT ? -ECONNREFUSED : e == -EACCES || e == -EPERM ? -ENOKEY : e;
}

/* Words for an errno value of a connection. */
const char *package_conn_strerror(int e);
/* Sets l->why. */
void package_conn_set_error(struct package_conn *l, mk_str reason);
/* What has happened to another connection to the same server. */
void package_conn_copy_error(struct package_conn *l, const struct package_conn *from);
/* l->why without section and server. */
const char *package_conn_error_reason(const struct package_conn *l);

/* ---- Requests ---- */

/* May another request be added, so that at most `max` are under way? 0, -EBUSY, or -ECONNREFUSED: it is away. */
int package_conn_check_capacity(const struct package_conn *l, size_t max);
/* To `waiting`. Its due_ms is set. */
void package_conn_enqueue(struct package_conn *l, struct package_request *r);
/* To `sent`, by owners that send at once. */
void package_conn_add_sent(struct package_conn *l, struct package_request *r);
/* The first of `sent` ends. */
void package_conn_finish_first_sent(struct package_conn *l, int error);
/* It has become earlier when the first of `sent` is due. */
void package_conn_set_timer(struct package_conn *l);

#endif
