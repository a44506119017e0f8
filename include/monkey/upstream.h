/* SPDX-License-Identifier: Apache-2.0 */
/* Upstreams: backend servers, pooled, limited and balanced connections to them, and requests over these. */
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
 * These functions belong to the plugin `upstream`. A plugin that calls them names it in `needs`, so that the
 * server loads both. The program has them, unless it was built with MK_UPSTREAM=OFF:
 *
 *     static const char *const needs[] = {"upstream", NULL};
 *     MK_PLUGIN(mine) = {MK_PLUGIN_HEAD, .name = "mine", .needs = needs, ...};
 */

/**
 * One or more servers that give the same answers: an [UPSTREAM] section, or a server that a route names.
 * Lives as long as the configuration.
 */
struct mk_upstream;

/** A plugin's defaults for keys that an [UPSTREAM] section leaves out, and for a server named in a route. */
struct mk_upstream_defaults {
    uint16_t port; /**< of servers written without one; 0: a port is required */
    bool tls;      /**< the servers speak TLS */
    unsigned max;  /**< connections to one server from all workers together; 0: no limit */
    unsigned keep; /**< idle connections to one server that each worker keeps; 0: none, or all of them if
                        their number is limited */
};

/**
 * Finds the upstream called `name`: the [UPSTREAM] section with that Name, or else a single server written as
 * `HOST:PORT`, `[ADDRESS6]:PORT` or `unix:/path`. Call it from bind() of a handler. Within a configuration,
 * the same name with the same defaults gives the same upstream. A host name that does not resolve is not an
 * error: the server is down until it resolves. NULL: `name` is wrong, and the error has been reported there.
 */
MK_API struct mk_upstream *mk_upstream_find(const struct mk_conf_ctx *spot, mk_str name,
                                            const struct mk_upstream_defaults *defaults);
/**
 * The same in load() or host() of a plugin, for an upstream that a section of its own names: mistakes are
 * reported at `key` of the section that filled `section`.
 */
MK_API struct mk_upstream *mk_upstream_open(struct mk_config *config, const void *section, const char *key,
                                            mk_str name, const struct mk_upstream_defaults *defaults);
/** Its name in the configuration. */
MK_API mk_str mk_upstream_name(const struct mk_upstream *u);
/** Do its servers speak TLS? */
MK_API bool mk_upstream_is_tls(const struct mk_upstream *u);
/** How many servers it has. */
MK_API unsigned mk_upstream_count(const struct mk_upstream *u);

/** A number for the i-th server, which changes only if its name or that of the upstream does, or the secret of
 * the server or of KeyFile. It tells nothing about the server: put it in a cookie to bring a client back to the
 * same server. */
MK_API uint64_t mk_upstream_server_id(const struct mk_upstream *u, unsigned i);

/* ---- Connections ---- */

/** A connection to one server of an upstream, acquired for one request: from the pool, or a new one that may
 * still be connecting. Belongs to the worker that acquired it. */
struct mk_upstream_conn;

/** Which server, and which kind of connection. */
struct mk_upstream_conn_options {
    uint64_t hash;  /**< for `Balance hash`: equal values lead to the same server */
    uint64_t avoid; /**< servers that have been tried, as a bit mask of mk_upstream_conn_server() */
    int server;     /**< use this server if it is up (a sticky session); -1: any */
    bool fresh;     /**< open a new connection: a pooled one has just failed */
    bool counts;    /**< `hash` is set; without it, `Balance hash` takes the servers in turn */
    const struct mk_addr
        *client; /**< the client of the request, which counts against MaxConnectionsPerAddress. NULL: none.
                                       Must live until the connection is released, or the request is freed */
    mk_str to;   /**< ADDRESS:PORT of a server that another one has named, for protocols that do so: with the
                    upstream's TLS and timeouts, but always a new connection, without limits, and no
                    matter which servers are up. Absent: one of the upstream's. Must live as long as the
                    connection. */
};

