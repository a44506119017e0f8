/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"

static bool matches_path(const struct security_rule *rule, mk_str path)
{
    for (size_t i = 0; i < rule->n_paths; i++)
        if (mk_pattern_matches(&rule->paths[i], path))
            return true;
    return false;
}

/* Returns whether the text contains `part`, ignoring case. `part` is already in lower case. */
static bool text_contains(mk_str text, mk_str part)
{
    for (size_t at = 0; at + part.len <= text.len; at++)
        if (mk_char_lower(text.p[at]) == part.p[0] &&
            mk_str_eq_nocase(mk_str_of(text.p + at, part.len), part))
            return true;
    return false;
}

static bool matches_substring(const struct security_rule *rule, mk_str path)
{
    for (size_t i = 0; i < rule->n_texts; i++)
        if (text_contains(path, rule->texts[i]))
            return true;
    return false;
}

static bool matches_method(const struct security_rule *rule, const struct mk_request *request)
{
    enum mk_method method = mk_request_method(request);
    if (method != MK_METHOD_UNKNOWN)
        return rule->methods & MK_METHOD_BIT(method);
    for (size_t i = 0; i < rule->n_other_methods; i++)
        if (mk_str_eq(mk_request_method_text(request), rule->other_methods[i]))
            return true;
    return false;
}

static bool matches_referer(const struct security_rule *rule, struct security_facts *facts)
{
    if (!facts->referer.p) {
        facts->referer = mk_request_header(facts->request, MK_STR("Referer"));
        if (!facts->referer.p)
            facts->referer = MK_STR("");
    }
    return security_referer_matches(&rule->referers, facts->request, facts->referer);
}

static bool condition_matches(const struct security_rule *rule, enum security_condition part,
                              struct security_facts *facts)
{
    switch (part) {
    case SECURITY_PATH:
        return matches_path(rule, facts->path);
    case SECURITY_CONTAINS:
        return matches_substring(rule, facts->path);
    case SECURITY_FROM:
        return mk_network_set_contains(rule->except, facts->peer);
    case SECURITY_METHOD:
        return matches_method(rule, facts->request);
    case SECURITY_REFERER:
        break;
    }
    return matches_referer(rule, facts);
}

/* Returns true if the client is outside the networks of `not from`. */
bool security_rule_excludes_network(const struct security_rule *rule, const struct security_facts *facts)
{
    return !mk_network_set_contains(rule->except, facts->peer);
}

bool security_rule_matches(const struct security_rule *rule, struct security_facts *facts)
{
    unsigned found = security_rule_is_indexed(rule) ? SECURITY_FROM : 0;
    for (unsigned left = rule->parts & ~found; left; left &= left - 1) {
        unsigned part = left & ~(left - 1);
        if (condition_matches(rule, (enum security_condition)part, facts) == (bool)(rule->negated & part))
            return false;
    }
    return true;
}
