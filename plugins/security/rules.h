/* SPDX-License-Identifier: Apache-2.0 */
/* Rules: conditions, and actions for matching requests. */
#ifndef SECURITY_RULES_H
#define SECURITY_RULES_H

#include "rule_type.h"

/* Parse an entry of [SECURITY], and one of [RULES] of Monkey 1. Report errors. */
void security_rules_parse(const struct mk_conf_ctx *ctx, struct security_rules *rules);
void security_rules_parse_monkey1(const struct mk_conf_ctx *ctx, struct security_rules *rules);
/* For case-insensitive rules: converts their paths to lower case. False: out of memory. */
bool security_rules_to_lower(struct mk_config *config, const struct security_rules *rules);

/* Properties of a request. */
struct security_facts {
    const struct mk_request *request;
    const struct mk_addr *peer;
    mk_str path;    /* in the current interpretation */
    mk_str referer; /* absent until needed */
};

/* Does its `from` apply to these networks? Then the rule is found by the client's address. */
static inline bool security_rule_is_indexed(const struct security_rule *rule)
{
    return (rule->parts & ~rule->negated) & SECURITY_FROM;
}

/* The `not from` condition of a rule. */
bool security_rule_is_not_from(const struct security_rule *rule, const struct security_facts *facts);
/* All conditions except a `from` by which it was found. */
bool security_rule_matches(const struct security_rule *rule, struct security_facts *facts);

#endif
