/* SPDX-License-Identifier: Apache-2.0 */
#include "text/member.h"

#include <math.h>

#include "text/utf8.h"

/* ---- What may be ---- */

static bool has_low(const struct duda_member *m)
{
    return m->low != 0 || m->high != 0;
}

static bool has_high(const struct duda_member *m)
{
    return has_low(m) && m->high >= m->low;
}

static bool is_within(const struct duda_member *m, double n)
{
    return !(has_low(m) && n < m->low) && !(has_high(m) && n > m->high);
}

static uint64_t largest(const struct duda_member *m)
{
    unsigned bits = (unsigned)m->size * 8;
    uint64_t all = bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    return m->is_signed ? all >> 1 : all;
}

static void store(void *at, size_t size, uint64_t bits)
{
    uint8_t b1 = (uint8_t)bits;
    uint16_t b2 = (uint16_t)bits;
    uint32_t b4 = (uint32_t)bits;
    const void *from = size == 1 ? (const void *)&b1 : size == 2 ? (const void *)&b2 : &b4;
    memcpy(at, size == 8 ? &bits : from, size);
}

static uint64_t fetch(const void *at, size_t size)
{
    uint8_t b1;
    uint16_t b2;
    uint32_t b4;
    uint64_t b8 = 0;
    switch (size) {
    case 1:
        memcpy(&b1, at, 1);
        return b1;
    case 2:
        memcpy(&b2, at, 2);
        return b2;
    case 4:
        memcpy(&b4, at, 4);
        return b4;
    default:
        memcpy(&b8, at, 8);
        return b8;
    }
}

bool duda_member_put_integer(const struct duda_member *m, void *at, struct duda_integer n)
{
    bool is_negative = n.is_negative && n.amount > 0;
    if (is_negative && !m->is_signed)
        return false;
    if (n.amount > largest(m) + (is_negative ? 1 : 0))
        return false;
    if (!is_within(m, is_negative ? -(double)n.amount : (double)n.amount))
        return false;
    store(at, m->size, is_negative ? ~n.amount + 1 : n.amount);
    return true;
}

bool duda_member_put_number(const struct duda_member *m, void *at, double n)
{
    if (!isfinite(n) || !is_within(m, n))
        return false;
    memcpy(at, &n, sizeof n);
    return true;
}

bool duda_member_put_text(const struct duda_member *m, void *at, mk_str text)
{
    size_t n = m->min || m->max ? duda_utf8_count(text) : 0;
    if (!m->is_list && (n < m->min || (m->max && n > m->max)))
        return false;
    memcpy(at, &text, sizeof text);
    return true;
}

bool duda_member_put_word(const struct duda_member *m, void *at, mk_str word)
{
    for (size_t i = 0; m->words[i]; i++)
        if (mk_str_eq(word, mk_str_from_c(m->words[i]))) {
            store(at, m->size, i);
            return true;
        }
    return false;
}

bool duda_member_allows_count(const struct duda_member *m, size_t n)
{
    return n >= m->min && !(m->max && n > m->max);
}

/* ---- What must be, in words ---- */

static void add_range(struct mk_buf *out, size_t min, size_t max, const char *one, const char *many)
{
    const char *what = max == 1 || (min == 1 && !max) ? one : many;
    if (min && max && min == max)
        mk_buf_addf(out, " of exactly %zu %s", max, what);
    else if (min && max)
        mk_buf_addf(out, " of %zu to %zu %s", min, max, what);
    else if (max)
        mk_buf_addf(out, " of at most %zu %s", max, what);
    else if (min)
        mk_buf_addf(out, " of at least %zu %s", min, what);
}

static void add_bounds(struct mk_buf *out, const struct duda_member *m)
{
    double low = m->low, high = m->high;
    bool bounded = has_high(m);
    if (m->kind == DUDA_KIND_INTEGER && !has_low(m)) { /* what fits */
        low = m->is_signed ? -(double)largest(m) - 1 : 0;
        high = (double)largest(m);
        bounded = m->size < 8;
        if (!bounded && m->is_signed)
            return;
    } else if (!has_low(m)) {
        return;
    }
    mk_buf_add(out, bounded ? MK_STR(" from ") : MK_STR(" of at least "));
    duda_number_write(out, low);
    if (bounded) {
        mk_buf_add(out, MK_STR(" to "));
        duda_number_write(out, high);
    }
}

static void add_words(struct mk_buf *out, const struct duda_member *m)
{
    mk_buf_add(out, MK_STR("one of"));
    for (size_t i = 0; m->words[i]; i++)
        mk_buf_addf(out, "%s \"%s\"", i ? "," : "", m->words[i]);
}

void duda_member_rule(struct mk_buf *out, const struct duda_member *m, bool list)
{
    if (list) {
        mk_buf_add(out, MK_STR("a list"));
        add_range(out, m->min, m->max, "element", "elements");
        return;
    }
    switch (m->kind) {
    case DUDA_KIND_BOOL:
        mk_buf_add(out, MK_STR("true or false"));
        break;
    case DUDA_KIND_INTEGER:
        mk_buf_add(out, MK_STR("an integer"));
        add_bounds(out, m);
        break;
    case DUDA_KIND_NUMBER:
        mk_buf_add(out, MK_STR("a number"));
        add_bounds(out, m);
        break;
    case DUDA_KIND_TEXT:
        mk_buf_add(out, MK_STR("a text"));
        if (!m->is_list)
            add_range(out, m->min, m->max, "character", "characters");
        break;
    case DUDA_KIND_WORD:
        add_words(out, m);
        break;
    case DUDA_KIND_OBJECT:
        mk_buf_add(out, MK_STR("an object"));
        break;
    case DUDA_KIND_RAW:
        mk_buf_add(out, MK_STR("a value"));
        break;
    }
}

