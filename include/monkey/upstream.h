/* SPDX-License-Identifier: Apache-2.0 */
/* Upstreams: groups of backend servers, with pooled, limited and load-balanced connections, and
 * requests over them. */
#ifndef MONKEY_UPSTREAM_H
#define MONKEY_UPSTREAM_H

#include <errno.h>
#include <monkey/body_source.h>
#include <monkey/config.h>
#include <monkey/http.h>
#include <monkey/plugin.h>
#include <monkey/text.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * These functions belong to the plugin `upstream`. A plugin that calls them must list `upstream` in `needs`,
 * so that the server loads both plugins. The program includes the plugin unless it was built with
 * MK_UPSTREAM=OFF:
 *
 *     static const char *const needs[] = {"upstream", NULL};
 *     MK_PLUGIN(mine) = {MK_PLUGIN_HEAD, .name = "mine", .needs = needs, ...};
 */

/**
 * One or more equivalent backend servers: an [UPSTREAM] section, or a single server named in a route. Lives
 * as long as the configuration.
 */
struct mk_upstream;

/** A plugin's defaults for keys that an [UPSTREAM] section omits, and for a server named in a route. */
struct mk_upstream_defaults {
    uint16_t port;            /**< default port of servers; 0: a port is required */
    bool tls;                 /**< the servers use TLS */
    bool http2;               /**< the servers use HTTP/2: with prior knowledge, or with TLS by ALPN */
    unsigned max_connections; /**< connections to one server from all workers together; 0: no limit */
    unsigned keepalive; /**< idle connections to one server that each worker keeps; 0: up to max_connections,
                        or none if that is unlimited */
};

/**
 * Finds an upstream by name: the [UPSTREAM] section with this Name, or else a single server written as
 * `HOST:PORT`, `[ADDRESS6]:PORT` or `unix:/path`. Call it from bind() of a handler. Within a configuration,
 * the same name and defaults return the same upstream. An unresolvable host name is not an error: the server
 * is down until the name resolves. If `name` is invalid, reports the error at its position, and returns NULL.
 */
MK_API struct mk_upstream *mk_upstream_find_sized(const struct mk_conf_ctx *conf, mk_str name,
                                                  const struct mk_upstream_defaults *defaults,
                                                  size_t defaults_size);
static inline struct mk_upstream *mk_upstream_find(const struct mk_conf_ctx *conf, mk_str name,
                                                   const struct mk_upstream_defaults *defaults)
{
    return mk_upstream_find_sized(conf, name, defaults, sizeof *defaults);
}
/**
 * Like mk_upstream_find(), but for load() or host() of a plugin that names the upstream in its own section:
 * errors are reported at `key` of the configuration section that `section` was parsed from.
 */
MK_API struct mk_upstream *mk_upstream_open_sized(struct mk_config *config, const void *section,
                                                  const char *key, mk_str name,
                                                  const struct mk_upstream_defaults *defaults,
                                                  size_t defaults_size);
static inline struct mk_upstream *mk_upstream_open(struct mk_config *config, const void *section,
                                                   const char *key, mk_str name,
                                                   const struct mk_upstream_defaults *defaults)
{
    return mk_upstream_open_sized(config, section, key, name, defaults, sizeof *defaults);
}

/** The parts of a URL in the configuration. They point into the URL, or to constants. */
struct mk_upstream_url {
    bool tls;         /**< https */
    mk_str server;    /**< for mk_upstream_open() */
    mk_str authority; /**< for the Host header: the server, or `localhost` for a Unix socket */
    mk_str target;    /**< path and query; `/` if the URL has no path */
};
/** Parses `http://SERVER[/PATH]` or `https://SERVER[/PATH]`. For a Unix socket, a colon separates SERVER from
 * PATH: `http://unix:/run/app.sock:/path`. Returns 0; -EPROTONOSUPPORT: the URL has another scheme; -EINVAL:
 * the server is empty, or the path is invalid. Inline, so that only the plugins that call it contain its
 * code. */
