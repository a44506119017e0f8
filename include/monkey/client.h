/* SPDX-License-Identifier: Apache-2.0 */
/* Asking a server behind this one: one exchange over HTTP/1.1, FastCGI, SCGI or uwsgi, on a connection of
 * monkey/upstream.h. Its functions are in monkey-upstream.so. */
#ifndef MONKEY_CLIENT_H
#define MONKEY_CLIENT_H

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

/** A field of the request or, for all wires but HTTP, a variable of CGI (RFC 3875, section 4.1). */
struct mk_client_field {
    mk_str name, value;
};

/** The content of a request that is made while it is sent. */
struct mk_client_content {
    struct mk_source_ops
        source; /**< pull() as ever; -EAGAIN: mk_client_resume() follows. close may be NULL */
    /** Begin again with the first byte, for another attempt: true if that is possible. NULL: never, once
     * pull() was called. */
    bool (*rewind)(void *ctx);
};

/** What to ask. Texts, fields and this struct need to live during mk_client_start() alone, except where it
 * says otherwise. */
struct mk_client_request {
    struct mk_upstream *to;
    enum mk_wire wire;
    mk_str method, target; /**< HTTP: of the request line. A HEAD gets no content; for other wires too */
    const struct mk_client_field
        *fields; /**< HTTP: with Host; without those of the connection and the framing,
                      which the client writes: Connection, Upgrade, TE, Content-Length,
                      Transfer-Encoding. Other wires: without CONTENT_LENGTH */
    size_t n_fields;
    int64_t length; /**< of the content; 0: none; MK_LENGTH_UNKNOWN: chunked, over HTTP alone */
    mk_str content; /**< all of it, if it is at hand; lives until mk_client_free(); then no `source` */
    const struct mk_client_content *source; /**< lives until mk_client_free(), as does its ctx */
    void *source_ctx;
    mk_str upgrade; /**< HTTP: the protocol that is asked for; after 101, `source` is what we send in it */
    bool is_safe_to_repeat; /**< of a method that may be repeated (RFC 9110, section 9.2.2): another server
                               may be tried when one has failed before its response began */
    unsigned tries;         /**< at most so many servers; 0: 1 */
    struct mk_link_wish wish;
    uint32_t response_ms; /**< at most so long until the response begins, from the request's last byte on;
                             0: no limit */
    uint32_t silence_ms;  /**< at most so long between two pieces of the response, or two that are sent;
                             0: no limit */
    /** FastCGI: what the program writes to its standard error, a piece at a time. May be NULL. */
    void (*on_error_text)(void *ctx, mk_str text);
};

/** An exchange. Belongs to the worker that began it. */
struct mk_client;

/**
 * Begins an exchange. on_ready(ctx) is called whenever one of the functions below may go on, never from
 * inside them. NULL: no memory, or a head that is too long.
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
 * mk_client_problem()): what mk_link_state() reports, -ETIMEDOUT: it took too long, -ECONNRESET: the server
 * ended before its head was whole, -EPROTO: what it sent is no response, -EMSGSIZE: its head is too long, or
 * what the content's source reported.
 */
MK_API int mk_client_head(struct mk_client *c);
/** The status that a client should get for such an error: 502, 503 or 504; for those of the source 400, 413
 * or 500. */
MK_API unsigned mk_client_status_of(int error);
/** What went wrong, for a log: static text, never NULL. */
MK_API const char *mk_client_problem(const struct mk_client *c);

/** Of the head that is there, as long as it is the last one. Fields of the connection and of the framing are
 * left out, and for wires other than HTTP `Status`. */
MK_API unsigned mk_client_status(const struct mk_client *c);
MK_API bool mk_client_field_at(const struct mk_client *c, size_t i, mk_str *name, mk_str *value);
MK_API mk_str mk_client_field(const struct mk_client *c, mk_str name);
/** Length of the content; MK_LENGTH_UNKNOWN until its end. What a HEAD would have got. */
MK_API int64_t mk_client_length(const struct mk_client *c);
/** Has the server changed to the protocol that was asked for? Then mk_client_read() reads what it sends in
 * it. */
MK_API bool mk_client_is_upgraded(const struct mk_client *c);

/**
 * The next bytes of the content: how many, 0 at its end (then the connection is given back), -EAGAIN, or why
 * it is incomplete. Reads right into `room`, and from the server no more than that; sends the rest of the
 * request's content meanwhile.
 */
MK_API ssize_t mk_client_read(struct mk_client *c, char *room, size_t cap);
/** The trailers, once mk_client_read() has answered 0; false when there are no more. */
MK_API bool mk_client_trailer_at(const struct mk_client *c, size_t i, mk_str *name, mk_str *value);

/** The content's source has something again. Sends what there is. */
MK_API void mk_client_resume(struct mk_client *c);

/** The server that answers, or was asked last, as the configuration writes it, and its number among those of
 * the upstream; -1: none. */
MK_API mk_str mk_client_server_name(const struct mk_client *c);
MK_API int mk_client_server(const struct mk_client *c);

/** At any time; what is not complete is cancelled. NULL is fine. */
MK_API void mk_client_free(struct mk_client *c);

#ifdef __cplusplus
}
#endif

#endif
