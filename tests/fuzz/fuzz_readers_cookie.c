/* SPDX-License-Identifier: Apache-2.0 */
/* Parses a Cookie header; a value that can be written to Set-Cookie reads back the same. */
#include <monkey/cookie.h>

#include "base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_str text = mk_str_of((const char *)data, size);
    mk_str rest = text, name, value;
    char buffer[MK_COOKIE_MAX];
    while (mk_cookie_next(&rest, &name, &value)) {
        MK_ASSERT(name.len && memchr(text.p, '=', text.len));
        struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
        const struct mk_cookie c = {.name = "n", .value = value};
        int e = mk_cookie_write(&out, &c, true);
        MK_ASSERT(!memchr(buffer, '\r', out.len) && !memchr(buffer, '\n', out.len) &&
                  (e == 0) == (out.len > 0));
        mk_str again = mk_str_first(mk_buf_str(&out), 2 + value.len);
        MK_ASSERT(e || mk_str_eq(mk_cookie_find(again, MK_STR("n")), value));
    }
    return 0;
}
