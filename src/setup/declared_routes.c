/* SPDX-License-Identifier: Apache-2.0 */
/* Routes inside the handlers that serve a whole virtual host. */
#include <errno.h>

#include "base/assert.h"
#include "setup/config.h"

enum { KEY_MAX = 16 * 1024, SHOWN = 200 };

/* A route and its source location, for messages. */
struct declared_route {
    mk_str route, where;
};

/* ---- Keys ---- */

/* Appends a literal segment with its escapes decoded. */
static void append_text(struct mk_buf *out, mk_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        bool is_escape = s.p[i] == '%' && i + 2 < s.len;
        int high = is_escape ? mk_char_hex(s.p[i + 1]) : -1, low = is_escape ? mk_char_hex(s.p[i + 2]) : -1;
        bool is_valid = high >= 0 && low >= 0;
        mk_buf_add_char(out, is_valid ? (char)(high * 16 + low) : s.p[i]);
        i += is_valid ? 2 : 0;
    }
}

/* Appends a parameter without its name: its type, after a NUL byte, which literal text cannot contain. */
static void append_param(struct mk_buf *out, mk_str s)
{
    size_t type = mk_str_find(s, '<');
    mk_buf_add_char(out, '\0');
    mk_buf_add(out, s.p[0] == '*' ? MK_STR("*") : type == MK_STR_NONE ? MK_STR(":") : mk_str_skip(s, type));
}

/* Two routes with the same key handle the same requests. */
static void format_key(struct mk_buf *out, mk_str host, mk_str method, mk_str pattern)
{
    mk_buf_clear(out);
    for (size_t i = 0; i < host.len; i++)
        mk_buf_add_char(out, mk_char_lower(host.p[i]));
    mk_buf_add_char(out, ' ');
    mk_buf_add(out, method);
    while (pattern.p) {
        mk_str segment = mk_str_cut(&pattern, '/');
        bool is_param = segment.len > 1 && (segment.p[0] == ':' || (segment.p[0] == '*' && !pattern.p));
        mk_buf_add_char(out, '/');
        (is_param ? append_param : append_text)(out, segment);
    }
}

/* ---- Declaring ---- */

static struct mk_map *get_or_create_map(struct mk_config *c)
{
    struct mk_map **map = &c->site->declared_routes;
    if (!*map && (*map = mk_config_alloc(c, sizeof **map)))
        mk_map_init(*map, &c->generation->arena);
    return *map;
}

static mk_str describe_conflict(struct mk_config *c, const struct declared_route *a,
                                const struct declared_route *b)
{
    return mk_arena_printf(&c->generation->arena,
                           "`%.*s` (%.*s) and `%.*s` (%.*s) match the same requests; change one of them",
                           MK_STR_ARG(mk_str_first(a->route, SHOWN)), MK_STR_ARG(a->where),
                           MK_STR_ARG(mk_str_first(b->route, SHOWN)), MK_STR_ARG(b->where));
}

static int declare_method(struct mk_config *c, struct mk_map *map, mk_str key,
                          struct declared_route *declared, mk_str *conflict)
{
    const struct declared_route *other = mk_map_get(map, key);
    if (other) {
        *conflict = describe_conflict(c, declared, other);
        return conflict->p ? -EEXIST : -ENOMEM;
    }
    mk_str copy = mk_config_copy(c, key);
    return copy.p && mk_map_put(map, copy, declared) ? 0 : -ENOMEM;
}

int mk_config_declare_route(struct mk_config *c, mk_str host, mk_str route, mk_str where, mk_str *conflict)
{
    MK_ASSERT(c->site);
    struct mk_map *map = get_or_create_map(c);
    struct declared_route *declared = map ? mk_config_alloc(c, sizeof *declared) : NULL;
    struct mk_buf key = mk_buf_growing(KEY_MAX);
    *conflict = MK_STR_NULL;
    if (!declared)
        return -ENOMEM;
    *declared = (struct declared_route){mk_config_copy(c, mk_str_trim(route)), mk_config_copy(c, where)};
    mk_str pattern = declared->route, methods = MK_STR("*");
    if (pattern.len && pattern.p[0] != '/')
        methods = mk_str_cut(&pattern, ' ');
    int e = declared->route.p && declared->where.p ? 0 : -ENOMEM;
    pattern = mk_str_skip(mk_str_trim(pattern), 1);
    while (!e && methods.p) {
        format_key(&key, host, mk_str_cut(&methods, ','), pattern);
        e = key.failed ? -ENOMEM : declare_method(c, map, mk_buf_str(&key), declared, conflict);
    }
    mk_buf_free(&key);
    return e;
}
