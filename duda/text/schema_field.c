/* SPDX-License-Identifier: Apache-2.0 */
#include "text/schema_field.h"

#include <math.h>
#include <monkey/json.h>
#include <monkey/text.h>
#include <monkey/utf8.h>
#include <stdlib.h>

#include "text/pattern.h"

/* ---- Rules ---- */

static const struct duda_rejection valid = {NULL, NULL, false};
static const struct duda_rejection out_of_memory = {"memory", NULL, true};

static struct duda_rejection reject(const char *code)
{
    return (struct duda_rejection){.code = code};
}

static struct duda_rejection check_bounds(const struct duda_schema_field *m, double n)
{
    if (m->at_least.is_set && n < m->at_least.value)
        return reject("minimum");
    if (m->at_most.is_set && n > m->at_most.value)
        return reject("maximum");
    return valid;
}

static struct duda_rejection check_length(const struct duda_schema_field *m, size_t n)
{
    if (n < m->min_length)
        return reject("minLength");
    return m->max_length && n > m->max_length ? reject("maxLength") : valid;
}

struct duda_rejection duda_schema_field_run_check(const struct duda_schema_field *m, const void *at)
{
    const char *message = m->check ? m->check(at) : NULL;
    return (struct duda_rejection){.code = message ? "check" : NULL, .message = message};
}

static uint64_t max_integer(const struct duda_schema_field *m)
{
    unsigned bits = (unsigned)m->size * 8;
    uint64_t all = bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    return m->is_signed ? all >> 1 : all;
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

struct duda_rejection duda_schema_field_put_bool(const struct duda_schema_field *m, void *at, bool truth)
{
    memcpy(at, &truth, sizeof truth);
    return duda_schema_field_run_check(m, at);
}

struct duda_rejection duda_schema_field_put_integer(const struct duda_schema_field *m, void *at,
                                                    struct duda_integer n)
{
    bool is_negative = n.is_negative && n.amount > 0;
    struct duda_rejection bad = check_bounds(m, is_negative ? -(double)n.amount : (double)n.amount);
    if (bad.code)
        return bad;
    if (!duda_schema_field_set_integer(m, at, is_negative, n.amount))
        return reject(is_negative ? "minimum" : "maximum");
    return duda_schema_field_run_check(m, at);
}

struct duda_rejection duda_schema_field_put_double(const struct duda_schema_field *m, void *at, double n)
{
    struct duda_rejection bad = isfinite(n) ? check_bounds(m, n) : reject("type");
    if (bad.code)
        return bad;
    memcpy(at, &n, sizeof n);
    return duda_schema_field_run_check(m, at);
}

static struct duda_rejection put_text(const struct duda_schema_field *m, void *at, mk_str text)
{
    bool is_limited = !m->is_list && (m->min_length || m->max_length);
    struct duda_rejection bad = is_limited ? check_length(m, mk_utf8_count(text)) : valid;
    if (bad.code)
        return bad;
    if (!duda_format_matches(m->format, text))
        return reject("format");
    if (m->pattern && !duda_pattern_matches(m->pattern, text))
        return reject("pattern");
    memcpy(at, &text, sizeof text);
    return duda_schema_field_run_check(m, at);
}

static struct duda_rejection put_enum(const struct duda_schema_field *m, void *at, mk_str word)
{
    for (size_t i = 0; m->values[i]; i++)
        if (mk_str_eq(word, mk_str_from_c(m->values[i])) && duda_schema_field_set_integer(m, at, false, i))
            return duda_schema_field_run_check(m, at);
    return reject("enum");
}

static struct duda_rejection put_timestamp(const struct duda_schema_field *m, void *at, mk_str text)
{
    int64_t time;
    if (!duda_timestamp_parse(text, &time))
        return reject("format");
    memcpy(at, &time, sizeof time);
    return duda_schema_field_run_check(m, at);
}

static struct duda_rejection put_base64(const struct duda_schema_field *m, void *at, mk_str text,
                                        const struct mk_allocator *memory)
{
    size_t size = text.len / 4 * 3 + 3;
    char *p = (char *)memory->alloc(memory->ctx, size);
    struct mk_buf bytes = mk_buf_fixed(p, size);
    if (!p)
        return out_of_memory;
    if (!mk_base64_decode(&bytes, text))
        return reject("format");
    mk_str decoded = mk_str_of(p, bytes.len);
    struct duda_rejection bad = m->is_list ? valid : check_length(m, decoded.len);
    if (bad.code)
        return bad;
    memcpy(at, &decoded, sizeof decoded);
    return duda_schema_field_run_check(m, at);
}

struct duda_rejection duda_schema_field_put_string(const struct duda_schema_field *m, void *at, mk_str text,
                                                   const struct mk_allocator *memory)
{
    switch (m->kind) {
    case DUDA_KIND_STRING:
        return put_text(m, at, text);
    case DUDA_KIND_ENUM:
        return put_enum(m, at, text);
    case DUDA_KIND_BYTES:
        return put_base64(m, at, text, memory);
    case DUDA_KIND_TIMESTAMP:
        return put_timestamp(m, at, text);
    case DUDA_KIND_BOOL:
    case DUDA_KIND_INTEGER:
    case DUDA_KIND_DOUBLE:
    case DUDA_KIND_OBJECT:
    case DUDA_KIND_JSON_RAW:
        break;
    }
    return reject("type");
}

/* ---- Lists ---- */

static bool is_text_kind(const struct duda_schema_field *m)
{
    return m->kind == DUDA_KIND_STRING || m->kind == DUDA_KIND_BYTES;
}

static int compare_texts(const void *a, const void *b)
{
    mk_str x, y;
    memcpy(&x, *(const void *const *)a, sizeof x);
    memcpy(&y, *(const void *const *)b, sizeof y);
    return mk_str_cmp(x, y);
}

static int compare_doubles(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, *(const void *const *)a, sizeof x);
    memcpy(&y, *(const void *const *)b, sizeof y);
    return (x > y) - (x < y);
}