static inline int mk_upstream_parse_url(mk_str url, struct mk_upstream_url *out)
{
    out->tls = mk_str_starts(url, MK_STR("https://"));
    if (!out->tls && !mk_str_starts(url, MK_STR("http://")))
        return -EPROTONOSUPPORT;
    mk_str rest = mk_str_skip(url, out->tls ? 8 : 7);
    bool is_unix = mk_str_starts(rest, MK_STR("unix:"));
    size_t end = is_unix ? mk_str_find(mk_str_skip(rest, 5), ':') : mk_str_find(rest, '/');
    if (end != MK_STR_NONE && is_unix)
        end += 5;
    out->server = mk_str_first(rest, end);
    out->authority = is_unix ? MK_STR("localhost") : out->server;
    out->target = end == MK_STR_NONE ? MK_STR_NULL : mk_str_skip(rest, end + is_unix);
    if (!out->target.len)
        out->target = MK_STR("/");
    for (size_t i = 0; i < out->target.len; i++)
        if (out->target.p[i] <= ' ' || out->target.p[i] >= 0x7f || out->target.p[i] == '#' ||
            out->target.p[i] == '"')
            return -EINVAL;
    return out->server.len && out->target.p[0] == '/' ? 0 : -EINVAL;
}

/** Options of a dynamic upstream. */
struct mk_upstream_dynamic_options {
    bool tls;             /**< the servers use TLS; their certificates must be valid for the host */
    unsigned max_hosts;   /**< hosts for which each worker keeps connections and addresses; at least 1 */
    unsigned keepalive;   /**< idle connections to one host that each worker keeps */
    mk_str tls_authority; /**< a PEM file with the authorities to trust; absent: those of the system */
    /** Returns whether workers may connect to an address. The resolver calls it for each address of a host,
     * and workers connect only to addresses that it allows. NULL: all addresses are allowed. */
    bool (*allows)(void *allows_ctx, const struct mk_addr *addr);
    void *allows_ctx; /**< must live as long as the configuration */
};
/**
 * Opens an upstream whose servers are not known in advance: each request names its server in
 * mk_upstream_conn_options.host and .port. A worker resolves a host on its first use. If a worker has more
 * than `max_hosts` hosts, it forgets the host that was used least recently; if requests use all of them, the
 * next request fails with -EBUSY. A host without an address fails with -EHOSTUNREACH, and one without an
 * allowed address with -EPERM. `name` is the name of the upstream in statistics; no route can refer to a name
 * that contains a space. Reports errors like mk_upstream_open().
 */
MK_API struct mk_upstream *mk_upstream_open_dynamic_sized(struct mk_config *config, const void *section,
                                                          const char *key, mk_str name,
                                                          const struct mk_upstream_dynamic_options *options,
                                                          size_t options_size);
static inline struct mk_upstream *mk_upstream_open_dynamic(struct mk_config *config, const void *section,
                                                           const char *key, mk_str name,
                                                           const struct mk_upstream_dynamic_options *options)
{
    return mk_upstream_open_dynamic_sized(config, section, key, name, options, sizeof *options);
}

/** The name of the upstream in the configuration. */
MK_API mk_str mk_upstream_name(const struct mk_upstream *upstream);
/** Do the servers use TLS? */
MK_API bool mk_upstream_is_tls(const struct mk_upstream *upstream);
/** The number of servers. */
MK_API unsigned mk_upstream_count(const struct mk_upstream *upstream);

/** A stable ID for the i-th server. It changes only with the name of the server, the name of the upstream, or
 * the secret of this Monkey server (which KeyFile may supply). The ID reveals nothing about the server: put
 * it in a cookie for session affinity. 0 if `i` is out of range. */
MK_API uint64_t mk_upstream_server_id(const struct mk_upstream *upstream, unsigned i);

/* ---- Connections ---- */

/** A connection to a server of an upstream, acquired for one request. It is either pooled, or new and
 * possibly still connecting. It belongs to the worker that acquired it. */
struct mk_upstream_conn;

