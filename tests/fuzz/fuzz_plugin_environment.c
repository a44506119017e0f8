/* SPDX-License-Identifier: Apache-2.0 */
/* The file of DNSHookEnvironment: every variable has a valid name, and no control characters reach the hook. */
#include <stdint.h>
#include <stdlib.h>

#include "acme/hook_environment.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct acme_hook_environment e = {.rest = mk_str_of((const char *)data, size)};
    unsigned line = 0;
    for (mk_str name, value; acme_hook_environment_next(&e, &name, &value); line = e.line) {
        if (!name.len || e.line <= line || mk_char_is_digit(name.p[0]) ||
            mk_str_starts(name, MK_STR("ACME_")))
            abort();
        for (size_t i = 0; i < name.len; i++)
            if (!mk_char_is_alpha(name.p[i]) && !mk_char_is_digit(name.p[i]) && name.p[i] != '_')
                abort();
        if (mk_str_find(value, '\0') != MK_STR_NONE || mk_str_find(value, '\n') != MK_STR_NONE)
            abort();
    }
    return 0;
}
