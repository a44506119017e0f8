/* SPDX-License-Identifier: Apache-2.0 */
/* From JSON straight into structs: no tree is made, so every flaw has its line and column. */
#include <errno.h>
#include <monkey/text.h>

#include "text/json_lex.h"

enum { MESSAGE_MAX = 512, LIST_FIRST = 8, NAME_SHOWN_MAX = 64 };

static bool read_object(struct duda_json_cursor *c, const struct duda_shape *shape, void *base,
                        const struct duda_where *where);

/* ---- Messages ---- */

/* `address.lines[2]`: a name as a programmer writes it. */
static void add_place(struct mk_buf *out, const struct duda_where *where)
{
    if (where->up)
        add_place(out, where->up);
    if (where->name)
        mk_buf_addf(out, "%s%s", where->up ? "." : "", where->name);
    else
        mk_buf_addf(out, "[%zu]", where->index);
}

static void add_subject(struct mk_buf *out, const struct duda_where *where)
{
    if (!where) {
        mk_buf_add(out, MK_STR("the content"));
        return;
    }
    mk_buf_add_char(out, '`');
    add_place(out, where);
    mk_buf_add_char(out, '`');
}

static bool flaw(struct duda_json_cursor *c, size_t at, const struct duda_where *where, const char *what,
                 const struct duda_member *m, bool list)
{
    char room[MESSAGE_MAX];
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
    add_subject(&text, where);
    mk_buf_add(&text, mk_str_from_c(what));
    if (m)
        duda_member_rule(&text, m, list);
    return duda_json_flaw(c, at, where, mk_buf_str(&text));
}

/* A value of a wrong kind: it is passed over. */
static bool wrong(struct duda_json_cursor *c, const struct duda_member *m, const struct duda_where *where,
                  bool list)
{
    (void)duda_json_peek(c);
    size_t at = c->at;
    mk_str ignored;
    return duda_json_skip(c, &ignored) && flaw(c, at, where, " must be ", m, list);
}

/* ---- Values ---- */

static bool read_number(struct duda_json_cursor *c, const struct duda_member *m, void *at,
                        const struct duda_where *where)
{
    size_t begin = c->at;
    bool is_integer, good;
    mk_str text;
    if (!duda_json_number(c, &text, &is_integer))
        return false;
    struct duda_integer integer;
    double number;
    if (m->kind == DUDA_KIND_INTEGER)
        good = is_integer && duda_integer_parse(text, &integer) && duda_member_put_integer(m, at, integer);
    else
        good = duda_number_parse(text, &number) && duda_member_put_number(m, at, number);
    return good || flaw(c, begin, where, " must be ", m, false);
}

static bool read_text(struct duda_json_cursor *c, const struct duda_member *m, void *at,
                      const struct duda_where *where)
{
    size_t begin = c->at;
    mk_str text;
    if (!duda_json_text(c, &text))
        return false;
    bool good =
        m->kind == DUDA_KIND_TEXT ? duda_member_put_text(m, at, text) : duda_member_put_word(m, at, text);
    return good || flaw(c, begin, where, " must be ", m, false);
}

static bool read_bool(struct duda_json_cursor *c, const struct duda_member *m, void *at,
                      const struct duda_where *where)
{
    bool truth = duda_json_literal(c, MK_STR("true"));
    if (!truth && !duda_json_literal(c, MK_STR("false")))
        return wrong(c, m, where, false);
    memcpy(at, &truth, sizeof truth);
    return true;
}

/* One value that is no list. */
static bool read_one(struct duda_json_cursor *c, const struct duda_member *m, void *at,
                     const struct duda_where *where)
{
    char next = duda_json_peek(c);
    mk_str raw;
    switch (m->kind) {
    case DUDA_KIND_BOOL:
        return read_bool(c, m, at, where);
    case DUDA_KIND_INTEGER:
    case DUDA_KIND_NUMBER:
        return next == '-' || mk_char_is_digit(next) ? read_number(c, m, at, where)
                                                     : wrong(c, m, where, false);
    case DUDA_KIND_TEXT:
    case DUDA_KIND_WORD:
        return next == '"' ? read_text(c, m, at, where) : wrong(c, m, where, false);
    case DUDA_KIND_OBJECT:
        return next == '{' ? read_object(c, m->shape, at, where) : wrong(c, m, where, false);
    case DUDA_KIND_RAW:
        break;
    }
    if (!duda_json_skip(c, &raw))
        return false;
    memcpy(at, &raw, sizeof raw);
    return true;
}