/** Selects a server and a kind of connection. */
struct mk_upstream_conn_options {
    uint64_t hash;                /**< for `Balance hash`: equal values select the same server */
    uint64_t tried;               /**< bit mask of the servers already tried: bit i for the index i */
    int server;                   /**< use this server if it is up (session affinity); -1: any */
    bool fresh;                   /**< open a new connection, because a pooled one has just failed */
    bool has_hash;                /**< `hash` is set; otherwise `Balance hash` uses round robin */
    bool http1;                   /**< for an upstream with HTTP/2: connect with HTTP/1.1 */
    bool http2_tunnel;            /**< for an upstream with HTTP/2: only a server with extended CONNECT (RFC
                                       8441) */
    const struct mk_addr *client; /**< the client of the request, for MaxConnectionsPerAddress; NULL: none.
                                       Must live until the connection is released or the request freed */
    mk_str address; /**< ADDRESS:PORT of a server to which another server redirected the client, for protocols
                         with redirects: the connection uses the TLS settings and timeouts of the upstream,
                         but is always new, counts toward no limit, and is tried even if the server is down.
                         Absent: a server of the upstream. Must live as long as the connection */
    mk_str host;    /**< for a dynamic upstream: the host, a name or an address without brackets. Must live as
                        long as the connection, or the request */
    uint16_t port;  /**< for a dynamic upstream: the port of the host */
    struct mk_request
        *request;         /**< the request whose attempts (monkey/attempt.h) include the connection; NULL:
                                     none. It must live until the connection is released */
    uint64_t reserved[1]; /**< must be zero */
};

/**
 * Acquires a connection. This may involve a wait for a free connection, name resolution or a handshake: see
 * mk_upstream_conn_state(). on_ready(ctx, which) is called when that state changes, and whenever the
 * connection becomes readable (MK_READABLE) or writable (MK_WRITABLE), or has ended (MK_ENDED, MK_HUNG_UP),
 * but never from inside these functions. Events are edge triggered: read or write until -EAGAIN. Returns NULL
 * if out of memory.
 *
 *     call->conn = mk_upstream_conn_acquire(worker, upstream, &options, on_ready, call);
 *     ...
 *     static void on_ready(void *ctx, unsigned which)
 *     {
 *         struct call *call = ctx;
 *         int e = mk_upstream_conn_state(call->conn);
 *         if (e == 0)
 *             go_on(call);
 *         else if (e != -EAGAIN)
 *             fail(call, e);
 *     }
 */
MK_API struct mk_upstream_conn *mk_upstream_conn_acquire(struct mk_worker *worker,
                                                         struct mk_upstream *upstream,
                                                         const struct mk_upstream_conn_options *options,
                                                         void (*on_ready)(void *ctx, unsigned which),
                                                         void *ctx) MK_API_MUST_USE;
/**
 * Returns 0 if the connection is established, including any TLS handshake, or -EAGAIN if it is still in
 * progress. Any other value means that there is no connection, and that you may only call
 * mk_upstream_conn_release(): -EHOSTUNREACH: no server is up; -EBUSY: the queue is full, or the wait exceeded
 * QueueTimeout; -ETIMEDOUT: no server accepted within ConnectTimeout; -EXFULL: the accept queue of the
 * server's Unix socket is full; -EPROTO: the TLS handshake failed; or an error from connect(2).
 */
MK_API int mk_upstream_conn_state(const struct mk_upstream_conn *conn);

/** Reads data that has arrived. Returns the number of bytes, 0 at the end, -EAGAIN, or a negative errno
 * value. */
MK_API ssize_t mk_upstream_conn_read(struct mk_upstream_conn *conn, char *buf, size_t cap) MK_API_MUST_USE;
/** Writes data. Returns the number of bytes accepted (pass the rest again in the next call), -EAGAIN, or a
 * negative errno value. `more` means that another write follows immediately. */
MK_API ssize_t mk_upstream_conn_write(struct mk_upstream_conn *conn, mk_str data, bool more) MK_API_MUST_USE;
/** Shuts down the write side of the connection. */
MK_API void mk_upstream_conn_shutdown_write(struct mk_upstream_conn *conn);

/** Did the connection come from the pool? The server may then have closed it just as it was acquired: a
 * request that received no response may be repeated over a `fresh` connection. */
MK_API bool mk_upstream_conn_was_reused(const struct mk_upstream_conn *conn);
/** The index of the server; -1 until a server is chosen. */
MK_API int mk_upstream_conn_server(const struct mk_upstream_conn *conn);
/** The server as written in the configuration; absent until a server is chosen. */
MK_API mk_str mk_upstream_conn_server_name(const struct mk_upstream_conn *conn);

/** Records the time since mk_upstream_conn_acquire() as the server's latency. Call it when the response
 * begins. */
