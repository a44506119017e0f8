/* SPDX-License-Identifier: Apache-2.0 */
/* Sends one request to an upstream server and reads the response, over HTTP/1.1, FastCGI, SCGI or uwsgi, on
 * a connection of monkey/upstream.h, where the plugin `upstream` is described. */
#ifndef MONKEY_CLIENT_H
#define MONKEY_CLIENT_H

#include <monkey/http.h>
#include <monkey/source.h>
#include <monkey/upstream.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The protocol of the exchange. */
enum mk_wire {
    MK_WIRE_HTTP,    /**< HTTP/1.1 (RFC 9112) */
    MK_WIRE_FASTCGI, /**< FastCGI 1.0, in the role of a responder */
    MK_WIRE_SCGI,    /**< SCGI */
    MK_WIRE_UWSGI    /**< uwsgi, modifiers 0 and 0 */
};

/** Request content that is produced while it is sent. These functions must not free the exchange. */
struct mk_client_content {
    struct mk_source_ops source; /**< pull() works as elsewhere: after -EAGAIN call mk_client_resume(), and
                                      after an error it is not called again. close() is not called */
    /** Starts over at the first byte, for another attempt; false: that is not possible. NULL: never possible
     * once pull() has been called. */
    bool (*rewind)(void *ctx);
    /** The i-th trailer, once pull() has returned 0; false when there are no more. Only for HTTP with content
     * of unknown length. Fields that must not be trailers are left out. NULL: none. */
    bool (*trailer_at)(void *ctx, size_t i, mk_str *name, mk_str *value);
};

/** How often an exchange is tried, and for how long. Routes set this with options: see
 * mk_client_options_read(). */
struct mk_client_limits {
    unsigned tries;       /**< the number of servers to try at most; 0 means 1 */
    uint32_t response_ms; /**< the longest time from the request's last byte to the first of the response; 0:
                             no limit */
    uint32_t silence_ms;  /**< the longest pause between two pieces of the response while mk_client_head() or
                             mk_client_read() waits for one, or between two pieces sent; 0: no limit. Does not
                             apply after an upgrade */
};

/** The request. This struct, its texts and its fields need to live only until mk_client_start() returns,
 * unless noted otherwise. */
struct mk_client_request {
    struct mk_upstream *to;
    enum mk_wire wire;
    mk_str method, target; /**< the request line (HTTP). With any wire, HEAD gets no content */
    /**
     * For HTTP, exactly one Host. The exchange writes the fields of connection and framing itself and
     * ignores them here: Connection, Content-Length, Expect, HTTP2-Settings, Keep-Alive, Proxy-Connection,
     * Transfer-Encoding, Upgrade, and TE, which only tells whether trailers are wanted. Leave out fields that
     * Connection names. For other wires these are variables, and CONTENT_LENGTH is ignored.
     */
    const struct mk_field_line *fields;
    size_t n_fields;
    /**
     * For HTTP: fields that are written already, which is faster where most of them are those of a request:
     * "Name: value" and CRLF for each. Absent: none. The first one is Host, and there is none in `fields`
     * then. The caller answers for what `fields` says, and for the names: the exchange only checks that these
     * are lines.
     */
    mk_str lines;
    int64_t length; /**< of the content; 0: none; MK_LENGTH_UNKNOWN: chunked, over HTTP only */
    mk_str content; /**< all of the content, if it is in memory (p is not NULL), in place of `length` and
                         `source`; must live until mk_client_free() */
    const struct mk_client_content *source; /**< must live until mk_client_free(), as must its ctx */
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
    struct mk_client_limits limits;
    struct mk_link_wish wish;
    /** For FastCGI: called with each piece of what the program writes to its standard error; `ctx` is that of
     * mk_client_start(). May be NULL. */
    void (*on_error_text)(void *ctx, mk_str text);
};

/** An exchange. Belongs to the worker that started it. */
struct mk_client;
struct mk_request;

/**
 * Starts an exchange and sends what it can. on_ready(ctx) is called whenever one of the functions below can
 * continue, but never from inside them. NULL: out of memory.
 *
 * If a pooled connection turns out to be closed, the request is sent once more over a new one, provided that
 * this is harmless: the method is idempotent, or nothing was sent. `tries` allows other servers, within
 * RetryBudget. Either needs content that is in memory, still in the exchange's buffer (32 KB), or can be
 * rewound. There is no further attempt once a byte of the response has arrived, except for a 408 over a
 * pooled connection: the server closed it while the request was on its way (RFC 9110, section 15.5.9).
 *
 *     static ssize_t pull(void *ctx, char *room, size_t cap)
 *     {
 *         return mk_client_read(((struct call *)ctx)->client, room, cap);
 *     }
 */
MK_API struct mk_client *mk_client_start(struct mk_worker *w, const struct mk_client_request *ask,
                                         void (*on_ready)(void *ctx), void *ctx) MK_API_MUST_USE;

/**
 * Reads the head of the response. 0: it is complete. 1: an interim response (1xx except 100, and except 101
 * for an upgrade); call again for the next. -EAGAIN: not yet. Errors, which mk_client_problem() explains: any
 * of mk_link_state(); -ETIMEDOUT: it took too long; -ECONNRESET or -EPIPE: the connection ended before the
 * head did; -EPROTO: not a valid response; -EOVERFLOW: a head of more than 32 KB or 100 lines; -EBUSY: the
 * server is overloaded; -EINVAL: the request is invalid; -E2BIG: its head is too long; -EBADMSG: its content
 * ended before its length; or an error of the content's source.
 */
