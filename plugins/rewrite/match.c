/* SPDX-License-Identifier: Apache-2.0 */
/* Matches rules against requests. */
#include "rules.h"

enum { INDEX_MIN = 3 }; /* an index of fewer conditions costs as much as their evaluation */

/* ---- Patterns ---- */

static bool chars_equal(char a, char b, bool nocase)
{
    return nocase ? mk_char_lower(a) == mk_char_lower(b) : a == b;
}

static bool starts_with(mk_str text, mk_str prefix, bool nocase)
{
    mk_str head = mk_str_first(text, prefix.len);
    return nocase ? mk_str_eq_nocase(head, prefix) : mk_str_eq(head, prefix);
}

/* The prefix "/old" matches "/old" and everything below "/old/"; "/old/" matches only the latter. */
static bool match_prefix(const struct rule *r, mk_str path, struct mk_regex_captures *out)
{
    mk_str rest = mk_str_skip(path, r->pattern.len);
    if (!starts_with(path, r->pattern, r->nocase))
        return false;
    if (rest.len && rest.p[0] != '/' && !mk_str_ends(r->pattern, MK_STR("/")))
        return false;
    out->at[0] = path;
    out->at[1] = rest.len ? rest : MK_STR("");
    return true;
}

/* The state of the glob matcher: the position of the last star, and the text that it matches so far. Only the
 * last star ever needs to match more, so the time is at most the product of both lengths. */
struct glob {
    mk_str pattern, text;
    size_t p, t;
    size_t star, from, to; /* star is MK_STR_NONE if there is none */
    unsigned stars;
};

static void set_star_capture(const struct glob *g, struct mk_regex_captures *out)
{
    if (g->stars < MK_REGEX_CAPTURES_MAX)
        out->at[g->stars] = mk_str_skip(mk_str_first(g->text, g->to), g->from);
}

static void begin_star(struct glob *g, struct mk_regex_captures *out)
{
    g->stars++;
    g->star = g->p++;
    g->from = g->to = g->t;
    set_star_capture(g, out);
}

/* Lets the last star match one more byte. */
static bool backtrack_star(struct glob *g, struct mk_regex_captures *out)
{
    if (g->star == MK_STR_NONE)
        return false;
    if (g->to == g->text.len)
        return false;
    g->p = g->star + 1;
    g->t = ++g->to;
    set_star_capture(g, out);
    return true;
}

static bool match_glob(const struct rule *r, mk_str path, struct mk_regex_captures *out)
{
    struct glob g = {.pattern = r->pattern, .text = path, .star = MK_STR_NONE};
    out->at[0] = path;
    while (g.t < g.text.len || g.p < g.pattern.len) {
        char c = g.p < g.pattern.len ? g.pattern.p[g.p] : '\0';
        if (g.p < g.pattern.len && c == '*') {
            begin_star(&g, out);
        } else if (g.p < g.pattern.len && g.t < g.text.len &&
                   (c == '?' || chars_equal(c, g.text.p[g.t], r->nocase))) {
            g.p++;
            g.t++;
        } else if (!backtrack_star(&g, out)) {
            return false;
        }
    }
    return true;
}

/* ---- Whole rules ---- */

static bool match_regex(const struct rule *r, mk_str path, struct mk_regex_captures *out, const char **error)
{
    enum mk_regex_result result = mk_regex_match(r->regex, path, out);
    if (result == MK_REGEX_LIMIT)
        *error = "the regular expression exceeded its step or memory limit";
    return result == MK_REGEX_MATCH;
}

static bool pattern_matches(const struct rule *r, mk_str path, struct mk_regex_captures *out,
                            const char **error)
{
    switch (r->kind) {
    case KIND_PREFIX:
        return match_prefix(r, path, out);
    case KIND_GLOB:
        return match_glob(r, path, out);
    case KIND_REGEX:
        return match_regex(r, path, out, error);
    case KINDS:
    default:
        return false;
    }
}

/* A regular expression of a condition that exceeds its limit does not match, like that of a rule. */
static bool all_conditions_hold(const struct rule *rule, struct mk_request *request, const char **error)
{
    enum mk_regex_result result =
        rule->conditions ? mk_conditions_match(rule->conditions, request) : MK_REGEX_MATCH;
    if (result == MK_REGEX_LIMIT)
        *error = "a regular expression of a condition exceeded its step or memory limit";
    return result == MK_REGEX_MATCH;
}