/**
 * Acquires a connection. It may still have to wait for a free one, for a name to resolve or for a handshake: see
 * mk_upstream_conn_state(). on_ready(ctx, which) is called when that state changes, and whenever the connection
 * becomes readable (MK_READABLE), writable (MK_WRITABLE) or has ended (MK_ENDED, MK_HUNG_UP), but never from
 * inside these functions. Events are edge triggered: read or write until -EAGAIN. NULL: out of memory.
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
MK_API struct mk_upstream_conn *mk_upstream_conn_acquire(struct mk_worker *w, struct mk_upstream *u,
                                                         const struct mk_upstream_conn_options *options,
                                                         void (*on_ready)(void *ctx, unsigned which),
                                                         void *ctx) MK_API_MUST_USE;
/**
 * 0: connected, with the TLS handshake done if there is one. -EAGAIN: not yet. Any other value means that
 * there is no connection, and only mk_upstream_conn_release() may be called: -EHOSTUNREACH: no server is up; -EBUSY: the
 * queue is full, or the wait exceeded QueueTimeout; -ETIMEDOUT: no server accepted within ConnectTimeout;
 * -EPROTO: the TLS handshake failed; or an error of connect(2).
 */
MK_API int mk_upstream_conn_state(const struct mk_upstream_conn *l);

/** Reads what has arrived: bytes, 0 at the end, -EAGAIN, or a negated errno value. */
MK_API ssize_t mk_upstream_conn_read(struct mk_upstream_conn *l, char *room, size_t cap);
/** Writes, and returns how many bytes were taken (pass the rest again next time), -EAGAIN, or a negated errno
 * value. `more`: the next write follows immediately. */
MK_API ssize_t mk_upstream_conn_write(struct mk_upstream_conn *l, mk_str bytes, bool more);
/** Half-closes it: we send nothing more. */
MK_API void mk_upstream_conn_shutdown_write(struct mk_upstream_conn *l);

/** Did it come from the pool? Then the server may have closed it at the same moment: a request without an
 * answer may be sent again over a `fresh` connection. */
MK_API bool mk_upstream_conn_was_reused(const struct mk_upstream_conn *l);
/** The index of its server; -1 until one is chosen. */
MK_API int mk_upstream_conn_server(const struct mk_upstream_conn *l);
/** Its server as the configuration writes it; absent until one is chosen. */
MK_API mk_str mk_upstream_conn_server_name(const struct mk_upstream_conn *l);

/** Call it when the response begins: the time since mk_upstream_conn_acquire() is recorded as the server's latency. */
MK_API void mk_upstream_conn_mark_first_byte(struct mk_upstream_conn *l);

/** What to do with a connection that is released. */
enum mk_upstream_conn_disposition {
    MK_UPSTREAM_CONN_KEEP,  /**< return it to the pool: request and response are complete */
    MK_UPSTREAM_CONN_CLOSE, /**< close it; the server is not to blame */
    MK_UPSTREAM_CONN_FAILED /**< close it, and count a failure: after MaxFails in a row the server is down */
};
/** Why it is released with MK_UPSTREAM_CONN_FAILED, for the error log: a negated errno value, and static text. */
MK_API void mk_upstream_conn_set_error(struct mk_upstream_conn *l, int error, const char *why);
/** Releases it, in any state; on_ready is not called again. NULL is fine. */
MK_API void mk_upstream_conn_release(struct mk_upstream_conn *l, enum mk_upstream_conn_disposition how);

/* ---- Requests ---- */

/** The protocol that the servers speak. */
enum mk_upstream_protocol {
    MK_UPSTREAM_PROTOCOL_HTTP,    /**< HTTP/1.1 (RFC 9112) */
    MK_UPSTREAM_PROTOCOL_FASTCGI, /**< FastCGI 1.0, in the role of a responder */
    MK_UPSTREAM_PROTOCOL_SCGI,    /**< SCGI */
    MK_UPSTREAM_PROTOCOL_UWSGI    /**< uwsgi, modifiers 0 and 0 */
};

