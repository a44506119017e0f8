/* SPDX-License-Identifier: Apache-2.0 */
/* Queries to services: each asks once for all requests with the same key. */
#ifndef FORWARD_AUTH_QUERY_H
#define FORWARD_AUTH_QUERY_H

#include "cache.h"

#include <monkey/timer.h>
#include <monkey/worker.h>

enum { FORWARD_AUTH_QUERY_LISTS = 256 };

struct forward_auth_query;

/* Worker state of this plugin. */
struct forward_auth_worker {
    struct mk_worker *worker;
    char secret[32];                                              /* of the keys */
    struct forward_auth_query *queries[FORWARD_AUTH_QUERY_LISTS]; /* by the first byte of their key */
    struct forward_auth_cache cache;
};

/* A request that needs a permission for a location. */
struct forward_auth_waiter {
    struct mk_request *request;
    const struct forward_auth_location *place;
    struct forward_auth_query *query;   /* NULL: the answer has arrived */
    struct forward_auth_answer *answer; /* NULL: not arrived yet */
    bool asks_alone;                    /* the answer to an equal request was not for this one */
    struct forward_auth_waiter *next;   /* of the same query */
    struct forward_auth_waiter *before; /* of the same request, for another location */
};

struct forward_auth_worker *forward_auth_worker_new(struct mk_worker *worker) MK_API_MUST_USE;
void forward_auth_worker_free(struct forward_auth_worker *w);

/* Takes a cached answer, joins a running query, or starts one; resumes the request when the answer arrives
 * later. False: out of memory. */
bool forward_auth_query_ask(struct forward_auth_worker *w,
                            struct forward_auth_waiter *waiter) MK_API_MUST_USE;
/* Call this when the request has ended. The last waiter cancels the query. */
void forward_auth_waiter_leave(struct forward_auth_waiter *waiter);

#endif
