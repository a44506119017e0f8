/* SPDX-License-Identifier: Apache-2.0 */
#include "web/exchange.h"

#include "base/clock.h"

struct mk_exchange *mk_exchange_new(struct mk_web *web, struct mk_arena_cache *cache, uint64_t now_ms,
                                    int64_t now)
{
    struct mk_arena arena;
    mk_arena_init(&arena, cache);
    return mk_exchange_new_in(&arena, web, now_ms, now);
}

struct mk_exchange *mk_exchange_new_in(struct mk_arena *arena, struct mk_web *web, uint64_t now_ms,
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
    x->request.asked = x->begun_with = &x->request.received;
    mk_response_init(&x->response, &x->arena);
    x->step = MK_FLOW_HOST;
    x->at = x->allowed = x->passed_with = x->reroutes = x->rewrites = 0;
    x->read_error = 0;
    x->began_us = MK_UNLIKELY(web->precise) ? mk_clock_us() : 0;
    x->decided_by = NULL;
    x->untold = x->content_over = x->replaced = x->follows_client = x->challenge = x->aborted = x->entered =
        x->body_open = x->body_own = x->told_length = false;
    x->body_route = NULL;
    x->limits = NULL;
    x->of_variants = NULL;
    x->destination = NULL;
    x->last_called = "";
    return x;
}

void mk_exchange_free(struct mk_exchange *x)
{
    if (x->response.content.source)
        mk_content_fini(&x->response.content);
    mk_arena_destroy(&x->arena);
}