MK_API void mk_upstream_conn_mark_first_byte(struct mk_upstream_conn *conn);

/** What to do with a released connection. */
enum mk_upstream_conn_disposition {
    MK_UPSTREAM_CONN_KEEP,  /**< return the connection to the pool: request and response are complete */
    MK_UPSTREAM_CONN_CLOSE, /**< close the connection without counting a failure of the server */
    MK_UPSTREAM_CONN_FAILED /**< close the connection and count a failure: after MaxFails failures in a row,
                                 the server is down */
};
/** Sets the reason for MK_UPSTREAM_CONN_FAILED in the error log: a negative errno value, and static text. */
MK_API void mk_upstream_conn_set_error(struct mk_upstream_conn *conn, int error, const char *message);
/** Releases the connection, in any state. on_ready is not called again. NULL is allowed. */
MK_API void mk_upstream_conn_release(struct mk_upstream_conn *conn,
                                     enum mk_upstream_conn_disposition disposition);

/* ---- Requests ---- */

/** The protocol of the servers. */
enum mk_upstream_protocol {
    MK_UPSTREAM_PROTOCOL_HTTP,    /**< HTTP/1.1 (RFC 9112) */
    MK_UPSTREAM_PROTOCOL_FASTCGI, /**< FastCGI 1.0, in the responder role */
    MK_UPSTREAM_PROTOCOL_SCGI,    /**< SCGI */
    MK_UPSTREAM_PROTOCOL_UWSGI    /**< uwsgi, modifiers 0 and 0 */
};

/** A request body that is produced while it is sent. These functions must not free the request. */
struct mk_upstream_request_body {
    struct mk_body_source_ops source; /**< like any body source: call mk_upstream_request_resume() after
                                           -EAGAIN; after an error, read() is not called again. close() is
                                           never called */
    /** Restarts at the first byte, for a retry. Returns false if that is impossible. NULL: retries are
     * impossible once read() has been called. */
    bool (*rewind)(void *ctx);
    /** Returns the i-th trailer, once read() has returned 0; false if `i` is out of range. Only for
     * HTTP with a body of unknown length. Fields that are not allowed in trailers are omitted. NULL: no
     * trailers. */
    bool (*trailer_at)(void *ctx, size_t i, mk_str *name, mk_str *value);
    uint64_t reserved[2]; /**< must be zero */
};

/** Retry and timeout limits of a request. Routes set them with options: see mk_upstream_limits_read(). */
struct mk_upstream_limits {
    unsigned max_tries;           /**< maximum number of servers to try; 0 means 1 */
    uint32_t response_timeout_ms; /**< maximum time from the last byte of the request to the first byte of the
                               response; 0: no limit */
    uint32_t read_timeout_ms;     /**< maximum pause between two pieces of the response while
                               mk_upstream_request_head() or mk_upstream_request_read() waits, or between
                               two pieces sent; 0: no limit. Does not apply after an upgrade */
    uint32_t total_timeout_ms;    /**< maximum time until the response begins, over all tries, including waits
                               for a connection and the time to send the body; 0: no limit */
    uint32_t reserved32;          /**< must be zero */
    uint64_t reserved[3];         /**< must be zero */
};

/** A request to an upstream. The struct, its strings and its headers need to live only until
 * mk_upstream_request_start() returns, unless stated otherwise. */
