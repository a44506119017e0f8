/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which requests are challenged. */
#include "settings.h"

/* A certificate authority sends this request without a pass. Everything else below the folder is challenged: a backend
 * may serve any page there. */
static bool is_acme_request(const struct mk_request *request, mk_str path)
{
    enum mk_method method = mk_request_method(request);
    return (method == MK_METHOD_GET || method == MK_METHOD_HEAD) && !mk_request_query(request).p &&
           mk_acme_token(path).p;
}

/* A regular expression that exceeds its limit leads to a challenge. */
static bool rule_matches(const struct challenge_rule *rule, struct mk_request *request, mk_str path)
{
    enum mk_regex_result result = mk_conditions_match_path(rule->conditions, request, path, 0);
    return rule->allows ? result == MK_REGEX_MATCH : result != MK_REGEX_NO_MATCH;
}

/* Returns NULL if there is none. */
static const struct challenge_rule *find_matching_rule(const struct challenge_settings *s,
                                                       struct mk_request *request, mk_str path)
{
    size_t at = 0;
    while ((at = mk_condition_index_next(s->index, request, path, at)) < s->n &&
           !rule_matches(s->rules[at], request, path))
        at++;
    return at < s->n ? s->rules[at] : NULL;
}

/* Returns the rule `Challenge` that applies to the path; NULL if there is none. */
static const struct challenge_rule *find_challenge(const struct challenge_settings *s,
                                                   struct mk_request *request, mk_str path)
{
    const struct challenge_rule *rule =
        is_acme_request(request, path) ? NULL : find_matching_rule(s, request, path);
    if (rule && rule->allows)
        mk_request_explain(request, "challenge", "%.*s %.*s", MK_STR_ARG(rule->key), MK_STR_ARG(rule->value));
    return rule && !rule->allows ? rule : NULL;
}

/* A rule that matches both the PATH_INFO after a script and the whole path does not count, because an earlier rule has
 * allowed the path. */
static const struct challenge_rule *find_variant_challenge(const struct challenge_settings *s,
                                                           struct mk_request *request, mk_str path,
                                                           mk_str variant, enum mk_variant kind)
{
    const struct challenge_rule *rule = find_challenge(s, request, variant);
    return rule && kind == MK_VARIANT_AFTER_SCRIPT && rule_matches(rule, request, path) ? NULL : rule;
}

unsigned challenge_settings_find_rule(const struct challenge_settings *s, struct mk_request *request,
                                      const struct challenge_rule **rule)
{
    mk_str path = mk_request_path(request);
    bool by_path =
        is_acme_request(request, path) || s->subjects & (MK_CONDITION_PATH | MK_CONDITION_CONTAINS);
    const mk_str *variants = NULL;
    size_t n = 0;
    unsigned status = by_path ? mk_request_variants(request, &variants, &n) : 0;
    *rule = status ? NULL : find_challenge(s, request, path);
    for (size_t i = 0; i < n && !*rule; i++)
        *rule = find_variant_challenge(s, request, path, variants[i], mk_request_variant_kind(request, i));
    return status;
}
