/* SPDX-License-Identifier: Apache-2.0 */
/* These functions parse the values of conditions, word by word, and report errors. */
#ifndef SECURITY_CONDITIONS_H
#define SECURITY_CONDITIONS_H

#include "rule_type.h"

typedef bool security_add_fn(const struct mk_conf_ctx *ctx, struct security_rule *rule, mk_str word);

security_add_fn security_add_path, security_add_network, security_add_method, security_add_referer,
    security_add_substring;

bool security_add_parsed_network(const struct mk_conf_ctx *ctx, struct security_rule *rule,
                                 const struct mk_network *network);

/* Reports "`part` is WHAT: expected ...". Returns false. */
bool security_condition_error(const struct mk_conf_ctx *ctx, mk_str part, const char *what,
                              const char *expected);

/* Creates a rule without conditions for this position. Returns NULL if out of memory. */
struct security_rule *security_rule_new(const struct mk_conf_ctx *ctx, bool allows);
void security_rule_append(struct security_rules *rules, struct security_rule *rule);

/* Parses a key whose value is `off` or a list of networks into a struct security_networks. */
bool security_networks_parse(const struct mk_conf_ctx *ctx, mk_str value, void *field);
bool security_networks_show(const void *field, size_t i, struct mk_buf *out);

#endif
