/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/words.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Returns the position of the quote that closes text starting with a quote; MK_STR_NONE if there is none. */
static size_t find_closing_quote(mk_str s)
{
    for (size_t i = 1; i < s.len; i++) {
        if (s.p[i] == '"')
            return i;
        if (s.p[i] == '\\' && i + 1 < s.len && (s.p[i + 1] == '"' || s.p[i + 1] == '\\'))
            i++;
    }
    return MK_STR_NONE;
}

/* Decodes \" and \\ in the text between the quotes. */
static mk_err unescape_quoted(struct mk_arena *a, mk_str inner, mk_str *out)
{
    *out = inner;
    if (mk_str_find(inner, '\\') == MK_STR_NONE)
        return 0;
    char *p = mk_arena_alloc(a, inner.len);
    if (!p)
        return -ENOMEM;
    size_t len = 0;
    for (size_t i = 0; i < inner.len; i++) {
        if (inner.p[i] == '\\' && i + 1 < inner.len && (inner.p[i + 1] == '"' || inner.p[i + 1] == '\\'))
            i++;
        p[len++] = inner.p[i];
    }
    *out = mk_str_of(p, len);
    return 0;
}

mk_err mk_conf_words_unquote(struct mk_arena *a, mk_str s, mk_str *out)
{
    s = mk_str_trim(s);
    if (s.len == 0 || s.p[0] != '"') {
        *out = s.p ? s : MK_STR("");
        return 0;
    }
    if (find_closing_quote(s) != s.len - 1)
        return -EINVAL;
    return unescape_quoted(a, mk_str_skip(mk_str_first(s, s.len - 1), 1), out);
}

static mk_err parse_quoted(struct mk_arena *a, mk_str s, mk_str *rest, mk_str *word)
{
    size_t close = find_closing_quote(s);
    size_t end = close == MK_STR_NONE ? s.len : close + 1;
    while (end < s.len && !is_blank(s.p[end]))
        end++;
    *rest = mk_str_skip(s, end);
    if (end != close + 1) {
        *word = mk_str_first(s, end);
        return -EINVAL;
    }
    return unescape_quoted(a, mk_str_skip(mk_str_first(s, close), 1), word);
}

mk_err mk_conf_words_next(struct mk_arena *a, mk_str *rest, mk_str *word)
{
    mk_str s = mk_str_trim(*rest);
    if (s.len && s.p[0] == '"')
        return parse_quoted(a, s, rest, word);
    *word = mk_str_word(rest);
    if (word->len == 0)
        word->p = NULL;
    return 0;
}

mk_err mk_conf_words_append(struct mk_arena *a, mk_str s, struct mk_conf_words *words, mk_str *bad)
{
    mk_str word;
    mk_err err;
    while ((err = mk_conf_words_next(a, &s, &word)) == 0 && word.p) {
        if (word.len == 0)
            continue;
        if (!mk_arena_append(a, &words->v, &words->n, &word, sizeof word))
            return -ENOMEM;
    }
    *bad = word;
    return err;
}

bool mk_conf_words_is_syntax(char c)
{
    return is_blank(c) || c == '"' || c == '\\';
}

static void write_quoted(struct mk_buf *out, mk_str s)
{
    mk_buf_add_char(out, '"');
    for (size_t i = 0; i < s.len; i++) {
        if (s.p[i] == '"' || s.p[i] == '\\')
            mk_buf_add_char(out, '\\');
        mk_buf_add_char(out, s.p[i]);
    }
    mk_buf_add_char(out, '"');
}

void mk_conf_words_quote_text(struct mk_buf *out, mk_str s)
{
    if (s.len == 0 || s.p[0] == '"' || is_blank(s.p[0]) || is_blank(s.p[s.len - 1]))
        write_quoted(out, s);
    else
        mk_buf_add(out, s);
}

void mk_conf_words_quote_word(struct mk_buf *out, mk_str s)
{
    if (s.len == 0 || s.p[0] == '"' || mk_str_find(s, ' ') != MK_STR_NONE ||
        mk_str_find(s, '\t') != MK_STR_NONE)
        write_quoted(out, s);
    else
        mk_buf_add(out, s);
}
