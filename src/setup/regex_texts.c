/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the syntax of PCRE2 as far as it is certain. All other syntax leads to an unknown result. */
#include "setup/regex_texts.h"

#include <monkey/text.h>

enum { TEXT_MIN = 3 };

struct reader {
    mk_str rest;
    char *end; /* of the literal text that is being read */
    mk_str *texts;
    size_t n;
    bool is_unknown;
};

/* A branch of an alternation. The index searches for its first long text, or for its first group
 * with texts. */
struct branch {
    size_t first;
    const char *text; /* the beginning of the literal text that is being read */
};

static char take(struct reader *r)
{
    char c = r->rest.len ? r->rest.p[0] : '\0';
    r->rest = mk_str_skip(r->rest, 1);
    return c;
}

static bool next_is(const struct reader *r, const char *chars)
{
    return r->rest.len && strchr(chars, r->rest.p[0]);
}

static void end_text(struct reader *r, struct branch *b)
{
    mk_str text = mk_str_of(b->text, (size_t)(r->end - b->text));
    b->text = r->end;
    if (text.len < TEXT_MIN || r->n > b->first)
        return;
    if (r->n == MK_REGEX_TEXTS_MAX)
        r->is_unknown = true;
    else
        r->texts[r->n++] = text;
}

enum quantifier { MAY_BE_ABSENT, ONCE, REPEATED };

static enum quantifier read_quantifier(struct reader *r)
{
    if (!next_is(r, "?*{+"))
        return ONCE;
    char c = take(r);
    while (c == '{' && next_is(r, "0123456789,"))
        take(r);
    r->is_unknown |= c == '{' && take(r) != '}'; /* the brace may be literal */
    if (next_is(r, "?+"))
        take(r);
    return c == '+' ? REPEATED : MAY_BE_ABSENT;
}

/* A bracket as the first character, and classes such as [:alpha:], have a syntax of their own. */
static void skip_class(struct reader *r)
{
    if (next_is(r, "^"))
        take(r);
    r->is_unknown |= next_is(r, "]");
    while (r->rest.len && !next_is(r, "]")) {
        r->is_unknown |= next_is(r, "[");
        if (take(r) == '\\') {
            r->is_unknown |= next_is(r, "QEc"); /* \c takes the next character, even a bracket */
            take(r);
        }
    }
    take(r);
}

static void read_alternation(struct reader *r);

static void read_group(struct reader *r)
{
    if (mk_str_starts(r->rest, MK_STR("?:")))
        r->rest = mk_str_skip(r->rest, 2);
    r->is_unknown |= next_is(r, "?*");
    if (!r->is_unknown)
        read_alternation(r);
    take(r);
}

/* Returns whether the element is the literal character *c. */
static bool read_element(struct reader *r, char *c)
{
    *c = take(r);
    if (*c == '\\') {
        *c = take(r);
        bool is_letter = mk_char_is_alpha(*c) || mk_char_is_digit(*c);
        r->is_unknown |= is_letter && !strchr("dDwWsSbBhHvVtrn", *c);
        return !is_letter;
    }
    if (*c == '[')
        skip_class(r);
    else if (*c == '(')
        read_group(r);
    else
        return !strchr(".^$", *c);
    return false;
}

/* Reads up to the end of a branch. Returns false if it has no text. */
static bool read_branch(struct reader *r)
{
    struct branch b = {.first = r->n, .text = r->end};
    while (r->rest.len && !r->is_unknown && !next_is(r, "|)")) {
        char c;
        bool is_group = next_is(r, "(");
        if (is_group)
            end_text(r, &b);
        size_t at = r->n;
        r->is_unknown |= next_is(r, "*+?{");
        bool is_literal = read_element(r, &c);
        enum quantifier quantifier = read_quantifier(r);
        if (quantifier == MAY_BE_ABSENT || at > b.first) /* the texts of a group do not count */
            r->n = at;
        if (is_group)
            b.text = r->end;
        if (is_literal && quantifier != MAY_BE_ABSENT)
            *r->end++ = c;
        if (!is_literal || quantifier != ONCE)
            end_text(r, &b);
    }
    end_text(r, &b);
    return r->n > b.first;
}

/* Reads up to the end of a group. Adds texts of all branches, or none. */
static void read_alternation(struct reader *r)
{
    size_t at = r->n;
    bool has_texts = read_branch(r);
    while (next_is(r, "|") && !r->is_unknown) {
        take(r);
        has_texts = read_branch(r) && has_texts;
    }
    if (!has_texts)
        r->n = at;
}

size_t mk_regex_texts_find(struct mk_arena *arena, mk_str pattern, bool nocase,
                           mk_str texts[MK_REGEX_TEXTS_MAX])
{
    struct reader r = {.rest = pattern, .end = mk_arena_alloc(arena, pattern.len + 1), .texts = texts};
    r.is_unknown = mk_str_find(pattern, '\0') != MK_STR_NONE;
    mk_str option = MK_STR("(?i)");
    if (nocase && mk_str_starts(pattern, option))
        r.rest = mk_str_skip(pattern, option.len);
    if (r.end)
        read_alternation(&r);
    return r.is_unknown || r.rest.len ? 0 : r.n;
}
