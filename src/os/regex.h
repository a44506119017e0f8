/* SPDX-License-Identifier: Apache-2.0 */
/* The object with the regular expressions (src/regex), loaded when the first one is made. Only it links
 * PCRE2. */
#ifndef MK_OS_REGEX_H
#define MK_OS_REGEX_H

#include <monkey/regex.h>

enum { MK_REGEX_ABI = 1 };

/* The functions of the loaded object. */
struct mk_regex_module {
    unsigned abi; /* MK_REGEX_ABI: object and program are from the same build */
    struct mk_regex *(*compile)(mk_str pattern, bool nocase, struct mk_regex_error *why);
};

#endif
