/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions of Monkey 1.6, compiled by libc. Part of the build only with MK_POSIX_REGEX=ON. */
#include <regex.h>

#include "setup/conf_regex.h"

struct posix_regex {
    struct mk_regex regex;
    regex_t code;
};

static void free_posix_regex(struct mk_regex *r)
{
    regfree(&MK_CONTAINER(r, struct posix_regex, regex)->code);
}

static enum mk_regex_result match_posix_regex(const struct mk_regex *r, mk_str text,
                                              struct mk_regex_captures *out)
{
    const struct posix_regex *p =
        (const struct posix_regex *)(const void *)r; /* valid because `regex` is the first member of struct
                                                      * posix_regex */
    int e = regexec(&p->code, text.p, 0, NULL, 0);
    (void)out;
    return e == 0 ? MK_REGEX_MATCH : e == REG_NOMATCH ? MK_REGEX_NO_MATCH : MK_REGEX_LIMIT;
}

static const struct mk_regex_ops posix_ops = {.free = free_posix_regex, .match = match_posix_regex};

struct mk_regex *mk_conf_regex_new_posix(struct mk_arena *arena, struct mk_conf_report *report,
                                         const struct mk_conf_source_pos *at, mk_str pattern)
{
    struct posix_regex *p = mk_arena_zalloc(arena, 1, sizeof *p);
    if (!p || !pattern.p)
        return NULL;
    if (regcomp(&p->code, pattern.p, REG_EXTENDED | REG_ICASE | REG_NOSUB) != 0) {
        mk_conf_report_error(report, at, "`%s` is not a regular expression", pattern.p);
        return NULL;
    }
    p->regex.ops = &posix_ops;
    if (mk_arena_add_cleanup(arena, mk_regex_free, &p->regex))
        return &p->regex;
    mk_regex_free(&p->regex);
    return NULL;
}