/** Request content that is produced while it is sent. These functions must not free the request. */
struct mk_upstream_request_body {
    struct mk_body_source_ops
        source; /**< pull() works as elsewhere: after -EAGAIN call mk_upstream_request_resume(), and
                                      after an error it is not called again. close() is not called */
    /** Starts over at the first byte, for another attempt; false: that is not possible. NULL: never possible
     * once pull() has been called. */
    bool (*rewind)(void *ctx);
    /** The i-th trailer, once pull() has returned 0; false when there are no more. Only for HTTP with content
     * of unknown length. Fields that must not be trailers are left out. NULL: none. */
    bool (*trailer_at)(void *ctx, size_t i, mk_str *name, mk_str *value);
};

/** How often a request is tried, and for how long. Routes set this with options: see
 * mk_upstream_limits_read(). */
struct mk_upstream_limits {
    unsigned tries;       /**< the number of servers to try at most; 0 means 1 */
    uint32_t response_ms; /**< the longest time from the request's last byte to the first of the response; 0:
                             no limit */
    uint32_t
        silence_ms; /**< the longest pause between two pieces of the response while mk_upstream_request_head() or
                             mk_upstream_request_read() waits for one, or between two pieces sent; 0: no limit. Does not
                             apply after an upgrade */
};

/** The request. This struct, its texts and its fields need to live only until mk_upstream_request_start() returns,
 * unless noted otherwise. */
struct mk_upstream_request_options {
    struct mk_upstream *to;
    enum mk_upstream_protocol protocol;
    mk_str method, target; /**< the request line (HTTP). With any protocol, HEAD gets no content */
    /**
     * For HTTP, exactly one Host. The functions below write the fields of connection and framing themselves and
     * ignore them here: Connection, Content-Length, Expect, HTTP2-Settings, Keep-Alive, Proxy-Connection,
     * Transfer-Encoding, Upgrade, and TE, which only tells whether trailers are wanted. Leave out fields that
     * Connection names. For other protocols these are variables, and CONTENT_LENGTH is ignored.
     */
    const struct mk_header *fields;
    size_t n_fields;
    /**
     * For HTTP: fields that are written already, which is faster where most of them are those of a request:
     * "Name: value" and CRLF for each. Absent: none. The first one is Host, and there is none in `fields`
     * then. The caller answers for what `fields` says, and for the names: only that these are lines is
     * checked.
     */
    mk_str lines;
    int64_t length; /**< of the content; 0: none; MK_LENGTH_UNKNOWN: chunked, over HTTP only */
    mk_str content; /**< all of the content, if it is in memory (p is not NULL), in place of `length` and
                         `source`; must live until mk_upstream_request_free() */
    const struct mk_upstream_request_body
        *source; /**< must live until mk_upstream_request_free(), as must its ctx */
    void *source_ctx;
    mk_str upgrade; /**< the protocol to upgrade to, for HTTP without content or with `content`. After 101,
                         `source` supplies what we send in it, and its end half-closes the connection. For
                         WebSocket with a Sec-WebSocket-Key, a response without the right Sec-WebSocket-Accept is
                         invalid */
    bool expects_continue; /**< for HTTP with content from `source`: it is pulled and sent once the server has
                              asked for it (`Expect: 100-continue`, RFC 9110, section 10.1.1), and not at all
                              if it answers before. Only for servers that are known to ask: with others
                              `response_ms` runs out */
    bool is_safe_to_repeat; /**< the method is idempotent (RFC 9110, section 9.2.2): if a server fails before
                               its response begins, another one may be tried */
    struct mk_upstream_limits limits;
    struct mk_upstream_conn_options conn; /**< the connection that it acquires */
    /** For FastCGI: called with each piece of what the program writes to its standard error; `ctx` is that of
     * mk_upstream_request_start(). May be NULL. */
    void (*on_error_text)(void *ctx, mk_str text);
};

