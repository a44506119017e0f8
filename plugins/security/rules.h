/* SPDX-License-Identifier: Apache-2.0 */
/* Rules: conditions, and actions for matching requests. */
#ifndef SECURITY_RULES_H
#define SECURITY_RULES_H

#include "rule_type.h"

/* Parses an entry of [SECURITY]. Reports errors. */
void security_rules_parse(const struct mk_conf_ctx *ctx, struct security_rules *rules);
/* Parses an entry of [RULES], the section of Monkey 1. Reports errors. */
void security_rules_parse_monkey1(const struct mk_conf_ctx *ctx, struct security_rules *rules);

/* Creates a rule without conditions for this position. Returns NULL if out of memory. */
struct security_rule *security_rule_new(const struct mk_conf_ctx *ctx, bool allows);
void security_rule_append(struct security_rules *rules, struct security_rule *rule);

#endif
