/* SPDX-License-Identifier: Apache-2.0 */
/* Interface to HTTP/2 as a client, for code that does not depend on nghttp2. The implementation is
 * src/http2client, which a build without nghttp2 lacks. A request sees a stream as a connection of its own:
 * struct mk_upstream_conn with a stream in place of a socket. */
#ifndef MK_UPSTREAM_HTTP2_H
#define MK_UPSTREAM_HTTP2_H

#include "upstream/codec.h"
#include "upstream/pool_type.h"
#include "upstream/server.h"

/* State of the parser of a health check. */
struct mk_upstream_http2_check {
    struct mk_hpack_decoder *decoder;
    struct mk_buf in; /* received, not parsed yet */
    unsigned status;  /* 0: no response yet */
};

struct mk_upstream_http2_module {
    const struct mk_codec_ops *codec;
    /* Attaches a waiting connection to a session with the backend, as a new stream. If no session has
     * capacity, opens one with connect(). Returns 0: the connection is open, or still connecting; or an
     * immediate error. */
    int (*attach)(struct mk_backend *o, struct mk_upstream_conn *c,
                  int (*connect)(struct mk_backend *o, struct mk_upstream_conn *socket));
    /* Writes the output of all sessions in p->unflushed. */
    void (*flush)(struct mk_pool *p);
    /* Closes the sessions that have been idle too long. True: sessions remain. */
    bool (*sweep)(struct mk_backend *o, uint64_t now_ms);
    /* Call it when the addresses of the server have changed: sessions with other addresses accept no new
     * streams. */
    void (*drain_stale)(struct mk_backend *o);
    void (*close_all)(struct mk_backend *o);
    /* Writes the request of a health check, on a new connection. */
    void (*write_check)(struct mk_buf *out, const struct mk_upstream_server *server, mk_str authority);
    /* Parses received bytes. 1: check->status is set; 0: incomplete; -EPROTO or -ENOMEM. */
    int (*read_check)(struct mk_upstream_http2_check *check, mk_str bytes);
    void (*free_check)(struct mk_upstream_http2_check *check);
};

/* Returns the implementation; NULL: built without HTTP/2. */
const struct mk_upstream_http2_module *mk_upstream_http2_get_module(void);

/* Does this connection use a stream of HTTP/2? */
static inline bool mk_upstream_http2_is_wanted(const struct mk_upstream *u,
                                               const struct mk_upstream_conn_options *options)
{
    return u->http2 && !options->http1;
}

#endif
