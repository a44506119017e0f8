/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to a Redis server. It connects, authenticates, sends bytes and parses replies; its owner
 * sends the commands. */
#ifndef DUDA_REDIS_CONN_H
#define DUDA_REDIS_CONN_H

#include "common/package_stream.h"
#include "reply_parser.h"

struct redis_settings {
    mk_str name, server;
    uint32_t meter;
    mk_str user, password;
    mk_str password_from;
    mk_str sentinel; /* name of the master in Sentinel; empty: the servers are not Sentinels */
    bool cluster;
    mk_str topic_relay;     /* name under which servers share topics; empty: topics are local */
    const uint64_t *origin; /* ID of this machine in messages, for the lifetime of its master */
    struct mk_upstream *upstream;
    unsigned database, waiting_max;
    unsigned replicas; /* number of replicas that must receive each write of a store */
    uint32_t timeout_ms;
    uint64_t reply_max;
};

enum { REDIS_ADDRESS_MAX = 64 };

struct redis_conn;

/* Callbacks of the owner, in addition to its struct package_conn_ops. None of them may free the
 * connection. */
struct redis_conn_ops {
    void (*on_reply)(struct redis_conn *c, struct duda_redis_reply *reply);
    void (*on_push)(struct redis_conn *c, struct duda_redis_reply *push); /* NULL: ignored */
    void (*before_reply)(struct redis_conn *c); /* sets `d` and `to` of the parser; may be NULL */
};

struct redis_conn {
    struct package_stream stream; /* must be first: a connection is cast from its package_conn */
    const struct redis_conn_ops *ops;
    const struct redis_settings *settings;
    struct redis_reply_parser parser;
    char address[REDIS_ADDRESS_MAX]; /* ADDRESS:PORT of the server; empty: a server of the configuration */
    unsigned n_handshake_replies;
    size_t unparsed;           /* bytes of an incomplete reply */
    uint64_t last_received_ms; /* time of the last received bytes */
};

/* `c` must be zeroed. `address` is as in struct redis_conn; NULL means empty. Returns 0 or -ENOMEM; call
 * redis_conn_fini() in both cases. */
int redis_conn_init(struct redis_conn *c, struct mk_worker *w, const struct redis_settings *settings,
                    const struct package_conn_ops *package_ops, const struct redis_conn_ops *ops,
                    const char *address);
void redis_conn_fini(struct redis_conn *c);
/* Implement connect() and close() of the package_conn. */
void redis_conn_connect(struct package_conn *conn);
void redis_conn_close(struct package_conn *conn);
static inline bool redis_conn_is_up(const struct redis_conn *c)
{
    return package_conn_is_in_state(&c->stream.base, PACKAGE_CONN_READY);
}

/* Formats the host and port from a reply as an address for a connection. Returns false if they are invalid or
 * too long. */
bool redis_address_format(mk_str host, mk_str port, char out[REDIS_ADDRESS_MAX]);
/* Formats a command in the Redis protocol (RESP). */
void redis_command_format(struct mk_buf *out, const mk_str *parts, size_t n);

#endif