/* ---- Members of structs ---- */

void duda_member_set_has(const struct duda_member *m, void *base, bool has)
{
    if (m->has_at)
        memcpy((char *)base + m->has_at - 1, &has, sizeof has);
}

bool duda_member_has(const struct duda_member *m, const void *base)
{
    bool has = true;
    if (m->has_at)
        memcpy(&has, (const char *)base + m->has_at - 1, sizeof has);
    return has;
}

size_t duda_member_find(const struct duda_shape *shape, mk_str name)
{
    for (size_t i = 0; i < shape->n; i++)
        if (mk_str_eq(mk_str_from_c(duda_member_name(&shape->members[i])), name))
            return i;
    return MK_STR_NONE;
}

/* Its sign in all of the bits above it. */
static int64_t extend(const struct duda_member *m, uint64_t bits)
{
    uint64_t sign = UINT64_C(1) << (m->size * 8 - 1);
    return (int64_t)((bits ^ sign) - sign);
}

static struct duda_value integer_value(const struct duda_member *m, const void *at)
{
    uint64_t bits = fetch(at, m->size);
    return m->is_signed ? duda_value_integer(extend(m, bits)) : duda_value_unsigned(bits);
}

void duda_member_write_integer(struct mk_buf *out, const struct duda_member *m, const void *base)
{
    uint64_t bits = fetch((const char *)base + m->offset, m->size);
    if (m->is_signed)
        mk_buf_add_int(out, extend(m, bits));
    else
        mk_buf_add_num(out, bits);
}

static struct duda_value word_value(const struct duda_member *m, const void *at)
{
    uint64_t index = fetch(at, m->size);
    for (uint64_t i = 0; m->words[i]; i++)
        if (i == index)
            return duda_value_c(m->words[i]);
    return duda_value_none();
}

static struct duda_value text_value(const struct duda_member *m, const void *at)
{
    mk_str text;
    memcpy(&text, at, sizeof text);
    struct duda_value v = duda_value_text(text);
    if (m->kind == DUDA_KIND_RAW && text.p)
        v.kind = DUDA_VALUE_RAW;
    return v;
}

/* One element, or the member itself. */
static struct duda_value value_at(const struct duda_member *m, const void *at)
{
    bool truth;
    double number;
    switch (m->kind) {
    case DUDA_KIND_BOOL:
        memcpy(&truth, at, sizeof truth);
        return duda_value_bool(truth);
    case DUDA_KIND_INTEGER:
        return integer_value(m, at);
    case DUDA_KIND_NUMBER:
        memcpy(&number, at, sizeof number);
        return duda_value_number(number);
    case DUDA_KIND_WORD:
        return word_value(m, at);
    case DUDA_KIND_OBJECT:
        return duda_value_struct(m->shape, at);
    case DUDA_KIND_TEXT:
    case DUDA_KIND_RAW:
        break;
    }
    return text_value(m, at);
}

struct duda_value duda_member_value(const struct duda_member *m, const void *base)
{
    if (!duda_member_has(m, base))
        return duda_value_none();
    const char *at = (const char *)base + m->offset;
    if (!m->is_list)
        return value_at(m, at);
    struct duda_value v = duda_value_none();
    v.kind = DUDA_VALUE_PARTS;
    memcpy(&v.of.in.at, at, sizeof v.of.in.at);
    memcpy(&v.n, (const char *)base + m->count_at, sizeof v.n);
    v.of.in.member = m;
    v.of.in.shape = m->shape;
    return v;
}

bool duda_value_is_list(const struct duda_value *v)
{
    return v->kind == DUDA_VALUE_LIST || v->kind == DUDA_VALUE_PARTS;
}

struct duda_value duda_value_item(const struct duda_value *list, size_t i)
{
    if (!duda_value_is_list(list) || i >= list->n)
        return duda_value_none();
    if (list->kind == DUDA_VALUE_LIST)
        return list->of.list[i];
    const struct duda_member *m = list->of.in.member;
    const char *at = (const char *)list->of.in.at;
    return m ? value_at(m, at + i * m->size)
             : duda_value_struct(list->of.in.shape, at + i * list->of.in.shape->size);
}

bool duda_value_member(const struct duda_value *v, mk_str name, struct duda_value *out)
{
    if (v->kind == DUDA_VALUE_SHAPED) {
        size_t i = duda_member_find(v->of.in.shape, name);
        if (i != MK_STR_NONE)
            *out = duda_member_value(&v->of.in.shape->members[i], v->of.in.at);
        return i != MK_STR_NONE;
    }
    for (size_t i = 0; v->kind == DUDA_VALUE_MAP && i < v->n; i++)
        if (mk_str_eq(mk_str_from_c(v->of.map[i].name), name)) {
            *out = v->of.map[i].value;
            return true;
        }
    return false;
}

bool duda_value_member_at(const struct duda_value *v, size_t i, const char **name, struct duda_value *out)
{
    if (v->kind == DUDA_VALUE_SHAPED && i < v->of.in.shape->n) {
        const struct duda_member *m = &v->of.in.shape->members[i];
        *name = duda_member_name(m);
        *out = duda_member_value(m, v->of.in.at);
        return true;
    }
    if (v->kind != DUDA_VALUE_MAP || i >= v->n)
        return false;
    *name = v->of.map[i].name;
    *out = v->of.map[i].value;
    return true;
}
