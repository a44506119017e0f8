/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizes a statement, skipping comments, constants and quoted names (chapter 4.1 of PostgreSQL's
 * manual). */
#include "statement.h"

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_name_start(char c)
{
    unsigned char u = (unsigned char)c, lower = u | 32;
    return (lower >= 'a' && lower <= 'z') || u == '_' || u >= 0x80;
}

static bool is_name_char(char c)
{
    return is_name_start(c) || (c >= '0' && c <= '9') || c == '$';
}

static size_t find_text(mk_str text, size_t from, mk_str needle)
{
    const char *at = from < text.len ? memmem(text.p + from, text.len - from, needle.p, needle.len) : NULL;
    return at ? (size_t)(at - text.p) : text.len;
}

/* Returns the offset after a comment. Comments may be nested. */
static size_t comment_end(mk_str text, size_t at)
{
    unsigned depth = 1;
    for (at += 2; at + 1 < text.len && depth; at++) {
        bool opens = text.p[at] == '/' && text.p[at + 1] == '*',
             closes = text.p[at] == '*' && text.p[at + 1] == '/';
        depth = opens ? depth + 1 : closes ? depth - 1 : depth;
        at += opens || closes;
    }
    return depth ? text.len : at;
}

/* Returns the offset after a constant or a quoted name. A doubled quote looks like two adjacent strings. */
static size_t quoted_end(mk_str text, size_t at, bool escapes)
{
    char quote = text.p[at++];
    while (at < text.len && text.p[at] != quote)
        at += escapes && text.p[at] == '\\' ? 2 : 1;
    return at < text.len ? at + 1 : text.len;
}

/* Returns the offset after a string `$tag$ ... $tag$`, or after the `$` of a parameter such as `$1`. */
static size_t dollar_quote_end(mk_str text, size_t at)
{
    size_t end = at + 1;
    while (end < text.len && text.p[end] != '$' && is_name_char(text.p[end]))
        end++;
    if (end >= text.len || text.p[end] != '$' || (at + 1 < end && !is_name_start(text.p[at + 1])))
        return end;
    mk_str tag = mk_str_of(text.p + at, end + 1 - at);
    size_t close = find_text(text, end + 1, tag);
    return close < text.len ? close + tag.len : text.len;
}

/* Returns the offset after a token that is not a word. */
static size_t skip_token(mk_str text, size_t at)
{
    char c = text.p[at], next = at + 1 < text.len ? text.p[at + 1] : 0;
    if (c == '-' && next == '-') {
        while (at < text.len && text.p[at] != '\n' && text.p[at] != '\r')
            at++;
        return at;
    }
    if (c == '/' && next == '*')
        return comment_end(text, at);
    if (c == '\'' || c == '"')
        return quoted_end(text, at, false);
    if (c == '$')
        return dollar_quote_end(text, at);
    if (c >= '0' && c <= '9') {
        while (at < text.len && is_name_char(text.p[at]))
            at++;
        return at;
    }
    return at + 1;
}

/* Returns the next word; empty at the end. Sets *other if another token precedes the word. */
static mk_str next_word(mk_str text, size_t *at, bool *other)
{
    size_t i = *at;
    while (i < text.len && !is_name_start(text.p[i])) {
        size_t end = skip_token(text, i);
        bool is_comment = (text.p[i] == '-' || text.p[i] == '/') && end > i + 1;
        *other = *other || !(is_comment || is_blank(text.p[i]));
        i = end;
    }
    size_t begin = i;
    while (i < text.len && is_name_char(text.p[i]))
        i++;
    mk_str word = mk_str_of(text.p + begin, i - begin);
    if (i < text.len && text.p[i] == '\'')
        i = quoted_end(text, i, word.len == 1 && (word.p[0] | 32) == 'e');
    *at = i;
    return word;
}

static bool is_in_word_list(mk_str word, const mk_str *all, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (mk_str_eq_nocase(word, all[i]))
            return true;
    return false;
}

static bool word_starts(mk_str word, mk_str start)
{
    return mk_str_eq_nocase(mk_str_first(word, start.len), start);
}

static bool word_is(mk_str word, const char *other)
{
    return mk_str_eq_nocase(word, mk_str_from_c(other));
}

