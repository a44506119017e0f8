/* SPDX-License-Identifier: Apache-2.0 */
/* The types of rules and network lists. */
#ifndef SECURITY_RULE_TYPE_H
#define SECURITY_RULE_TYPE_H

#include <monkey/plugin.h>

#include "referer.h"

/* The conditions of a rule. All of them must be true. */
enum security_condition {
    SECURITY_PATH = 1,
    SECURITY_CONTAINS = 2,
    SECURITY_FROM = 4,
    SECURITY_METHOD = 8,
    SECURITY_REFERER = 16,
};

struct security_rule {
    struct security_rule *next;
    mk_str key, value; /* the rule as written */
    bool allows;
    unsigned parts, negated;  /* flags of enum security_condition */
    struct mk_pattern *paths; /* one of them must match; the same applies to the following lists */
    struct mk_network *networks;
    mk_str *texts, *other_methods;
    struct security_referers referers;
    unsigned methods; /* MK_METHOD_BITs */
    size_t n_paths, n_networks, n_texts, n_other_methods;
    const struct mk_network_set *except; /* networks of `not from`; NULL: none */
};

struct security_rules {
    struct security_rule *first, *last;
    size_t n;
    unsigned parts; /* the conditions that occur in the rules */
};

struct security_networks {
    struct mk_network *at;
    mk_str *words; /* networks as written in the configuration */
    size_t n;
    const struct mk_network_set *set; /* NULL: not built yet */
    bool is_set;                      /* the key is configured; if it has no networks, its value is `off` */
};

#endif
