/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/gateway_route.h"

#include <monkey/spool.h>
#include <monkey/text.h>

struct words {
    const struct mk_conf_spot *spot;
    struct mk_gateway_route *route;
    mk_str word, value;
};

static bool fail(const struct words *w, const char *expected)
{
    mk_conf_spot_error(w->spot, w->word, "expected %s", expected);
    return false;
}

/* ---- Values ---- */

/* Not seen from the folder of the configuration: it may be that of another container. */
static bool read_root(const struct words *w)
{
    mk_str root = w->value;
    if (root.p[0] != '/')
        return fail(w, "a folder that begins with `/`, as the server behind sees it");
    w->route->root = mk_str_first(root, root.len - mk_str_ends(root, MK_STR("/")));
    return true;
}

static bool read_split(const struct words *w)
{
    mk_str split = w->value;
    bool is_off = mk_str_eq(split, MK_STR("off"));
    w->route->split = is_off ? MK_ABSENT : split;
    return is_off || (split.len > 1 && split.p[0] == '.' && mk_str_find(split, '/') == MK_STR_NONE) ||
           fail(w, "an extension such as `.php`, or `off`");
}

static bool read_set(const struct words *w)
{
    struct mk_field_line field = {.value = w->value};
    field.name = mk_str_cut(&field.value, '=');
    if (!field.value.p || !mk_is_token(field.name))
        return fail(w, "a variable, such as `set=APP_ENV=production`");
    if (mk_str_eq(field.name, MK_STR("CONTENT_LENGTH")) || mk_str_eq(field.name, MK_STR("SCGI")))
        return fail(w, "another variable: the server sets this one");
    return mk_conf_spot_append(w->spot, &w->route->set, &w->route->n_set, &field, sizeof field);
}

/* One of two words: the second one says yes. */
static bool read_choice(const struct words *w, mk_str no, mk_str yes, bool *out)
{
    *out = mk_str_eq(w->value, yes);
    if (*out || mk_str_eq(w->value, no))
        return true;
    mk_conf_spot_error(w->spot, w->word, "expected `%.*s` or `%.*s`", MK_STR_ARG(no), MK_STR_ARG(yes));
    return false;
}

static bool read_option(void *ctx, mk_str word)
{
    struct words *w = ctx;
    struct mk_gateway_route *r = w->route;
    mk_str value = word, name = mk_str_cut(&value, '=');
    w->word = word;
    w->value = value;
    if (mk_str_eq(w->word, MK_STR("stream")))
        return r->streams = true;
    if (!value.len)
        return fail(w, "an option such as `wait=30s`");
    if (mk_str_eq(name, MK_STR("root")))
        return read_root(w);
    if (mk_str_eq(name, MK_STR("split")))
        return read_split(w);
    if (mk_str_eq(name, MK_STR("set")))
        return read_set(w);
    if (mk_str_eq(name, MK_STR("paths")))
        return read_choice(w, MK_STR("checked"), MK_STR("raw"), &r->raw_paths);
    if (mk_str_eq(name, MK_STR("underscores")))
        return read_choice(w, MK_STR("off"), MK_STR("on"), &r->passes_underscores);
    if (mk_str_eq(name, MK_STR("forwarded")))
        return read_choice(w, MK_STR("off"), MK_STR("pass"), &r->passes_forwarded);
    return fail(w, "root, split, set, stream, paths, underscores, forwarded, tries, wait or silence");
}

/* ---- The pattern ---- */

mk_str mk_gateway_route_extension(mk_str pattern)
{
    if (mk_str_ends(pattern, MK_STR("/*")))
        pattern.len -= 2;
    size_t dot = mk_str_find_last(pattern, '.');
    if (dot == MK_STR_NONE || dot == 0 || pattern.p[dot - 1] != '*')
        return MK_ABSENT;
    mk_str extension = mk_str_skip(pattern, dot);
    for (size_t i = 1; i < extension.len; i++)
        if (!mk_char_is_alpha(extension.p[i]) && !mk_char_is_digit(extension.p[i]))
            return MK_ABSENT;
    return extension.len > 1 ? extension : MK_ABSENT;
}

mk_str mk_gateway_route_prefix(mk_str pattern)
{
    size_t end = mk_str_find(pattern, '*'), other = mk_str_find(pattern, '?');
    if (!pattern.len || pattern.p[0] != '/')
        return MK_STR("");
    pattern = mk_str_first(pattern, end < other ? end : other);
    while (mk_str_ends(pattern, MK_STR("/")))
        pattern.len--;
    return pattern;
}

static void begin(struct mk_gateway_route *r, const struct mk_gateway *gateway,
                  const struct mk_conf_spot *spot)
{
    mk_str pattern = mk_conf_spot_key(spot), extension = mk_gateway_route_extension(pattern);
    *r = (struct mk_gateway_route){
        .gateway = gateway, .prefix = mk_gateway_route_prefix(pattern), .split = extension};
    if (!extension.p && gateway->split)
        r->split = mk_str_from_c(gateway->split);
}

bool mk_gateway_bind(const struct mk_gateway *gateway, const struct mk_conf_spot *spot, mk_str words,
                     void **data)
{
    struct mk_gateway_route *r = mk_conf_spot_alloc(spot, sizeof *r);
    struct mk_upstream_defaults defaults = {.port = gateway->port};
    struct words w = {.spot = spot, .route = r};
    if (!r || !mk_conf_spot_word(spot, &words, &w.word) || !w.word.p)
        return false;
    begin(r, gateway, spot);
    r->upstream = mk_upstream_find(spot, w.word, &defaults);
    if (!r->upstream)
        return false;
    *data = r;
    if (!mk_upstream_limits_read(spot, words, &r->limits, read_option, &w))
        return false;
    if (!r->streams)
        mk_config_want_spool(mk_conf_spot_config(spot));
    return true;
}
