/* SPDX-License-Identifier: Apache-2.0 */
/* Parses arbitrary JSON into values. */
#include <errno.h>
#include <monkey/text.h>
#include <stdlib.h>

#include "text/json_lex.h"

/* Elements, linked in reverse order while their number is unknown. */
struct element_link {
    struct element_link *before;
    struct duda_entry element;
    size_t at; /* offset of its name */
};

/* A name, and its offset in the text. */
struct name_position {
    const char *name;
    size_t at;
};

static bool read_value(struct duda_json_cursor *c, struct duda_value *out);

static void *alloc_or_fail(struct duda_json_cursor *c, size_t n, size_t size)
{
    void *p = mk_allocator_zalloc(c->memory, n, size);
    if (!p)
        c->error = -ENOMEM;
    return p;
}

static bool read_name(struct duda_json_cursor *c, const char **out)
{
    mk_str name;
    if (!duda_json_lex_name(c, &name) || !duda_json_expect_char(c, ':', "`:`"))
        return false;
    char *copy = (char *)alloc_or_fail(c, name.len + 1, 1);
    if (copy && name.len)
        memcpy(copy, name.p, name.len);
    *out = copy;
    return copy != NULL;
}

static int compare_names(const void *a, const void *b)
{
    const struct name_position *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : x->at < y->at ? -1 : x->at > y->at;
}

/* JSON parsers disagree on which duplicate wins, so duplicates are errors. */
static bool check_duplicate_names(struct duda_json_cursor *c, const struct element_link *last, size_t n)
{
    enum { SHOWN_MAX = 64, MESSAGE_MAX = 200 };
    struct name_position *all = n > 1 ? (struct name_position *)alloc_or_fail(c, n, sizeof *all) : NULL;
    char buf[MESSAGE_MAX];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    if (!all)
        return n < 2;
    for (size_t i = 0; i < n; i++, last = last->before)
        all[i] = (struct name_position){last->element.name, last->at};
    qsort(all, n, sizeof *all, compare_names);
    for (size_t i = 1; i < n; i++)
        if (strcmp(all[i - 1].name, all[i].name) == 0) {
            mk_buf_add_char(&text, '`');
            mk_log_escape_to(&text, mk_str_first(mk_str_from_c(all[i].name), SHOWN_MAX), MESSAGE_MAX - 40);
            return duda_json_fail(c, -EINVAL, all[i].at, "%.*s` occurs more than once",
                                  MK_STR_ARG(mk_buf_str(&text)));
        }
    return true;
}

static bool collect_elements(struct duda_json_cursor *c, const struct element_link *last, size_t n,
                             bool names, struct duda_value *out)
{
    struct duda_value *list = names ? NULL : (struct duda_value *)alloc_or_fail(c, n, sizeof *list);
    struct duda_entry *map = names ? (struct duda_entry *)alloc_or_fail(c, n, sizeof *map) : NULL;
    if (!list && !map)
        return false;
    *out = names ? duda_value_map(map, n) : duda_value_list(list, n);
    for (; n > 0; last = last->before) {
        n--;
        if (names)
            map[n] = last->element;
        else
            list[n] = last->element.value;
    }
    return true;
}

static bool read_list_or_map(struct duda_json_cursor *c, bool names, struct duda_value *out)
{
    char close = names ? '}' : ']';
    struct element_link *last = NULL;
    size_t n = 0;
    c->at++; /* the opening bracket */
    if (!duda_json_enter_nested(c))
        return false;
    if (!duda_json_accept_char(c, close))
        do {
            struct element_link *next =
                duda_json_count_element(c) ? (struct element_link *)alloc_or_fail(c, 1, sizeof *next) : NULL;
            if (!next)
                return false;
            (void)duda_json_peek_char(c);
            next->at = c->at;
            if ((names && !read_name(c, &next->element.name)) || !read_value(c, &next->element.value))
                return false;
            next->before = last;
            last = next;
            n++;
        } while (duda_json_next_element(c, close));
    duda_json_leave_nested(c);
    return !c->error && (!names || check_duplicate_names(c, last, n)) &&
           collect_elements(c, last, n, names, out);
}

static bool read_number(struct duda_json_cursor *c, struct duda_value *out)
{
    size_t begin = c->at;
    bool is_integer;
    mk_str text;
    struct duda_integer n;
    double number;
    if (!duda_json_lex_number(c, &text, &is_integer))
        return false;
    if (is_integer && duda_integer_parse(text, &n) && n.amount <= (uint64_t)INT64_MAX + n.is_negative)
        *out = duda_value_integer((int64_t)(n.is_negative ? ~n.amount + 1 : n.amount));
    else if (duda_number_parse(text, &number))
        *out = duda_value_number(number);
    else
        return duda_json_fail(c, -EINVAL, begin, "the number is too large, or has too many digits");
    return true;
}

static bool read_value(struct duda_json_cursor *c, struct duda_value *out)
{
    char next = duda_json_peek_char(c);
    mk_str text;
    if (next == '{' || next == '[')
        return read_list_or_map(c, next == '{', out);
    if (next == '-' || mk_char_is_digit(next))
        return read_number(c, out);
    if (next == '"') {
        if (!duda_json_lex_string_copy(c, &text))
            return false;
        *out = duda_value_text(text);
        return true;
    }
    *out = next == 't' || next == 'f' ? duda_value_bool(next == 't') : duda_value_null();
    return duda_json_skip_value(c, &text);
}

int duda_json_read_value(mk_str text, const struct mk_allocator *memory,
                         const struct duda_json_limits *limits, struct duda_value *out,
                         struct duda_validation_errors *errors)
{
    struct duda_json_cursor c;
    *out = duda_value_null();
    if (duda_json_cursor_init(&c, text, memory, limits, errors) && read_value(&c, out))
        (void)duda_json_expect_end(&c);
    return c.error;
}
