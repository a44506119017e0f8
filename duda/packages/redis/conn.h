/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to a Redis server: it connects, logs in, writes and reads. What is said over it is its
 * owner's. */
#ifndef DUDA_REDIS_CONN_H
#define DUDA_REDIS_CONN_H

#include "conn/package_stream.h"
#include "reply_parser.h"

struct redis_settings {
    mk_str name, server;
    uint32_t meter;
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

enum { REDIS_ADDRESS_MAX = 64 };

struct redis_conn;

/* The owner's. None of them may free the connection; what it has beside them is in its struct package_conn_ops. */
struct redis_conn_ops {
    void (*on_reply)(struct redis_conn *c, struct duda_redis_reply *reply);
    void (*on_push)(struct redis_conn *c, struct duda_redis_reply *push); /* NULL: of no interest */
    void (*before_reply)(struct redis_conn *c); /* sets d and to of the parser; NULL: they are never set */
};

struct redis_conn {
    struct package_stream stream; /* the first: a link is its connection */
    const struct redis_conn_ops *ops;
    const struct redis_settings *settings;
    struct redis_reply_parser parser;
    char address[REDIS_ADDRESS_MAX]; /* ADDRESS:PORT of the server; empty: one of the configuration */
    unsigned greetings;
    size_t unparsed;   /* bytes of a reply that is not complete */
    uint64_t heard_ms; /* when bytes came last */
};

/* Zero before. 0 or -ENOMEM; redis_conn_fini() in both cases. `address` as above; NULL: empty. */
int redis_conn_init(struct redis_conn *c, struct mk_worker *w, const struct redis_settings *settings,
                    const struct package_conn_ops *link_ops, const struct redis_conn_ops *ops,
                    const char *address);
void redis_conn_fini(struct redis_conn *c);
/* For connect() and close() of the link. */
void redis_conn_connect(struct package_conn *l);
void redis_conn_close(struct package_conn *l);
static inline bool redis_conn_is_up(const struct redis_conn *c)
{
    return package_conn_is_in_state(&c->stream.link, PACKAGE_CONN_READY);
}

/* The address in the form that a link takes: a host of a reply and its port. False: it is none, or too long.
 */
bool redis_address_format(mk_str host, mk_str port, char out[REDIS_ADDRESS_MAX]);
/* A command in the protocol. */
void redis_command_format(struct mk_buf *out, const mk_str *parts, size_t n);

#endif
