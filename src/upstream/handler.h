/* SPDX-License-Identifier: Apache-2.0 */
/* What the handlers proxy, fastcgi, scgi and uwsgi have in common: they receive a request, send it to a backend, and answer with
 * its response. */
#ifndef MK_UPSTREAM_HANDLER_H
#define MK_UPSTREAM_HANDLER_H

#include <monkey/sm.h>

#include "base/compiler.h"
#include "upstream/request_body.h"

enum mk_upstream_handler_step {
    MK_HANDLER_RECEIVE_BODY, /* of the request */
    MK_HANDLER_WAIT_HEAD,    /* the request is being sent, and the head of the response is to come */
    MK_HANDLER_BODY,         /* of the response */
    MK_HANDLER_TUNNEL,       /* bytes of another protocol, in both directions */
    MK_HANDLER_DONE,         /* refused, answered by someone else, or over */
    MK_HANDLER_STEPS
};

extern const struct mk_sm_machine mk_upstream_handler_machine;

/* One request on its way. It begins the struct that a handler has for a request. */
struct mk_upstream_handler {
    const struct mk_upstream_handler_ops *ops;
    struct mk_request *request;
    struct mk_response *response;
    struct mk_upstream_request *upstream; /* NULL: not yet, or not any more */
    struct mk_request_body body;
    struct mk_sm step; /* enum mk_upstream_handler_step */
    bool spools;       /* the response, so that a slow client holds no connection */
};

/* What differs. */
struct mk_upstream_handler_ops {
    /* Says what the backend is asked for, the body included. Method, idempotency and client are set. 0, or the status to
     * refuse the request with. */
    unsigned (*make_request)(struct mk_upstream_handler *h, struct mk_upstream_request_options *options);
    /* The request was started. May be NULL, as all that follow but copy_head(). */
    void (*on_start)(struct mk_upstream_handler *h, const struct mk_upstream_request_options *options);
    /* The backend has sent an interim response (1xx). */
    void (*on_interim)(struct mk_upstream_handler *h);
    /* The head is there. True: it is no response for the client, and the handler returns *verdict. */
    bool (*replace)(struct mk_upstream_handler *h, enum mk_verdict *verdict);
    /* Makes status and fields of the head those of our response. 0 or a negated errno value. */
    int (*copy_head)(struct mk_upstream_handler *h);
    /* The request has ended. */
    void (*on_end)(struct mk_upstream_handler *h);
    /* For what a backend writes to its standard error; `h` is the handler. */
    void (*on_error_text)(void *h, mk_str text);
};

static inline void mk_upstream_handler_move(struct mk_upstream_handler *h, enum mk_upstream_handler_step to)
{
    mk_sm_move(&h->step, &mk_upstream_handler_machine, h, to);
}

/* The first call of a handler: `h` is zeroed but for ops, request, response, spools, and the mode and upgrade of the body. */
enum mk_verdict mk_upstream_handler_start(struct mk_upstream_handler *h);
/* The next ones. NULL: this is the first. */
static inline struct mk_upstream_handler *mk_upstream_handler_of(const struct mk_request *request)
{
    return mk_request_data(request);
}
enum mk_verdict mk_upstream_handler_run(struct mk_upstream_handler *h);

/* Answers with an error page. */
enum mk_verdict mk_upstream_handler_error(struct mk_response *response, unsigned status);

#endif
