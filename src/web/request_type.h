/* SPDX-License-Identifier: Apache-2.0 */
/* Request internals, opaque in include/monkey/request.h. */
#ifndef MK_WEB_REQUEST_TYPE_H
#define MK_WEB_REQUEST_TYPE_H

#include <monkey/http.h>
#include <monkey/request.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "event/tls.h"
#include "http/header.h"
#include "http/target.h"
#include "os/sockaddr.h"

/* The origin of a request target. */
enum mk_request_target_by {
    MK_TARGET_BY_CLIENT,  /* as received */
    MK_TARGET_BY_HOOK,    /* rewritten by on_request */
    MK_TARGET_BY_HANDLER, /* rewritten by a handler: from then on handled as a GET or HEAD without a body */
    MK_TARGET_BY_ROUTE,   /* rewritten by static to an index file or fallback: only the routes run again */
};

/* Variants: other paths that a program may derive from the path; see http/path_variants.h. The first
 * n_readings are interpretations of the whole path; the paths after script names follow. */
struct mk_request_path_variants {
    mk_str *list;
    size_t n, n_readings;
};

/* The decoded parameters of a query. */
struct mk_request_parameters {
    size_t n;
    struct {
        mk_str name, value; /* value: empty or absent if there is none */
    } list[];
};

/* The target of a request: first as received, later as rewritten by a hook, handler or route. A rewrite
 * creates a new struct, and never modifies an existing one. */
struct mk_request_target {
    enum mk_request_target_by by;
    enum mk_method method;
    unsigned path_flags; /* MK_PATH_... */
    bool is_plain;       /* mk_path_is_plain(): the path needed no decoding */
    bool no_content;     /* do not forward the request body (internal redirect) */
    struct mk_target target;
    mk_str path;                               /* decoded; absent: the target was invalid */
    const struct mk_request_target *before;    /* target before the rewrite; NULL: not rewritten */
    unsigned left_at;                          /* for MK_TARGET_BY_ROUTE: index of the route that rewrote
                                                * `before` */
    struct mk_request_path_variants *variants; /* variants of the path; NULL: not computed yet */
    struct mk_request_parameters *parameters;  /* of the query; NULL: not decoded yet */
    const char *marks; /* marks of encoded bytes, see mk_path_decode_marked(); NULL: not computed yet */
};

enum { MK_REQUEST_ID_MAX = 64 }; /* maximum length of an ID that a proxy may set */

struct mk_attempt;
struct mk_trace;

/* Lines of a changed set of headers: every index fits into mk_headers.first, which stores 1 + index. */
enum { MK_REQUEST_HEADERS_MAX = 254 };

/* Exists once a hook has changed the headers, which are then a copy in the request's arena. */
struct mk_request_header_changes {
    struct mk_headers received;          /* as the client sent them */
    bool is_set[MK_REQUEST_HEADERS_MAX]; /* the i-th of the changed headers was set by a hook */
    unsigned cap;                        /* lines for which the copy has memory */
};

/* A header name that a hook has set or removed. A trailer of that name must not bring the client's value back. */
struct mk_request_overridden_name {
    mk_str name;
    const struct mk_request_overridden_name *next;
};

struct mk_request_attachment;
struct mk_header;
struct mk_vhosts;
struct mk_route;
struct mk_trailers;
struct mk_web_ctx;

/* The protocol's operations for a request: the only calls from this layer to the layer above. `ctx` belongs
 * to the protocol. */
struct mk_request_ops {
    ssize_t (*read)(void *ctx, char *buf, size_t cap); /* implements mk_request_read() */
    void (*resume)(void *ctx);                         /* implements mk_request_resume() */
    mk_err (*local)(void *ctx, struct mk_addr *out);   /* implements mk_request_local_addr(); may be NULL */
    /* Implements mk_response_send_1xx(). Returns 0 or -EAGAIN. May be NULL. */
    mk_err (*interim)(void *ctx, unsigned status, const struct mk_header *fields, size_t n);
    /* Connection properties of a TLS request; NULL: not available. */
    void (*tls)(void *ctx, struct mk_tls_conn_info *out);
    /* Sets the body limit. -EMSGSIZE: the body is larger. May be NULL. */
    mk_err (*limit_body)(void *ctx, uint64_t max);
};

#define MK_REQUEST_LENGTH_UNKNOWN UINT64_MAX

/* Properties that most requests do not have, outside the request so that they are not cleared for each one. */
struct mk_request_extras {
    struct mk_request_header_changes *header_changes;          /* NULL: no hook has changed the headers */
    const struct mk_request_overridden_name *overridden_names; /* only if trailers may follow */
    mk_str id;                   /* request ID, NUL-terminated; absent: none is needed so far */
    const char *reason;          /* set by mk_request_set_reason(); NULL: not set */
    struct mk_trace *trace;      /* see monkey/trace.h; NULL: none */
    struct mk_attempt *attempts; /* attempts to obtain a response from backends; NULL: none are recorded */
};

struct mk_request {
    struct mk_arena *arena;
    struct mk_web_ctx *web;

