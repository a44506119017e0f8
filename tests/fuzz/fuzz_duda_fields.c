/* SPDX-License-Identifier: Apache-2.0 */
/* Parses form fields, as text and into a struct. */
#include <duda/form.h>
#include <errno.h>

#include "base/assert.h"
#include "unit/duda/person.h"
#include "unit/readers/test_allocator.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_fields(mk_str text)
{
    struct mk_form fields;
    int e = mk_form_parse(text, &pool, NULL, &fields);
    MK_ASSERT(e == 0 || e == -EBADMSG || e == -EMSGSIZE);
    for (size_t i = 0; i < fields.n; i++)
        MK_ASSERT(!fields.fields[i].name.p[fields.fields[i].name.len] &&
                  !fields.fields[i].value.p[fields.fields[i].value.len]);
    struct person p = {.age = 1};
    struct duda_validation_errors errors;
    e = duda_form_data_bind(&fields, &person_shape, &pool, &p, &errors);
    MK_ASSERT((e == 0) == (errors.n == 0));
    if (e == 0)
        MK_ASSERT(p.age <= 150 && p.name.len >= 1 && p.n_tags <= 3 && (unsigned)p.color <= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_str text = mk_str_of((const char *)data, size);
    check_fields(text);
    pool_free();
    return 0;
}
