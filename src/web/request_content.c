/* SPDX-License-Identifier: Apache-2.0 */
/* The content of a request, as handlers and hooks read it. */
#include "web/flow.h"
#include "web/limits.h"

static uint64_t length_of(const struct mk_request *r)
{
    if (mk_content_is_tunnel(&mk_exchange_of(r)->response.content))
        return MK_REQUEST_LENGTH_UNKNOWN;
    return mk_request_lost_content(r) ? 0 : r->length;
}

int64_t mk_request_length(const struct mk_request *r)
{
    uint64_t length = length_of(r);
    return length == MK_REQUEST_LENGTH_UNKNOWN ? -1 : (int64_t)length;
}

ssize_t mk_request_read(struct mk_request *r, char *room, size_t cap)
{
    if (!r->ops || !length_of(r))
        return 0;
    if (MK_UNLIKELY(mk_exchange_of(r)->body_open) && !mk_flow_may_read(mk_exchange_of(r)))
        return -EMSGSIZE;
    ssize_t n = cap ? r->ops->read(r->ops_ctx, room, cap) : -EINVAL;
    mk_exchange_of(r)->content_over |= n == 0;
    if (MK_UNLIKELY(n == -EMSGSIZE))
        mk_limits_report_length(mk_exchange_of(r), mk_request_body_max(r), false);
    return n;
}
