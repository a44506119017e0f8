/* SPDX-License-Identifier: Apache-2.0 */
/* A link whose bytes go over a connection of the plugin `upstream`, which knows names, TLS and unix sockets. */
#ifndef DUDA_PACKAGES_PACKAGE_STREAM_H
#define DUDA_PACKAGES_PACKAGE_STREAM_H

#include <monkey/upstream.h>

#include "package_conn.h"

struct package_stream;

struct package_stream_ops {
    /* Moves to GREETING, or calls package_conn_mark_ready(). */
    void (*on_connected)(struct package_stream *s);
    /* What has arrived. NULL: on_ready() is called instead, and reads and writes itself. */
    void (*on_bytes)(struct package_stream *s, mk_str bytes);
    void (*on_ready)(struct package_stream *s);
};

struct package_stream {
    struct package_conn link; /* the first: a link is its stream */
    const struct package_stream_ops *ops;
    struct mk_upstream *upstream;
    mk_str to; /* ADDRESS:PORT that another server has named; absent: a server of `upstream` */
    struct mk_upstream_conn *conn;
    struct mk_buf out; /* what the socket has not taken */
};

/* After package_conn_init(). */
void package_stream_init(struct package_stream *s, const struct package_stream_ops *ops,
                         struct mk_upstream *upstream);
/* For connect() and close() of the link. */
void package_stream_connect(struct package_conn *l);
void package_stream_close(struct package_conn *l);
/* Sends s->out as far as the socket takes it. */
void package_stream_flush(struct package_stream *s);
/* As those of the connection, but at the end, and on all errors but -EAGAIN, the link has failed with the result. */
ssize_t package_stream_write(struct package_stream *s, mk_str bytes);
ssize_t package_stream_read(struct package_stream *s, char *buf, size_t cap);

#endif
