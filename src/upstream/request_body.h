/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a request on its way to a backend. By default it is received as a whole before a connection is taken, so that a
 * slow client holds none: a small one in the memory of the request, what follows in a spool. */
#ifndef MK_UPSTREAM_REQUEST_BODY_H
#define MK_UPSTREAM_REQUEST_BODY_H

#include <monkey/request.h>
#include <monkey/spool.h>
#include <monkey/upstream.h>

enum mk_request_body_mode {
    MK_REQUEST_BODY_BUFFER,       /* all of it is received first */
    MK_REQUEST_BODY_BUFFER_SMALL, /* if it is small and its length is known; other bodies are streamed */
    MK_REQUEST_BODY_STREAM,       /* sent as it arrives */
};

/* Zeroed, and with the members of the first group set, it is ready for mk_request_body_init(). */
struct mk_request_body {
    struct mk_request *request;
    /* Which trailers of the client are sent, too. NULL: none */
    bool (*sends_trailer)(struct mk_request_body *b, mk_str name);
    uint8_t mode;
    bool
        has_upgrade; /* the request asks for another protocol. Its body must have ended before that begins: if it is too
                         long, this becomes false */
    bool is_held; /* the client waits for 100 Continue, which the backend decides about */

    bool
        is_tunnel; /* the backend has changed to the other protocol: what is read from now on is sent in it */
    bool
        is_readable; /* the server has called the handler or its source, so that mk_request_read() may be called */
    bool is_complete; /* all of it is in `text` and `spool` */
    char *text;       /* its beginning, NULL: none */
    size_t cap, len, sent;
    struct mk_spool *spool; /* what follows; NULL: nothing, or it is streamed */
    uint64_t spool_sent;
};

/* False: no memory. */
bool mk_request_body_init(struct mk_request_body *b);
/* Receives what is to be here before a backend is asked. 0: it is; -EAGAIN, or an error for mk_spool_status(). */
int mk_request_body_receive(struct mk_request_body *b);
/* Then: adds the body to a request to the backend, which it outlives. */
void mk_request_body_attach(struct mk_request_body *b, struct mk_upstream_request_options *options);

#endif
