/* SPDX-License-Identifier: Apache-2.0 */
/* Rules: conditions, and actions for matching requests. */
#ifndef SECURITY_RULES_H
#define SECURITY_RULES_H

#include "rule_type.h"

/* Parses an entry of [SECURITY]. Reports errors. */
void security_rules_parse(const struct mk_conf_ctx *ctx, struct security_rules *rules);
/* Parses an entry of [RULES], the section of Monkey 1. Reports errors. */
void security_rules_parse_monkey1(const struct mk_conf_ctx *ctx, struct security_rules *rules);
/* Converts paths to lower case, for case-insensitive rules. Returns false if out of memory. */
bool security_rules_to_lower(struct mk_config *config, const struct security_rules *rules);

/* The properties of a request that rules check. */
struct security_facts {
    const struct mk_request *request;
    const struct mk_addr *peer;
    mk_str path;    /* the path in the current interpretation */
    mk_str referer; /* absent until a rule needs it */
};

/* Returns whether the rule has a `from` that is not negated. If so, the rule is indexed by address. */
static inline bool security_rule_is_indexed(const struct security_rule *rule)
{
    return (rule->parts & ~rule->negated) & SECURITY_FROM;
}

/* Returns whether the `not from` condition of a rule is true. */
bool security_rule_excludes_network(const struct security_rule *rule, const struct security_facts *facts);
/* Returns whether all conditions are true, except a `from`, by which the index has found the rule. */
bool security_rule_matches(const struct security_rule *rule, struct security_facts *facts);

#endif