/** A request to a server, and its response. Belongs to the worker that started it. */
struct mk_upstream_request;
struct mk_request;

/**
 * Starts a request and sends what it can. on_ready(ctx) is called whenever one of the functions below can
 * continue, but never from inside them. NULL: out of memory.
 *
 * If a pooled connection turns out to be closed, the request is sent once more over a new one, provided that
 * this is harmless: the method is idempotent, or nothing was sent. `max_tries` allows other servers, within
 * RetryBudget. Either needs content that is in memory, still in the request's buffer (32 KB), or can be
 * rewound. There is no further attempt once a byte of the response has arrived, except for a 408 over a
 * pooled connection: the server closed it while the request was on its way (RFC 9110, section 15.5.9).
 *
 *     static ssize_t pull(void *ctx, char *room, size_t cap)
 *     {
 *         return mk_upstream_request_read(((struct call *)ctx)->upstream, room, cap);
 *     }
 */
MK_API struct mk_upstream_request *mk_upstream_request_start(struct mk_worker *w,
                                                             const struct mk_upstream_request_options *ask,
                                                             void (*on_ready)(void *ctx),
                                                             void *ctx) MK_API_MUST_USE;

/**
 * Reads the head of the response. 0: it is complete. 1: an interim response (1xx except 100, and except 101
 * for an upgrade); call again for the next. -EAGAIN: not yet. Errors, which mk_upstream_request_error_text() explains: any
 * of mk_upstream_conn_state(); -ETIMEDOUT: it took too long; -ECONNRESET or -EPIPE: the connection ended before the
 * head did; -EPROTO: not a valid response; -EOVERFLOW: a head of more than 32 KB or 100 lines; -EBUSY: the
 * server is overloaded; -EINVAL: the request is invalid; -E2BIG: its head is too long; -EBADMSG: its content
 * ended before its length; or an error of the content's source.
 */
MK_API int mk_upstream_request_head(struct mk_upstream_request *c);
/** The status to answer with after such an error: 502, 503 or 504; if the request was at fault, 400, 413, 431
 * or 500. */
MK_API unsigned mk_upstream_status_for_error(int error);
/** What went wrong, for a log: static text, never NULL. */
MK_API const char *mk_upstream_request_error_text(const struct mk_upstream_request *c);
/** Writes that to the error log of the host of this request, with the upstream and the server. */
MK_API void mk_upstream_request_log_error(const struct mk_upstream_request *c, struct mk_request *request);
/** mk_upstream_request_head() for a handler, which returns MK_WAIT for -EAGAIN: content of the request that has arrived
 * meanwhile is sent, and an error is logged. */
MK_API int mk_upstream_request_poll(struct mk_upstream_request *c, struct mk_request *request);

/** Status and fields of the head that was read last; valid until the next one. Fields of connection and
 * framing are left out, and with protocols other than HTTP also `Status`. */
MK_API unsigned mk_upstream_request_status(const struct mk_upstream_request *c);
MK_API bool mk_upstream_request_header_at(const struct mk_upstream_request *c, size_t i, mk_str *name,
                                          mk_str *value);
MK_API mk_str mk_upstream_request_header(const struct mk_upstream_request *c, mk_str name);
/** All of these fields: as text, for mk_response_add_headers(), and one by one. They live as long as the
 * request, or until the next head is read. NULL: there is no head. */
MK_API const struct mk_header *mk_upstream_request_headers(const struct mk_upstream_request *c, mk_str *text,
                                                           size_t *n);
/** The length of the content; MK_LENGTH_UNKNOWN: it lasts until its end. For HEAD, that of the same GET. */
MK_API int64_t mk_upstream_request_length(const struct mk_upstream_request *c);
/** For protocols other than HTTP: does the head consist of a Location that is a path? That is a local redirect
 * (RFC 3875, section 6.2.2). mk_upstream_request_status() returns 302. */
