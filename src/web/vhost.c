/* SPDX-License-Identifier: Apache-2.0 */
#include "web/vhost.h"

#include <monkey/sized.h>
#include <monkey/tls.h>

enum { NAME_MAX_LEN = 255 };

void mk_vhosts_init(struct mk_vhosts *h, struct mk_arena *arena)
{
    *h = (struct mk_vhosts){0};
    mk_map_init(&h->exact, arena);
    mk_map_init(&h->below, arena);
}

/* Converts to lower case and removes the trailing dot of a fully qualified name. */
static mk_str normalize_name(mk_str name, char buf[NAME_MAX_LEN])
{
    if (name.len > NAME_MAX_LEN)
        return MK_STR("");
    for (size_t i = 0; i < name.len; i++)
        buf[i] = mk_char_lower(name.p[i]);
    return mk_vhost_trim_dot(mk_str_of(buf, name.len));
}

static mk_err add_regex_name(struct mk_vhosts *h, struct mk_vhost *host, size_t i,
                             const struct mk_vhost **other)
{
    struct mk_vhost_regex **end = &h->regexes;
    for (; *end; end = &(*end)->next)
        if ((*end)->host != host && mk_str_eq((*end)->name, host->names[i])) {
            *other = (*end)->host;
            return -EEXIST;
        }
    struct mk_vhost_regex *r = mk_arena_alloc(h->exact.arena, sizeof *r);
    if (!r)
        return -ENOMEM;
    *r = (struct mk_vhost_regex){.regex = host->regexes[i], .host = host, .name = host->names[i]};
    *end = r;
    h->named = true;
    return 0;
}

static mk_err add_vhost_name(struct mk_vhosts *h, struct mk_vhost *host, mk_str name,
                             const struct mk_vhost **other)
{
    char buf[NAME_MAX_LEN];
    struct mk_map *map = &h->exact;
    mk_str key = normalize_name(name, buf);
    if (mk_str_starts(key, MK_STR("*."))) {
        key = mk_str_skip(key, 2);
        map = &h->below;
    }
    *other = mk_map_get(map, key);
    if (*other && *other != host)
        return -EEXIST;
    key = mk_arena_copy(map->arena, key);
    if (!key.p || !mk_map_put(map, key, host))
        return -ENOMEM;
    h->named = true;
    return 0;
}

mk_err mk_vhosts_add(struct mk_vhosts *h, struct mk_vhost *host, mk_str *taken, const struct mk_vhost **other)
{
    if (!h->fallback)
        h->fallback = host;
    for (size_t i = 0; i < host->n_names; i++) {
        bool is_regex = host->regexes && host->regexes[i];
        mk_err e =
            is_regex ? add_regex_name(h, host, i, other) : add_vhost_name(h, host, host->names[i], other);
        *taken = host->names[i];
        if (e)
            return e;
    }
    return 0;
}

void mk_vhosts_set_default(struct mk_vhosts *h, const struct mk_vhost *host)
{
    h->fallback = host;
}

MK_COLD static const struct mk_vhost *find_vhost_by_regex(const struct mk_vhosts *h, mk_str name)
{
    char buf[NAME_MAX_LEN];
    mk_str key = normalize_name(name, buf);
    const struct mk_vhost_regex *r = key.len ? h->regexes : NULL;
    while (r && mk_regex_match(r->regex, key, NULL) != MK_REGEX_MATCH)
        r = r->next;
    return r ? r->host : h->fallback;
}

/* Not inlined, so that servers without host names do not pay for its stack frame. */
MK_NOINLINE const struct mk_vhost *mk_vhosts_find_by_name(const struct mk_vhosts *h, mk_str name)
{
    char buf[NAME_MAX_LEN];
    mk_str key = normalize_name(name, buf);
    const struct mk_vhost *found = mk_map_get(&h->exact, key);
    while (!found && key.p && h->below.n) {
        mk_str_cut(&key, '.');
        if (key.p)
            found = mk_map_get(&h->below, key);
    }
    if (found)
        return found;
    return MK_UNLIKELY(h->regexes != NULL) ? find_vhost_by_regex(h, name) : h->fallback;
}

static bool is_name_pattern(mk_str name)
{
    return mk_str_starts(name, MK_STR("*")) || mk_str_starts(name, MK_STR("~"));
}

mk_str mk_vhost_first_plain_name(const struct mk_vhost *host)
{
    size_t i = 0;
    while (i < host->n_names && is_name_pattern(host->names[i]))
        i++;
    return i < host->n_names ? host->names[i] : MK_STR("");
}

bool mk_vhost_has_name_pattern(const struct mk_vhost *host)
{
    size_t i = 0;
    while (i < host->n_names && !is_name_pattern(host->names[i]))
        i++;
    return i < host->n_names;
}

bool mk_vhost_has_name(const struct mk_vhost *host, mk_str name)
{
    char buf[NAME_MAX_LEN], own[NAME_MAX_LEN];
    mk_str key = normalize_name(name, buf);
    bool has = false;
    for (size_t i = 0; i < host->n_names && !has; i++)
        has = !is_name_pattern(host->names[i]) && mk_str_eq(normalize_name(host->names[i], own), key);
    return has;
}

