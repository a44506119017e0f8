/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/request_timer.h"

static uint32_t awaited_timeout_ms(const struct mk_upstream_request *c)
{
    switch ((enum mk_upstream_request_wait_kind)c->awaits) {
    case MK_UPSTREAM_REQUEST_AWAITS_RESPONSE:
        return c->limits.response_timeout_ms;
    case MK_UPSTREAM_REQUEST_AWAITS_ROOM:
    case MK_UPSTREAM_REQUEST_AWAITS_PIECE:
        return c->limits.read_timeout_ms;
    case MK_UPSTREAM_REQUEST_AWAITS_NOTHING:
        break;
    }
    return 0;
}

void mk_upstream_request_timer_init(struct mk_upstream_request *c, void (*on_due)(struct mk_timer *t),
                                    void (*on_later)(void *c))
{
    mk_timer_init(&c->timer, on_due);
    c->on_later = on_later;
}

void mk_upstream_request_timer_fini(struct mk_upstream_request *c)
{
    mk_timer_stop(&c->timer);
    mk_deferred_free(c->later);
}

/* If out of memory, the next event continues the work. */
void mk_upstream_request_timer_run_later(struct mk_upstream_request *c)
{
    if (!c->later)
        c->later = mk_deferred_new(c->worker, c->on_later, c);
    if (c->later)
        mk_deferred_post(c->later);
}

static void set_timer_at(struct mk_upstream_request *c, uint64_t now, uint64_t due)
{
    c->rings_ms = due;
    mk_timer_set(&c->timer, c->worker, due > now ? (uint32_t)(due - now) : 0);
}

void mk_upstream_request_timer_set(struct mk_upstream_request *c, enum mk_upstream_request_wait_kind what)
{
    if (c->awaits == what)
        return;
    c->awaits = (uint8_t)what;
    uint32_t limit = awaited_timeout_ms(c);
    if (!limit)
        return;
    uint64_t now = mk_worker_now_ms(c->worker);
    c->since_ms = now;
    if (!c->rings_ms || now + limit < c->rings_ms)
        set_timer_at(c, now, now + limit);
}

void mk_upstream_request_timer_set_head(struct mk_upstream_request *c)
{
    bool has_part = c->input.reply.text.len > 0;
    mk_upstream_request_timer_set(c, has_part ? MK_UPSTREAM_REQUEST_AWAITS_PIECE
                                              : MK_UPSTREAM_REQUEST_AWAITS_RESPONSE);
}

void mk_upstream_request_timer_set_check(struct mk_upstream_request *c, uint32_t ms)
{
    uint64_t now = mk_worker_now_ms(c->worker);
    c->looks_ms = now + ms;
    if (!c->rings_ms || c->looks_ms < c->rings_ms)
        set_timer_at(c, now, c->looks_ms);
}

bool mk_upstream_request_timer_is_check(struct mk_upstream_request *c)
{
    bool is_due = c->looks_ms && c->looks_ms <= mk_worker_now_ms(c->worker);
    c->rings_ms = 0;
    if (is_due)
        c->looks_ms = 0;
    return is_due;
}

bool mk_upstream_request_timer_expired(struct mk_upstream_request *c)
{
    uint32_t limit = awaited_timeout_ms(c);
    uint64_t now = mk_worker_now_ms(c->worker), due = limit ? c->since_ms + limit : UINT64_MAX,
             next = c->looks_ms && c->looks_ms < due ? c->looks_ms : due;
    c->rings_ms = 0;
    if (due > now && next != UINT64_MAX)
        set_timer_at(c, now, next);
    return due <= now;
}

const char *mk_upstream_request_timer_text(const struct mk_upstream_request *c)
{
    switch ((enum mk_upstream_request_wait_kind)c->awaits) {
    case MK_UPSTREAM_REQUEST_AWAITS_ROOM:
        return "the server does not read the request";
    case MK_UPSTREAM_REQUEST_AWAITS_RESPONSE:
        return "the server does not answer";
    case MK_UPSTREAM_REQUEST_AWAITS_PIECE:
    case MK_UPSTREAM_REQUEST_AWAITS_NOTHING:
        break;
    }
    return "the server stopped in the middle of its response";
}
