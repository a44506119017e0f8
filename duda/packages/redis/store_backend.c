/* SPDX-License-Identifier: Apache-2.0 */
#include "store_backend.h"

#include <duda/memory.h>
#include <errno.h>

#include "jobs_backend.h"
#include "key_slot.h"
#include "redis.h"

/* The key of a store in Redis, on the stack of the handler that waits for the reply. */
struct own_key {
    char buf[sizeof REDIS_RESERVED_PREFIX + DUDA_STORE_FULL_KEY_MAX];
};

static mk_str format_reserved_key(struct own_key *buf, mk_str key)
{
    struct mk_buf text = mk_buf_fixed(buf->buf, sizeof buf->buf);
    mk_buf_add(&text, MK_STR(REDIS_RESERVED_PREFIX));
    mk_buf_add(&text, key);
    return mk_buf_str(&text);
}

static mk_str format_number(struct duda_ctx *d, int64_t n)
{
    return duda_sprintf(d, "%lld", (long long)n);
}

static int redis_store_get(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str *value)
{
    struct duda_redis_reply reply;
    struct own_key buf;
    const mk_str parts[] = {MK_STR("GET"), format_reserved_key(&buf, key)};
    int e = redis_do_internal(d, s->ctx, &reply, parts, 2);
    *value = reply.text;
    return e ? e : reply.type == DUDA_REDIS_NIL ? -ENOENT : 0;
}

/* Runs SET with an optional time to live; `condition` is absent, NX or XX. Returns -EEXIST if the condition
 * is not met. */
static int redis_store_set_if(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str value,
                              uint64_t ttl_ms, mk_str condition)
{
    struct duda_redis_reply reply;
    struct own_key buf;
    mk_str parts[6] = {MK_STR("SET"), format_reserved_key(&buf, key), value};
    size_t n = 3;
    bool is_kept;
    if (ttl_ms) {
        parts[n++] = MK_STR("PX");
        parts[n++] = format_number(d, (int64_t)ttl_ms);
    }
    if (condition.p)
        parts[n++] = condition;
    int e = redis_do_replicated(d, s->ctx, &reply, parts, n, &is_kept);
    return e ? e : reply.type == DUDA_REDIS_NIL ? -EEXIST : is_kept ? 0 : -ENOLINK;
}

static int redis_store_set(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str value,
                           uint64_t ttl_ms)
{
    return redis_store_set_if(d, s, key, value, ttl_ms, MK_STR_NULL);
}

static int redis_store_replace(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str value,
                               uint64_t ttl_ms)
{
    int e = redis_store_set_if(d, s, key, value, ttl_ms, MK_STR("XX"));
    return e == -EEXIST ? -ENOENT : e;
}

/* Deletes the key if it has this value, as an unlock does; an absent `value` matches every value. Does not
 * wait for replicas if there is a value: if a failover loses an unlock, the lock only lasts longer. */
static int redis_store_delete_if(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str value)
{
    static struct duda_redis_script if_equal = {
        .source =
            "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"};
    struct duda_redis_reply reply;
    struct own_key buf;
    mk_str full = format_reserved_key(&buf, key);
    const mk_str arguments[] = {full, value}, parts[] = {MK_STR("DEL"), full};
    bool is_kept = true;
    int e = value.p ? redis_eval_replicated(d, s->ctx, &reply, &if_equal, 1, arguments, 2, NULL)
                    : redis_do_replicated(d, s->ctx, &reply, parts, 2, &is_kept);
    if (!e && reply.number == 0)
        return value.p ? -ESTALE : -ENOENT;
    return e ? e : is_kept ? 0 : -ENOLINK;
}

/* If too few replicas have confirmed a lock, releases it again. */
static int redis_store_add(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str value,
                           uint64_t ttl_ms)
{
    int e = redis_store_set_if(d, s, key, value, ttl_ms, MK_STR("NX"));
    if (e == -ENOLINK) {
        int failed = redis_store_delete_if(d, s, key, value);
        (void)failed; /* on failure, the lock expires */
    }
    return e;
}

static int redis_store_incr(struct duda_ctx *d, struct duda_store *s, mk_str key, int64_t delta,
                            uint64_t ttl_ms, int64_t *sum)
{
    static struct duda_redis_script add_to = {
        .source = "local fresh = redis.call('EXISTS', KEYS[1]) == 0 local n = redis.call('INCRBY', KEYS[1], "
                  "ARGV[1]) "
                  "if fresh and ARGV[2] ~= '0' then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return n"};
    struct duda_redis_reply reply;
    struct own_key buf;
    const mk_str arguments[] = {format_reserved_key(&buf, key), format_number(d, delta),
                                format_number(d, (int64_t)ttl_ms)};
    bool is_kept;
    int e = redis_eval_replicated(d, s->ctx, &reply, &add_to, 1, arguments, 3, &is_kept);
    *sum = reply.number;
    return e == -EREMOTEIO ? -EDOM : e ? e : is_kept ? 0 : -ENOLINK;
}

/* The stored value is the time at which the bucket is full, in microseconds of the clock of Redis. The script
 * returns the time until there is a token or, if it has taken one, the negated time until the bucket is
 * full. */
static int redis_store_token_bucket(struct duda_ctx *d, struct duda_store *s, mk_str key,
                                    uint64_t interval_us, uint64_t refill_us, uint64_t *us)
{
    static struct duda_redis_script take_token = {
        .source = "local t = redis.call('TIME') local now = t[1] * 1000000 + t[2] "
                  "local full = tonumber(redis.call('GET', KEYS[1]) or '0') "
                  "if full < now or full > now + ARGV[2] then full = now end "
                  "full = full + ARGV[1] "
                  "if full - now > tonumber(ARGV[2]) then return full - now - ARGV[2] end "
                  "redis.call('SET', KEYS[1], string.format('%.0f', full), 'PX', math.floor((full - now) / "
                  "1000) + 1) "
                  "return now - full"};
    struct duda_redis_reply reply;
    struct own_key buf;
    const mk_str arguments[] = {format_reserved_key(&buf, key), format_number(d, (int64_t)interval_us),
                                format_number(d, (int64_t)refill_us)};
    int e = redis_eval_replicated(d, s->ctx, &reply, &take_token, 1, arguments, 3, NULL);
    if (e)
        return e;
    *us = (uint64_t)(reply.number < 0 ? -reply.number : reply.number);
    return reply.number > 0 ? -EDQUOT : 0;
}

static const struct duda_store_ops ops = {.get = redis_store_get,
                                          .set = redis_store_set,
                                          .add = redis_store_add,
                                          .delete_if = redis_store_delete_if,
                                          .incr = redis_store_incr,
                                          .replace = redis_store_replace,
                                          .token_bucket = redis_store_token_bucket,
                                          .is_remote = true};

struct duda_store redis_store_backend(struct duda_redis *r, mk_str name)
{
    return (struct duda_store){.ops = &ops, .jobs = &redis_jobs_backend, .name = name, .ctx = r};
}
