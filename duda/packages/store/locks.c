/* SPDX-License-Identifier: Apache-2.0 */
/* Rate limits and locks, which work the same way in all kinds of stores. A worker that releases a lock
 * notifies the waiters in all workers of this server. Waiters also poll, because a lock may expire, or its
 * owner may have died or run on another machine. */
#include <duda/memory.h>
#include <duda/request.h>
#include <duda/response.h>
#include <duda/wait.h>
#include <errno.h>
#include <monkey/text.h>

#include "store.h"

enum { TOKEN_BYTES = 16, LOOK_NEAR_MS = 250, LOOK_FAR_MIN_MS = 20 };

/* A waiter, on the stack of its handler. */
struct store_waiter {
    struct duda_wait wait;    /* must be first */
    struct store_worker *all; /* NULL: not in the list of waiters */
    struct store_waiter *next;
    struct mk_timer timer;
    uint64_t lock;
    bool is_notified; /* the lock may be free: try again */
};

/* Returns a hash of the lock's name. Two locks with the same hash wake each other's waiters, which is
 * harmless. */
static uint64_t lock_hash(struct duda_ctx *d, const struct duda_store *s, mk_str key)
{
    static const struct mk_hash_key any = {0x6c6f636b73, 0x6f6e652d74776f};
    return mk_hash(&any, key) ^ mk_hash(&any, s->name) ^ mk_hash(&any, duda_scope(d)) << 1;
}

/* ---- Waiting ---- */

static void notify_lock_waiter(struct store_waiter *w)
{
    w->is_notified = true;
    duda_wait_wake(&w->wait);
}

static void on_lock_wait_timeout(struct mk_timer *t)
{
    notify_lock_waiter(MK_CONTAINER(t, struct store_waiter, timer));
}

static void add_waiter(struct store_worker *all, struct store_waiter *w)
{
    mk_timer_init(&w->timer, on_lock_wait_timeout);
    w->all = all;
    *all->last = w;
    all->last = &w->next;
}

static void remove_waiter(struct duda_wait *wait)
{
    struct store_waiter *w = (struct store_waiter *)wait;
    if (!w->all)
        return;
    struct store_waiter **at = &w->all->waiters;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    if (!*at)
        w->all->last = at;
    mk_timer_stop(&w->timer);
}

/* Wakes the first waiter of this worker. */
static void wake_first_waiter(struct store_worker *all, uint64_t lock)
{
    for (struct store_waiter *w = all->waiters; w; w = w->next)
        if (w->lock == lock && !w->is_notified) {
            notify_lock_waiter(w);
            return;
        }
}

void store_locks_on_unlock(struct store_worker *all, mk_str message)
{
    uint64_t lock;
    if (message.len != sizeof lock)
        return;
    memcpy(&lock, message.p, sizeof lock);
    wake_first_waiter(all, lock);
}

static void notify_unlock(struct store_worker *all, uint64_t lock)
{
    wake_first_waiter(all, lock);
    if (store_lock_waiters_has_others(all->waiting, all->slot, mk_clock_ms()))
        store_worker_broadcast(all, mk_str_of((const char *)&lock, sizeof lock));
}

/* Returns at once if the waiter was notified during its last attempt. */
static int wait_for_unlock(struct store_waiter *w, uint32_t ms)
{
    store_lock_waiters_mark(w->all->waiting, w->all->slot, mk_clock_ms() + ms);
    mk_timer_set(&w->timer, w->all->worker, ms);
    int e = duda_wait_suspend(&w->wait);
    if (e)
        return e;
    mk_timer_stop(&w->timer);
    w->is_notified = false;
    return 0;
}

static int try_lock(struct duda_ctx *d, const struct duda_store_lock *lock, uint64_t ttl_ms)
{
    struct store_key_buf buf;
    if (!lock->key.len || lock->key.len > DUDA_STORE_KEY_MAX)
        return -EINVAL;
    mk_str full = store_key_format(&buf, STORE_KEY_LOCK, duda_scope(d), lock->key);
    return lock->store->ops->add(d, lock->store, full, lock->token, ttl_ms);
}

static int retry_lock_until(struct duda_ctx *d, const struct duda_store_lock *lock, uint64_t ttl_ms,
                            uint64_t end, struct store_waiter *w)
{
    uint32_t pause = lock->store->ops->is_remote ? LOOK_FAR_MIN_MS : LOOK_NEAR_MS;
    for (;;) {
        int e = try_lock(d, lock, ttl_ms);
        uint64_t now = mk_worker_now_ms(duda_worker(d));
        if (e != -EEXIST)
            return e;
        if (now >= end)
            return -ETIME;
        e = wait_for_unlock(w, end - now < pause ? (uint32_t)(end - now) : pause);
        if (e)
            return e;
        pause = pause * 2 < LOOK_NEAR_MS ? pause * 2 : LOOK_NEAR_MS;
    }
}

/* ---- Locks ---- */

static mk_str make_lock_token(struct duda_ctx *d)
{
    char bytes[TOKEN_BYTES], buf[2 * TOKEN_BYTES];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    mk_random(bytes, sizeof bytes);
    mk_hex_encode(&text, mk_str_of(bytes, sizeof bytes));
    return duda_strdup(d, mk_buf_str(&text));
}

