/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the context of a request. */
#ifndef DUDA_SERVICE_REQUEST_CTX_H
#define DUDA_SERVICE_REQUEST_CTX_H

#include <monkey/router.h>

#include "service/memory.h"
#include "service/scheduler.h"
#include "service/worker_ctx.h"

static inline size_t duda_params_text_size(const struct mk_router_match *match)
{
    size_t n = 0;
    for (size_t i = 0; i < match->n; i++)
        n += match->params[i].value.len + 1;
    return n;
}

/* A handler has its own memory, separate from its request's: the handler of a tunnel may end long before the
 * tunnel, and a terminated handler outlives its request. */
static inline struct duda_ctx *duda_request_ctx_alloc(struct mk_request *request, size_t size)
{
    struct duda_worker_ctx *worker_ctx = duda_worker_ctx(mk_request_worker(request));
    struct duda_ctx_ref *ctx_ref = mk_request_alloc(request, sizeof *ctx_ref);
    if (!ctx_ref)
        return NULL;
    ctx_ref->d = NULL;
    if (mk_request_add_cleanup(request, duda_scheduler_on_request_end, ctx_ref))
        return NULL;
    struct duda_ctx *d = ctx_ref->d = duda_memory_acquire_block(worker_ctx, size);
    if (d)
        *d = (struct duda_ctx){.request = request, .ctx_ref = ctx_ref, .worker_ctx = worker_ctx};
    return d;
}

/* Returns a context with the parameters of the matched route; NULL if out of memory. The end of the request
 * frees it. Inline, because every request needs a context. */
static inline struct duda_ctx *duda_request_ctx_new(struct mk_request *request,
                                                    const struct mk_router_match *match)
{
    size_t params = match->n * sizeof(struct duda_param_value);
    struct duda_ctx *d = duda_request_ctx_alloc(request, sizeof *d + params + duda_params_text_size(match));
    if (!d)
        return NULL;
    struct duda_param_value *p = (struct duda_param_value *)(void *)(d + 1);
    char *text = (char *)(d + 1) + params;
    d->params = p;
    d->n_params = match->n;
    for (size_t i = 0; i < match->n; i++) {
        mk_str value = match->params[i].value;
        if (value.len)
            memcpy(text, value.p, value.len);
        text[value.len] = '\0';
        p[i] = (struct duda_param_value){match->params[i].name, mk_str_of(text, value.len)};
        text += value.len + 1;
    }
    return d;
}

#endif
