/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

/* ---- Codings ---- */

static bool has_coding(const struct codings *c, enum coding coding)
{
    size_t i = 0;
    while (i < c->n && c->v[i] != coding)
        i++;
    return i < c->n;
}

static bool add_coding(const struct mk_conf_ctx *ctx, mk_str word, struct codings *c)
{
    unsigned i = 0;
    while (i < CODINGS && !mk_str_eq_nocase(word, mk_str_from_c(compress_coders[i]->name)))
        i++;
    if (i == CODINGS)
        return false;
    if (!compress_coders[i]->open)
        mk_conf_ctx_warn(ctx, word, "coding `%s` is not part of this build: the server continues without it",
                         compress_coders[i]->name);
    else if (!has_coding(c, (enum coding)i))
        c->v[c->n++] = (enum coding)i;
    return true;
}

static bool parse_codings(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    struct codings *c = field;
    mk_str rest = value;
    if (mk_str_eq_nocase(value, MK_STR("off")))
        return c->is_off = true;
    for (mk_str word = mk_str_word(&rest); word.len; word = mk_str_word(&rest)) {
        if (add_coding(ctx, word, c))
            continue;
        mk_conf_ctx_error(ctx, word, "`%.*s` is not a coding: expected zstd, br or gzip", MK_STR_ARG(word));
        return false;
    }
    c->is_off = c->n == 0;
    return true;
}

/* Shows the default, which is all codings of this build, if the key is not set. */
static bool show_codings(const void *field, size_t i, struct mk_buf *out)
{
    const struct codings *c = field;
    size_t n = c->n ? c->n : CODINGS;
    if (c->is_off)
        mk_buf_add(out, MK_STR("off"));
    for (size_t j = 0; !c->is_off && j < n; j++) {
        const struct coder_ops *ops = compress_coders[c->n ? c->v[j] : j];
        if (ops->open)
            mk_buf_addf(out, "%s%s", out->len ? " " : "", ops->name);
    }
    return i == 0;
}

/* ---- Paths ---- */

static bool add_path(const struct mk_conf_ctx *ctx, mk_str word, struct paths *p)
{
    struct mk_pattern pattern;
    if (mk_pattern_set(&pattern, word))
        return mk_conf_ctx_append(ctx, &p->v, &p->n, &pattern, sizeof pattern);
    mk_conf_ctx_error(ctx, word, "`%.*s` is not a path: expected a path such as /account/* or *.log",
                      MK_STR_ARG(word));
    return false;
}

static bool parse_paths(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    mk_str rest = value, word;
    for (;;) {
        if (!mk_conf_ctx_word(ctx, &rest, &word))
            return false;
        if (!word.p)
            return true;
        if (!add_path(ctx, word, field))
            return false;
    }
}

static bool show_paths(const void *field, size_t i, struct mk_buf *out)
{
    const struct paths *p = field;
    if (i >= p->n)
        return false;
    bool quotes =
        mk_str_find(p->v[i].text, ' ') != MK_STR_NONE || mk_str_find(p->v[i].text, '\t') != MK_STR_NONE;
    mk_buf_addf(out, quotes ? "\"%.*s\"" : "%.*s", MK_STR_ARG(p->v[i].text));
    return true;
}

/* ---- The section ---- */

#define AT(member) MK_CONF_AT(struct settings, member)

static const struct mk_conf_key keys[] = {
    {.name = "Codings",
     .type = MK_CONF_CUSTOM,
     AT(codings),
     .syntax = "zstd, br, gzip in the order of preference, or off",
     .parse = parse_codings,
     .show = show_codings,
     .help =
         MK_HELP("Codings in the order of preference, which decides when a client accepts several equally. "
                 "Default: all "
                 "codings of this build (`zstd br gzip`).")},
    {.name = "Types",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_REPEATABLE,
     AT(types),
     .syntax = "media types, such as text/html, text/* or application/*+json",
     .parse = compress_media_types_parse,
     .show = compress_media_types_show,
     .default_value = COMPRESS_TYPES,
     .help = MK_HELP("Media types to compress.")},
    {.name = "MinLength",
     .type = MK_CONF_SIZE,
     AT(min_length),
     .default_value = "512",
     .help = MK_HELP("Minimum size; bodies known to be smaller are not compressed.")},
    {.name = "Except",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_REPEATABLE,
     AT(skip),
     .syntax = "paths, such as /account/* or *.log",
     .parse = parse_paths,
     .show = show_paths,
     .help = MK_HELP("Paths whose responses are never compressed.")},
    {.name = "CrossSite",
     .type = MK_CONF_BOOL,
     AT(cross_site),
     .default_value = "off",
     .help =
         MK_HELP("Also compresses responses to cross-site requests with cookies or credentials (BREACH).")},
    {.name = "GzipLevel",
     .type = MK_CONF_NUM,
     AT(levels[CODING_GZIP]),
     .min = 1,
     .max = 9,
     .default_value = "5",
     .help = MK_HELP("Compression level, from 1 (fastest) to 9 (smallest).")},
    {.name = "BrotliLevel",
     .type = MK_CONF_NUM,
     AT(levels[CODING_BROTLI]),
     .min = 1,
     .max = 9,
     .default_value = "5",
     .help = MK_HELP("Compression level, from 1 (fastest) to 9 (smallest).")},
    {.name = "ZstdLevel",
     .type = MK_CONF_NUM,
     AT(levels[CODING_ZSTD]),
     .min = 1,
     .max = 12,
     .default_value = "6",
     .help = MK_HELP("Compression level, from 1 (fastest) to 12 (smallest).")},
    {.name = "MaxStreams",
     .type = MK_CONF_NUM,
     AT(max_streams),
     .min = 1,
     .max = 100000,
     .default_value = "32",
     .help = MK_HELP(
         "Maximum concurrent compressed responses per worker. Further responses are not compressed.")},
    {.name = "CacheSize",
     .type = MK_CONF_SIZE,
     AT(cache_size),
     .zero_word = "off",
     .default_value = "8M",
     .help = MK_HELP("Memory per worker for the cache of compressed files.")},
    {.name = "MaxCacheFile",
     .type = MK_CONF_SIZE,
     AT(max_cache_file),
     .default_value = "1M",
     .help = MK_HELP("Maximum size of a cached file; larger files are compressed for each request.")},
};

const struct mk_conf_table compress_table = {
    .section = "COMPRESS",
    .keys = keys,
    .n = MK_LEN(keys),
    .help = MK_HELP("Compresses responses while sending them."),
    .size = sizeof(struct settings),
    .scope = MK_CONF_VHOST,
};
