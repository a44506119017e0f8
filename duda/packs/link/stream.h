/* SPDX-License-Identifier: Apache-2.0 */
/* A link whose bytes go over a connection of the plugin `upstream`, which knows names, TLS and unix sockets. */
#ifndef DUDA_PACKS_STREAM_H
#define DUDA_PACKS_STREAM_H

#include <monkey/upstream.h>

#include "link.h"

struct pack_stream;

struct pack_stream_ops {
    /* Moves to GREETING, or calls pack_link_up(). */
    void (*on_connected)(struct pack_stream *s);
    /* What has arrived. NULL: on_ready() is called instead, and reads and writes itself. */
    void (*on_bytes)(struct pack_stream *s, mk_str bytes);
    void (*on_ready)(struct pack_stream *s);
};

struct pack_stream {
    struct pack_link link; /* the first: a link is its stream */
    const struct pack_stream_ops *ops;
    struct mk_upstream *upstream;
    mk_str to; /* ADDRESS:PORT that another server has named; absent: a server of `upstream` */
    struct mk_upstream_conn *conn;
    struct mk_buf out; /* what the socket has not taken */
};

/* After pack_link_init(). */
void pack_stream_init(struct pack_stream *s, const struct pack_stream_ops *ops, struct mk_upstream *upstream);
/* For connect() and close() of the link. */
void pack_stream_connect(struct pack_link *l);
void pack_stream_close(struct pack_link *l);
/* Sends s->out as far as the socket takes it. */
void pack_stream_flush(struct pack_stream *s);
/* As those of the connection, but at the end, and on all errors but -EAGAIN, the link has failed with the result. */
ssize_t pack_stream_write(struct pack_stream *s, mk_str bytes);
ssize_t pack_stream_read(struct pack_stream *s, char *room, size_t cap);

#endif
