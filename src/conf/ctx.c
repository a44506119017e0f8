/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that value parsers call: they return the key and the value, allocate memory, and report errors at
 * the position of the value. */
#include "conf/path.h"
#include "conf/table.h"
#include "conf/value.h"

mk_str mk_conf_ctx_key(const struct mk_conf_ctx *ctx)
{
    return ctx->entry ? ctx->entry->key : mk_str_from_c(ctx->key ? ctx->key->name : NULL);
}

mk_str mk_conf_ctx_value(const struct mk_conf_ctx *ctx)
{
    return ctx->entry ? ctx->entry->value : mk_str_from_c(ctx->key ? ctx->key->default_value : NULL);
}

void *mk_conf_ctx_out(const struct mk_conf_ctx *ctx)
{
    return ctx->out;
}

struct mk_config *mk_conf_ctx_config(const struct mk_conf_ctx *ctx)
{
    return ctx->config;
}

void *mk_conf_ctx_alloc(const struct mk_conf_ctx *ctx, size_t size)
{
    return mk_arena_zalloc(ctx->arena, 1, size);
}

bool mk_conf_ctx_append(const struct mk_conf_ctx *ctx, void *vector, size_t *n, const void *item, size_t size)
{
    return mk_arena_append(ctx->arena, vector, n, item, size);
}

bool mk_conf_ctx_word(const struct mk_conf_ctx *ctx, mk_str *rest, mk_str *word)
{
    mk_err e = mk_conf_words_next(ctx->arena, rest, word);
    if (e == -EINVAL)
        mk_conf_ctx_error(ctx, *word,
                          "a quote is not closed, or text follows the closing quote without a blank");
    return e == 0;
}

bool mk_conf_ctx_time(const struct mk_conf_ctx *ctx, mk_str text, uint32_t *ms)
{
    uint64_t n = 0;
    bool is_off = mk_str_eq_nocase(text, MK_STR("off"));
    if (!is_off && (mk_conf_value_parse_time(text, 0, &n) || n == 0 || n > UINT32_MAX)) {
        mk_conf_ctx_error(ctx, text, "expected a time above 0 such as `30s`, or `off`, not `%.*s`",
                          MK_CONF_REPORT_ARG(text));
        return false;
    }
    *ms = (uint32_t)n;
    return true;
}

mk_str mk_conf_ctx_path(const struct mk_conf_ctx *ctx, mk_str path)
{
    mk_str file = ctx->entry ? ctx->entry->at.file : MK_STR("");
    return mk_conf_path_resolve(ctx->arena, file, path);
}

/* Returns the position of a slice of the key or value; an absent slice means the whole value. A default value
 * has no line in the configuration, so its position names the key instead of a file. */
static struct mk_conf_source_pos slice_pos(const struct mk_conf_ctx *ctx, mk_str part)
{
    if (ctx->entry)
        return mk_conf_tree_value_pos(ctx->entry, part);
    mk_str name = mk_arena_printf(ctx->arena, "default of %s in [%s]", ctx->key ? ctx->key->name : "a key",
                                  ctx->table->section);
    return (struct mk_conf_source_pos){.file = name};
}

void mk_conf_ctx_error(const struct mk_conf_ctx *ctx, mk_str part, const char *fmt, ...)
{
    struct mk_conf_source_pos at = slice_pos(ctx, part);
    va_list args;
    va_start(args, fmt);
    mk_conf_report_addv(ctx->report, MK_CONF_ERROR, &at, fmt, args);
    va_end(args);
}

void mk_conf_ctx_warn(const struct mk_conf_ctx *ctx, mk_str part, const char *fmt, ...)
{
    struct mk_conf_source_pos at = slice_pos(ctx, part);
    va_list args;
    va_start(args, fmt);
    mk_conf_report_addv(ctx->report, MK_CONF_WARNING, &at, fmt, args);
    va_end(args);
}

void mk_conf_ctx_hint(const struct mk_conf_ctx *ctx, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    mk_conf_report_hintv(ctx->report, fmt, args);
    va_end(args);
}

/* Returns whether the path is decoded and has no dot segments. Request paths are compared in this form, so
 * any other path would protect nothing. */
static bool is_normalized_path(mk_str path)
{
    while (path.p) {
        mk_str segment = mk_str_cut(&path, '/');
        bool last = !path.p;
        if ((segment.len == 0 && !last) || mk_str_eq(segment, MK_STR(".")) ||
            mk_str_eq(segment, MK_STR("..")))
            return false;
    }
    return true;
}

bool mk_conf_ctx_location(const struct mk_conf_ctx *ctx, mk_str value, mk_str *location)
{
    mk_str rest = value, word;
    if (!mk_conf_ctx_word(ctx, &rest, &word) || !word.p || word.p[0] != '/' || mk_str_trim(rest).len)
        return false;
    if (mk_str_find(word, '*') != MK_STR_NONE || mk_str_find(word, '?') != MK_STR_NONE) {
        mk_conf_ctx_error(ctx, value,
                          "`Location` is not a pattern: it covers every path that begins with it");
        return false;
    }
    if (!is_normalized_path(mk_str_skip(word, 1))) {
        mk_conf_ctx_error(
            ctx, value,
            "no path matches this: paths are compared after \"//\", \".\" and \"..\" are resolved");
        return false;
    }
    if (mk_str_find(word, '%') != MK_STR_NONE)
        mk_conf_ctx_warn(ctx, value,
                         "paths are compared after decoding: use the character itself instead of %%XX");
    *location = word;
    return true;
}