struct mk_upstream_request_options {
    struct mk_upstream *upstream;
    enum mk_upstream_protocol protocol;
    mk_str method, target; /**< the request line (HTTP). With any protocol, a response to HEAD has no body */
    /**
     * The request headers, with exactly one Host for HTTP. The functions below generate the connection and
     * framing headers themselves and ignore them here: Connection, Content-Length, Expect, HTTP2-Settings,
     * Keep-Alive, Proxy-Connection, Transfer-Encoding and Upgrade. TE is not forwarded either; it only tells
     * these functions whether you want trailers. Omit headers that the Connection header lists. For the other
     * protocols, `headers` holds variables, and CONTENT_LENGTH is ignored.
     */
    const struct mk_header *headers;
    size_t n_headers;
    /**
     * For HTTP: preformatted headers, "Name: value" and CRLF for each. They are faster than `headers` if most
     * of them are copied from another request. Absent: none. If set, the first one must be Host, and
     * `headers` must not contain a Host. The caller must follow the rules of `headers` and use valid names:
     * only the line structure is checked.
     */
    mk_str raw_headers;
    int64_t length; /**< body length; 0: none; MK_LENGTH_UNKNOWN: chunked, only over HTTP */
    mk_str body;    /**< the complete body, if it is in memory (p is not NULL), instead of `length` and
                         `body_source`; must live until mk_upstream_request_free() */
    /** Both members must live until mk_upstream_request_free(). */
    const struct mk_upstream_request_body *body_source;
    void *body_source_ctx;
    mk_str upgrade;        /**< the protocol to upgrade to, for HTTP without a body or with `body`. After 101,
                         `body_source` supplies the data to send, and its end half-closes the connection. For
                         WebSocket with a Sec-WebSocket-Key, a response without the correct
                         Sec-WebSocket-Accept is invalid */
    bool expects_continue; /**< for HTTP with a body from `body_source`: send `Expect: 100-continue` (RFC
                                9110, section 10.1.1), and read and send the body only after a 100 response;
                                if the server sends a final response first, the body is not sent. Only for
                                servers known to send 100: with other servers, `response_timeout_ms`
                                expires */
    bool is_idempotent;    /**< the method is idempotent (RFC 9110, section 9.2.2): if a server fails
                                before its response begins, the request may be retried on another server */
    struct mk_upstream_limits limits;
    struct mk_upstream_conn_options conn; /**< selects the connection */
    /** For FastCGI: called with each piece of the program's standard error output; `ctx` is the
     * argument of mk_upstream_request_start(). May be NULL. */
    void (*on_stderr)(void *ctx, mk_str text);
    /** The request that a handler responds to: it is resumed (mk_request_resume()) in place of a call to
     * on_ready(), which may then be NULL. Free the upstream request before that request ends. NULL: none. */
    struct mk_request *resumes;
};

/** A request to an upstream server, and its response. It belongs to the worker that started it. */
struct mk_upstream_request;

/**
 * Starts a request, and sends as much of it as possible. on_ready(ctx) is called whenever one of the
 * functions below can continue, but never from inside them; with the option `resumes`, that request is
 * resumed instead. Returns NULL if out of memory.
 *
 * If a pooled connection turns out to be closed, the request is repeated once over a new connection, provided
 * that this is safe: the method is idempotent, or nothing was sent. `limits.max_tries` allows retries on
 * other servers, within RetryBudget. Both need a request body that is in memory, is still in the buffer of
 * the request (32 KB), or can be rewound. Once a byte of the response has arrived, the request is not
 * repeated, except after a 408 over a pooled connection: the server closed the connection while the request
 * was in transit (RFC 9110, section 15.5.9).
 *
 *     static ssize_t read_response(void *ctx, char *buf, size_t cap)
 *     {
 *         return mk_upstream_request_read(((struct call *)ctx)->upstream, buf, cap);
 *     }
 */
MK_API struct mk_upstream_request *
mk_upstream_request_start_sized(struct mk_worker *worker, const struct mk_upstream_request_options *options,
                                size_t options_size, void (*on_ready)(void *ctx), void *ctx) MK_API_MUST_USE;
static inline MK_API_MUST_USE struct mk_upstream_request *
mk_upstream_request_start(struct mk_worker *worker, const struct mk_upstream_request_options *options,
                          void (*on_ready)(void *ctx), void *ctx)
{
    return mk_upstream_request_start_sized(worker, options, sizeof *options, on_ready, ctx);
}

/**
 * Reads the head of the response. Returns 0 if it is complete; 1 for an interim response (1xx except 100, and
 * except 101 for an upgrade): call again for the next head; or -EAGAIN if the head is incomplete.
 *
 * mk_upstream_request_error_text() describes the errors: those of mk_upstream_conn_state() and the following.
 * -ETIMEDOUT: a timeout expired; -ECONNRESET or -EPIPE: the connection ended before the head was complete;
 * -EPROTO: invalid response, or a head of more than 32 KB or 100 lines; -EBUSY: the server is
 * overloaded; -EINVAL: the request is invalid; -E2BIG: its head is too long; -EBADMSG: its body was shorter
 * than the declared length; or an error of the body source.
 */
