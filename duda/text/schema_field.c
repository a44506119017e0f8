/* SPDX-License-Identifier: Apache-2.0 */
#include "text/schema_field.h"

#include <math.h>
#include <monkey/utf8.h>

/* ---- Rules ---- */

static bool has_minimum(const struct duda_schema_field *m)
{
    return m->minimum != 0 || m->maximum != 0;
}

static bool has_maximum(const struct duda_schema_field *m)
{
    return has_minimum(m) && m->maximum >= m->minimum;
}

static bool is_in_range(const struct duda_schema_field *m, double n)
{
    return !(has_minimum(m) && n < m->minimum) && !(has_maximum(m) && n > m->maximum);
}

static uint64_t max_integer(const struct duda_schema_field *m)
{
    unsigned bits = (unsigned)m->size * 8;
    uint64_t all = bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    return m->is_signed ? all >> 1 : all;
}

static void store_integer_bits(void *at, size_t size, uint64_t bits)
{
    uint8_t b1 = (uint8_t)bits;
    uint16_t b2 = (uint16_t)bits;
    uint32_t b4 = (uint32_t)bits;
    const void *from = size == 1 ? (const void *)&b1 : size == 2 ? (const void *)&b2 : &b4;
    memcpy(at, size == 8 ? &bits : from, size);
}

static uint64_t load_integer_bits(const void *at, size_t size)
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

bool duda_schema_field_put_integer(const struct duda_schema_field *m, void *at, struct duda_integer n)
{
    bool is_negative = n.is_negative && n.amount > 0;
    if (is_negative && !m->is_signed)
        return false;
    if (n.amount > max_integer(m) + (is_negative ? 1 : 0))
        return false;
    if (!is_in_range(m, is_negative ? -(double)n.amount : (double)n.amount))
        return false;
    store_integer_bits(at, m->size, is_negative ? ~n.amount + 1 : n.amount);
    return true;
}

bool duda_schema_field_put_double(const struct duda_schema_field *m, void *at, double n)
{
    if (!isfinite(n) || !is_in_range(m, n))
        return false;
    memcpy(at, &n, sizeof n);
    return true;
}

bool duda_schema_field_put_string(const struct duda_schema_field *m, void *at, mk_str text)
{
    size_t n = m->min_length || m->max_length ? mk_utf8_count(text) : 0;
    if (!m->is_list && (n < m->min_length || (m->max_length && n > m->max_length)))
        return false;
    memcpy(at, &text, sizeof text);
    return true;
}

bool duda_schema_field_put_enum(const struct duda_schema_field *m, void *at, mk_str word)
{
    for (size_t i = 0; m->values[i]; i++)
        if (mk_str_eq(word, mk_str_from_c(m->values[i]))) {
            store_integer_bits(at, m->size, i);
            return true;
        }
    return false;
}

bool duda_schema_field_allows_count(const struct duda_schema_field *m, size_t n)
{
    return n >= m->min_length && !(m->max_length && n > m->max_length);
}

/* ---- Descriptions of rules ---- */

static void describe_length(struct mk_buf *out, size_t min, size_t max, const char *unit_singular,
                            const char *many)
{
    const char *unit = max == 1 || (min == 1 && !max) ? unit_singular : many;
    if (min && max && min == max)
        mk_buf_addf(out, " of exactly %zu %s", max, unit);
    else if (min && max)
        mk_buf_addf(out, " of %zu to %zu %s", min, max, unit);
    else if (max)
        mk_buf_addf(out, " of at most %zu %s", max, unit);
    else if (min)
        mk_buf_addf(out, " of at least %zu %s", min, unit);
}

static void describe_bounds(struct mk_buf *out, const struct duda_schema_field *m)
{
    double low = m->minimum, high = m->maximum;
    bool bounded = has_maximum(m);
    if (m->kind == DUDA_KIND_INTEGER && !has_minimum(m)) { /* the range of the type */
        low = m->is_signed ? -(double)max_integer(m) - 1 : 0;
        high = (double)max_integer(m);
        bounded = m->size < 8;
        if (!bounded && m->is_signed)
            return;
    } else if (!has_minimum(m)) {
        return;
    }
    mk_buf_add(out, bounded ? MK_STR(" from ") : MK_STR(" of at least "));
    duda_number_write(out, low);
    if (bounded) {
        mk_buf_add(out, MK_STR(" to "));
        duda_number_write(out, high);
    }
}

static void describe_enum(struct mk_buf *out, const struct duda_schema_field *m)
{
    mk_buf_add(out, MK_STR("one of"));
    for (size_t i = 0; m->values[i]; i++)
        mk_buf_addf(out, "%s \"%s\"", i ? "," : "", m->values[i]);
}