    /* Properties of the received request: set once, before dispatch begins. */
    const struct mk_vhosts *hosts;     /* virtual hosts of this listener */
    unsigned version;                  /* 10, 11, 20 */
    bool encrypted;                    /* received over TLS */
    bool is_told, forwarded_is_secure; /* a trusted proxy reported the client's scheme */
    mk_str method_text, target_text;
    mk_str host;                 /* authority of the target, else the Host header; without port */
    mk_str forwarded_vhost_name; /* set by a server in front of this one; absent: none */
    struct mk_request_target received;
    struct mk_headers fields;
    uint64_t length; /* body length; MK_REQUEST_LENGTH_UNKNOWN: not declared */
    mk_str tunnel;   /* protocol requested by Upgrade or extended CONNECT; absent: none */
    mk_str upgrade;  /* like `tunnel`, for a request with a body or a method other than GET */
    int64_t now;     /* time of arrival in seconds since 1970 */
    uint64_t now_ms;
    struct mk_trailers *trailers; /* NULL: none, or the body has not ended */

    /* Current target: `received`, until it is rewritten. */
    const struct mk_request_target *target;

    /* Set by dispatch and its hooks. */
    const struct mk_vhost *site;
    const struct mk_route *route; /* route of the last called handler; NULL: none */
    bool handler_found_nothing;   /* a handler declined with 404: nothing exists at the path */
    bool is_ambiguous;            /* a hook would have decided differently for a variant of the path */
    bool trusts_proxy;            /* the peer is a trusted proxy, which may set the request ID */
    bool logs_id;                 /* the access log contains the ID in every format */
    const struct mk_addr *peer;   /* address of the peer, or the client address that a hook has set */
    struct mk_request_attachment *attached;
    struct mk_request_extras *extras; /* NULL: none */
    void *data;

    const struct mk_request_ops *ops; /* NULL: no body to read and no connection to resume */
    void *ops_ctx;
};

/* Does the client use TLS, to this server or to a trusted proxy? */
static inline bool mk_request_is_secure(const struct mk_request *request)
{
    return request->is_told ? request->forwarded_is_secure : request->encrypted;
}

/* Returns the extras, which it allocates if there are none. NULL: out of memory. */
struct mk_request_extras *mk_request_get_extras(struct mk_request *request);

/* The value of a header as the client has sent it; absent if there is none, or if there are several, because it is
 * unknown which one counts. */
mk_str mk_request_single_received_header(const struct mk_request *request, mk_str name);

/* Sets a header with which this server informs the program that gets the request, unless a hook has set it; absent: removes
 * the client's. Returns 0 or a negated errno value. */
int mk_request_set_context_header(struct mk_request *request, mk_str name, mk_str value);

/* The request ID, if it has one so far; otherwise absent. */
static inline mk_str mk_request_known_id(const struct mk_request *request)
{
    return request->extras ? request->extras->id : MK_STR_NULL;
}

/* The changes of hooks to the headers; NULL: none. */
static inline struct mk_request_header_changes *mk_request_header_changes(const struct mk_request *request)
{
    return MK_UNLIKELY(request->extras != NULL) ? request->extras->header_changes : NULL;
}

/* The headers as the client sent them. */
static inline const struct mk_headers *mk_request_received_headers(const struct mk_request *request)
{
    const struct mk_request_header_changes *changes = mk_request_header_changes(request);
    return MK_UNLIKELY(changes != NULL) ? &changes->received : &request->fields;
}

/* Was the i-th header set by a hook? */
static inline bool mk_request_header_is_set(const struct mk_request *request, size_t i)
{
    const struct mk_request_header_changes *changes = mk_request_header_changes(request);
    return MK_UNLIKELY(changes != NULL) && changes->is_set[i];
}

/* Drops the changes of hooks, which run again after a rewrite. */
static inline void mk_request_restore_headers(struct mk_request *request)
{
    if (!request->extras)
        return;
    if (request->extras->header_changes)
        request->fields = request->extras->header_changes->received;
    request->extras->header_changes = NULL;
    request->extras->overridden_names = NULL;
}

/* The headers at one point of the dispatch. */
struct mk_request_saved_headers {
    struct mk_headers fields;
    struct mk_request_header_changes *changes;
};
/* Saves the headers, if a hook has changed them; otherwise *out is NULL, which stands for the received
 * headers. Returns 0 or -ENOMEM. */
mk_err mk_request_save_headers(struct mk_request *request,
                               const struct mk_request_saved_headers **out) MK_MUST_USE;
/* Drops the changes since mk_request_save_headers(). Returns 0 or -ENOMEM. */
mk_err mk_request_restore_saved_headers(struct mk_request *request,
                                        const struct mk_request_saved_headers *saved) MK_MUST_USE;

struct mk_log;
/* Writes a message to `log`, with the details of the request. */
void mk_request_write_log(const struct mk_request *r, struct mk_log *log, enum mk_log_level level,
                          mk_str message);

/* Was the body dropped by a rewrite? A copy for the log has no target. */
static inline bool mk_request_body_was_dropped(const struct mk_request *request)
{
    return request->target && request->target->no_content;
}

#endif
