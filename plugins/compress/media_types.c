/* SPDX-License-Identifier: Apache-2.0 */
#include "media_types.h"

#include <monkey/text.h>

enum { TYPE_MAX = 128 };

static bool is_media_type_pattern(mk_str word)
{
    mk_str minor = word, major = mk_str_cut(&minor, '/');
    return word.len < TYPE_MAX && mk_is_token(major) && minor.p && mk_is_token(minor);
}

static mk_str lowercase(mk_str text, char *buf)
{
    for (size_t i = 0; i < text.len; i++)
        buf[i] = mk_char_lower(text.p[i]);
    return mk_str_of(buf, text.len);
}

static bool append_type(const struct mk_conf_ctx *ctx, struct media_types *t, mk_str word)
{
    char *buf = mk_conf_ctx_alloc(ctx, word.len + 1);
    mk_str type = buf ? lowercase(word, buf) : MK_STR_NULL;
    return buf && mk_conf_ctx_append(ctx, &t->v, &t->n, &type, sizeof type);
}

bool compress_media_types_parse(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    mk_str rest = value, word;
    for (;;) {
        if (!mk_conf_ctx_word(ctx, &rest, &word))
            return false;
        if (!word.p)
            return true;
        if (!is_media_type_pattern(word)) {
            mk_conf_ctx_error(ctx, word,
                              "`%.*s` is not a media type: expected a type such as text/html, text/* or "
                              "application/*+json",
                              MK_STR_ARG(word));
            return false;
        }
        if (!append_type(ctx, field, word))
            return false;
    }
}

bool compress_media_types_show(const void *field, size_t i, struct mk_buf *out)
{
    const struct media_types *t = field;
    for (size_t j = 0; i == 0 && j < t->n; j++) {
        mk_buf_add(out, j ? MK_STR(" ") : MK_STR(""));
        mk_buf_add(out, t->v[j]);
    }
    return i == 0 && t->n;
}

bool compress_media_types_contain(const struct media_types *t, mk_str type)
{
    char buf[TYPE_MAX];
    type = mk_str_trim(mk_str_cut(&type, ';'));
    if (type.len >= sizeof buf)
        return false;
    type = lowercase(type, buf);
    for (size_t i = 0; i < t->n; i++)
        if (mk_str_match(type, t->v[i]))
            return true;
    return false;
}
