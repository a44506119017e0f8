/* SPDX-License-Identifier: Apache-2.0 */
/* Calls the functions of regex_pcre2.c if the build has PCRE2. */
#include "os/regex.h"

#include <errno.h>
#include <monkey/sized.h>

/* Defined in regex_pcre2.c, if the build has PCRE2. */
extern mk_regex_compile mk_regex_pcre2_compile __attribute__((weak));

static struct mk_regex *compile_pattern(mk_str pattern, bool nocase, struct mk_regex_error *error)
{
    if (mk_regex_pcre2_compile)
        return mk_regex_pcre2_compile(pattern, nocase, error);
    *error = (struct mk_regex_error){.code = -ENOENT, .text = "Monkey was built without PCRE2"};
    return NULL;
}

struct mk_regex *mk_regex_new_sized(mk_str pattern, bool nocase, struct mk_regex_error *error,
                                    size_t error_size)
{
    struct mk_regex_error full = {0};
    struct mk_regex *result = compile_pattern(pattern, nocase, &full);
    mk_sized_out(error, error_size, &full, sizeof full);
    return result;
}
