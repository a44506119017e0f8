/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/cache_control.h"

#include <monkey/text.h>

#include "base/num.h"
#include "conf/suggest.h"
#include "http/header.h"

/* Type of the value that a directive takes after `=`. */
enum argument { NOTHING, SECONDS, FIELDS };

/* Response directives: RFC 9111, section 5.2.2; RFC 8246; RFC 5861. */
static const struct directive {
    mk_str name;
    enum argument argument;
} directives[] = {
    {MK_STR_INIT("max-age"), SECONDS},         {MK_STR_INIT("must-revalidate"), NOTHING},
    {MK_STR_INIT("must-understand"), NOTHING}, {MK_STR_INIT("no-cache"), FIELDS},
    {MK_STR_INIT("no-store"), NOTHING},        {MK_STR_INIT("no-transform"), NOTHING},
    {MK_STR_INIT("private"), FIELDS},          {MK_STR_INIT("proxy-revalidate"), NOTHING},
    {MK_STR_INIT("public"), NOTHING},          {MK_STR_INIT("s-maxage"), SECONDS},
    {MK_STR_INIT("immutable"), NOTHING},       {MK_STR_INIT("stale-while-revalidate"), SECONDS},
    {MK_STR_INIT("stale-if-error"), SECONDS},
};

/* A line of [CACHE_CONTROL] whose directives are being checked. */
struct rule_line {
    const struct mk_conf_entry *entry;
    struct mk_conf_report *report;
    unsigned n;    /* directives so far */
    unsigned seen; /* bitmap of the known directives so far */
};

static void MK_PRINTF(3, 4)
    report_directive_error(const struct rule_line *l, mk_str part, const char *fmt, ...)
{
    struct mk_conf_source_pos at = mk_conf_tree_value_pos(l->entry, part);
    va_list args;
    va_start(args, fmt);
    mk_conf_report_addv(l->report, MK_CONF_ERROR, &at, fmt, args);
    va_end(args);
}

static const struct directive *find_directive(mk_str name)
{
    for (size_t i = 0; i < MK_LEN(directives); i++)
        if (mk_str_eq_nocase(name, directives[i].name))
            return &directives[i];
    return NULL;
}

static void report_unknown_directive(const struct rule_line *l, mk_str element, mk_str name)
{
    struct mk_conf_suggest near = mk_conf_suggest_for(name);
    mk_str rest = name, first = mk_str_word(&rest);
    if (rest.len && find_directive(first)) {
        report_directive_error(l, element, "`%.*s` is more than one directive", MK_CONF_REPORT_ARG(element));
        mk_conf_report_hint(l->report, "write a comma between directives: `public, max-age=3600`");
        return;
    }
    report_directive_error(l, element, "`%.*s` is not a directive of Cache-Control",
                           MK_CONF_REPORT_ARG(name));
    for (size_t i = 0; i < MK_LEN(directives); i++)
        mk_conf_suggest_try(&near, directives[i].name);
    mk_conf_report_suggest(l->report, near.best);
}

static bool is_quoted(mk_str s)
{
    return s.len >= 3 && s.p[0] == '"' && s.p[s.len - 1] == '"' && mk_is_header_value(s);
}

static void check_directive_argument(const struct rule_line *l, const struct directive *d, mk_str element,
                                     mk_str value)
{
    uint64_t seconds;
    if (d->argument == NOTHING && value.p)
        report_directive_error(l, element, "`%.*s` takes no value", MK_STR_ARG(d->name));
    else if (d->argument == FIELDS && value.p && !is_quoted(value))
        report_directive_error(l, element, "`%.*s` takes header names in quotes: `%.*s=\"Set-Cookie\"`",
                               MK_STR_ARG(d->name), MK_STR_ARG(d->name));
    else if (d->argument == SECONDS && !(value.p && mk_num_parse(value, &seconds)))
        report_directive_error(l, element, "`%.*s` takes a number of seconds: `%.*s=3600`",
                               MK_STR_ARG(d->name), MK_STR_ARG(d->name));
}

static void check_directive(struct rule_line *l, mk_str element)
{
    mk_str value = element, name = mk_str_cut(&value, '=');
    const struct directive *d = find_directive(name);
    if (!d) {
        report_unknown_directive(l, element, name);
        return;
    }
    unsigned bit = 1u << (d - directives);
    if (l->seen & bit)
        report_directive_error(l, element, "`%.*s` appears twice", MK_STR_ARG(d->name));
    l->seen |= bit;
    check_directive_argument(l, d, element, value);
}

static bool is_path_pattern(mk_str word)
{
    return word.len && (word.p[0] == '/' || word.p[0] == '*');
}

/* Returns the next pattern of the line. False: only directives are left. */
static bool next_pattern(mk_str *rest, mk_str *word)
{
    mk_str behind = *rest;
    *word = mk_str_word(&behind);
    if (!is_path_pattern(*word))
        return false;
    *rest = mk_str_trim(behind);
    return true;
}

static size_t count_patterns(const struct mk_conf_pair *pair)
{
    size_t n = 1;
    mk_str rest = pair->value, word;
    while (next_pattern(&rest, &word))
        n++;
    return n;
}

static mk_str check_directives(const struct mk_conf_pair *pair, mk_str value, struct mk_conf_report *report)
{
    struct rule_line l = {.entry = pair->entry, .report = report};
    mk_str rest = value, element;
    for (; mk_header_list_next(&rest, &element); l.n++)
        check_directive(&l, element);
    if (l.n == 0)
        report_directive_error(&l, pair->value,
                               "a directive is missing: expected `PATTERN... DIRECTIVE, ...`, such as "
                               "`*.css *.js max-age=3600`");
    return value;
}

static size_t add_rule_line(const struct mk_conf_pair *pair, struct mk_cache_rule *rules,
                            struct mk_conf_report *report)
{
    size_t n = 0;
    mk_str rest = pair->value, word = pair->key;
    do
        if (!mk_pattern_set(&rules[n++].match, word)) {
            mk_conf_report_error(report, &pair->entry->at,
                                 "`%.*s` is not a pattern: it must begin with / or *",
                                 MK_CONF_REPORT_ARG(word));
            return 0;
        }
    while (next_pattern(&rest, &word));
    mk_str value = check_directives(pair, rest, report);
    for (size_t i = 0; i < n; i++)
        rules[i].value = value;
    return n;
}

void mk_cache_control_build(struct mk_arena *arena, struct mk_vhost_config *site,
                            struct mk_conf_report *report)
{
    const struct mk_conf_pairs *pairs = &site->cache_control;
    size_t cap = 1, n = 0;
    for (size_t i = 0; i < pairs->n; i++)
        cap += count_patterns(&pairs->at[i]);
    struct mk_cache_rule *rules = mk_arena_zalloc(arena, cap, sizeof *rules);
    for (size_t i = 0; rules && i < pairs->n; i++)
        n += add_rule_line(&pairs->at[i], rules + n, report);
    site->host.cache_rules = rules;
    site->host.n_cache_rules = n;
}
