/* SPDX-License-Identifier: Apache-2.0 */
/* A connection over the `upstream` plugin, which resolves names and supports TLS and Unix sockets. */
#ifndef DUDA_PACKAGES_PACKAGE_STREAM_H
#define DUDA_PACKAGES_PACKAGE_STREAM_H

#include <monkey/upstream.h>

#include "package_conn.h"

struct package_stream;

struct package_stream_ops {
    /* Moves to HANDSHAKE, or calls package_conn_mark_ready(). */
    void (*on_connected)(struct package_stream *s);
    /* Receives data. If it is NULL, on_ready() is called instead, and does its own reading and writing. */
    void (*on_bytes)(struct package_stream *s, mk_str bytes);
    void (*on_ready)(struct package_stream *s);
};

struct package_stream {
    struct package_conn base; /* must be first: a connection is cast to its stream */
    const struct package_stream_ops *ops;
    struct mk_upstream *upstream;
    mk_str to; /* ADDRESS:PORT that another server has named; absent: use a server of `upstream` */
    struct mk_upstream_conn *upstream_conn;
    struct mk_buf out; /* bytes not yet sent */
};

/* Call it after package_conn_init(). */
void package_stream_init(struct package_stream *s, const struct package_stream_ops *ops,
                         struct mk_upstream *upstream);
/* Implement connect() and close() of the connection. */
void package_stream_connect(struct package_conn *conn);
void package_stream_close(struct package_conn *conn);
/* Sends as much of s->out as the socket accepts. */
void package_stream_flush(struct package_stream *s);
/* Like mk_upstream_conn_write() and mk_upstream_conn_read(), but the end of the stream and all errors except
 * -EAGAIN close the connection, with the result as its error. */
ssize_t package_stream_write(struct package_stream *s, mk_str bytes);
ssize_t package_stream_read(struct package_stream *s, char *buf, size_t cap);

#endif
