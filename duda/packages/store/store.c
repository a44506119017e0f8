/* SPDX-License-Identifier: Apache-2.0 */
/* The stores of a worker, and the calls that each backend implements. */
#include "store.h"
#include "common/package.h"

#include <duda/request.h>
#include <errno.h>
#include <monkey/plugin.h>

static const struct mk_plugin *self;

void store_worker_set_plugin(const struct mk_plugin *plugin)
{
    self = plugin;
}

struct store_worker *store_worker_get(const struct mk_worker *w)
{
    return mk_worker_data(w, self);
}

void store_worker_broadcast(struct store_worker *all, mk_str message)
{
    (void)mk_worker_send(all->worker, self, MK_TO_ALL, message); /* on failure, the waiters poll */
}

/* ---- Choice of a store ---- */

struct duda_store *store_worker_find_store(const struct store_worker *all, mk_str name)
{
    struct duda_store *s = all->first;
    while (s && !mk_str_eq(s->name, name))
        s = s->next;
    return s;
}

static struct duda_store *find_store(struct mk_worker *w, const char *name)
{
    struct store_worker *all = store_worker_get(w);
    struct duda_store *s = store_worker_find_store(all, mk_str_from_c(name));
    bool is_memory = strcmp(name, PACKAGE_MAIN) == 0 || strcmp(name, "memory") == 0;
    return s ? s : is_memory ? &all->memory : NULL;
}

struct duda_store *duda_store_find(struct duda_ctx *d, const char *name)
{
    struct duda_store *s = find_store(duda_worker(d), name ? name : PACKAGE_MAIN);
    if (!s)
        package_log_missing_section(d, "[KV] or [REDIS]", name);
    return s;
}

struct duda_store *duda_store_of(struct mk_worker *w, const char *name)
{
    struct duda_store *s = find_store(w, name ? name : PACKAGE_MAIN);
    if (!s)
        package_log_missing_section_in(w, "[KV] or [REDIS]", name);
    return s;
}

/* ---- Values ---- */

mk_str store_key_format(struct store_key_buf *buf, char table, mk_str scope, mk_str key)
{
    struct mk_buf text = mk_buf_fixed(buf->text, sizeof buf->text);
    mk_buf_add_char(&text, table);
    mk_buf_add_char(&text, ':');
    duda_scope_add(&text, scope, key);
    return mk_buf_str(&text);
}

/* Replaces *key with the key of the value in the backend. */
static int scope_key(struct duda_ctx *d, const struct duda_store *s, mk_str *key, struct store_key_buf *buf)
{
    if (!s)
        return -ENODEV;
    if (!key->len || key->len > DUDA_STORE_KEY_MAX)
        return -EINVAL;
    *key = store_key_format(buf, STORE_KEY_VALUE, duda_scope(d), *key);
    return 0;
}

int duda_store_get(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str *value)
{
    struct store_key_buf buf;
    int e = scope_key(d, s, &key, &buf);
    *value = MK_STR_NULL;
    return e ? e : s->ops->get(d, s, key, value);
}

int duda_store_set(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str value, uint64_t ttl_ms)
{
    struct store_key_buf buf;
    int e = scope_key(d, s, &key, &buf);
    return e ? e : s->ops->set(d, s, key, value, ttl_ms);
}

int duda_store_replace(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str value, uint64_t ttl_ms)
{
    struct store_key_buf buf;
    int e = scope_key(d, s, &key, &buf);
    return e ? e : s->ops->replace(d, s, key, value, ttl_ms);
}

int duda_store_add(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str value, uint64_t ttl_ms)
{
    struct store_key_buf buf;
    int e = scope_key(d, s, &key, &buf);
    return e ? e : s->ops->add(d, s, key, value, ttl_ms);
}

int duda_store_delete_if(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str value)
{
    struct store_key_buf buf;
    int e = scope_key(d, s, &key, &buf);
    e = e ? e : s->ops->delete_if(d, s, key, value);
    return e == -ENOENT ? 0 : e;
}

int duda_store_incr(struct duda_ctx *d, struct duda_store *s, mk_str key, int64_t delta, uint64_t ttl_ms,
                    int64_t *sum)
{
    struct store_key_buf buf;
    int e = scope_key(d, s, &key, &buf);
    return e ? e : s->ops->incr(d, s, key, delta, ttl_ms, sum);
}