mk_str mk_vhost_matching_regex(const struct mk_vhost *host, mk_str name)
{
    char buf[NAME_MAX_LEN];
    mk_str whole = normalize_name(name, buf);
    for (size_t i = 0; host->regexes && whole.len && i < host->n_names; i++)
        if (host->regexes[i] && mk_regex_match(host->regexes[i], whole, NULL) == MK_REGEX_MATCH)
            return host->names[i];
    return (mk_str){NULL, 0};
}

const struct mk_route *mk_vhost_route(const struct mk_vhost *host, mk_str path)
{
    enum mk_regex_result result;
    size_t i = mk_vhost_next_route(host, 0, path, &result);
    return i < host->n_routes ? &host->routes[i] : NULL;
}

static enum mk_regex_result match_location_path(const struct mk_location *l, mk_str path)
{
    enum mk_regex_result all = MK_REGEX_NO_MATCH;
    for (const struct mk_location_path *p = l->paths; p < l->paths + l->n_paths; p++) {
        enum mk_regex_result one = p->regex ? mk_regex_match(p->regex, path, NULL)
                                   : mk_pattern_matches(&p->pattern, path) ? MK_REGEX_MATCH
                                                                           : MK_REGEX_NO_MATCH;
        if (one == MK_REGEX_MATCH)
            return one;
        all = one == MK_REGEX_LIMIT ? one : all;
    }
    return all;
}

const struct mk_location *mk_vhost_location(const struct mk_vhost *host, mk_str path, bool *gave_up)
{
    bool is_path = mk_str_starts(path, MK_STR("/")); /* not `*`, and not the authority of CONNECT */
    *gave_up = false;
    for (size_t i = 0; is_path && i < host->n_locations; i++) {
        enum mk_regex_result result = match_location_path(&host->locations[i], path);
        *gave_up = result == MK_REGEX_LIMIT;
        if (result != MK_REGEX_NO_MATCH)
            return &host->locations[i];
    }
    return NULL;
}

static const struct mk_root *find_alias(const struct mk_vhost *host, mk_str path)
{
    const struct mk_root *best = NULL;
    for (const struct mk_root *r = host->aliases; r < host->aliases + host->n_aliases; r++)
        if (mk_str_starts(path, r->at) && (path.len == r->at.len || path.p[r->at.len] == '/') &&
            (!best || best->at.len < r->at.len))
            best = r;
    return best;
}

const struct mk_root *mk_vhost_find_alias_or_home_root(const struct mk_vhost *host, mk_str *path)
{
    const struct mk_root *alias = find_alias(host, *path);
    if (alias) {
        *path = mk_str_skip(*path, alias->at.len);
        return alias;
    }
    if (!host->homes || !mk_str_starts(*path, MK_STR("/~")))
        return &host->root;
    mk_str rest = mk_str_skip(*path, 2);
    size_t slash = mk_str_find(rest, '/');
    const struct mk_user_home *home = mk_map_get(&host->homes->by_name, mk_str_first(rest, slash));
    if (!home)
        return &host->root;
    *path = mk_str_skip(rest, slash);
    return &home->root;
}

/* ---- Public API ---- */

mk_str mk_vhost_name(const struct mk_vhost *h)
{
    return h->n_names ? h->names[0] : MK_STR("");
}

mk_str mk_vhost_name_at(const struct mk_vhost *h, size_t i)
{
    return i < h->n_names ? h->names[i] : (mk_str){NULL, 0};
}

mk_str mk_vhost_root(const struct mk_vhost *h)
{
    return h->root.path ? mk_str_from_c(h->root.path) : MK_STR("");
}

mk_str mk_vhost_index_at(const struct mk_vhost *h, size_t i)
{
    return i < h->n_index ? h->index[i] : MK_STR_NULL;
}

static bool read_certificate(const struct mk_vhost *h, struct mk_vhost_certificate *out)
{
    *out = (struct mk_vhost_certificate){.not_before = __atomic_load_n(&h->tls_begins, __ATOMIC_RELAXED),
                                         .not_after = __atomic_load_n(&h->tls_expires, __ATOMIC_RELAXED),
                                         .is_outdated = __atomic_load_n(&h->tls_kept, __ATOMIC_RELAXED)};
    return out->not_after;
}

bool mk_vhost_certificate_get_sized(const struct mk_vhost *h, struct mk_vhost_certificate *out,
                                    size_t out_size)
{
    struct mk_vhost_certificate full = {0};
    bool result = read_certificate(h, &full);
    mk_sized_out(out, out_size, &full, sizeof full);
    return result;
}

bool mk_vhost_route_at(const struct mk_vhost *h, size_t i, mk_str *pattern, mk_str *handler)
{
    if (i >= h->n_routes)
        return false;
    *pattern = h->routes[i].pattern.text;
    *handler = h->routes[i].written;
    return true;
}

void *mk_vhost_data(const struct mk_vhost *h, const struct mk_plugin *plugin)
{
    for (size_t i = 0; i < h->n_plugins; i++)
        if (mk_hook_is_of_plugin(h->plugins[i].plugin, plugin))
            return h->plugins[i].data;
    return NULL;
}
