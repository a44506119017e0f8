/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"

static bool fits_path(const struct security_rule *rule, mk_str path)
{
    for (size_t i = 0; i < rule->n_paths; i++)
        if (mk_pattern_matches(&rule->paths[i], path))
            return true;
    return false;
}

/* `part` is lower already. */
static bool contains(mk_str text, mk_str part)
{
    for (size_t at = 0; at + part.len <= text.len; at++)
        if (mk_char_lower(text.p[at]) == part.p[0] &&
            mk_str_eq_nocase(mk_str_of(text.p + at, part.len), part))
            return true;
    return false;
}

static bool fits_contained(const struct security_rule *rule, mk_str path)
{
    for (size_t i = 0; i < rule->n_texts; i++)
        if (contains(path, rule->texts[i]))
            return true;
    return false;
}

static bool fits_method(const struct security_rule *rule, const struct mk_request *request)
{
    enum mk_method method = mk_request_method(request);
    if (method != MK_METHOD_UNKNOWN)
        return rule->methods & MK_METHOD_BIT(method);
    for (size_t i = 0; i < rule->n_other_methods; i++)
        if (mk_str_eq(mk_request_method_text(request), rule->other_methods[i]))
            return true;
    return false;
}

static bool fits_referer(const struct security_rule *rule, struct security_facts *facts)
{
    if (!facts->referer.p) {
        facts->referer = mk_request_header(facts->request, MK_STR("Referer"));
        if (!facts->referer.p)
            facts->referer = MK_STR("");
    }
    return security_referer_is(&rule->referers, facts->request, facts->referer);
}

static bool fits(const struct security_rule *rule, enum security_part part, struct security_facts *facts)
{
    switch (part) {
    case SECURITY_PATH:
        return fits_path(rule, facts->path);
    case SECURITY_CONTAINS:
        return fits_contained(rule, facts->path);
    case SECURITY_FROM:
        return mk_network_set_contains(rule->except, facts->peer);
    case SECURITY_METHOD:
        return fits_method(rule, facts->request);
    case SECURITY_REFERER:
        break;
    }
    return fits_referer(rule, facts);
}

bool security_rule_is_from(const struct security_rule *rule, const struct security_facts *facts)
{
    return !mk_network_set_contains(rule->except, facts->peer);
}

bool security_rule_fits(const struct security_rule *rule, struct security_facts *facts)
{
    unsigned found = security_rule_is_found(rule) ? SECURITY_FROM : 0;
    for (unsigned left = rule->parts & ~found; left; left &= left - 1) {
        unsigned part = left & ~(left - 1);
        if (fits(rule, (enum security_part)part, facts) == (bool)(rule->negated & part))
            return false;
    }
    return true;
}
