/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for the tests of os/regex_pcre2.c. */
#ifndef MK_UNIT_OS_REGEX_CASE_H
#define MK_UNIT_OS_REGEX_CASE_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "os/regex.h"
#include "unit/test.h"

extern mk_regex_compile mk_regex_pcre2_compile;

static struct mk_regex *make(const char *pattern, bool nocase)
{
    struct mk_regex_error why = {0};
    struct mk_regex *r = mk_regex_pcre2_compile(mk_str_from_c(pattern), nocase, &why);
    if (!r)
        fail_msg("%s: %s", pattern, why.text);
    return r;
}

#endif
