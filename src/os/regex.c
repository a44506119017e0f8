/* SPDX-License-Identifier: Apache-2.0 */
#include "os/regex.h"

#include <errno.h>

/* Defined by src/regex, if the build has it. */
extern mk_regex_compile mk_pcre2_compile __attribute__((weak));

struct mk_regex *mk_regex_new(mk_str pattern, bool nocase, struct mk_regex_error *why)
{
    if (mk_pcre2_compile)
        return mk_pcre2_compile(pattern, nocase, why);
    *why = (struct mk_regex_error){.code = -ENOENT, .text = "Monkey was built without PCRE2"};
    return NULL;
}
