/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/print.h"

#include "conf/field.h"
#include "conf/read.h"
#include "conf/value.h"
#include "conf/vars.h"

enum { WORDS_WIDTH = 72 };

static void write_entry(mk_str key, size_t width, mk_str value, struct mk_buf *out)
{
    mk_buf_add(out, MK_STR("    "));
    mk_buf_add(out, key);
    if (value.len) {
        for (size_t i = key.len; i <= width || i == key.len; i++)
            mk_buf_add_char(out, ' ');
        mk_conf_vars_escape(value, out);
    }
    mk_buf_add_char(out, '\n');
}

void mk_conf_print_entry(mk_str key, mk_str value, struct mk_buf *out)
{
    write_entry(key, 0, value, out);
}

/* Writes words on one line until the line has at least WORDS_WIDTH bytes, and advances *i past these
 * words. */
static void write_words_line(const struct mk_conf_words *words, size_t *i, struct mk_buf *out)
{
    size_t start = out->len;
    while (*i < words->n && out->len - start < WORDS_WIDTH && !out->failed) {
        if (out->len > start)
            mk_buf_add_char(out, ' ');
        mk_conf_words_quote_word(out, words->v[(*i)++]);
    }
}

static bool write_words_value(const struct mk_conf_key *k, const struct mk_conf_words *words, size_t *i,
                              struct mk_buf *out)
{
    if (words->n == 0 && *i == 0 && (k->flags & MK_CONF_MAY_BE_EMPTY)) {
        mk_conf_words_quote_word(out, MK_STR(""));
        ++*i;
        return true;
    }
    if (*i >= words->n)
        return false;
    write_words_line(words, i, out);
    return true;
}

static void write_amount(const struct mk_conf_key *k, uint64_t n, struct mk_buf *out)
{
    if (n == 0 && k->zero_word)
        mk_buf_add(out, mk_str_from_c(k->zero_word));
    else if (k->type == MK_CONF_SIZE)
        mk_conf_value_write_size(out, n, k->unit);
    else if (k->type == MK_CONF_TIME)
        mk_conf_value_write_time(out, n);
    else
        mk_buf_add_num(out, n);
}

static bool write_choice_value(const struct mk_conf_key *k, uint64_t n, struct mk_buf *out)
{
    for (size_t i = 0; k->choices[i]; i++)
        if (i == n) {
            mk_buf_add(out, mk_str_from_c(k->choices[i]));
            return true;
        }
    return false;
}

static bool write_text_value(mk_str text, struct mk_buf *out)
{
    if (text.p)
        mk_conf_words_quote_text(out, text);
    return text.p;
}

static bool write_scalar_value(const struct mk_conf_key *k, const void *in, const void *field,
                               struct mk_buf *out)
{
    switch (k->type) {
    case MK_CONF_BOOL:
        mk_buf_add(out, *(const bool *)field ? MK_STR("on") : MK_STR("off"));
        return true;
    case MK_CONF_NUM:
    case MK_CONF_SIZE:
    case MK_CONF_TIME:
        write_amount(k, mk_conf_field_load(k, in), out);
        return true;
    case MK_CONF_TEXT:
        return write_text_value(*(const mk_str *)field, out);
    case MK_CONF_ENUM:
        return write_choice_value(k, mk_conf_field_load(k, in), out);
    case MK_CONF_WORDS:
    case MK_CONF_CUSTOM:
    default:
        return false;
    }
}

/* Writes the value at index *i, and advances *i; false if no value is left. For a list of words, *i is the
 * index of a word, and each call writes one line of words. */
static bool write_next_value(const struct mk_conf_key *k, const void *in, size_t *i, struct mk_buf *out)
{
    const void *field = (const char *)in + k->offset;
    if (k->type == MK_CONF_WORDS)
        return write_words_value(k, field, i, out);
    size_t at = (*i)++;
    if (k->type == MK_CONF_CUSTOM)
        return k->show && k->show(field, at, out);
    return at == 0 && write_scalar_value(k, in, field, out);
}

/* Is the key printed? The value of a deprecated key is printed under the key that replaced it. */
static bool is_key_printed(const struct mk_conf_key *k)
{
    return !k->alias_of && !(k->flags & (MK_CONF_IGNORED | MK_CONF_DEPRECATED));
}

static size_t max_key_len(const struct mk_conf_table *t)
{
    size_t width = 0;
    for (size_t i = 0; i < t->n; i++)
        if (is_key_printed(&t->keys[i]))
            width = mk_max(width, strlen(t->keys[i].name));
    return width;
}

bool mk_conf_print_value(const struct mk_conf_key *key, const void *in, struct mk_buf *out)
{
    size_t first = 0;
    return write_next_value(key, in, &first, out);
}

static void print_key(const struct mk_conf_key *k, size_t width, const void *in, struct mk_buf *out)
{
    struct mk_buf value = mk_buf_growing(MK_CONF_FILE_MAX);
    size_t i = 0;
    bool any = false;
    while (write_next_value(k, in, &i, &value) && !value.failed) {
        write_entry(mk_str_from_c(k->name), width, mk_buf_str(&value), out);
        mk_buf_clear(&value);
        any = true;
    }
    if (!any && !value.failed)
        mk_buf_addf(out, "    # %s\n", k->name);
    out->failed = out->failed || value.failed;
    mk_buf_free(&value);
}

