/* SPDX-License-Identifier: Apache-2.0 */
#include "web/route_index.h"

#include <monkey/text.h>

enum { FEW = 8 };

/* A route and the hash of its key. */
struct index_entry {
    uint32_t hash, route;
};

/* Buckets: entries with the same low hash bits are adjacent, in route order. */
struct mk_route_index {
    const struct mk_route *routes;
    size_t n;
    size_t folder_max; /* length of the longest folder name */
    size_t exact_max;  /* length of the longest pattern without wildcards */
    uint32_t mask;
    uint32_t *starts; /* start of each bucket, and the end of the last */
    struct index_entry *entries;
    uint32_t *others; /* routes that cannot be indexed */
    size_t n_others;
};

/* ---- Texts ---- */

/* Patterns come from the configuration, so clients cannot provoke collisions. Exact patterns are hashed
 * differently from folders. */
static uint32_t fold_hash(uint64_t hash, bool is_whole)
{
    uint32_t folded = (uint32_t)(hash ^ hash >> 32);
    return is_whole ? ~folded : folded;
}

/* Returns the pattern up to the last slash before its first wildcard; may be empty. */
static mk_str pattern_folder(mk_str pattern)
{
    size_t end = 0;
    while (end < pattern.len && pattern.p[end] != '*' && pattern.p[end] != '?')
        end++;
    while (end > 0 && pattern.p[end - 1] != '/')
        end--;
    return mk_str_first(pattern, end);
}

static bool is_exact_route(const struct mk_route *r)
{
    return !r->regex && r->pattern.kind == MK_PATTERN_EXACT;
}

static mk_str route_folder(const struct mk_route *r)
{
    return r->regex || is_exact_route(r) ? MK_STR("") : pattern_folder(r->pattern.text);
}

/* ---- Building ---- */

struct index_builder {
    struct mk_route_index *index;
    bool is_counting; /* the first pass counts, the second writes */
};

static void builder_add_entry(struct index_builder *m, mk_str text, bool is_whole, size_t route)
{
    struct mk_route_index *x = m->index;
    uint32_t hash = fold_hash(mk_fnv1a(MK_FNV1A_INIT, text), is_whole), *at = &x->starts[hash & x->mask];
    size_t *longest = is_whole ? &x->exact_max : &x->folder_max;
    *longest = mk_max(*longest, text.len);
    if (!m->is_counting)
        x->entries[*at] = (struct index_entry){.hash = hash, .route = (uint32_t)route};
    ++*at;
}

static void builder_add_route(struct index_builder *m, size_t i)
{
    struct mk_route_index *x = m->index;
    const struct mk_route *r = &x->routes[i];
    mk_str folder = route_folder(r);
    if (is_exact_route(r)) {
        builder_add_entry(m, r->pattern.text, true, i);
    } else if (folder.len) {
        builder_add_entry(m, folder, false, i);
        if (r->pattern.kind == MK_PATTERN_PREFIX) /* the pattern also matches the folder itself, without its
                                                     slash */
            builder_add_entry(m, mk_str_first(folder, folder.len - 1), true, i);
    } else if (m->is_counting) {
        x->others[x->n_others++] = (uint32_t)i;
    }
}

static void index_add_routes(struct mk_route_index *x, bool is_counting)
{
    struct index_builder m = {.index = x, .is_counting = is_counting};
    for (size_t i = 0; i < x->n; i++)
        builder_add_route(&m, i);
}

/* Turns bucket sizes into start offsets. */
static void counts_to_offsets(struct mk_route_index *x)
{
    uint32_t sum = 0;
    for (size_t i = 0; i <= x->mask; i++) {
        uint32_t n = x->starts[i];
        x->starts[i] = sum;
        sum += n;
    }
}

/* Restores the offsets: writing has moved each one to the end of its bucket, the start of the next. */
static void restore_offsets(struct mk_route_index *x)
{
    memmove(x->starts + 1, x->starts, sizeof *x->starts * (x->mask + 1u));
    x->starts[0] = 0;
}

struct mk_route_index *mk_route_index_new(struct mk_arena *arena, const struct mk_route *routes, size_t n)
{
    size_t n_starts = 1;
    if (n <= FEW || n > UINT32_MAX / 4)
        return NULL;
    while (n_starts < 2 * n)
        n_starts *= 2;
    struct mk_route_index *x = mk_arena_zalloc(arena, 1, sizeof *x);
    uint32_t *starts = mk_arena_zalloc(arena, n_starts + 1, sizeof *starts);
    uint32_t *others = mk_arena_zalloc(arena, n, sizeof *others);
    struct index_entry *entries = mk_arena_zalloc(arena, 2 * n, sizeof *entries);
    if (!x || !starts || !others || !entries)
        return NULL;
    *x = (struct mk_route_index){.routes = routes,
                                 .n = n,
                                 .mask = (uint32_t)n_starts - 1,
                                 .starts = starts,
                                 .others = others,
                                 .entries = entries};
    index_add_routes(x, true);
    counts_to_offsets(x);
    index_add_routes(x, false);
    restore_offsets(x);
    return x;
}

/* ---- Finding ---- */

/* Returns the first route in [from, end) with this key that matches; `end`: none. */
static size_t find_in_bucket(const struct mk_route_index *x, uint32_t hash, mk_str path, size_t from,
                             size_t end)
{
    uint32_t bucket = hash & x->mask;
    for (uint32_t i = x->starts[bucket]; i < x->starts[bucket + 1]; i++) {
        const struct index_entry *e = &x->entries[i];
        if (e->route >= end)
            break;
        if (e->hash == hash && e->route >= from && mk_pattern_matches(&x->routes[e->route].pattern, path))
            return e->route;
    }
    return end;
}

static size_t find_by_exact_or_folder(const struct mk_route_index *x, size_t from, mk_str path)
{
    size_t best = x->n, longest = mk_max(x->folder_max, path.len <= x->exact_max ? path.len : 0),
           len = mk_min(path.len, longest);
    uint64_t hash = MK_FNV1A_INIT;
    for (size_t i = 0; i < len; i++) {
        hash = mk_fnv1a_byte(hash, path.p[i]);
        if (path.p[i] == '/' && i < x->folder_max)
            best = find_in_bucket(x, fold_hash(hash, false), path, from, best);
    }
    return len == path.len ? find_in_bucket(x, fold_hash(hash, true), path, from, best) : best;
}

size_t mk_route_index_find(const struct mk_route_index *x, size_t from, mk_str path,
                           enum mk_regex_result *result)
{
    size_t best = find_by_exact_or_folder(x, from, path);
    *result = MK_REGEX_MATCH;
    for (size_t i = 0; i < x->n_others && x->others[i] < best; i++) {
        if (x->others[i] < from)
            continue;
        enum mk_regex_result r = mk_route_matches(&x->routes[x->others[i]], path);
        if (r == MK_REGEX_NO_MATCH)
            continue;
        *result = r;
        return x->others[i];
    }
    return best;
}
