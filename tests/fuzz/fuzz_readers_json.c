/* SPDX-License-Identifier: Apache-2.0 */
/* Parses JSON into values: what can be parsed can be written, and parses to the same values again; an error has
 * a position inside the text. */
#include <errno.h>
#include <monkey/buf.h>
#include <monkey/json_value.h>

#include "base/assert.h"
#include "unit/readers/test_allocator.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct mk_buf written(const struct mk_json_value *v)
{
    struct mk_buf out = mk_buf_growing(1 << 24);
    struct mk_json_writer w = mk_json_writer_to(&out);
    mk_json_value_write(&w, v);
    MK_ASSERT(!out.failed);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct mk_json_limits wide = {.size = 1 << 24};
    struct mk_json_value v;
    struct mk_json_error error;
    int e = mk_json_parse(mk_str_of((const char *)data, size), &pool, NULL, &v, &error);
    MK_ASSERT(e == 0 || e == -EBADMSG || e == -EINVAL || e == -EMSGSIZE);
    if (e) {
        MK_ASSERT(error.offset <= size && error.line && error.column && *error.message);
    } else {
        struct mk_buf first = written(&v);
        MK_ASSERT(mk_json_parse(mk_buf_str(&first), &pool, &wide, &v, &error) == 0);
        struct mk_buf second = written(&v);
        MK_ASSERT(mk_str_eq(mk_buf_str(&first), mk_buf_str(&second)));
        mk_buf_free(&first);
        mk_buf_free(&second);
    }
    pool_free();
    return 0;
}
