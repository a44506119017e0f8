/* SPDX-License-Identifier: Apache-2.0 */
/* Add, Set and Remove of response headers and request headers, in configuration order. */
#ifndef HEADERS_RULES_H
#define HEADERS_RULES_H

#include <monkey/format.h>

#include "condition.h"

enum rule_kind { RULE_ADD, RULE_SET, RULE_REMOVE };
enum rule_message { RULE_RESPONSE, RULE_REQUEST };

struct rule {
    enum rule_kind kind;
    struct condition when;
    bool is_type; /* the rule changes Content-Type, which conditions use */
    mk_str name, value;
    const struct mk_format *template; /* template of the value; NULL: it has no variables */
    mk_str written;                   /* the rule as configured, for `monkey -T` */
};

struct rules {
    struct rule *v;
    size_t n;
    bool has_path; /* at least one rule has a path */
};

/* By enum rule_kind: the key in the configuration. */
extern const mk_str headers_rule_words[];

bool headers_rules_parse_kind(mk_str key, enum rule_kind *kind);
void headers_rules_parse(const struct mk_conf_ctx *ctx, enum rule_message message, enum rule_kind kind,
                         struct rules *rules);
bool headers_rules_show(const struct rules *rules, size_t i, struct mk_buf *key, struct mk_buf *value);
void headers_rules_apply(const struct rules *rules, struct response_facts *facts);
/* Called before headers_rules_apply_to_request() for a path, but not for the index file or fallback that is
 * served instead: the rules that apply to the path also apply to that file. */
void headers_rules_begin_path(const struct rules *rules, const struct mk_request *request);
/* Applies rules to a request. Returns 0 or a status with which to reject the request. */
unsigned headers_rules_apply_to_request(const struct rules *rules, struct mk_request *request);

#endif
