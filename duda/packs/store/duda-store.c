/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: stores of a worker; and limits and locks, which are the same over all kinds. */
#include <duda/asked.h>
#include <duda/memory.h>
#include <duda/store_backend.h>
#include <duda/wait.h>
#include <errno.h>
#include <monkey/plugin.h>
#include <monkey/text.h>

MK_PLUGIN_DECLARE(duda_store);

enum { TOKEN_BYTES = 16, LOOK_AGAIN_MS = 20 };

int duda_store_join(struct mk_worker *w, struct duda_store *s)
{
    struct duda_store *first = mk_worker_data(w, &MK_PLUGIN_OF(duda_store));
    for (const struct duda_store *other = first; other; other = other->next)
        if (mk_str_eq(other->name, s->name))
            return -EEXIST;
    s->next = first;
    mk_worker_set_data(w, &MK_PLUGIN_OF(duda_store), s);
    return 0;
}

struct duda_store *duda_store_find(const struct duda *d, const char *name)
{
    struct duda_store *s = mk_worker_data(duda_worker(d), &MK_PLUGIN_OF(duda_store));
    while (s && !mk_str_eq(s->name, mk_str_from_c(name ? name : "main")))
        s = s->next;
    return s;
}

static int check(mk_str key)
{
    return key.len && key.len <= DUDA_STORE_KEY_MAX ? 0 : -EINVAL;
}

int duda_store_get(struct duda *d, struct duda_store *s, mk_str key, mk_str *value)
{
    int e = check(key);
    *value = MK_ABSENT;
    return e ? e : s->ops->get(d, s, key, value);
}

int duda_store_put(struct duda *d, struct duda_store *s, mk_str key, mk_str value, uint64_t ttl_ms)
{
    int e = check(key);
    return e ? e : s->ops->put(d, s, key, value, ttl_ms);
}

int duda_store_add(struct duda *d, struct duda_store *s, mk_str key, mk_str value, uint64_t ttl_ms)
{
    int e = check(key);
    return e ? e : s->ops->add(d, s, key, value, ttl_ms);
}

int duda_store_remove(struct duda *d, struct duda_store *s, mk_str key, mk_str value)
{
    int e = check(key);
    return e ? e : s->ops->remove(d, s, key, value);
}

int duda_store_count(struct duda *d, struct duda_store *s, mk_str key, int64_t delta, uint64_t ttl_ms,
                     int64_t *sum)
{
    int e = check(key);
    return e ? e : s->ops->count(d, s, key, delta, ttl_ms, sum);
}

int duda_store_limit(struct duda *d, struct duda_store *s, mk_str key, int64_t max, uint64_t window_ms)
{
    int64_t n = 0;
    int e = duda_store_count(d, s, key, 1, window_ms, &n);
    return e ? e : n > max ? -EDQUOT : 0;
}

static mk_str make_token(struct duda *d)
{
    char bytes[TOKEN_BYTES], room[2 * TOKEN_BYTES];
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
    mk_random(bytes, sizeof bytes);
    mk_hex_encode(&text, mk_str_of(bytes, sizeof bytes));
    return duda_copy(d, mk_buf_str(&text));
}

int duda_store_lock(struct duda *d, struct duda_store *s, mk_str key, uint64_t ttl_ms, uint32_t wait_ms,
                    struct duda_store_lock *out)
{
    uint64_t end = mk_worker_now_ms(duda_worker(d)) + wait_ms;
    *out = (struct duda_store_lock){duda_copy(d, key), make_token(d), s};
    if (!out->key.p || !out->token.p)
        return -ENOMEM;
    if (!ttl_ms)
        return -EINVAL;
    for (;;) {
        int e = duda_store_add(d, s, out->key, out->token, ttl_ms);
        if (e != -EEXIST)
            return e;
        if (mk_worker_now_ms(duda_worker(d)) >= end)
            return -EBUSY;
        e = duda_sleep(d, LOOK_AGAIN_MS);
        if (e)
            return e;
    }
}

int duda_store_unlock(struct duda *d, struct duda_store_lock *lock)
{
    return duda_store_remove(d, lock->store, lock->key, lock->token);
}

static const char *const needs[] = {"duda", NULL};

MK_PLUGIN(duda_store) = {
    MK_PLUGIN_HEAD,
    .name = "duda-store",
    .version = MK_VERSION,
    .help = "Caches, limits and locks of services of Duda; duda-kv and duda-redis keep them.",
    .needs = needs,
};