/* Classifies by the first two words of the statement. */
static void classify_command(struct postgres_statement *s, mk_str first, mk_str second)
{
    static const mk_str queries[] = {MK_STR("SELECT"), MK_STR("INSERT"), MK_STR("UPDATE"), MK_STR("DELETE"),
                                     MK_STR("WITH"),   MK_STR("VALUES"), MK_STR("MERGE"),  MK_STR("TABLE")},
                        ends[] = {MK_STR("BEGIN"), MK_STR("START"), MK_STR("COMMIT"),
                                  MK_STR("END"),   MK_STR("ABORT"), MK_STR("ROLLBACK")},
                        changes[] = {MK_STR("SET"),     MK_STR("RESET"),      MK_STR("DISCARD"),
                                     MK_STR("LISTEN"),  MK_STR("UNLISTEN"),   MK_STR("PREPARE"),
                                     MK_STR("EXECUTE"), MK_STR("DEALLOCATE"), MK_STR("LOAD")},
                        local[] = {MK_STR("LOCAL"), MK_STR("TRANSACTION"), MK_STR("CONSTRAINTS")};
    s->is_query = is_in_word_list(first, queries, MK_LEN(queries));
    s->changes_session = is_in_word_list(first, changes, MK_LEN(changes));
    if (word_is(first, "SET") && is_in_word_list(second, local, MK_LEN(local)))
        s->changes_session = false;
    if (word_is(first, "PREPARE") && word_is(second, "TRANSACTION"))
        s->controls_transaction = true;
    if (is_in_word_list(first, ends,
                        MK_LEN(ends))) /* COMMIT PREPARED (two-phase commit) works in any session */
        s->controls_transaction = !word_is(second, "PREPARED");
}

/* Words that matter anywhere in the statement. */
struct words {
    bool creates, temporary, keeps, copies, is_local, holds, sets, locks, reads, savepoint;
};

static void classify_word(struct words *w, mk_str word, mk_str before)
{
    static const mk_str reading[] = {MK_STR("LASTVAL"), MK_STR("CURRVAL")},
                        temporary[] = {MK_STR("TEMP"), MK_STR("TEMPORARY")},
                        streams[] = {MK_STR("STDIN"), MK_STR("STDOUT")},
                        belongs[] = {MK_STR("CREATE"), MK_STR("INTO"), MK_STR("LOCAL"), MK_STR("GLOBAL"),
                                     MK_STR("REPLACE")};
    if (is_in_word_list(word, temporary, MK_LEN(temporary)) &&
        is_in_word_list(before, belongs, MK_LEN(belongs)))
        w->temporary = true;
    w->temporary |= w->creates && word_is(word, "PG_TEMP");
    w->keeps &= !(word_is(word, "DROP") && word_is(before, "COMMIT"));
    w->copies |= is_in_word_list(word, streams, MK_LEN(streams));
    w->is_local |= word_is(word, "TRUE");
    w->holds |= word_is(word, "HOLD") && word_is(before, "WITH");
    w->savepoint |= word_is(word, "TO");
    w->sets |= word_is(word, "SET_CONFIG");
    w->locks |= word_starts(word, MK_STR("PG_ADVISORY_LOCK")) ||
                word_starts(word, MK_STR("PG_TRY_ADVISORY_LOCK")) ||
                word_starts(word, MK_STR("PG_ADVISORY_UNLOCK"));
    w->reads |= is_in_word_list(word, reading, MK_LEN(reading));
}

struct postgres_statement postgres_statement_classify(mk_str text)
{
    struct postgres_statement s = {.is_empty = false};
    size_t at = 0;
    bool other = false;
    mk_str first = next_word(text, &at, &other), word = next_word(text, &at, &other), before = first;
    struct words w = {.keeps = true, .creates = word_is(first, "CREATE")};
    s.is_empty = !first.len && !other;
    classify_command(&s, first, word);
    for (; word.len; word = next_word(text, &at, &other)) {
        classify_word(&w, word, before);
        before = word;
    }
    s.copies = word_is(first, "COPY") && w.copies;
    if (word_is(first, "ROLLBACK") && w.savepoint)
        s.controls_transaction = false;
    s.changes_session |= (w.temporary && w.keeps) || (word_is(first, "DECLARE") && w.holds) || w.locks ||
                         (w.sets && !w.is_local);
    s.reads_session = w.reads;
    return s;
}
