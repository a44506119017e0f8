/* SPDX-License-Identifier: Apache-2.0 */
/* Parses JSON into a struct and into values: parsed JSON, and any string or number, can be written and parses
 * back to the same value. */
#include <duda/json.h>
#include <errno.h>
#include <math.h>
#include <monkey/json.h>

#include "base/assert.h"
#include "unit/duda/person.h"
#include "unit/readers/test_allocator.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct mk_buf written(const struct duda_value *v)
{
    struct mk_buf out = mk_buf_growing(1 << 24);
    duda_json_write(&out, v);
    MK_ASSERT(!out.failed);
    return out;
}

static void check_errors(const struct duda_validation_errors *errors, int e)
{
    MK_ASSERT(errors->n <= DUDA_VALIDATION_ERRORS_MAX && (e == 0) == (errors->n == 0));
    for (size_t i = 0; i < errors->n; i++)
        MK_ASSERT(errors->items[i].line > 0 && errors->items[i].column > 0 &&
                  errors->items[i].message.len > 0);
}

static void check_value(mk_str text)
{
    struct duda_validation_errors errors;
    struct duda_value v;
    int e = duda_json_read_value(text, &pool, NULL, &v, &errors);
    check_errors(&errors, e);
    MK_ASSERT(e == 0 || e == -EBADMSG || e == -EINVAL || e == -EMSGSIZE);
    if (e)
        return;
    const struct mk_json_limits wide = {.size = 1 << 24};
    struct mk_buf first = written(&v);
    MK_ASSERT(duda_json_read_value(mk_buf_str(&first), &pool, &wide, &v, &errors) == 0);
    struct mk_buf second = written(&v);
    MK_ASSERT(mk_str_eq(mk_buf_str(&first), mk_buf_str(&second)));
    mk_buf_free(&first);
    mk_buf_free(&second);
}

static void check_struct(mk_str text)
{
    struct duda_validation_errors errors;
    struct person p = {.age = 1};
    int e = duda_json_read(text, &person_shape, &pool, NULL, &p, &errors);
    check_errors(&errors, e);
    if (e)
        return;
    MK_ASSERT(p.age <= 150 && p.name.len >= 1 && p.n_tags <= 3 && (unsigned)p.color <= 1);
    const struct mk_json_limits wide = {.size = 1 << 24};
    struct duda_value v = duda_value_struct(&person_shape, &p);
    struct mk_buf out = written(&v);
    e = duda_json_read(mk_buf_str(&out), &person_shape, &pool, &wide, &p, &errors);
    MK_ASSERT(e == 0 || e == -EINVAL); /* the default of a member need not follow its rules */
    mk_buf_free(&out);
}

static bool is_same_number(const struct duda_value *v, double n)
{
    if (v->kind == DUDA_VALUE_INTEGER)
        return (double)v->of.integer == n;
    return v->kind == DUDA_VALUE_NUMBER ? v->of.number == n : !isfinite(n);
}

/* The writer must write valid JSON for any strings and numbers, and doubles must read back the same. */
static void check_writer(mk_str bytes, double n)
{
    struct mk_buf out = mk_buf_growing(1 << 24);
    struct mk_json_writer w = mk_json_writer_to(&out);
    struct duda_validation_errors errors;
    struct duda_value v, list, first;
    mk_json_begin_object(&w);
    mk_json_begin_array(mk_json_key(&w, "list"));
    mk_json_double(&w, n);
    mk_json_newline(&w);
    mk_json_string(&w, bytes);
    mk_json_end_array(&w);
    mk_json_raw(mk_json_key_str(&w, bytes), MK_STR("{}"));
    mk_json_end_object(&w);
    MK_ASSERT(!out.failed);
    const struct mk_json_limits wide = {.size = 1 << 24};
    int e = duda_json_read_value(mk_buf_str(&out), &pool, &wide, &v, &errors);
    MK_ASSERT(e == 0 || mk_str_eq(bytes, MK_STR("list")) || memchr(bytes.p, 0, bytes.len));
    if (!e) {
        MK_ASSERT(duda_value_member(&v, MK_STR("list"), &list));
        first = duda_value_item(&list, 0);
        MK_ASSERT(is_same_number(&first, n));
    }
    mk_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_str text = mk_str_of((const char *)data, size);
    double number;
    check_value(text);
    check_struct(text);
    if (size >= sizeof number) {
        memcpy(&number, data, sizeof number);
        check_writer(mk_str_skip(text, sizeof number), number);
    }
    pool_free();
    return 0;
}