static void print_entries(const struct mk_conf_table *table, const void *in, struct mk_buf *out)
{
    struct mk_buf key = mk_buf_growing(MK_CONF_LINE_MAX), value = mk_buf_growing(MK_CONF_FILE_MAX);
    for (size_t i = 0; table->show_entry(in, i, &key, &value) && !key.failed && !value.failed; i++) {
        write_entry(mk_buf_str(&key), 0, mk_buf_str(&value), out);
        mk_buf_clear(&key);
        mk_buf_clear(&value);
    }
    out->failed = out->failed || key.failed || value.failed;
    mk_buf_free(&key);
    mk_buf_free(&value);
}

void mk_conf_print_section(const struct mk_conf_table *table, const void *in, struct mk_buf *out)
{
    size_t width = max_key_len(table);
    mk_buf_addf(out, "[%s]\n", table->section);
    for (size_t i = 0; i < table->n; i++)
        if (is_key_printed(&table->keys[i]))
            print_key(&table->keys[i], width, in, out);
    if (table->show_entry)
        print_entries(table, in, out);
}

/* ---- References ---- */

/* Bytes of a value: a shorter one is found in other keys, or in other words of its key, by chance. */
enum { LONG_VALUE = 8, SHORT_VALUE = 4 };

/* The lines of a key. */
struct key_lines {
    mk_str text; /* from the first line to the end of the configuration */
    mk_str key;
    mk_str start; /* what each line begins with: the indent, the key, and the blanks before the value */
    const struct mk_conf_aliases *aliases;
};

static size_t skip_common_syntax(mk_str text, size_t *at, mk_str value, size_t i)
{
    for (; i < value.len && mk_conf_words_is_syntax(value.p[i]); i++)
        if (*at < text.len && text.p[*at] == value.p[i])
            ++*at;
    return i;
}

/* A long list of words continues in another line of the same key. */
static size_t skip_printed_syntax(const struct key_lines *l, size_t at)
{
    for (;;)
        if (at < l->text.len && mk_conf_words_is_syntax(l->text.p[at]))
            at++;
        else if (at < l->text.len && l->text.p[at] == '\n' &&
                 mk_str_starts(mk_str_skip(l->text, at + 1), l->start))
            at += 1 + l->start.len;
        else
            return at;
}

/* Returns the length of the value at this position; 0: there is other text. The value was parsed and is written again, so that
 * its quotes, backslashes and blanks may differ, and a `$` precedes `${`. */
static size_t printed_length(const struct key_lines *l, size_t start, const struct mk_conf_env_value *v)
{
    mk_str value = v->value, text = l->text;
    size_t at = start, i = skip_common_syntax(text, &at, value, 0);
    for (size_t n_left = v->n_bytes; n_left; n_left--) {
        at += value.p[i] == '$' && mk_str_starts(mk_str_skip(text, at), MK_STR("$${"));
        if (at == text.len || text.p[at++] != value.p[i++])
            return 0;
        for (; n_left > 1 && mk_conf_words_is_syntax(value.p[i]); i++)
            continue;
        if (n_left > 1)
            at = skip_printed_syntax(l, at);
    }
    (void)skip_common_syntax(text, &at, value, i);
    return at - start;
}

static bool is_in_word(char c)
{
    return mk_char_is_alpha(c) || mk_char_is_digit(c) || c == '.';
}

/* Like printed_length(), for a position in the value of the key. */
static size_t reference_length(const struct key_lines *l, size_t at, const struct mk_conf_env_value *v)
{
    if (v->n_bytes < LONG_VALUE && !mk_str_eq_nocase(v->key, l->key) &&
        !l->aliases->is_alias(l->aliases->ctx, v->key, l->key))
        return 0;
    size_t n = printed_length(l, at, v);
    bool is_part =
        (at && is_in_word(l->text.p[at - 1])) || (at + n < l->text.len && is_in_word(l->text.p[at + n]));
    return v->n_bytes < SHORT_VALUE && is_part ? 0 : n;
}

/* Returns the longest value at this position; NULL: there is none. */
static const struct mk_conf_env_value *find_env_value(const struct key_lines *l, size_t at,
                                                      const struct mk_conf_env_values *values, size_t *len)
{
    const struct mk_conf_env_value *found = NULL;
    size_t n, first = at;
    while (first + 1 < l->text.len && mk_conf_words_is_syntax(l->text.p[first]))
        first++;
    const struct mk_conf_env_value *v =
        values->by_byte[(unsigned char)l->text.p[first] % MK_LEN(values->by_byte)];
    for (*len = 0; v; v = v->next)
        if ((n = reference_length(l, at, v)) > *len) {
            found = v;
            *len = n;
        }
    return found;
}

size_t mk_conf_print_line_references(mk_str text, const struct mk_conf_env_values *values,
                                     const struct mk_conf_aliases *aliases, struct mk_buf *out)
{
    mk_str rest = text, line = mk_str_cut(&rest, '\n');
    rest = line;
    mk_str key = mk_str_word(&rest);
    size_t at = line.len - rest.len, len;
    struct key_lines l = {.text = text, .key = key, .start = mk_str_first(line, at), .aliases = aliases};
    mk_buf_add(out, l.start);
    while (at < text.len && text.p[at] != '\n') {
        const struct mk_conf_env_value *found = find_env_value(&l, at, values, &len);
        if (found)
            mk_buf_addf(out, "${%.*s}", MK_STR_ARG(found->name));
        else
            mk_buf_add_char(out, text.p[at]);
        at += found ? len : 1;
    }
    return at;
}
