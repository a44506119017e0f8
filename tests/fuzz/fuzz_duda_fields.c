/* SPDX-License-Identifier: Apache-2.0 */
/* Parses form fields, as text and into a struct, and cookies. */
#include <duda/cookie.h>
#include <duda/form.h>
#include <errno.h>

#include "base/assert.h"
#include "unit/duda/person.h"
#include "unit/duda/test_allocator.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_fields(mk_str text)
{
    struct duda_form_data fields;
    int e = duda_form_data_parse(text, &pool, NULL, &fields);
    MK_ASSERT(e == 0 || e == -EBADMSG || e == -EMSGSIZE);
    for (size_t i = 0; i < fields.n; i++)
        MK_ASSERT(!fields.pairs[i].name.p[fields.pairs[i].name.len] &&
                  !fields.pairs[i].value.p[fields.pairs[i].value.len]);
    struct person p = {.age = 1};
    struct duda_validation_errors errors;
    e = duda_form_data_bind(&fields, &person_shape, &pool, &p, &errors);
    MK_ASSERT((e == 0) == (errors.n == 0));
    if (e == 0)
        MK_ASSERT(p.age <= 150 && p.name.len >= 1 && p.n_tags <= 3 && (unsigned)p.color <= 1);
}

static void check_cookies(mk_str text)
{
    mk_str rest = text, name, value;
    char buffer[DUDA_COOKIE_MAX];
    while (duda_cookie_next(&rest, &name, &value)) {
        MK_ASSERT(name.len && memchr(text.p, '=', text.len));
        struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
        const struct duda_cookie c = {.name = "n", .value = value};
        int e = duda_cookie_write(&out, &c, true);
        MK_ASSERT(!memchr(buffer, '\r', out.len) && !memchr(buffer, '\n', out.len) &&
                  (e == 0) == (out.len > 0));
        mk_str again = mk_str_first(mk_buf_str(&out), 2 + value.len);
        MK_ASSERT(e || mk_str_eq(duda_cookie_find(again, MK_STR("n")), value));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_str text = mk_str_of((const char *)data, size);
    check_fields(text);
    check_cookies(text);
    pool_free();
    return 0;
}