MK_API int mk_client_head(struct mk_client *c);
/** The status to answer with after such an error: 502, 503 or 504; if the request was at fault, 400, 413, 431
 * or 500. */
MK_API unsigned mk_client_status_of(int error);
/** What went wrong, for a log: static text, never NULL. */
MK_API const char *mk_client_problem(const struct mk_client *c);
/** Writes that to the error log of the host of this request, with the upstream and the server. */
MK_API void mk_client_report(const struct mk_client *c, struct mk_request *request);
/** mk_client_head() for a handler, which returns MK_WAIT for -EAGAIN: content of the request that has arrived
 * meanwhile is sent, and an error is logged. */
MK_API int mk_client_await(struct mk_client *c, struct mk_request *request);

/** Status and fields of the head that was read last; valid until the next one. Fields of connection and
 * framing are left out, and with wires other than HTTP also `Status`. */
MK_API unsigned mk_client_status(const struct mk_client *c);
MK_API bool mk_client_field_at(const struct mk_client *c, size_t i, mk_str *name, mk_str *value);
MK_API mk_str mk_client_field(const struct mk_client *c, mk_str name);
/** All of these fields: as text, for mk_response_add_lines(), and one by one. They live as long as the
 * exchange, or until the next head is read. NULL: there is no head. */
MK_API const struct mk_field_line *mk_client_lines(const struct mk_client *c, mk_str *text, size_t *n);
/** The length of the content; MK_LENGTH_UNKNOWN: it lasts until its end. For HEAD, that of the same GET. */
MK_API int64_t mk_client_length(const struct mk_client *c);
/** For wires other than HTTP: does the head consist of a Location that is a path? That is a local redirect
 * (RFC 3875, section 6.2.2). mk_client_status() returns 302. */
MK_API bool mk_client_is_local_redirect(const struct mk_client *c);
/** Has the server switched to the `upgrade` protocol? Then mk_client_read() reads what it sends in it. */
MK_API bool mk_client_is_upgraded(const struct mk_client *c);

/**
 * Reads content into `room`, and takes no more than that from the server. Returns the number of bytes; 0 at
 * the end, when the connection has been given back; -EAGAIN; or the error that left the content incomplete.
 * Meanwhile it sends what is left of the request's content; a server that answers early need not read it.
 *
 * If the length is known, you need not read beyond the last byte.
 */
MK_API ssize_t mk_client_read(struct mk_client *c, char *room, size_t cap);
/** All of the content, if it came with the head: the connection has been given back then,
 * as when mk_client_read() returns 0. It lives as long as the exchange. False: read it, and what has come
 * with the head comes first. Chunked content is always to be read. */
MK_API bool mk_client_whole(struct mk_client *c, mk_str *content);
/**
 * From now on, a client of this request that is slower than the server does not hold the server's connection:
 * while mk_client_read() is called less often than it could be, the exchange reads by itself, into a
 * mk_spool_queue (monkey/spool.h). A client that keeps up, or takes 10 MB a second, gets everything as it comes.
 * When the spool is full, the exchange goes on as fast as it is read. Call it once the head is there and
 * mk_client_whole() is false; leave it out for content that does not end by itself. A stream of events
 * (text/event-stream) is never spooled. The exchange must be freed before the request ends. False: out of memory; the exchange works without it.
 */
MK_API bool mk_client_spool(struct mk_client *c, struct mk_request *request);
/** The i-th trailer, once mk_client_read() has returned 0; false when there are no more. Fields that must not
 * be trailers are left out. */
MK_API bool mk_client_trailer_at(const struct mk_client *c, size_t i, mk_str *name, mk_str *value);

/** Call it when the content's source has data again: sends what there is. If that fails, on_ready() is called
 * later. */
MK_API void mk_client_resume(struct mk_client *c);
/** Is there content of the request still to be sent? False: all of it was, or the server takes no more. */
MK_API bool mk_client_takes(const struct mk_client *c);

/** The server that answers, or was tried last, as the configuration writes it, and its index in the upstream;
 * -1: none. */
MK_API mk_str mk_client_server_name(const struct mk_client *c);
MK_API int mk_client_server(const struct mk_client *c);

/** The options that set limits, for the `form` of a handler. */
#define MK_CLIENT_LIMITS_FORM "[tries=NUMBER] [wait=TIME] [silence=TIME]"
/**
 * Reads the options of a route, which follow its server; call it from bind() of a handler. The options of
 * MK_CLIENT_LIMITS_FORM set `limits`; without them these are two servers, and 60 s for each wait. All other
 * words go to read(), which returns false for one that is wrong, once it has reported that. Then this returns
 * false as well.
 */
MK_API bool mk_client_options_read(const struct mk_conf_spot *spot, mk_str words,
                                   struct mk_client_limits *limits, bool (*read)(void *ctx, mk_str word),
                                   void *ctx);
/** May be called at any time; cancels an exchange that is not complete. NULL is fine. */
MK_API void mk_client_free(struct mk_client *c);

#ifdef __cplusplus
}
#endif

#endif