static int acquire_lock(struct store_waiter *w, const struct duda_store_lock *out, uint64_t ttl_ms,
                        uint32_t wait_ms)
{
    struct duda_ctx *d = w->wait.d;
    struct store_worker *all = store_worker_get(duda_worker(d));
    uint64_t end = wait_ms == MK_FOREVER ? UINT64_MAX : mk_worker_now_ms(all->worker) + wait_ms;
    int e = try_lock(d, out, ttl_ms);
    if (e != -EEXIST || !wait_ms)
        return e == -EEXIST ? -EBUSY : e;
    add_waiter(all, w);
    return retry_lock_until(d, out, ttl_ms, end, w);
}

int duda_store_lock(struct duda_ctx *d, struct duda_store *s, mk_str key, uint64_t ttl_ms, uint32_t wait_ms,
                    struct duda_store_lock *out)
{
    if (!s) {
        memset(out, 0, sizeof *out);
        return -ENODEV;
    }
    struct store_waiter w = {.lock = lock_hash(d, s, key)};
    *out = (struct duda_store_lock){.store = s};
    int e = duda_wait_begin(d, &w.wait, remove_waiter);
    if (e)
        return e;
    out->key = duda_strdup(d, key);
    out->token = make_lock_token(d);
    if (!out->key.p || !out->token.p)
        e = -ENOMEM;
    else
        e = ttl_ms ? acquire_lock(&w, out, ttl_ms, wait_ms) : -EINVAL;
    duda_wait_end(&w.wait);
    return e;
}

int duda_store_unlock(struct duda_ctx *d, struct duda_store_lock *lock)
{
    if (!lock->store)
        return -ENODEV;
    struct store_worker *all = store_worker_get(duda_worker(d));
    struct store_key_buf buf;
    mk_str full = store_key_format(&buf, STORE_KEY_LOCK, duda_scope(d), lock->key);
    int e = lock->store->ops->delete_if(d, lock->store, full, lock->token);
    notify_unlock(all, lock_hash(d, lock->store, lock->key));
    return e;
}

/* ---- Rate limits ---- */

int duda_store_rate_limit(struct duda_ctx *d, struct duda_store *s, mk_str key, int64_t max,
                          uint64_t window_ms)
{
    int64_t n = 0;
    struct store_key_buf buf;
    if (!s)
        return -ENODEV;
    if (!key.len || key.len > DUDA_STORE_KEY_MAX)
        return -EINVAL;
    mk_str full = store_key_format(&buf, STORE_KEY_LIMIT, duda_scope(d), key);
    if (s->ops->rate_limit)
        return s->ops->rate_limit(d, s, full, max, window_ms);
    int e = s->ops->incr(d, s, full, 1, window_ms, &n);
    if (e == -ENOLINK) /* the server has counted the use; replicas do not matter here */
        e = 0;
    return e ? e : n > max ? -EDQUOT : 0;
}

enum { REFILL_MAX_DAYS = 366, NUMBER_SIZE = 24 };

static int set_number_header(struct duda_ctx *d, const char *name, uint64_t n)
{
    char buf[NUMBER_SIZE];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    mk_buf_add_num(&text, n);
    int e = duda_header_set(d, name, mk_buf_str(&text));
    return e == -EALREADY ? 0 : e; /* a task has no response, and a response may have started */
}

static uint64_t round_up_to_seconds(uint64_t us)
{
    return us / 1000000 + (us % 1000000 != 0);
}

static int set_bucket_headers(struct duda_ctx *d, int64_t capacity, uint64_t refill_us, uint64_t us,
                              bool is_empty)
{
    uint64_t n = (uint64_t)capacity, interval = refill_us / n, used = us / interval + (us % interval != 0);
    int e = set_number_header(d, "RateLimit-Limit", n);
    e = e ? e : set_number_header(d, "RateLimit-Remaining", is_empty || used > n ? 0 : n - used);
    e = e ? e : set_number_header(d, "RateLimit-Reset", round_up_to_seconds(is_empty ? refill_us : us));
    return e || !is_empty ? e : set_number_header(d, "Retry-After", round_up_to_seconds(us));
}

int duda_store_token_bucket(struct duda_ctx *d, struct duda_store *s, mk_str key, int64_t capacity,
                            uint64_t refill_ms)
{
    struct store_key_buf buf;
    uint64_t us = 0, refill_us = refill_ms * 1000;
    if (!s)
        return -ENODEV;
    if (!key.len || key.len > DUDA_STORE_KEY_MAX || capacity <= 0 ||
        refill_ms > REFILL_MAX_DAYS * UINT64_C(86400000) || refill_us < (uint64_t)capacity)
        return -EINVAL;
    if (!s->ops->token_bucket)
        return -EOPNOTSUPP;
    key = store_key_format(&buf, STORE_KEY_BUCKET, duda_scope(d), key);
    int result = s->ops->token_bucket(d, s, key, refill_us / (uint64_t)capacity, refill_us, &us);
    if (result && result != -EDQUOT)
        return result;
    int e = set_bucket_headers(d, capacity, refill_us, us, result);
    return e ? e : result;
}
