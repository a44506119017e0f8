/* SPDX-License-Identifier: Apache-2.0 */
/* A [KV] section as a store of duda/store.h. */
#include <errno.h>

#include "jobs.h"
#include "queue.h"
#include "shared.h"

static int get(struct duda *d, struct duda_store *s, mk_str key, mk_str *value)
{
    return duda_kv_get(d, s->of, key, value);
}

static int put(struct duda *d, struct duda_store *s, mk_str key, mk_str value, uint64_t ttl_ms)
{
    return duda_kv_put(d, s->of, key, value, ttl_ms);
}

static int add(struct duda *d, struct duda_store *s, mk_str key, mk_str value, uint64_t ttl_ms)
{
    int e = duda_kv_swap(d, s->of, key, MK_ABSENT, value, ttl_ms);
    return e == -ESTALE ? -EEXIST : e;
}

static int remove_value(struct duda *d, struct duda_store *s, mk_str key, mk_str value)
{
    if (value.p)
        return duda_kv_swap(d, s->of, key, value, MK_ABSENT, 0);
    return duda_kv_delete(d, s->of, key);
}

static int count(struct duda *d, struct duda_store *s, mk_str key, int64_t delta, uint64_t ttl_ms,
                 int64_t *sum)
{
    return duda_kv_count(d, s->of, key, delta, ttl_ms, sum);
}

static int replace(struct duda *d, struct duda_store *s, mk_str key, mk_str value, uint64_t ttl_ms)
{
    mk_str old;
    int e;
    do {
        e = duda_kv_get(d, s->of, key, &old);
        e = e ? e : duda_kv_swap(d, s->of, key, old, value, ttl_ms);
    } while (e == -ESTALE);
    return e;
}

static const struct duda_store_ops ops = {
    .get = get, .put = put, .add = add, .remove = remove_value, .count = count, .replace = replace};

struct duda_store duda_kv_shared(struct duda_kv *kv)
{
    return (struct duda_store){.ops = &ops, .jobs = &duda_kv_jobs, .name = kv->settings->name, .of = kv};
}