MK_API int mk_upstream_request_head(struct mk_upstream_request *upstream_request);
/** The status to respond with after an error of mk_upstream_request_head(): 502, 503 or 504 if the
 * backend failed or is overloaded, 503 also if this server lacks memory or descriptors; 400, 413 or 431 if
 * the request is at fault; 500 for another local failure, such as a full disk. */
MK_API unsigned mk_upstream_status_for_error(int error);
/** A description of the error for logs: static text, never NULL. */
MK_API const char *mk_upstream_request_error_text(const struct mk_upstream_request *upstream_request);
/** Writes the description of the error, with the upstream and the server, to the error log of the virtual
 * host that serves `request`. */
MK_API void mk_upstream_request_log_error(const struct mk_upstream_request *upstream_request,
                                          struct mk_request *request);
/** The error code with which an HTTP/2 server reset the stream of a failed request (RFC 9113, section 7); 0:
 * none. */
MK_API uint32_t mk_upstream_request_reset_code(const struct mk_upstream_request *upstream_request);
/** mk_upstream_request_head() for handlers, which return MK_WAIT for -EAGAIN. It also sends newly
 * arrived parts of the request body, and logs errors. */
MK_API int mk_upstream_request_poll(struct mk_upstream_request *upstream_request, struct mk_request *request);

/** The status of the latest response head. */
MK_API unsigned mk_upstream_request_status(const struct mk_upstream_request *upstream_request);
/** The i-th header of the latest head; false if `i` is out of range. The strings are valid until the next
 * head is read. Connection and framing headers are omitted, and so is `Status` with protocols other than
 * HTTP. */
MK_API bool mk_upstream_request_header_at(const struct mk_upstream_request *upstream_request, size_t i,
                                          mk_str *name, mk_str *value);
/** The value of the first header with that name, among those of mk_upstream_request_header_at(); absent if
 * there is none. */
MK_API mk_str mk_upstream_request_header(const struct mk_upstream_request *upstream_request, mk_str name);
/** All headers of the latest head, as text for mk_response_add_headers() and as an array. They live as long
 * as the request, or until the next head is read. Returns NULL if there is no head. */
MK_API const struct mk_header *mk_upstream_request_headers(const struct mk_upstream_request *upstream_request,
                                                           mk_str *text, size_t *n);
/** The length of the response body; MK_LENGTH_UNKNOWN if it is not known in advance. For HEAD, the length of
 * the response to a GET. */
MK_API int64_t mk_upstream_request_length(const struct mk_upstream_request *upstream_request);
/** For protocols other than HTTP: does the head consist of a Location with only a path, which is a
 * local redirect (RFC 3875, section 6.2.2)? mk_upstream_request_status() then returns 302. */
MK_API bool mk_upstream_request_is_local_redirect(const struct mk_upstream_request *upstream_request);
/** Has the server switched to the `upgrade` protocol? mk_upstream_request_read() then reads the
 * server's data in that protocol. */
MK_API bool mk_upstream_request_is_upgraded(const struct mk_upstream_request *upstream_request);

/**
 * Reads the response body into `buf`, without reading ahead from the server. Returns the number of bytes; 0
 * at the end, when the connection has been released; -EAGAIN; or the error that truncated the body. It also
 * sends the rest of the request body, but a server that responds early need not read it.
 *
 * If the length is known, you need not read beyond the last byte.
 */
MK_API ssize_t mk_upstream_request_read(struct mk_upstream_request *upstream_request, char *buf,
                                        size_t cap) MK_API_MUST_USE;
/** Returns the complete response body if it arrived together with the head. The connection has then
 * been released, as after mk_upstream_request_read() has returned 0. The body lives as long as the
 * request. Returns false if you must read the body, starting with the part that arrived with the head.
 * Chunked bodies must always be read. */
MK_API bool mk_upstream_request_buffered_body(struct mk_upstream_request *upstream_request, mk_str *body);
/**
 * Decouples the backend server from a slow client: if data arrives faster than you call
 * mk_upstream_request_read(), the response is read ahead into a mk_spool_queue (monkey/spool.h), so that the
 * connection to the backend is released early. A client that keeps up, or reads at least 10 MB a second,
 * receives the data directly. When the spool is full, the response is read at the speed of the client. Call
 * it once the head is complete and mk_upstream_request_buffered_body() has returned false. Do not call it for
 * endless responses; event streams (text/event-stream) are never spooled. Free the upstream request before
 * `request` ends.
 */
