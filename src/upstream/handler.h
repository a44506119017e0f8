/* SPDX-License-Identifier: Apache-2.0 */
/* Common part of the handlers proxy, fastcgi, scgi and uwsgi: receive a request, send it to a backend, and
 * return the backend's response. */
#ifndef MK_UPSTREAM_HANDLER_H
#define MK_UPSTREAM_HANDLER_H

#include <monkey/state_machine.h>

#include "base/compiler.h"
#include "upstream/request_body.h"
#include "upstream/route_option.h"

enum mk_upstream_handler_step {
    MK_HANDLER_RECEIVE_BODY, /* receiving the request body */
    MK_HANDLER_WAIT_HEAD,    /* sending the request, waiting for the response head */
    MK_HANDLER_BODY,         /* passing on the response body */
    MK_HANDLER_TUNNEL,       /* passing bytes of another protocol in both directions */
    MK_HANDLER_DONE,         /* rejected, declined, or complete */
    MK_HANDLER_STEPS
};

extern const struct mk_state_machine mk_upstream_handler_machine;

/* State of one proxied request; first member of each handler's own struct. */
struct mk_upstream_handler {
    const struct mk_upstream_handler_ops *ops;
    struct mk_request *request;
    struct mk_response *response;
    struct mk_upstream_request *upstream; /* NULL: not started or already freed */
    struct mk_request_body body;
    struct mk_state step;                       /* enum mk_upstream_handler_step */
    const struct mk_route_statuses *intercepts; /* responses that become error pages of this server; NULL:
                                                 * none */
    size_t discarded;                           /* bytes of the body of such a response */
    bool spools; /* spool the response, so that a slow client does not occupy the connection */
};

/* Callbacks of a handler. */
struct mk_upstream_handler_ops {
    /* Fills in the upstream request, including its body; method, idempotency and client are already set.
     * Returns 0, or the status to reject the request with. */
    unsigned (*make_request)(struct mk_upstream_handler *h, struct mk_upstream_request_options *options);
    /* Called when the request was started. This and all later callbacks except copy_head() may be NULL. */
    void (*on_start)(struct mk_upstream_handler *h, const struct mk_upstream_request_options *options);
    /* Called when the backend has sent an interim response (1xx). */
    void (*on_interim)(struct mk_upstream_handler *h);
    /* Called when the response head has arrived. True: the response is not for the client, and the handler
     * returns *verdict; after MK_WAIT, the function is called again. */
    bool (*replace)(struct mk_upstream_handler *h, enum mk_verdict *verdict);
    /* Copies status and headers to our response. Returns 0 or a negated errno value. */
    int (*copy_head)(struct mk_upstream_handler *h);
    /* Called when the request has ended. */
    void (*on_request_end)(struct mk_upstream_handler *h);
    /* Responds with an error. NULL: an error page. */
    enum mk_verdict (*respond_with_error)(struct mk_upstream_handler *h, unsigned status);
    /* Receives the backend's standard error output; `h` is the handler. */
    void (*on_error_text)(void *h, mk_str text);
};

static inline void mk_upstream_handler_move(struct mk_upstream_handler *h, enum mk_upstream_handler_step to)
{
    mk_state_move(&h->step, &mk_upstream_handler_machine, h, to);
}

/* Handles the first call to a handler. `h` is zeroed except for ops, request, response, spools,
 * intercepts, and the body's mode and upgrade. */
enum mk_verdict mk_upstream_handler_start(struct mk_upstream_handler *h);
/* Returns the state of the handler on later calls. NULL: this is the first call. */
static inline struct mk_upstream_handler *mk_upstream_handler_of(const struct mk_request *request)
{
    return mk_request_data(request);
}
enum mk_verdict mk_upstream_handler_run(struct mk_upstream_handler *h);

/* Responds with an error page. */
enum mk_verdict mk_upstream_handler_error(struct mk_response *response, unsigned status);

#endif
