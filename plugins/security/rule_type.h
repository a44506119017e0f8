/* SPDX-License-Identifier: Apache-2.0 */
/* The types of rules and network lists. */
#ifndef SECURITY_RULE_TYPE_H
#define SECURITY_RULE_TYPE_H

#include <monkey/condition.h>
#include <monkey/plugin.h>

struct security_rule {
    struct security_rule *next;
    mk_str key, value; /* the rule as written */
    bool allows;
    bool is_indexed; /* found by its networks: security_policy.from */
    struct mk_conditions *conditions;
};

struct security_rules {
    struct security_rule *first, *last;
    size_t n;
    unsigned subjects; /* what the conditions of the rules test: flags of enum mk_condition_subject */
};

#endif