MK_API void mk_upstream_request_spool(struct mk_upstream_request *upstream_request,
                                      struct mk_request *request);
/** The i-th trailer, once mk_upstream_request_read() has returned 0; false if `i` is out of range.
 * Fields that are not allowed in trailers are omitted. */
MK_API bool mk_upstream_request_trailer_at(const struct mk_upstream_request *upstream_request, size_t i,
                                           mk_str *name, mk_str *value);

/** Sends more of the request body. Call it when the body source has data again. If sending fails,
 * on_ready() is called later. */
MK_API void mk_upstream_request_resume(struct mk_upstream_request *upstream_request);
/** Is part of the request body still unsent? False if all of it was sent, or if the server accepts no
 * more. */
MK_API bool mk_upstream_request_is_sending(const struct mk_upstream_request *upstream_request);

/** The server that responded, or was tried last, as written in the configuration; absent if there is none. */
MK_API mk_str mk_upstream_request_server_name(const struct mk_upstream_request *upstream_request);
/** The index of that server in the upstream; -1 if there is none. */
MK_API int mk_upstream_request_server(const struct mk_upstream_request *upstream_request);

/** The syntax of the limit options, for `syntax` of a handler. */
#define MK_UPSTREAM_LIMITS_SYNTAX                                                                            \
    "[max_tries=NUMBER] [response_timeout=TIME] [read_timeout=TIME] [total_timeout=TIME]"
/**
 * Parses the options of a route, which follow its server; call it from bind() of a handler. The options in
 * MK_UPSTREAM_LIMITS_SYNTAX set `limits`; by default, max_tries is 2, each timeout is 60 s, and there is no
 * total_timeout. All other
 * words go to read(), which reports an invalid word and returns false. This function then also returns false.
 */
MK_API bool mk_upstream_limits_read(const struct mk_conf_ctx *conf, mk_str words,
                                    struct mk_upstream_limits *limits, bool (*read)(void *ctx, mk_str word),
                                    void *ctx);
/** Frees the request at any time, and cancels it if it is incomplete. NULL is allowed. */
MK_API void mk_upstream_request_free(struct mk_upstream_request *upstream_request);

/* ---- Local backends ---- */

/** A backend: another instance of this server in separate processes, which listen on a Unix socket. */
struct mk_local_backend;

/**
 * Opens the backend that listens on `socket`, "unix:/path". Call it in load() or host(). The backend lives as
 * long as the configuration. `secret` proves to the backend that a request comes from this server
 * (mk_local_backend_verify()); it is copied, and may be absent. `timeout_ms` limits the time until a response
 * begins (504); 0: no limit. If the path is invalid, or if out of memory, reports the error at `key` of the
 * section, and returns NULL.
 */
MK_API struct mk_local_backend *mk_local_backend_open(struct mk_config *config, const void *section,
                                                      const char *key, mk_str socket, mk_str secret,
                                                      uint32_t timeout_ms);
/**
 * The handle() of a handler: forwards the request to the backend, and its response to the client. The backend
 * receives the client's headers unchanged, and three additional headers, MK_LOCAL_BACKEND_CLIENT,
 * MK_LOCAL_BACKEND_BODY_MAX and MK_LOCAL_BACKEND_SIGNATURE, which a client cannot send. If the handlers of
 * the backend return MK_NEXT, the backend responds with 404 and the header MK_LOCAL_BACKEND_DECLINED; this
 * function then also returns MK_NEXT, unless the request has a body. If no other handler responds, the
 * client gets the page of this 404: see mk_local_backend_error(). For a response with the header
 * MK_LOCAL_BACKEND_DEFAULT_PAGE, this function returns MK_ERROR, so that the client gets the error page of
 * this server. A request whose connection fails is retried as in the handler `proxy`.
 *
 *     static enum mk_verdict handle(struct mk_request *request, struct mk_response *response, void *data)
 *     {
 *         return mk_local_backend_handle(request, response, data);
 *     }
 */
