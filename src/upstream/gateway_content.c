/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/gateway_content.h"

#include <errno.h>

int mk_gateway_content_receive(struct mk_gateway_content *c, struct mk_request *request, bool streams)
{
    int64_t length = mk_request_length(request);
    c->request = request;
    if (!length || (streams && length > 0))
        return 0;
    return mk_spool_request(request, 0, &c->spool);
}

static ssize_t pull_spooled(void *ctx, char *room, size_t cap)
{
    struct mk_gateway_content *c = ctx;
    ssize_t n = mk_spool_read(c->spool, room, cap, c->at);
    if (n > 0)
        c->at += (uint64_t)n;
    return n;
}

static bool rewind_spooled(void *ctx)
{
    ((struct mk_gateway_content *)ctx)->at = 0;
    return true;
}

static ssize_t pull_streamed(void *ctx, char *room, size_t cap)
{
    struct mk_gateway_content *c = ctx;
    if (c->is_called)
        return mk_request_read(c->request, room, cap);
    mk_request_resume(c->request); /* the connection has room for more: the server has to call us first */
    return -EAGAIN;
}

static const struct mk_upstream_request_body spooled = {.source = {.pull = pull_spooled},
                                                        .rewind = rewind_spooled};
static const struct mk_upstream_request_body streamed = {.source = {.pull = pull_streamed}};

void mk_gateway_content_add(struct mk_gateway_content *c, struct mk_upstream_request_options *ask)
{
    ask->length = c->spool ? (int64_t)mk_spool_length(c->spool) : mk_request_length(c->request);
    if (!ask->length)
        return;
    ask->source = c->spool ? &spooled : &streamed;
    ask->source_ctx = c;
}
