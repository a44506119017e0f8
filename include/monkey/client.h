/* SPDX-License-Identifier: Apache-2.0 */
/* Asking a server behind this one: one exchange over HTTP/1.1, FastCGI, SCGI or uwsgi, on a connection of
 * monkey/upstream.h. Its functions are in monkey-upstream.so. */
#ifndef MONKEY_CLIENT_H
#define MONKEY_CLIENT_H

#include <monkey/http.h>
#include <monkey/source.h>
#include <monkey/upstream.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How the exchange is written. */
enum mk_wire {
    MK_WIRE_HTTP,    /**< HTTP/1.1 (RFC 9112) */
    MK_WIRE_FASTCGI, /**< FastCGI 1.0, in the role of a responder */
    MK_WIRE_SCGI,    /**< SCGI */
    MK_WIRE_UWSGI    /**< uwsgi, modifiers 0 and 0 */
};

/** The content of a request that is made while it is sent. Its functions must not free the exchange. */
struct mk_client_content {
    struct mk_source_ops source; /**< pull() as ever; -EAGAIN: mk_client_resume() follows; never called again
                                      after an error. close is not called */
    /** Begin again with the first byte, for another attempt: true if that is possible. NULL: never, once
     * pull() was called. */
    bool (*rewind)(void *ctx);
    /** The i-th trailer, once pull() has answered 0; false when there are no more. HTTP, and content of
     * unknown length, alone; fields that may be no trailer are left out. NULL: none. */
    bool (*trailer_at)(void *ctx, size_t i, mk_str *name, mk_str *value);
};

/** How often and how long an exchange tries. Routes set it with options: see mk_client_limits_read(). */
struct mk_client_limits {
    unsigned tries;       /**< at most so many servers; 0: 1 */
    uint32_t response_ms; /**< at most so long until the response begins, from the request's last byte on;
                             0: no limit */
    uint32_t silence_ms;  /**< at most so long between two pieces of the response while mk_client_head() or
                             mk_client_read() waits for one, or between two that are sent; 0: no limit. Not in
                             another protocol */
};

/** What to ask. Texts, fields and this struct need to live during mk_client_start() alone, except where it
 * says otherwise. */
struct mk_client_request {
    struct mk_upstream *to;
    enum mk_wire wire;
    mk_str method, target; /**< HTTP: of the request line. A HEAD gets no content; for other wires too */
    /**
     * HTTP: with one Host. Fields of the connection and of the framing are the client's own and are left out:
     * Connection, Content-Length, Expect, HTTP2-Settings, Keep-Alive, Proxy-Connection, Transfer-Encoding,
     * Upgrade, and TE, which only says whether trailers are wanted. Fields that Connection named must not be
     * here. Other wires: they are variables, and CONTENT_LENGTH is left out.
     */
    const struct mk_field_line *fields;
    size_t n_fields;
    int64_t length; /**< of the content; 0: none; MK_LENGTH_UNKNOWN: chunked, over HTTP alone */
    mk_str content; /**< all of it, if it is at hand (p is not NULL), in place of `length` and `source`; lives
                         until mk_client_free() */
    const struct mk_client_content *source; /**< lives until mk_client_free(), as does its ctx */
    void *source_ctx;
    mk_str upgrade; /**< HTTP, without content: the protocol that is asked for; after 101, `source` is what we
                         send in it, and its end ends our direction */
    bool is_safe_to_repeat; /**< of a method that may be repeated (RFC 9110, section 9.2.2): another server
                               may be tried when one has failed before its response began */
    struct mk_client_limits limits;
    struct mk_link_wish wish;
    /** FastCGI: what the program writes to its standard error, a piece at a time; `ctx` is that of
     * mk_client_start(). May be NULL. */
    void (*on_error_text)(void *ctx, mk_str text);
};

/** An exchange. Belongs to the worker that began it. */
struct mk_client;

/**
 * Begins an exchange, and sends what it can. on_ready(ctx) is called whenever one of the functions below may
 * go on, never from inside them. NULL: no memory.
 *
 * What got no answer is sent once more, over a new connection, if the server had kept the one that it closed
 * meanwhile and that is harmless: if the method may be repeated, or not a byte was sent. Other servers are
 * tried as `tries` says, within RetryBudget. For both, the content must be at hand, still be in the client's
 * buffer (32 KB), or begin again. As soon as a byte of a response came, there is no other attempt.
 *
 *     static ssize_t pull(void *ctx, char *room, size_t cap)
 *     {
 *         return mk_client_read(((struct call *)ctx)->client, room, cap);
 *     }
 */
