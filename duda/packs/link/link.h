/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to a server that is opened again when it is lost: its state, when to try again, what the log says about an
 * outage, which error handlers get, and the requests under way. Transporting bytes is up to its owner: stream.h does so over
 * the plugin `upstream`, others by a library of the protocol. Compiled into each package that uses it. */
#ifndef DUDA_PACKS_LINK_H
#define DUDA_PACKS_LINK_H

#include <errno.h>
#include <monkey/buf.h>
#include <monkey/sm.h>
#include <monkey/worker.h>

#include "request.h"

/* Not an order: ask pack_link_is_opening() and pack_link_is_up(). */
enum pack_link_state {
    PACK_LINK_DOWN,
    PACK_LINK_RESOLVING, /* finds out where the server is */
    PACK_LINK_CONNECTING,
    PACK_LINK_GREETING, /* connected, not ready yet: logs in, checks the server */
    PACK_LINK_UP,
    PACK_LINK_EXCLUSIVE /* up, and one handler has the connection for itself */
};

enum { PACK_LINK_WHY_MAX = 512 };

struct pack_link;

struct pack_link_ops {
    const char *section; /* the log names it: "REDIS" */
    /* Begins an attempt: moves to RESOLVING or CONNECTING, and later to UP by pack_link_up(). May fail at once. */
    void (*connect)(struct pack_link *l);
    /* Frees what the connection needs, in any state. */
    void (*close)(struct pack_link *l);
    /* Each of these may be NULL. None may free the link. */
    void (*on_up)(struct pack_link *l);
    void (*on_down)(struct pack_link *l, int error); /* the requests that were sent have ended */
    void (*on_late)(struct pack_link *l); /* an attempt or a reply takes too long: it will be closed next */
    void (*send)(struct pack_link *l); /* at the end of a turn, while it is up: sends what is in `waiting` */
    /* A request ends; it belongs to the owner again. An error comes with is_sent: may the server have got it? */
    void (*finish)(struct pack_link *l, struct pack_request *r, int error, bool is_sent);
};

struct pack_link {
    const struct pack_link_ops *ops;
    struct mk_worker *worker;
    mk_str name;   /* of the section */
    mk_str server; /* for the log; empty: the section says enough */
    uint32_t timeout_ms;
    bool fails_fast; /* another server may take over: no request waits for this one while attempts fail */
    bool stays_up;   /* it is opened again when it is lost, even if no request waits */

    struct mk_sm state;           /* of enum pack_link_state: pack_link_move() */
    uint64_t since_ms;            /* of the last attempt */
    uint64_t retry_ms;            /* no attempt before this time */
    uint32_t backoff_ms;          /* the longest pause after the last attempt; 0: it was up */
    uint64_t failing_ms;          /* attempts fail since then, and the log says so; 0: they do not */
    struct pack_requests waiting; /* for the connection, or the end of the turn */
    struct pack_requests sent;    /* in the order of their replies */
    struct mk_turn_end *turn;
    struct mk_timer timer;
    uint64_t timer_ms; /* 0: it is not set */
    size_t reason_at;  /* in `why` */
    char why
        [PACK_LINK_WHY_MAX]; /* "[REDIS] main, unix:/run/redis: Connection refused"; empty: nothing has happened */
};

/* `l` is zero. 0 or -ENOMEM; pack_link_fini() in both cases. */
int pack_link_init(struct pack_link *l, struct mk_worker *w, const struct pack_link_ops *ops, mk_str name,
                   uint32_t timeout_ms);
/* Requests end with -ECANCELED. Harmless if it was never initialized. */
void pack_link_fini(struct pack_link *l);

/* ---- States ---- */

static inline bool pack_link_is(const struct pack_link *l, enum pack_link_state state)
{
    return l->state.is == state;
}
void pack_link_move(struct pack_link *l, enum pack_link_state to);
/* An attempt is under way. */
bool pack_link_is_opening(const struct pack_link *l);
/* UP or EXCLUSIVE. */
bool pack_link_is_up(const struct pack_link *l);
/* The last attempts have failed: the log has an outage. */
static inline bool pack_link_is_failing(const struct pack_link *l)
{
    return l->failing_ms;
}
/* They have for as long as Timeout. */
bool pack_link_is_away(const struct pack_link *l);

/* Begins an attempt, if it is down and may try again. Handlers call pack_link_stay_up() or pack_link_enqueue(), which leave
 * that to the end of the turn: their stacks are too small for what libraries and TLS do to connect. */
void pack_link_open(struct pack_link *l);
/* Opens it at the end of the turn, and again whenever it is lost, until stays_up is cleared. */
void pack_link_stay_up(struct pack_link *l);
/* The attempt has succeeded. */
void pack_link_up(struct pack_link *l);
/* Closes it, because of what the peer or the kernel says, unless it is down. */
void pack_link_fail(struct pack_link *l, int error, const char *reason);
/* The same with a negated errno value of the connection itself. */
void pack_link_fail_errno(struct pack_link *l, int e);

/* ---- Errors ---- */

/* The result of a call that cannot connect, which handlers may return: without a socket at that path, -ENOENT would say
 * that an entry is missing (404); if we may not use it, -EACCES and -EPERM would say that the client may not (403). */
static inline int pack_link_error(int e)
{
    return e == -ENOENT ? -ECONNREFUSED : e == -EACCES || e == -EPERM ? -ENOKEY : e;
}

/* Words for an errno value of a connection. */
const char *pack_link_error_text(int e);
/* Sets l->why. */
void pack_link_explain(struct pack_link *l, mk_str reason);
/* What has happened to another connection to the same server. */
void pack_link_copy_why(struct pack_link *l, const struct pack_link *from);
/* l->why without section and server. */
const char *pack_link_reason(const struct pack_link *l);

/* ---- Requests ---- */

/* May another request be added, so that at most `max` are under way? 0, -EBUSY, or -ECONNREFUSED: it is away. */
int pack_link_admit(const struct pack_link *l, size_t max);
/* To `waiting`. Its due_ms is set. */
void pack_link_enqueue(struct pack_link *l, struct pack_request *r);
/* To `sent`, by owners that send at once. */
void pack_link_add_sent(struct pack_link *l, struct pack_request *r);
/* The first of `sent` ends. */
void pack_link_finish_first(struct pack_link *l, int error);
/* It has become earlier when the first of `sent` is due. */
void pack_link_set_timer(struct pack_link *l);

#endif