/* ---- Lists ---- */

/* Elements while their number is not known. */
struct growing {
    char *at;
    size_t n, cap;
};

static void *next_element(struct duda_json_cursor *c, struct growing *list, size_t size)
{
    if (list->n == list->cap) {
        size_t cap = list->cap ? list->cap * 2 : LIST_FIRST;
        char *at = (char *)duda_allocator_zalloc(c->memory, cap, size);
        if (!at) {
            c->error = -ENOMEM;
            return NULL;
        }
        if (list->n)
            memcpy(at, list->at, list->n * size);
        list->at = at;
        list->cap = cap;
    }
    return list->at + list->n++ * size;
}

static bool read_elements(struct duda_json_cursor *c, const struct duda_member *m, struct growing *list,
                          const struct duda_where *where)
{
    size_t begin = c->at;
    if (!duda_json_enter(c))
        return false;
    if (!duda_json_take(c, ']'))
        do {
            struct duda_where here = {.up = where, .index = list->n};
            void *at = duda_json_count(c) ? next_element(c, list, m->size) : NULL;
            if (!at || !read_one(c, m, at, &here))
                return false;
        } while (duda_json_more(c, ']'));
    if (c->error && c->error != -EINVAL)
        return false;
    duda_json_leave(c);
    return duda_member_allows_count(m, list->n) || flaw(c, begin - 1, where, " must be ", m, true);
}

static bool read_list(struct duda_json_cursor *c, const struct duda_member *m, void *base,
                      const struct duda_where *where)
{
    struct growing list = {NULL, 0, 0};
    if (!duda_json_take(c, '['))
        return wrong(c, m, where, true);
    if (!read_elements(c, m, &list, where))
        return false;
    memcpy((char *)base + m->offset, &list.at, sizeof list.at);
    memcpy((char *)base + m->count_at, &list.n, sizeof list.n);
    return true;
}

/* ---- Objects ---- */

static bool read_member(struct duda_json_cursor *c, const struct duda_member *m, void *base,
                        const struct duda_where *where)
{
    if (m->optional && duda_json_peek(c) == 'n' && duda_json_literal(c, MK_STR("null"))) {
        duda_member_set_has(m, base, false);
        return true;
    }
    duda_member_set_has(m, base, true);
    return m->is_list ? read_list(c, m, base, where) : read_one(c, m, (char *)base + m->offset, where);
}

static bool read_unknown(struct duda_json_cursor *c, const struct duda_shape *shape, mk_str name, size_t at,
                         const struct duda_where *where)
{
    char shown[NAME_SHOWN_MAX * 4];
    struct mk_buf clean = mk_buf_fixed(shown, sizeof shown - 1);
    mk_str ignored;
    if (!shape->ignores_unknown) {
        mk_log_escape_to(&clean, mk_str_first(name, NAME_SHOWN_MAX), sizeof shown - 1);
        shown[clean.len] = '\0';
        struct duda_where here = {.up = where, .name = shown};
        if (!flaw(c, at, &here, " is not known here", NULL, false))
            return false;
    }
    return duda_json_skip(c, &ignored);
}

/* Which members of an object were there: a bit for each. */
struct seen {
    uint64_t bits[(DUDA_SHAPE_MAX + 63) / 64];
};

static bool see(struct seen *seen, size_t i)
{
    uint64_t bit = UINT64_C(1) << i % 64, *word = &seen->bits[i / 64];
    bool again = *word & bit;
    *word |= bit;
    return again;
}

