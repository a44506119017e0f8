/* SPDX-License-Identifier: Apache-2.0 */
/* The attempts of a request, for logs and traces. */
#include <monkey/attempt.h>

#include "base/clock.h"
#include "web/exchange.h"
#include "web/vhost.h"

struct mk_attempt *mk_request_add_attempt(struct mk_request *r)
{
    if (!r->site || !r->site->records_attempts)
        return NULL;
    struct mk_attempt *a = mk_arena_alloc(r->arena, sizeof *a);
    if (!a)
        return NULL;
    *a = (struct mk_attempt){.began_us = mk_clock_us()};
    struct mk_attempt **end = &r->attempts;
    while (*end)
        end = &(*end)->next;
    *end = a;
    return a;
}

const struct mk_attempt *mk_request_attempts(const struct mk_request *r)
{
    return r->attempts;
}
