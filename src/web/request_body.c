/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the request body, for handlers and hooks. */
#include "web/dispatch.h"
#include "web/effective_limits.h"

static uint64_t body_length(const struct mk_request *r)
{
    if (mk_response_body_is_tunnel(&mk_exchange_of(r)->response.content))
        return MK_REQUEST_LENGTH_UNKNOWN;
    return mk_request_body_was_dropped(r) ? 0 : r->length;
}

int64_t mk_request_length(const struct mk_request *r)
{
    uint64_t length = body_length(r);
    return length == MK_REQUEST_LENGTH_UNKNOWN ? -1 : (int64_t)length;
}

ssize_t mk_request_read(struct mk_request *r, char *buf, size_t cap)
{
    if (!r->ops || !body_length(r))
        return 0;
    if (MK_UNLIKELY(mk_exchange_of(r)->handler_sets_body_max) &&
        !mk_dispatch_may_read_body(mk_exchange_of(r)))
        return -EMSGSIZE;
    ssize_t n = cap ? r->ops->read(r->ops_ctx, buf, cap) : -EINVAL;
    mk_exchange_of(r)->body_has_ended |= n == 0;
    if (MK_UNLIKELY(n == -EMSGSIZE))
        mk_effective_limits_log_too_long(mk_exchange_of(r), mk_request_body_max(r), false);
    return n;
}
