/* SPDX-License-Identifier: Apache-2.0 */
/* JSON of any shape as values. */
#include <errno.h>

#include "text/json_lex.h"

/* Elements while their number is not known: each knows the one before it. */
struct link {
    struct link *before;
    struct duda_named element;
};

static bool read_any(struct duda_json_cursor *c, struct duda_value *out);

static void *need(struct duda_json_cursor *c, size_t n, size_t size)
{
    void *p = duda_allocator_zalloc(c->memory, n, size);
    if (!p)
        c->error = -ENOMEM;
    return p;
}

static bool read_name(struct duda_json_cursor *c, const char **out)
{
    mk_str name;
    if (!duda_json_string(c, &name) || !duda_json_expect(c, ':', "`:`"))
        return false;
    char *copy = (char *)need(c, name.len + 1, 1);
    if (copy && name.len)
        memcpy(copy, name.p, name.len);
    *out = copy;
    return copy != NULL;
}

static bool gather(struct duda_json_cursor *c, const struct link *last, size_t n, bool names,
                   struct duda_value *out)
{
    struct duda_value *list = names ? NULL : (struct duda_value *)need(c, n, sizeof *list);
    struct duda_named *map = names ? (struct duda_named *)need(c, n, sizeof *map) : NULL;
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

static bool read_elements(struct duda_json_cursor *c, bool names, struct duda_value *out)
{
    char close = names ? '}' : ']';
    struct link *last = NULL;
    size_t n = 0;
    c->at++; /* the bracket */
    if (!duda_json_enter(c))
        return false;
    if (!duda_json_take(c, close))
        do {
            struct link *next = duda_json_count(c) ? (struct link *)need(c, 1, sizeof *next) : NULL;
            if (!next || (names && !read_name(c, &next->element.name)) || !read_any(c, &next->element.value))
                return false;
            next->before = last;
            last = next;
            n++;
        } while (duda_json_more(c, close));
    duda_json_leave(c);
    return !c->error && gather(c, last, n, names, out);
}

static bool read_number(struct duda_json_cursor *c, struct duda_value *out)
{
    size_t begin = c->at;
    bool is_integer;
    mk_str text;
    struct duda_integer n;
    double number;
    if (!duda_json_number(c, &text, &is_integer))
        return false;
    if (is_integer && duda_integer_parse(text, &n) && n.amount <= (uint64_t)INT64_MAX + n.is_negative)
        *out = duda_value_integer((int64_t)(n.is_negative ? ~n.amount + 1 : n.amount));
    else if (duda_number_parse(text, &number))
        *out = duda_value_number(number);
    else
        return duda_json_fail(c, -EFBIG, begin, "this number is too large, or has too many digits");
    return true;
}

static bool read_any(struct duda_json_cursor *c, struct duda_value *out)
{
    char next = duda_json_peek(c);
    mk_str text;
    if (next == '{' || next == '[')
        return read_elements(c, next == '{', out);
    if (next == '-' || mk_char_is_digit(next))
        return read_number(c, out);
    if (next == '"') {
        if (!duda_json_text(c, &text))
            return false;
        *out = duda_value_text(text);
        return true;
    }
    *out = next == 't' || next == 'f' ? duda_value_bool(next == 't') : duda_value_none();
    return duda_json_skip(c, &text);
}

int duda_json_read_value(mk_str text, const struct duda_allocator *memory,
                         const struct duda_json_limits *limits, struct duda_value *out,
                         struct duda_flaws *flaws)
{
    struct duda_json_cursor c;
    *out = duda_value_none();
    if (duda_json_begin(&c, text, memory, limits, flaws) && read_any(&c, out))
        (void)duda_json_end(&c);
    return c.error;
}
