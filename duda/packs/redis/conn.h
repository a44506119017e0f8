/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to a Redis server: it connects, logs in, writes and reads. What is said over it is its
 * owner's. */
#ifndef DUDA_REDIS_CONN_H
#define DUDA_REDIS_CONN_H

#include <monkey/upstream.h>
#include <monkey/worker.h>

#include "reply.h"

struct redis_settings {
    mk_str name, server;
    struct mk_meter *meter;
    mk_str user, password;
    mk_str password_from;
    mk_str sentinel; /* what the servers, which are Sentinels, call the master; empty: they are none */
    bool cluster;
    mk_str rooms;           /* what is said in rooms goes to all servers with this name; empty: nowhere */
    const uint64_t *origin; /* of messages: this machine, as long as its master lives */
    struct mk_upstream *upstream;
    unsigned database, waiting_max;
    unsigned replicas; /* that have what stores write */
    uint32_t timeout_ms;
    uint64_t reply_max;
};

enum redis_state { REDIS_DOWN, REDIS_CONNECTING, REDIS_ASKING, REDIS_GREETING, REDIS_UP };

enum { REDIS_ADDRESS_MAX = 64 };

struct redis_conn {
    const struct redis_settings *settings;
    struct mk_worker *worker;
    struct mk_upstream_conn *link;
    struct redis_parser parser;
    char address[REDIS_ADDRESS_MAX]; /* ADDRESS:PORT of the server; empty: one of the configuration */
    enum redis_state state;
    struct mk_buf out; /* what the socket has not taken */
    unsigned greetings;
    size_t unparsed;     /* bytes of a reply that is not complete */
    uint64_t since_ms;   /* of an attempt */
    uint64_t heard_ms;   /* when bytes came last */
    uint64_t retry_ms;   /* no attempt before this time */
    uint32_t backoff_ms; /* 0: the last attempt has succeeded */
    bool is_reported;    /* the log says that it is down */
    char why[200];       /* it is down */

    /* The owner's. None of them may free the connection. */
    void (*on_up)(struct redis_conn *c);
    void (*on_reply)(struct redis_conn *c, struct duda_redis_reply *reply);
    void (*on_push)(struct redis_conn *c, struct duda_redis_reply *push); /* NULL: of no interest */
    void (*before_reply)(struct redis_conn *c); /* sets d and to of the parser; NULL: they are never set */
    void (*on_down)(struct redis_conn *c, int error);
};

/* Sets it up; it does not connect. */
void redis_conn_init(struct redis_conn *c, struct mk_worker *w, const struct redis_settings *settings);
void redis_conn_fini(struct redis_conn *c);
/* Connects if it is down and may try again. Calls on_up or on_down later, or at once. */
void redis_conn_open(struct redis_conn *c);
/* Sends c->out as far as the socket takes it. */
void redis_conn_flush(struct redis_conn *c);
/* The address in the form that a link takes: a host of a reply and its port. False: it is none, or too long.
 */
bool redis_conn_address(mk_str host, mk_str port, char out[REDIS_ADDRESS_MAX]);
/* Closes it; on_down. */
void redis_conn_fail(struct redis_conn *c, int error, const char *why);
/* Gives up an attempt that takes longer than the Timeout. */
void redis_conn_check(struct redis_conn *c);
/* A command in the protocol. */
void redis_conn_write(struct mk_buf *out, const mk_str *parts, size_t n);

#endif