static bool read_pair(struct duda_json_cursor *c, const struct duda_shape *shape, void *base,
                      const struct duda_where *where, struct seen *seen)
{
    mk_str name;
    (void)duda_json_peek(c);
    size_t at = c->at;
    if (!duda_json_count(c) || !duda_json_name(c, &name) || !duda_json_expect(c, ':', "`:`"))
        return false;
    size_t i = duda_member_find(shape, name);
    if (i == MK_STR_NONE || i >= DUDA_SHAPE_MAX)
        return read_unknown(c, shape, name, at, where);
    const struct duda_member *m = &shape->members[i];
    struct duda_where here = {.up = where, .name = duda_member_name(m)};
    if (see(seen, i) && !flaw(c, at, &here, " is there more than once", NULL, false))
        return false;
    return read_member(c, m, base, &here);
}

static bool check_missing(struct duda_json_cursor *c, const struct duda_shape *shape, void *base,
                          const struct duda_where *where, struct seen *seen, size_t begin)
{
    for (size_t i = 0; i < shape->n && i < DUDA_SHAPE_MAX; i++) {
        const struct duda_member *m = &shape->members[i];
        struct duda_where here = {.up = where, .name = duda_member_name(m)};
        if (see(seen, i))
            continue;
        if (m->optional)
            duda_member_set_has(m, base, false);
        else if (!flaw(c, begin, &here, " is missing: it must be ", m, m->is_list))
            return false;
    }
    return true;
}

static bool check_whole(struct duda_json_cursor *c, const struct duda_shape *shape, const void *base,
                        const struct duda_where *where, size_t begin)
{
    const char *wrong_rule = shape->check && !c->error ? shape->check(base) : NULL;
    return !wrong_rule || duda_json_flaw(c, begin, where, mk_str_from_c(wrong_rule));
}

static bool read_object(struct duda_json_cursor *c, const struct duda_shape *shape, void *base,
                        const struct duda_where *where)
{
    struct seen seen = {{0}};
    size_t begin = c->at;
    if (!duda_json_take(c, '{'))
        return flaw(c, begin, where, " must be an object", NULL, false);
    if (!duda_json_enter(c))
        return false;
    if (!duda_json_take(c, '}'))
        do {
            if (!read_pair(c, shape, base, where, &seen))
                return false;
        } while (duda_json_more(c, '}'));
    if (c->error && c->error != -EINVAL)
        return false;
    duda_json_leave(c);
    return check_missing(c, shape, base, where, &seen, begin) && check_whole(c, shape, base, where, begin);
}

/* ---- The whole ---- */

static int read_end(struct duda_json_cursor *c, bool good)
{
    if (good)
        (void)duda_json_end(c);
    return c->error;
}

int duda_json_read(mk_str text, const struct duda_shape *shape, const struct duda_allocator *memory,
                   const struct duda_json_limits *limits, void *out, struct duda_flaws *flaws)
{
    struct duda_json_cursor c;
    if (!duda_json_begin(&c, text, memory, limits, flaws))
        return c.error;
    const struct duda_member whole = {.kind = DUDA_KIND_OBJECT, .shape = shape, .size = shape->size};
    return read_end(&c, read_one(&c, &whole, out, NULL));
}

int duda_json_read_list(mk_str text, const struct duda_shape *shape, const struct duda_allocator *memory,
                        const struct duda_json_limits *limits, void *list, size_t *n,
                        struct duda_flaws *flaws)
{
    struct duda_json_cursor c;
    struct growing grown = {NULL, 0, 0};
    if (!duda_json_begin(&c, text, memory, limits, flaws))
        return c.error;
    const struct duda_member whole = {
        .kind = DUDA_KIND_OBJECT, .shape = shape, .size = shape->size, .is_list = true};
    bool good =
        duda_json_take(&c, '[') ? read_elements(&c, &whole, &grown, NULL) : wrong(&c, &whole, NULL, true);
    memcpy(list, &grown.at, sizeof grown.at);
    *n = grown.n;
    return read_end(&c, good);
}