static int compare_integers(const void *a, const void *b, void *size)
{
    uint64_t x = load_integer_bits(*(const void *const *)a, *(const size_t *)size);
    uint64_t y = load_integer_bits(*(const void *const *)b, *(const size_t *)size);
    return (x > y) - (x < y);
}

static int compare_elements(const void *a, const void *b, void *ctx)
{
    const struct duda_schema_field *m = (const struct duda_schema_field *)ctx;
    size_t size = m->size;
    if (is_text_kind(m))
        return compare_texts(a, b);
    return m->kind == DUDA_KIND_DOUBLE ? compare_doubles(a, b) : compare_integers(a, b, &size);
}

/* Sorts pointers to the elements: comparing each pair would take too long for a long list from a client. */
static struct duda_rejection check_elements_differ(const struct duda_schema_field *m, const char *list,
                                                   size_t n, const struct mk_allocator *memory)
{
    const void **sorted = (const void **)mk_allocator_zalloc(memory, n, sizeof *sorted);
    struct duda_schema_field copy = *m; /* qsort_r() takes no pointer to const */
    if (!sorted)
        return out_of_memory;
    for (size_t i = 0; i < n; i++)
        sorted[i] = list + i * m->size;
    qsort_r(sorted, n, sizeof *sorted, compare_elements, &copy);
    for (size_t i = 1; i < n; i++)
        if (compare_elements(&sorted[i - 1], &sorted[i], &copy) == 0)
            return reject("uniqueItems");
    return valid;
}

static bool can_compare_elements(const struct duda_schema_field *m)
{
    return m->kind != DUDA_KIND_OBJECT && m->kind != DUDA_KIND_JSON_RAW;
}

