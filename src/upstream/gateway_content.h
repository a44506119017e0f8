/* SPDX-License-Identifier: Apache-2.0 */
/* The content of a request on its way to a program that has to know its length. */
#ifndef MK_UPSTREAM_GATEWAY_CONTENT_H
#define MK_UPSTREAM_GATEWAY_CONTENT_H

#include <monkey/request.h>
#include <monkey/spool.h>
#include <monkey/upstream.h>

struct mk_gateway_content {
    struct mk_request *request;
    struct mk_spool *spool; /* NULL: there is none, or it is streamed */
    uint64_t at;            /* of the spool: sent so far */
    bool is_called; /* the server has called the handler or its source: what is streamed can be read */
};

/* All of it, before a program is asked: a slow client occupies none. With `streams` not even its beginning,
 * if the client says how long it is. 0, -EAGAIN, or an error for mk_spool_status(). */
int mk_gateway_content_receive(struct mk_gateway_content *c, struct mk_request *request, bool streams);

/* Adds it to what is asked. It outlives the exchange. */
void mk_gateway_content_add(struct mk_gateway_content *c, struct mk_upstream_request_options *ask);

#endif
