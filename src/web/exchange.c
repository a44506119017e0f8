/* SPDX-License-Identifier: Apache-2.0 */
#include "web/exchange.h"

#include "base/clock.h"

struct mk_exchange *mk_exchange_new(struct mk_web_ctx *web, struct mk_arena_cache *cache, uint64_t now_ms,
                                    int64_t now)
{
    struct mk_arena arena;
    mk_arena_init(&arena, cache);
    return mk_exchange_new_in_arena(&arena, web, now_ms, now);
}

struct mk_exchange *mk_exchange_new_in_arena(struct mk_arena *arena, struct mk_web_ctx *web, uint64_t now_ms,
                                             int64_t now)
{
    struct mk_exchange *x = mk_arena_alloc_inline(arena, sizeof *x);
    if (!x) {
        mk_arena_fini(arena);
        return NULL;
    }
    x->arena = *arena;
    x->request = (struct mk_request){
        .arena = &x->arena, .web = web, .hosts = web->hosts, .now = now, .now_ms = now_ms};
    x->request.target = x->dispatched_target = &x->request.received;
    mk_response_init(&x->response, &x->arena);
    x->step = MK_DISPATCH_HOST;
    x->record = 0;
    x->at = x->allowed = x->declined_status = x->reroutes = x->rewrites = 0;
    x->read_error = 0;
    x->began_us = MK_UNLIKELY(web->precise) ? mk_clock_us() : 0;
    x->deciding_plugin = NULL;
    x->handler_skipped = x->error_hooks_called = x->body_has_ended = x->replaced = x->follows_client =
        x->is_path_named = x->is_acme_request = x->aborted = x->https_checked = x->too_long_logged_at = false;
    x->body_route = NULL;
    x->limits = NULL;
    x->variants_limits = NULL;
    x->destination = NULL;
    x->last_called = "";
    return x;
}

void mk_exchange_free(struct mk_exchange *x)
{
    if (x->response.content.source)
        mk_response_body_fini(&x->response.content);
    mk_arena_destroy(&x->arena);
}
