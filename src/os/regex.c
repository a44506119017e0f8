/* SPDX-License-Identifier: Apache-2.0 */
/* The only place that knows whether regex_pcre2.c, an optional layer, is linked in. */
#include "os/regex.h"

#include <errno.h>

/* Defined in regex_pcre2.c, if the build has PCRE2. */
extern mk_regex_compile mk_regex_pcre2_compile __attribute__((weak));

struct mk_regex *mk_regex_new(mk_str pattern, bool nocase, struct mk_regex_error *error)
{
    if (mk_regex_pcre2_compile)
        return mk_regex_pcre2_compile(pattern, nocase, error);
    *error = (struct mk_regex_error){.code = -ENOENT, .text = "Monkey was built without PCRE2"};
    return NULL;
}
