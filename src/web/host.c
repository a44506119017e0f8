/* SPDX-License-Identifier: Apache-2.0 */
#include "web/host.h"

#include <monkey/tls.h>

enum { NAME_MAX_LEN = 255 };

void mk_hosts_init(struct mk_hosts *h, struct mk_arena *arena)
{
    *h = (struct mk_hosts){0};
    mk_map_init(&h->exact, arena);
    mk_map_init(&h->below, arena);
}

/* Lower case, and without the dot that may end a complete domain name. */
static mk_str normal(mk_str name, char room[NAME_MAX_LEN])
{
    if (name.len > NAME_MAX_LEN)
        return MK_STR("");
    for (size_t i = 0; i < name.len; i++)
        room[i] = mk_char_lower(name.p[i]);
    if (name.len > 1 && room[name.len - 1] == '.')
        name.len--;
    return mk_str_of(room, name.len);
}

static mk_err add_name(struct mk_hosts *h, struct mk_host *host, mk_str name)
{
    char room[NAME_MAX_LEN];
    struct mk_map *map = &h->exact;
    mk_str key = normal(name, room);
    if (mk_str_starts(key, MK_STR("*."))) {
        key = mk_str_skip(key, 2);
        map = &h->below;
    }
    if (mk_map_get(map, key) && mk_map_get(map, key) != host)
        return -EEXIST;
    key = mk_arena_copy(map->arena, key);
    if (!key.p || !mk_map_put(map, key, host))
        return -ENOMEM;
    h->named = true;
    return 0;
}

mk_err mk_hosts_add(struct mk_hosts *h, struct mk_host *host, mk_str *taken)
{
    if (!h->fallback)
        h->fallback = host;
    for (size_t i = 0; i < host->n_names; i++) {
        mk_err e = add_name(h, host, host->names[i]);
        *taken = host->names[i];
        if (e)
            return e;
    }
    return 0;
}

void mk_hosts_set_default(struct mk_hosts *h, const struct mk_host *host)
{
    h->fallback = host;
}

const struct mk_host *mk_hosts_find(const struct mk_hosts *h, mk_str name)
{
    char room[NAME_MAX_LEN];
    if (!h->named || !name.p)
        return h->fallback;
    mk_str key = normal(name, room);
    const struct mk_host *found = mk_map_get(&h->exact, key);
    while (!found && key.p && h->below.n) {
        mk_str_cut(&key, '.');
        if (key.p)
            found = mk_map_get(&h->below, key);
    }
    return found ? found : h->fallback;
}

const struct mk_route *mk_host_route(const struct mk_host *host, mk_str path)
{
    for (size_t i = 0; i < host->n_routes; i++)
        if (mk_route_matches(&host->routes[i], path))
            return &host->routes[i];
    return NULL;
}

const struct mk_root *mk_host_choose_home(const struct mk_host *host, mk_str *path)
{
    if (!mk_str_starts(*path, MK_STR("/~")))
        return &host->root;
    mk_str rest = mk_str_skip(*path, 2);
    size_t slash = mk_str_find(rest, '/');
    const struct mk_user_home *home = mk_map_get(&host->homes->by_name, mk_str_take(rest, slash));
    if (!home)
        return &host->root;
    *path = mk_str_skip(rest, slash);
    return &home->root;
}

/* ---- For everybody ---- */

mk_str mk_host_name(const struct mk_host *h)
{
    return h->n_names ? h->names[0] : MK_STR("");
}

mk_str mk_host_name_at(const struct mk_host *h, size_t i)
{
    return i < h->n_names ? h->names[i] : (mk_str){NULL, 0};
}

mk_str mk_host_root(const struct mk_host *h)
{
    return h->root.path ? mk_str_from_c(h->root.path) : MK_STR("");
}

int64_t mk_host_certificate_expires(const struct mk_host *h)
{
    return h->tls_expires;
}

bool mk_host_route_at(const struct mk_host *h, size_t i, mk_str *pattern, mk_str *handler)
{
    if (i >= h->n_routes)
        return false;
    *pattern = h->routes[i].pattern.text;
    *handler = h->routes[i].written;
    return true;
}

void *mk_host_data(const struct mk_host *h, const struct mk_plugin *plugin)
{
    for (size_t i = 0; i < h->n_plugins; i++)
        if (h->plugins[i].plugin == plugin)
            return h->plugins[i].data;
    return NULL;
}