MK_API enum mk_verdict mk_local_backend_handle(struct mk_request *request, struct mk_response *response,
                                               struct mk_local_backend *backend);

/**
 * For on_error() of a plugin whose handler calls mk_local_backend_handle(): if a backend has declined the
 * request with its own page, and the status is 404, 405 or 501, writes that page with the status 404 and
 * returns MK_DONE. Otherwise returns MK_NEXT.
 */
MK_API enum mk_verdict mk_local_backend_error(struct mk_request *request, struct mk_response *response);

/** A header that describes the client: "ADDRESS PORT SCHEME /VHOST", followed by a space and the
 * authenticated user, if any. ADDRESS is "unix:" for a client on a Unix socket; VHOST is
 * mk_request_vhost_name(), URL-escaped. */
#define MK_LOCAL_BACKEND_CLIENT "Monkey-Client"
enum {
    MK_LOCAL_BACKEND_VHOST_MAX = 4096 /**< maximum length of VHOST in bytes */
};
/** Applies MK_LOCAL_BACKEND_CLIENT to a verified request; for on_request of the backend. Returns 0 or a
 * negative errno value. */
static inline int mk_local_backend_accept_client(struct mk_request *request)
{
    struct mk_addr peer;
    uint64_t port;
    mk_str rest = mk_request_header(request, MK_STR(MK_LOCAL_BACKEND_CLIENT)),
           address = mk_str_cut(&rest, ' '), number = mk_str_cut(&rest, ' '), scheme = mk_str_cut(&rest, ' '),
           site = mk_str_cut(&rest, ' ');
    struct mk_buf name = mk_buf_growing(MK_LOCAL_BACKEND_VHOST_MAX);
    int e = mk_url_unescape(&name, mk_str_skip(site, 1)) && !name.failed
                ? mk_request_set_vhost_name(request, mk_buf_str(&name))
                : -EBADMSG;
    mk_buf_free(&name);
    if (!e && mk_addr_parse(address, &peer) && mk_num_parse(number, &port)) {
        peer.port = MK_API_CAST(uint16_t, port);
        e = mk_request_set_client_addr(request, &peer);
    }
    mk_request_set_secure(request, mk_str_eq(scheme, MK_STR("https")));
    mk_request_trust_proxy(request);
    return !e && rest.len ? mk_request_set_user(request, rest) : e;
}
/** A header with the maximum body size in bytes, for backends without their own limit; UINT64_MAX: no
 * limit. */
#define MK_LOCAL_BACKEND_BODY_MAX "Monkey-Body-Max"
/** A header with the result of mk_local_backend_sign() for the two headers above, in hexadecimal digits. */
#define MK_LOCAL_BACKEND_SIGNATURE "Monkey-Signature"
static inline void mk_local_backend_sign(mk_str secret, mk_str client, mk_str body_max, char out[32])
{
    char key[32];
    mk_hmac_sha256(secret, mk_str_trim(client), key);
    mk_hmac_sha256(mk_str_of(key, sizeof key), mk_str_trim(body_max), out);
}
/** In the backend: was the request forwarded by a server that knows the secret? Other processes of the
 * same user may also connect to the socket, and pretend to be any client. */
static inline bool mk_local_backend_verify(struct mk_request *request, mk_str secret)
{
    char proof[32];
    char text[2 * sizeof proof];
    struct mk_buf hex = mk_buf_fixed(text, sizeof text);
    mk_local_backend_sign(secret, mk_request_header(request, MK_STR(MK_LOCAL_BACKEND_CLIENT)),
                          mk_request_header(request, MK_STR(MK_LOCAL_BACKEND_BODY_MAX)), proof);
    mk_hex_encode(&hex, mk_str_of(proof, sizeof proof));
    return mk_consttime_eq(mk_buf_str(&hex), mk_request_header(request, MK_STR(MK_LOCAL_BACKEND_SIGNATURE)));
}
/** A header of the 404 response of a backend whose handlers declined the request. */
#define MK_LOCAL_BACKEND_DECLINED "Monkey-Declined"
/** A header of an error response without a body, for which the backend has only its default page
 * (mk_response_is_error_page()). */
#define MK_LOCAL_BACKEND_DEFAULT_PAGE "Monkey-Default-Page"

#ifdef __cplusplus
}
#endif

#endif