MK_API struct mk_client *mk_client_start(struct mk_worker *w, const struct mk_client_request *ask,
                                         void (*on_ready)(void *ctx), void *ctx) MK_API_MUST_USE;

/**
 * The head of the response: 0 when it is there; 1 for an interim one (1xx, but not 101 to an upgrade and not
 * 100), after which the next call goes on to the next; -EAGAIN: not yet; else why there is none (see
 * mk_client_problem()): what mk_link_state() reports, -ETIMEDOUT: it took too long, -ECONNRESET or -EPIPE:
 * the server ended before its head was whole, -EPROTO: what it sent is no response, -EOVERFLOW: its head is
 * longer than 32 KB or 100 lines, -EBUSY: it is overloaded; -EINVAL: the request is invalid, -E2BIG: its head
 * is too long; -EBADMSG: its content ended before its length; or what the content's source reported.
 */
MK_API int mk_client_head(struct mk_client *c);
/** The status that a client should get for such an error: 502, 503 or 504; for those of the request 400, 413,
 * 431 or 500. */
MK_API unsigned mk_client_status_of(int error);
/** What went wrong, for a log: static text, never NULL. */
MK_API const char *mk_client_problem(const struct mk_client *c);
struct mk_request;
/** Writes that to the error log of the host of this request, with the upstream and the server. */
MK_API void mk_client_report(const struct mk_client *c, struct mk_request *request);

/** Of the head that is there, as long as it is the last one. Fields of the connection and of the framing are
 * left out, and for wires other than HTTP `Status`. */
MK_API unsigned mk_client_status(const struct mk_client *c);
MK_API bool mk_client_field_at(const struct mk_client *c, size_t i, mk_str *name, mk_str *value);
MK_API mk_str mk_client_field(const struct mk_client *c, mk_str name);
/** Length of the content; MK_LENGTH_UNKNOWN until its end. What a HEAD would have got. */
MK_API int64_t mk_client_length(const struct mk_client *c);
/** Wires other than HTTP: does the head say nothing but a Location that is a path of this server? Then its
 * program means a redirect within this server (RFC 3875, section 6.2.2). mk_client_status() is 302. */
MK_API bool mk_client_is_local_redirect(const struct mk_client *c);
/** Has the server changed to the protocol that was asked for? Then mk_client_read() reads what it sends in
 * it. */
MK_API bool mk_client_is_upgraded(const struct mk_client *c);

/**
 * The next bytes of the content: how many, 0 at its end (then the connection is given back), -EAGAIN, or why
 * it is incomplete. Reads right into `room`, and from the server no more than that. The rest of the request's
 * content is sent meanwhile; a server that answers before it has read all of it need not read the rest.
 *
 * Content of a known length need not be read behind its last byte.
 */
MK_API ssize_t mk_client_read(struct mk_client *c, char *room, size_t cap);
/** The trailers, once mk_client_read() has answered 0; false when there are no more. Fields that may be no
 * trailer are left out. */
MK_API bool mk_client_trailer_at(const struct mk_client *c, size_t i, mk_str *name, mk_str *value);

/** The content's source has something again. Sends what there is; if the exchange fails by that, on_ready()
 * is called later. */
MK_API void mk_client_resume(struct mk_client *c);

/** The server that answers, or was asked last, as the configuration writes it, and its number among those of
 * the upstream; -1: none. */
MK_API mk_str mk_client_server_name(const struct mk_client *c);
MK_API int mk_client_server(const struct mk_client *c);

/** The limits of a route that sets none: two servers, 60 s for each wait. */
MK_API void mk_client_limits_init(struct mk_client_limits *limits);
/** The options that mk_client_limits_read() reads, for the form of a handler. */
#define MK_CLIENT_LIMITS_FORM "[tries=NUMBER] [wait=TIME] [silence=TIME]"
/**
 * Reads an option of a route, in bind() of a handler, if it is one of MK_CLIENT_LIMITS_FORM: 1. 0: it is
 * another one. -EINVAL: the value is wrong, which has been reported. Both texts are slices of the route.
 *
 *     int e = mk_client_limits_read(spot, name, value, &route->limits);
 *     if (e)
 *         return e > 0;
 */
MK_API int mk_client_limits_read(const struct mk_conf_spot *spot, mk_str name, mk_str value,
                                 struct mk_client_limits *limits);

/** At any time; what is not complete is cancelled. NULL is fine. */
MK_API void mk_client_free(struct mk_client *c);

#ifdef __cplusplus
}
#endif

#endif
