/* SPDX-License-Identifier: Apache-2.0 */
/* From the fields of a form into structs. */
#include <duda/form.h>
#include <errno.h>

#include "text/member.h"
#include "text/utf8.h"

enum { NAME_MAX_LEN = 256, MESSAGE_MAX = 512 };

struct reading {
    const struct duda_fields *fields;
    const struct duda_allocator *memory;
    struct duda_flaws *flaws;
    int error;
};

/* The name of the field: `home.street`. */
static void add_name(struct mk_buf *out, const struct duda_where *where)
{
    if (where->up) {
        add_name(out, where->up);
        mk_buf_add_char(out, '.');
    }
    mk_buf_add(out, mk_str_from_c(where->name));
}

static void flaw(struct reading *r, const struct duda_where *where, const char *name, const char *what,
                 const struct duda_member *m, bool list)
{
    char room[MESSAGE_MAX];
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
    mk_buf_addf(&text, "`%s`%s", name, what);
    duda_member_rule(&text, m, list);
    r->error = -EINVAL;
    (void)duda_flaws_add(r->flaws, r->memory, where, mk_buf_str(&text));
}

static bool put_bool(void *at, mk_str text)
{
    static const char *const words[] = {"off", "on", "false", "true", "0", "1", "no", "yes"};
    for (size_t i = 0; i < MK_LEN(words); i++)
        if (mk_str_eq_nocase(text, mk_str_from_c(words[i]))) {
            bool truth = i % 2;
            memcpy(at, &truth, sizeof truth);
            return true;
        }
    return false;
}

static bool put(const struct duda_member *m, void *at, mk_str text)
{
    struct duda_integer integer;
    double number;
    switch (m->kind) {
    case DUDA_KIND_BOOL:
        return put_bool(at, text);
    case DUDA_KIND_INTEGER:
        return duda_integer_parse(mk_str_trim(text), &integer) && duda_member_put_integer(m, at, integer);
    case DUDA_KIND_NUMBER:
        return duda_number_parse(mk_str_trim(text), &number) && duda_member_put_number(m, at, number);
    case DUDA_KIND_TEXT:
        return duda_utf8_bad(text) == MK_STR_NONE && duda_member_put_text(m, at, text);
    case DUDA_KIND_WORD:
        return duda_member_put_word(m, at, text);
    case DUDA_KIND_OBJECT:
    case DUDA_KIND_RAW:
        break;
    }
    return false; /* forms have neither */
}

static void read_list(struct reading *r, const struct duda_member *m, void *base,
                      const struct duda_where *where, const char *name)
{
    size_t n = 0, good = 0;
    while (duda_fields_get_at(r->fields, name, n).p)
        n++;
    char *list = (char *)duda_allocator_zalloc(r->memory, n, m->size);
    if (!list) {
        r->error = -ENOMEM;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct duda_where here = {.up = where, .index = i};
        if (put(m, list + i * m->size, duda_fields_get_at(r->fields, name, i)))
            good++;
        else
            flaw(r, &here, name, " must be ", m, false);
    }
    if (good == n && !duda_member_allows_count(m, n))
        flaw(r, where, name, " must be ", m, true);
    memcpy((char *)base + m->offset, &list, sizeof list);
    memcpy((char *)base + m->count_at, &n, sizeof n);
}

static void read_one(struct reading *r, const struct duda_member *m, void *base,
                     const struct duda_where *where, const char *name)
{
    mk_str text = duda_fields_get(r->fields, name);
    bool keeps_empty = m->kind == DUDA_KIND_TEXT && m->min == 0;
    bool is_there = text.p && (text.len || keeps_empty);
    duda_member_set_has(m, base, is_there);
    if (is_there) {
        if (!put(m, (char *)base + m->offset, text))
            flaw(r, where, name, " must be ", m, false);
    } else if (m->kind == DUDA_KIND_BOOL) {
        memcpy((char *)base + m->offset, &(bool){false}, sizeof(bool));
    } else if (!m->optional) {
        flaw(r, where, name, " is missing: it must be ", m, false);
    }
}

static void read_struct(struct reading *r, const struct duda_shape *shape, void *base,
                        const struct duda_where *where)
{
    for (size_t i = 0; i < shape->n && r->error != -ENOMEM; i++) {
        const struct duda_member *m = &shape->members[i];
        struct duda_where here = {.up = where, .name = duda_member_name(m)};
        char name[NAME_MAX_LEN];
        struct mk_buf b = mk_buf_fixed(name, sizeof name - 1);
        add_name(&b, &here);
        name[b.len] = '\0';
        if (m->is_list)
            read_list(r, m, base, &here, name);
        else if (m->kind == DUDA_KIND_OBJECT)
            read_struct(r, m->shape, (char *)base + m->offset, &here);
        else
            read_one(r, m, base, &here, name);
    }
    const char *wrong = shape->check && !r->error ? shape->check(base) : NULL;
    if (wrong) {
        r->error = -EINVAL;
        (void)duda_flaws_add(r->flaws, r->memory, where, mk_str_from_c(wrong));
    }
}

int duda_fields_read(const struct duda_fields *f, const struct duda_shape *shape,
                     const struct duda_allocator *memory, void *out, struct duda_flaws *flaws)
{
    struct reading r = {.fields = f, .memory = memory, .flaws = flaws};
    flaws->n = 0;
    read_struct(&r, shape, out, NULL);
    return r.error;
}
