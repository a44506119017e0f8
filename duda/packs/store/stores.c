/* SPDX-License-Identifier: Apache-2.0 */
/* Which stores a worker has, and the calls that each kind answers. */
#include "stores.h"
#include "sections.h"

#include <duda/asked.h>
#include <errno.h>
#include <monkey/plugin.h>

static const struct mk_plugin *self;

void stores_set(const struct mk_plugin *plugin)
{
    self = plugin;
}

struct stores *stores_of(const struct mk_worker *w)
{
    return mk_worker_data(w, self);
}

void stores_announce(struct stores *all, mk_str message)
{
    (void)mk_worker_send(all->worker, self, MK_TO_ALL, message); /* or they look by themselves */
}

/* ---- Which store ---- */

struct duda_store *stores_find(const struct stores *all, mk_str name)
{
    struct duda_store *s = all->first;
    while (s && !mk_str_eq(s->name, name))
        s = s->next;
    return s;
}

struct duda_store *duda_store_find(struct duda *d, const char *name)
{
    struct stores *all = stores_of(duda_worker(d));
    struct duda_store *s = stores_find(all, mk_str_from_c(name ? name : "main"));
    bool is_memory = !name || strcmp(name, "main") == 0 || strcmp(name, "memory") == 0;
    if (!s && !is_memory)
        pack_report_missing(d, "[KV] or [REDIS]", name);
    return s ? s : is_memory ? &all->memory : NULL;
}

/* ---- Values ---- */

mk_str stores_key(struct stores_key *room, char table, mk_str scope, mk_str key)
{
    struct mk_buf text = mk_buf_fixed(room->text, sizeof room->text);
    mk_buf_add_char(&text, table);
    mk_buf_add_char(&text, ':');
    duda_scope_add(&text, scope, key);
    return mk_buf_str(&text);
}

/* The key of a value as the backend has it. */
static int bind_key(const struct duda *d, const struct duda_store *s, mk_str *key, struct stores_key *room)
{
    if (!s)
        return -ENODEV;
    if (!key->len || key->len > DUDA_STORE_KEY_MAX)
        return -EINVAL;
    *key = stores_key(room, STORES_VALUES, duda_scope(d), *key);
    return 0;
}

int duda_store_get(struct duda *d, struct duda_store *s, mk_str key, mk_str *value)
{
    struct stores_key room;
    int e = bind_key(d, s, &key, &room);
    *value = MK_ABSENT;
    return e ? e : s->ops->get(d, s, key, value);
}

int duda_store_put(struct duda *d, struct duda_store *s, mk_str key, mk_str value, uint64_t ttl_ms)
{
    struct stores_key room;
    int e = bind_key(d, s, &key, &room);
    return e ? e : s->ops->put(d, s, key, value, ttl_ms);
}

int duda_store_replace(struct duda *d, struct duda_store *s, mk_str key, mk_str value, uint64_t ttl_ms)
{
    struct stores_key room;
    int e = bind_key(d, s, &key, &room);
    return e ? e : s->ops->replace(d, s, key, value, ttl_ms);
}

int duda_store_add(struct duda *d, struct duda_store *s, mk_str key, mk_str value, uint64_t ttl_ms)
{
    struct stores_key room;
    int e = bind_key(d, s, &key, &room);
    return e ? e : s->ops->add(d, s, key, value, ttl_ms);
}

int duda_store_remove(struct duda *d, struct duda_store *s, mk_str key, mk_str value)
{
    struct stores_key room;
    int e = bind_key(d, s, &key, &room);
    e = e ? e : s->ops->remove(d, s, key, value);
    return e == -ENOENT ? 0 : e;
}

int duda_store_count(struct duda *d, struct duda_store *s, mk_str key, int64_t delta, uint64_t ttl_ms,
                     int64_t *sum)
{
    struct stores_key room;
    int e = bind_key(d, s, &key, &room);
    return e ? e : s->ops->count(d, s, key, delta, ttl_ms, sum);
}
