/* SPDX-License-Identifier: Apache-2.0 */
/* A build without a library of regular expressions. */
#include "regex.h"

struct regex *rewrite_regex_new(mk_str pattern, bool nocase, struct regex_error *why)
{
    (void)pattern;
    (void)nocase;
    *why = (struct regex_error){.text = "this server was built without regular expressions (PCRE2)"};
    return NULL;
}

void rewrite_regex_free(void *regex)
{
    (void)regex;
}

unsigned rewrite_regex_groups(const struct regex *r)
{
    (void)r;
    return 0;
}

unsigned rewrite_regex_group(const struct regex *r, mk_str name)
{
    (void)r;
    (void)name;
    return 0;
}

bool rewrite_regex_match(const struct regex *r, mk_str text, struct captures *out, const char **why)
{
    (void)r;
    (void)text;
    (void)out;
    *why = NULL;
    return false;
}