MK_API bool mk_upstream_request_is_local_redirect(const struct mk_upstream_request *c);
/** Has the server switched to the `upgrade` protocol? Then mk_upstream_request_read() reads what it sends in it. */
MK_API bool mk_upstream_request_is_upgraded(const struct mk_upstream_request *c);

/**
 * Reads content into `room`, and takes no more than that from the server. Returns the number of bytes; 0 at
 * the end, when the connection has been released; -EAGAIN; or the error that left the content incomplete.
 * Meanwhile it sends what is left of the request's content; a server that answers early need not read it.
 *
 * If the length is known, you need not read beyond the last byte.
 */
MK_API ssize_t mk_upstream_request_read(struct mk_upstream_request *c, char *room, size_t cap);
/** All of the content, if it came with the head: the connection has been released then,
 * as when mk_upstream_request_read() returns 0. It lives as long as the request. False: read it; what has come
 * with the head comes first. Chunked content is always to be read. */
MK_API bool mk_upstream_request_buffered_body(struct mk_upstream_request *c, mk_str *content);
/**
 * From now on, a client of this request that is slower than the server does not hold the server's connection:
 * while mk_upstream_request_read() is called less often than it could be, the response is read ahead, into a
 * mk_spool_queue (monkey/spool.h). A client that keeps up, or takes 10 MB a second, gets everything as it comes.
 * When the spool is full, the response is read as fast as the client takes it. Call it once the head is there and
 * mk_upstream_request_buffered_body() is false; leave it out for content that does not end by itself. A stream of events
 * (text/event-stream) is never spooled. Free it before `request` ends.
 */
MK_API void mk_upstream_request_spool(struct mk_upstream_request *c, struct mk_request *request);
/** The i-th trailer, once mk_upstream_request_read() has returned 0; false when there are no more. Fields that must not
 * be trailers are left out. */
MK_API bool mk_upstream_request_trailer_at(const struct mk_upstream_request *c, size_t i, mk_str *name,
                                           mk_str *value);

/** Call it when the content's source has data again: sends what there is. If that fails, on_ready() is called
 * later. */
MK_API void mk_upstream_request_resume(struct mk_upstream_request *c);
/** Is there content of the request still to be sent? False: all of it was, or the server takes no more. */
MK_API bool mk_upstream_request_is_sending(const struct mk_upstream_request *c);

/** The server that answers, or was tried last, as the configuration writes it, and its index in the upstream;
 * -1: none. */
MK_API mk_str mk_upstream_request_server_name(const struct mk_upstream_request *c);
MK_API int mk_upstream_request_server(const struct mk_upstream_request *c);

/** The options that set limits, for the `form` of a handler. */
#define MK_UPSTREAM_LIMITS_FORM "[tries=NUMBER] [wait=TIME] [silence=TIME]"
/**
 * Reads the options of a route, which follow its server; call it from bind() of a handler. The options of
 * MK_UPSTREAM_LIMITS_FORM set `limits`; without them these are two servers, and 60 s for each wait. All other
 * words go to read(), which returns false for one that is wrong, once it has reported that. Then this returns
 * false as well.
 */
MK_API bool mk_upstream_limits_read(const struct mk_conf_ctx *spot, mk_str words,
                                    struct mk_upstream_limits *limits, bool (*read)(void *ctx, mk_str word),
                                    void *ctx);
/** May be called at any time; cancels a request that is not complete. NULL is fine. */
MK_API void mk_upstream_request_free(struct mk_upstream_request *c);

/* ---- Local backends ---- */

/** A backend that runs this server in processes of its own, which listen on a unix socket. */
struct mk_local_backend;

/**
 * Finds it by its socket, "unix:/path". From load() or host(). It lives as long as the configuration.
 * `secret` proves to the backend that a request comes from this server (mk_local_backend_verify()); it is copied, and
 * may be absent.
 * `wait_ms`: how long a response may take to begin (504); 0: no limit. NULL: the path is wrong, or memory is
 * out, which has been reported at `key` of the section.
 */
