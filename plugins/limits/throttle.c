/* SPDX-License-Identifier: Apache-2.0 */
#include "throttle.h"

#include <errno.h>

#include "rate.h"
#include "rate_key.h"

enum {
    PORTIONS = 16,       /* portions per second */
    PORTION_MIN = 1024,  /* minimum size of a portion in bytes */
    SLEEP_MIN_MS = 50,   /* wakes up at most 20 times a second */
    SLEEP_MAX_MS = 1000, /* short enough that the client does not time out */
    WAIT_MAX_MS = 10000, /* a portion with a longer wait is not charged, but retried later */
};

struct share {
    const struct limits_rule *rule;
    struct limits_bucket *line; /* the bucket to charge: in the table, or `own` */
    struct limits_bucket own;
    uint64_t subject;
};

/* Charges a portion to every rule, waits until it is due under all of them, and sends it. */
struct throttle {
    struct mk_request *request;
    struct mk_timer timer;
    uint64_t due_ms;  /* when the portion may be sent */
    uint64_t portion; /* unsent bytes of the portion */
    uint64_t free;    /* remaining bytes that are not counted */
    uint64_t size;    /* size of a portion */
    uint64_t left;    /* remaining bytes of the body; UINT64_MAX: unknown */
    size_t n;
    struct share shares[];
};

static uint64_t throttle_now_ms(const struct throttle *p)
{
    return mk_worker_now_ms(mk_request_worker(p->request));
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void refund_portion(struct throttle *p, size_t n, uint64_t bytes)
{
    for (size_t i = 0; i < n && bytes; i++) {
        struct share *s = &p->shares[i];
        limits_bucket_refund(s->line, s->subject, throttle_now_ms(p),
                             limits_rate_ticks_for_bytes(bytes, s->rule->rate));
    }
}

/* Charges the next portion to all rules, or to none of them and retries later. */
static void charge_next_portion(struct throttle *p)
{
    uint64_t want = min_u64(p->size, p->left), wait = 0;
    for (size_t i = 0; i < p->n; i++) {
        struct share *s = &p->shares[i];
        struct limits_charge c = {.cost = limits_rate_ticks_for_bytes(want, s->rule->rate),
                                  .tolerance = s->rule->tolerance,
                                  .wait_max = WAIT_MAX_MS * LIMITS_TICKS};
        uint64_t w = limits_bucket_charge(s->line, s->subject, throttle_now_ms(p), &c);
        wait = w > wait ? w : wait;
        if (w > c.wait_max) {
            refund_portion(p, i, want);
            want = 0;
            break;
        }
    }
    p->portion = want;
    p->due_ms = throttle_now_ms(p) + min_u64((wait + LIMITS_TICKS - 1) / LIMITS_TICKS, WAIT_MAX_MS);
}

static void on_throttle_timer(struct mk_timer *t)
{
    struct throttle *p = MK_CONTAINER(t, struct throttle, timer);
    mk_request_resume(p->request);
}

static void schedule_resume(struct throttle *p)
{
    uint64_t ms = p->due_ms - throttle_now_ms(p);
    ms = ms < SLEEP_MIN_MS ? SLEEP_MIN_MS : min_u64(ms, SLEEP_MAX_MS);
    mk_timer_set(&p->timer, mk_request_worker(p->request), (uint32_t)ms);
}

/* Returns how many bytes may be sent now. */
static uint64_t bytes_allowed_now(struct throttle *p)
{
    if (p->free)
        return p->free;
    if (throttle_now_ms(p) >= p->due_ms && p->portion == 0)
        charge_next_portion(p);
    return throttle_now_ms(p) >= p->due_ms ? p->portion : 0;
}

static void consume_allowance(struct throttle *p, uint64_t n)
{
    uint64_t for_free = min_u64(n, p->free);
    p->free -= for_free;
    p->portion -= n - for_free;
    if (p->left != UINT64_MAX)
        p->left -= min_u64(n, p->left);
}

static ssize_t read_throttled(void *ctx, struct mk_filter_next *next, char *buf, size_t cap)
{
    struct throttle *p = ctx;
    uint64_t may = p->left ? bytes_allowed_now(p) : cap; /* reading EOF after the last byte is not limited */
    if (may == 0) {
        schedule_resume(p);
        return -EAGAIN;
    }
    ssize_t n = mk_filter_next_read(next, buf, (size_t)min_u64(cap, may));
    if (n > 0 && p->left)
        consume_allowance(p, (uint64_t)n);
    return n;
}

static void stop_throttle(void *ctx)
{
    struct throttle *p = ctx;
    mk_timer_stop(&p->timer);
    refund_portion(p, p->n, p->portion);
}

static const struct mk_filter_ops ops = {.read = read_throttled, .close = stop_throttle};

static struct throttle *new_throttle(struct limits_table *table, const struct limits_rule *const *rules,
                                     size_t n, mk_str path, struct mk_request *request)
{
    struct throttle *p = mk_request_alloc(request, sizeof *p + n * sizeof *p->shares);
    if (!p)
        return NULL;
    memset(p, 0, sizeof *p + n * sizeof *p->shares);
    p->request = request;
    p->n = n;
    p->size = UINT64_MAX;
    p->free = UINT64_MAX;
    for (size_t i = 0; i < n; i++) {
        struct share *s = &p->shares[i];
        bool is_shared = !(rules[i]->by & LIMITS_BY_RESPONSE);
        s->rule = rules[i];
        s->subject = is_shared ? limits_rate_key_hash(rules[i], table, request, path) : 0;
        s->line = is_shared ? limits_table_bucket(table, s->subject) : &s->own;
        p->size = min_u64(p->size, rules[i]->rate / PORTIONS);
        p->free = min_u64(p->free, rules[i]->free);
    }
    p->size = p->size < PORTION_MIN ? PORTION_MIN : p->size;
    return p;
}

void limits_throttle_response(struct limits_table *table, const struct limits_rule *const *rules, size_t n,
                              mk_str path, struct mk_request *request, struct mk_response *response)
{
    int64_t length = mk_response_length(response);
    struct throttle *p = new_throttle(table, rules, n, path, request);
    if (!p)
        return;
    p->left = length < 0 ? UINT64_MAX : (uint64_t)length;
    if (p->left <= p->free)
        return;
    if (!p->free)
        charge_next_portion(p);
    if (p->portion == p->left && p->due_ms <= throttle_now_ms(p))
        return; /* the body is small enough to be sent without a limit */
    mk_timer_init(&p->timer, on_throttle_timer);
    mk_response_add_filter(response, &ops, p, length);
}