struct duda_rejection duda_schema_field_check_list(const struct duda_schema_field *m, const void *list,
                                                   size_t n, const struct mk_allocator *memory)
{
    if (n < m->min_length)
        return reject("minItems");
    if (m->max_length && n > m->max_length)
        return reject("maxItems");
    if (m->is_unique && n > 1 && can_compare_elements(m))
        return check_elements_differ(m, (const char *)list, n, memory);
    return valid;
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

void duda_number_write(struct mk_buf *out, double n)
{
    struct mk_json_writer w = mk_json_writer_to(out);
    mk_json_double(&w, n);
}

/* Describes the numbers that the field accepts: its limits or, for an integer, the range of its type. The
 * range of a 64-bit type is not worth describing, except for the 0 of an unsigned one. */
static void describe_bounds(struct mk_buf *out, const struct duda_schema_field *m)
{
    struct duda_bound low = m->at_least, high = m->at_most;
    if (m->kind == DUDA_KIND_INTEGER) {
        double most = (double)max_integer(m), least = m->is_signed ? -most - 1 : 0;
        if ((!low.is_set || low.value < least) && (m->size < 8 || !m->is_signed))
            low = (struct duda_bound){true, least};
        if ((!high.is_set || high.value > most) && m->size < 8)
            high = (struct duda_bound){true, most};
    }
    if (low.is_set) {
        mk_buf_add(out, high.is_set ? MK_STR(" from ") : MK_STR(" of at least "));
        duda_number_write(out, low.value);
    }
    if (high.is_set) {
        mk_buf_add(out, low.is_set ? MK_STR(" to ") : MK_STR(" of at most "));
        duda_number_write(out, high.value);
    }
}

static void describe_enum(struct mk_buf *out, const struct duda_schema_field *m)
{
    mk_buf_add(out, MK_STR("one of"));
    for (size_t i = 0; m->values[i]; i++)
        mk_buf_addf(out, "%s \"%s\"", i ? "," : "", m->values[i]);
}

static void describe_string(struct mk_buf *out, const struct duda_schema_field *m)
{
    static const char *const formats[] = {
        [DUDA_FORMAT_NONE] = "a string",
        [DUDA_FORMAT_EMAIL] = "an email address",
        [DUDA_FORMAT_UUID] = "a UUID",
        [DUDA_FORMAT_DATE_TIME] = "a date and time such as 2026-03-01T12:30:00Z",
        [DUDA_FORMAT_DATE] = "a date such as 2026-03-01",
        [DUDA_FORMAT_URL] = "a URL that begins with http:// or https://",
        [DUDA_FORMAT_DECIMAL] = "a decimal number such as 12.50",
    };
    bool is_known = (size_t)m->format < MK_LEN(formats);
    mk_buf_add(out, mk_str_from_c(is_known ? formats[m->format] : "a string of an unknown format"));
    if (!m->is_list)
        describe_length(out, m->min_length, m->max_length, "character", "characters");
    if (m->pattern)
        mk_buf_addf(out, " that matches %s", m->pattern);
}

static void describe_list(struct mk_buf *out, const struct duda_schema_field *m)
{
    mk_buf_add(out, m->is_map ? MK_STR("an object") : MK_STR("a list"));
    if (m->is_map)
        describe_length(out, m->min_length, m->max_length, "member", "members");
    else
        describe_length(out, m->min_length, m->max_length, "element", "elements");
    if (m->is_unique)
        mk_buf_add(out, MK_STR(" without duplicates"));
}

void duda_schema_field_describe(struct mk_buf *out, const struct duda_schema_field *m, bool list)
{
    if (list) {
        describe_list(out, m);
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
        describe_string(out, m);
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
    case DUDA_KIND_BYTES:
        mk_buf_add(out, MK_STR("bytes as base64"));
        if (!m->is_list)
            describe_length(out, m->min_length, m->max_length, "byte", "bytes");
        break;
    case DUDA_KIND_TIMESTAMP:
        mk_buf_add(out, MK_STR("a date and time such as 2026-03-01T12:30:00Z"));
        break;
    }
}

/* ---- Fields of structs ---- */

bool duda_schema_field_clear(const struct duda_schema_field *m, void *base)
{
    bool is_text = m->kind == DUDA_KIND_STRING || m->kind == DUDA_KIND_BYTES || m->kind == DUDA_KIND_JSON_RAW;
    if (!is_text && !m->is_list && !m->presence_offset)
        return false;
    memset((char *)base + m->offset, 0, m->is_list ? sizeof(void *) : m->size);
    if (m->is_list)
        memset((char *)base + m->count_offset, 0, sizeof(size_t));
    duda_schema_field_set_present(m, base, false);
    return true;
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

static struct duda_value bytes_value(const void *at)
{
    mk_str bytes;
    memcpy(&bytes, at, sizeof bytes);
    return duda_value_bytes(bytes);
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
    case DUDA_KIND_BYTES:
        return bytes_value(at);
    case DUDA_KIND_TIMESTAMP:
        return duda_value_timestamp((int64_t)load_integer_bits(at, m->size));
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

bool duda_integer_parse(mk_str s, struct duda_integer *out)
{
    out->is_negative = s.len && s.p[0] == '-';
    return mk_num_parse(mk_str_skip(s, out->is_negative), &out->amount);
}
