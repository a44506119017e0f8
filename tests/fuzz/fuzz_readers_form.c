/* SPDX-License-Identifier: Apache-2.0 */
/* Parses an urlencoded form: every string ends with a NUL, and limits hold. */
#include <errno.h>
#include <monkey/form.h>

#include "base/assert.h"
#include "unit/readers/test_allocator.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct mk_form_limits limits = {.fields = 5, .name = 8, .value = 16};
    struct mk_form form;
    int e = mk_form_parse(mk_str_of((const char *)data, size), &pool, &limits, &form);
    MK_ASSERT(e == 0 || e == -EBADMSG || e == -EMSGSIZE);
    MK_ASSERT(e ? form.n == 0 : form.n <= 5);
    for (size_t i = 0; i < form.n; i++) {
        const struct mk_form_field *f = &form.fields[i];
        MK_ASSERT(f->name.len <= 8 && f->value.len <= 16 && !f->name.p[f->name.len] &&
                  !f->value.p[f->value.len]);
        MK_ASSERT(memchr(f->name.p, 0, f->name.len) || mk_form_get(&form, f->name.p).p);
    }
    pool_free();
    return 0;
}