void duda_schema_field_describe(struct mk_buf *out, const struct duda_schema_field *m, bool list)
{
    if (list) {
        mk_buf_add(out, MK_STR("a list"));
        describe_length(out, m->min_length, m->max_length, "element", "elements");
        return;
    }
    switch (m->kind) {
    case DUDA_KIND_BOOL:
        mk_buf_add(out, MK_STR("true or false"));
        break;
    case DUDA_KIND_INTEGER:
        mk_buf_add(out, MK_STR("an integer"));
        describe_bounds(out, m);
        break;
    case DUDA_KIND_DOUBLE:
        mk_buf_add(out, MK_STR("a number"));
        describe_bounds(out, m);
        break;
    case DUDA_KIND_STRING:
        mk_buf_add(out, MK_STR("a string"));
        if (!m->is_list)
            describe_length(out, m->min_length, m->max_length, "character", "characters");
        break;
    case DUDA_KIND_ENUM:
        describe_enum(out, m);
        break;
    case DUDA_KIND_OBJECT:
        mk_buf_add(out, MK_STR("an object"));
        break;
    case DUDA_KIND_JSON_RAW:
        mk_buf_add(out, MK_STR("a value"));
        break;
    }
}

/* ---- Fields of structs ---- */

void duda_schema_field_set_present(const struct duda_schema_field *m, void *base, bool has)
{
    if (m->presence_offset)
        memcpy((char *)base + m->presence_offset - 1, &has, sizeof has);
}

bool duda_schema_field_is_present(const struct duda_schema_field *m, const void *base)
{
    bool has = true;
    if (m->presence_offset)
        memcpy(&has, (const char *)base + m->presence_offset - 1, sizeof has);
    return has;
}

size_t duda_schema_field_find(const struct duda_schema *schema, mk_str name)
{
    for (size_t i = 0; i < schema->n; i++)
        if (mk_str_eq(mk_str_from_c(duda_schema_field_name(duda_schema_field_at(schema, i))), name))
            return i;
    return MK_STR_NONE;
}

/* Extends the sign bit to all higher bits. */
static int64_t sign_extend(const struct duda_schema_field *m, uint64_t bits)
{
    uint64_t sign = UINT64_C(1) << (m->size * 8 - 1);
    return (int64_t)((bits ^ sign) - sign);
}

static struct duda_value integer_value(const struct duda_schema_field *m, const void *at)
{
    uint64_t bits = load_integer_bits(at, m->size);
    return m->is_signed ? duda_value_integer(sign_extend(m, bits)) : duda_value_unsigned(bits);
}

struct duda_integer duda_schema_field_integer(const struct duda_schema_field *m, const void *at)
{
    uint64_t bits = load_integer_bits(at, m->size);
    bool is_negative = m->is_signed && bits >> (m->size * 8 - 1);
    return (struct duda_integer){is_negative ? 0 - (uint64_t)sign_extend(m, bits) : bits, is_negative};
}

static struct duda_value enum_value(const struct duda_schema_field *m, const void *at)
{
    uint64_t index = load_integer_bits(at, m->size);
    for (uint64_t i = 0; m->values[i]; i++)
        if (i == index)
            return duda_value_cstr(m->values[i]);
    return duda_value_null();
}

static struct duda_value string_value(const struct duda_schema_field *m, const void *at)
{
    mk_str text;
    memcpy(&text, at, sizeof text);
    struct duda_value v = duda_value_text(text);
    if (m->kind == DUDA_KIND_JSON_RAW && text.p)
        v.kind = DUDA_VALUE_RAW;
    return v;
}

struct duda_value duda_schema_field_value_at(const struct duda_schema_field *m, const void *at)
{
    bool truth;
    double number;
    switch (m->kind) {
    case DUDA_KIND_BOOL:
        memcpy(&truth, at, sizeof truth);
        return duda_value_bool(truth);
    case DUDA_KIND_INTEGER:
        return integer_value(m, at);
    case DUDA_KIND_DOUBLE:
        memcpy(&number, at, sizeof number);
        return duda_value_number(number);
    case DUDA_KIND_ENUM:
        return enum_value(m, at);
    case DUDA_KIND_OBJECT:
        return duda_value_struct(m->schema, at);
    case DUDA_KIND_STRING:
    case DUDA_KIND_JSON_RAW:
        break;
    }
    return string_value(m, at);
}

struct duda_value duda_schema_field_value(const struct duda_schema_field *m, const void *base)
{
    if (!duda_schema_field_is_present(m, base))
        return duda_value_null();
    const char *at = (const char *)base + m->offset;
    if (!m->is_list)
        return duda_schema_field_value_at(m, at);
    struct duda_value v = duda_value_null();
    v.kind = DUDA_VALUE_STRUCTS;
    memcpy(&v.of.in.object, at, sizeof v.of.in.object);
    memcpy(&v.n, (const char *)base + m->count_offset, sizeof v.n);
    v.of.in.field = m;
    v.of.in.schema = m->schema;
    return v;
}
