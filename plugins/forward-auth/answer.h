/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of a service: whether a request is allowed, and the headers that go with it. Shared by the
 * requests that wait for it and by the cache. */
#ifndef FORWARD_AUTH_ANSWER_H
#define FORWARD_AUTH_ANSWER_H

#include "locations.h"

struct forward_auth_field {
    mk_str name, value;
    bool is_for_request; /* false: for the response to the client */
};

struct forward_auth_answer {
    unsigned refs;
    unsigned status;   /* 200: allowed; otherwise the status for the client */
    bool sets_cookies; /* such an answer must not be given to another request */
    size_t size;
    size_t n;
    struct forward_auth_field fields[];
};

/* An answer without headers: an error. NULL: out of memory. */
struct forward_auth_answer *forward_auth_answer_new_error(unsigned status) MK_API_MUST_USE;
/* Interprets the head of a response. An unexpected status becomes a 502. NULL: out of memory. */
struct forward_auth_answer *
forward_auth_answer_new(const struct forward_auth_location *place,
                        const struct mk_upstream_request *upstream) MK_API_MUST_USE;
static inline struct forward_auth_answer *forward_auth_answer_ref(struct forward_auth_answer *a)
{
    a->refs++;
    return a;
}
/* NULL is allowed. */
void forward_auth_answer_unref(struct forward_auth_answer *a);

#endif