MK_API struct mk_local_backend *mk_local_backend_open(struct mk_config *config, const void *section,
                                                      const char *key, mk_str socket, mk_str secret,
                                                      uint32_t wait_ms);
/**
 * The handle() of a handler: passes the request to that backend, and its response to the client. The backend gets
 * the fields of the client as they are, and three more, MK_LOCAL_BACKEND_CLIENT, MK_LOCAL_BACKEND_BODY_MAX and
 * MK_LOCAL_BACKEND_SIGNATURE, which a client cannot send. It responds with a 404 and the field MK_LOCAL_BACKEND_DECLINED
 * where its handlers return MK_NEXT: then so does this function, unless the request has a body. A request whose connection fails is tried again as by the handler `proxy`.
 *
 *     static enum mk_verdict handle(struct mk_request *request, struct mk_response *response, void *data)
 *     {
 *         return mk_local_backend_handle(request, response, data);
 *     }
 */
MK_API enum mk_verdict mk_local_backend_handle(struct mk_request *request, struct mk_response *response,
                                               struct mk_local_backend *backend);

/** What is known of the client: "ADDRESS PORT SCHEME /SITE", and after a blank the user that hooks have found.
 * The address of a client on a unix socket is "unix:"; SITE is mk_request_vhost_name(), escaped as a URL is. */
#define MK_LOCAL_BACKEND_CLIENT "Monkey-Client"
enum {
    MK_LOCAL_BACKEND_SITE_MAX = 4096 /**< bytes of SITE */
};
/** In that backend, from on_request: takes over what MK_LOCAL_BACKEND_CLIENT says, of a request that is proven. 0 or a
 * negated errno value. */
static inline int mk_local_backend_accept_client(struct mk_request *request)
{
    struct mk_addr peer;
    uint64_t port;
    mk_str rest = mk_request_header(request, MK_STR(MK_LOCAL_BACKEND_CLIENT)),
           address = mk_str_cut(&rest, ' '), number = mk_str_cut(&rest, ' '), scheme = mk_str_cut(&rest, ' '),
           site = mk_str_cut(&rest, ' ');
    struct mk_buf name = mk_buf_growing(MK_LOCAL_BACKEND_SITE_MAX);
    int e = mk_url_unescape(&name, mk_str_skip(site, 1)) && !name.failed
                ? mk_request_set_vhost_name(request, mk_buf_str(&name))
                : -EBADMSG;
    mk_buf_free(&name);
    if (!e && mk_addr_parse(address, &peer) && mk_num_parse(number, &port)) {
        peer.port = MK_API_CAST(uint16_t, port);
        e = mk_request_set_client_addr(request, &peer);
    }
    mk_request_set_secure(request, mk_str_eq(scheme, MK_STR("https")));
    return !e && rest.len ? mk_request_set_user(request, rest) : e;
}
/** The most bytes of content where the backend has no limit of its own; UINT64_MAX: no limit. */
#define MK_LOCAL_BACKEND_BODY_MAX "Monkey-Body-Max"
/** In hexadecimal digits, what mk_local_backend_sign() makes of these two. */
#define MK_LOCAL_BACKEND_SIGNATURE "Monkey-Signature"
static inline void mk_local_backend_sign(mk_str secret, mk_str client, mk_str body_max, char out[32])
{
    char key[32];
    mk_hmac_sha256(secret, mk_str_trim(client), key);
    mk_hmac_sha256(mk_str_of(key, sizeof key), mk_str_trim(body_max), out);
}
/** In that backend: was the request passed on by a server that knows the secret? Another process of the same user may
 * connect to the socket, too, and claim to speak for any client. */
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
/** The backend has no response of its own. */
#define MK_LOCAL_BACKEND_DECLINED "Monkey-Declined"

#ifdef __cplusplus
}
#endif

#endif
