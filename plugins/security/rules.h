/* SPDX-License-Identifier: Apache-2.0 */
/* Rules: their conditions, and what happens to a request that matches. */
#ifndef SECURITY_RULES_H
#define SECURITY_RULES_H

#include "rule_type.h"

/* One entry of [SECURITY], and one of [RULES], as Monkey 1 had them. They report what is wrong. */
void security_rules_parse(const struct mk_conf_ctx *spot, struct security_rules *rules);
void security_rules_parse_monkey1(const struct mk_conf_ctx *spot, struct security_rules *rules);
/* For rules that compare without case: the texts of their paths become lower. False: no memory. */
bool security_rules_to_lower(struct mk_config *config, const struct security_rules *rules);

/* What is known of a request. */
struct security_facts {
    const struct mk_request *request;
    const struct mk_addr *peer;
    mk_str path;    /* as it is read this time */
    mk_str referer; /* absent until it is needed */
};

/* Is its `from` one that holds for these networks? Then the place finds the rule by the address of the client. */
static inline bool security_rule_is_indexed(const struct security_rule *rule)
{
    return (rule->parts & ~rule->negated) & SECURITY_FROM;
}

/* The `not from` of a rule that has one. */
bool security_rule_is_not_from(const struct security_rule *rule, const struct security_facts *facts);
/* All conditions but a `from` by which it was found. */
bool security_rule_matches(const struct security_rule *rule, struct security_facts *facts);

#endif
