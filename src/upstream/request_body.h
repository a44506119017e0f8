/* SPDX-License-Identifier: Apache-2.0 */
/* Request body on its way to a backend. By default it is received completely before a connection is acquired,
 * so that a slow client does not occupy one: up to 16 KB in request memory, the rest in a spool. */
#ifndef MK_UPSTREAM_REQUEST_BODY_H
#define MK_UPSTREAM_REQUEST_BODY_H

#include <monkey/request.h>
#include <monkey/spool.h>
#include <monkey/upstream.h>

enum mk_request_body_mode {
    MK_REQUEST_BODY_BUFFER,       /* buffer the complete body first */
    MK_REQUEST_BODY_BUFFER_SMALL, /* buffer small bodies of known length; stream others */
    MK_REQUEST_BODY_STREAM,       /* stream the body as it arrives */
};

enum mk_request_body_upgrade {
    MK_REQUEST_BODY_NO_UPGRADE,
    MK_REQUEST_BODY_WANTS_UPGRADE, /* the body is buffered before the upgrade: a body longer than 16 KB
                                    * cancels the upgrade */
    MK_REQUEST_BODY_UPGRADED,      /* the backend has switched protocols: data read from now on belongs to the
                                    * tunnel */
};

/* Zero the struct and set `request`, `sends_trailer`, `mode`, `upgrade` and `is_held` before
 * mk_request_body_init(). */
struct mk_request_body {
    struct mk_request *request;
    /* Should this trailer of the client be forwarded? NULL: no trailers are forwarded. */
    bool (*sends_trailer)(struct mk_request_body *b, mk_str name);
    uint8_t mode;
    enum mk_request_body_upgrade upgrade;
    bool is_held; /* the client waits for 100 Continue, which the backend may send */

    bool is_readable; /* mk_request_read() may be called, because the server has called the handler or its
                      * body source */
    bool is_complete; /* the complete body is in `text` and `spool` */
    int64_t length;   /* length of the client's body; MK_LENGTH_UNKNOWN */
    char *text;       /* beginning of the body; NULL: none */
    size_t cap, len, sent;
    struct mk_spool *spool; /* rest of the body; NULL: none, or streamed */
    uint64_t spool_sent;
};

/* Initializes the body. False: out of memory. */
bool mk_request_body_init(struct mk_request_body *b);
/* Receives the part that must be buffered before a backend is contacted. 0: complete; -EAGAIN; or an error
 * for mk_spool_status(). */
int mk_request_body_receive(struct mk_request_body *b);
/* Call it after mk_request_body_receive(): attaches the body to an upstream request. The body must outlive
 * that request. */
void mk_request_body_attach(struct mk_request_body *b, struct mk_upstream_request_options *options);

#endif
