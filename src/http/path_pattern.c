/* SPDX-License-Identifier: Apache-2.0 */
#include "http/path_pattern.h"

static bool has_wildcard(mk_str s)
{
    return mk_str_find(s, '*') != MK_STR_NONE || mk_str_find(s, '?') != MK_STR_NONE;
}

static enum mk_pattern_kind pattern_kind(mk_str text)
{
    if (mk_str_eq(text, MK_STR("*")) || mk_str_eq(text, MK_STR("/*")))
        return MK_PATTERN_ALL;
    if (!has_wildcard(text))
        return MK_PATTERN_EXACT;
    if (mk_str_ends(text, MK_STR("/*")) && !has_wildcard(mk_str_first(text, text.len - 1)))
        return MK_PATTERN_PREFIX;
    if (text.p[0] == '*' && !has_wildcard(mk_str_skip(text, 1)))
        return MK_PATTERN_SUFFIX;
    return MK_PATTERN_GLOB;
}

bool mk_pattern_set(struct mk_pattern *p, mk_str text)
{
    if (text.len == 0 || (text.p[0] != '/' && text.p[0] != '*'))
        return false;
    p->text = text;
    p->kind = pattern_kind(text);
    return true;
}

bool mk_pattern_matches(const struct mk_pattern *p, mk_str path)
{
    switch ((enum mk_pattern_kind)p->kind) {
    case MK_PATTERN_ALL:
        return true;
    case MK_PATTERN_PREFIX: {
        mk_str folder = mk_str_first(p->text, p->text.len - 1);
        return mk_str_starts(path, folder) || mk_str_eq(path, mk_str_first(folder, folder.len - 1));
    }
    case MK_PATTERN_SUFFIX:
        return mk_str_ends(path, mk_str_skip(p->text, 1));
    case MK_PATTERN_EXACT:
        return mk_str_eq(path, p->text);
    case MK_PATTERN_GLOB:
        break;
    }
    return mk_str_match(path, p->text);
}

mk_str mk_path_pattern_extension(mk_str pattern)
{
    if (mk_str_ends(pattern, MK_STR("/*")))
        pattern.len -= 2;
    size_t dot = mk_str_find_last(pattern, '.');
    if (dot == MK_STR_NONE || dot == 0 || pattern.p[dot - 1] != '*')
        return MK_STR_NULL;
    mk_str extension = mk_str_skip(pattern, dot);
    for (size_t i = 1; i < extension.len; i++)
        if (!mk_char_is_alpha(extension.p[i]) && !mk_char_is_digit(extension.p[i]))
            return MK_STR_NULL;
    return extension.len > 1 ? extension : MK_STR_NULL;
}
