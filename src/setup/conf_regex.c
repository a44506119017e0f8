/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/conf_regex.h"

#include <errno.h>

/* Lets the arena free the expression. NULL: out of memory, which the report detects in the arena. */
static struct mk_regex *free_regex_with_arena(struct mk_arena *arena, struct mk_regex *r)
{
    if (mk_arena_add_cleanup(arena, mk_regex_free, r))
        return r;
    mk_regex_free(r);
    return NULL;
}

static void report_regex_error(struct mk_conf_report *report, const struct mk_conf_source_pos *at,
                               mk_str pattern, const struct mk_regex_error *error)
{
    if (error->code == -ENOMEM) {
        report->no_memory = true;
    } else if (error->code == -ENOENT) {
        mk_conf_report_error(report, at, "`%.*s`: this server does not support regular expressions: %s",
                             MK_CONF_REPORT_ARG(pattern), error->text);
        mk_conf_report_hint(report, "build with PCRE2 (libpcre2-dev)");
    } else {
        mk_conf_report_error(report, at, "`%.*s` is not a regular expression: %s, at character %zu",
                             MK_CONF_REPORT_ARG(pattern), error->text, error->offset + 1);
        if (error->offset == pattern.len)
            mk_conf_report_hint(report, MK_CONF_REGEX_BLANK);
    }
}

struct mk_regex *mk_conf_regex_new(struct mk_arena *arena, struct mk_conf_report *report,
                                   const struct mk_conf_source_pos *at, mk_str pattern, bool nocase)
{
    struct mk_regex_error error;
    if (pattern.len == 0) {
        mk_conf_report_error(report, at, "expected a regular expression after `~`");
        return NULL;
    }
    struct mk_regex *r = mk_regex_new(pattern, nocase, &error);
    if (!r)
        report_regex_error(report, at, pattern, &error);
    return r ? free_regex_with_arena(arena, r) : NULL;
}