/* Ignores conditions on the path, which are checked only for the path itself and not for its variants. */
bool rewrite_rule_conditions_may_hold(const struct rule *rule, struct mk_request *request)
{
    return !rule->conditions || mk_conditions_match_path(rule->conditions, request, mk_request_path(request),
                                                         MK_CONDITION_FILE | MK_CONDITION_PATH |
                                                             MK_CONDITION_CONTAINS) != MK_REGEX_NO_MATCH;
}

bool rewrite_rule_checks_files(const struct rule *rule)
{
    return rule->conditions && mk_conditions_subjects(rule->conditions) & MK_CONDITION_FILE;
}

bool rewrite_rule_matches(const struct rule *rule, struct mk_request *request, struct mk_regex_captures *out,
                          const char **error)
{
    *error = NULL;
    return pattern_matches(rule, mk_request_path(request), out, error) &&
           all_conditions_hold(rule, request, error);
}

/* Returns whether the request's path is already below the target. In this case, the rule does not protect
 * that path. */
static bool targets_own_path(const struct rule *rule, mk_str path)
{
    mk_str begin = rule->target.n ? rule->target.pieces[0].text : MK_STR_NULL;
    begin = mk_str_first(begin, mk_str_find(begin, '?'));
    begin = mk_str_first(begin, begin.len - mk_str_ends(begin, MK_STR("/")));
    mk_str rest = mk_str_skip(path, begin.len);
    return begin.len && mk_str_starts(path, begin) && (!rest.len || rest.p[0] == '/');
}

/* Returns whether the rule applies to the i-th variant. A redirect applies to every variant, and every rule
 * applies to a variant that is another interpretation of the path. The other variants come from the path
 * after a script or from a Destination header: a rewrite does not apply to them if the request's path is
 * already below the target of the rule. */
static bool applies_to_variant(const struct rule *rule, const struct mk_request *request, size_t i)
{
    return rule->status || mk_request_variant_kind(request, i) == MK_VARIANT_READING ||
           !targets_own_path(rule, mk_request_path(request));
}

bool rewrite_rule_may_match_variants(const struct rule *rule, struct mk_request *request,
                                     const mk_str *variants, size_t n)
{
    struct mk_regex_captures found;
    const char *error = NULL;
    for (size_t i = 0; i < n; i++)
        if (applies_to_variant(rule, request, i) &&
            (pattern_matches(rule, variants[i], &found, &error) || error))
            return rewrite_rule_conditions_may_hold(rule, request);
    return false;
}

/* ---- The index ---- */

/* The index must not skip a rule because of its path, which has variants, nor one before which limits and auth check
 * the path. */
static const struct mk_conditions *indexed_conditions(const struct rule *rule)
{
    bool is_indexed = rule->conditions && !(mk_conditions_subjects(rule->conditions) &
                                            (MK_CONDITION_CONTAINS | MK_CONDITION_FILE));
    return is_indexed ? rule->conditions : NULL;
}

bool rewrite_rules_index(struct mk_config *config, struct rules *rules)
{
    size_t n = 0;
    for (const struct rule *r = rules->first; r; r = r->next)
        n += indexed_conditions(r) != NULL;
    if (n < INDEX_MIN || rules->index)
        return true;
    const struct mk_conditions **lists = mk_config_alloc(config, rules->n * sizeof *lists);
    rules->at = mk_config_alloc(config, rules->n * sizeof *rules->at);
    if (!lists || !rules->at)
        return false;
    for (const struct rule *r = rules->first; r; r = r->next) {
        rules->at[r->index] = r;
        lists[r->index] = indexed_conditions(r);
    }
    rules->index = mk_condition_index_new(config, lists, rules->n);
    return rules->index;
}

const struct rule *rewrite_rules_skip(const struct rules *rules, const struct rule *rule,
                                      struct mk_request *request)
{
    if (!rule || !rules->index)
        return rule;
    size_t at = mk_condition_index_next(rules->index, request, mk_request_path(request), rule->index);
    return at < rules->n ? rules->at[at] : NULL;
}
