/* SPDX-License-Identifier: Apache-2.0 */
/* Rules and lists of networks, as they are kept. */
#ifndef SECURITY_RULE_TYPE_H
#define SECURITY_RULE_TYPE_H

#include <monkey/plugin.h>

#include "referer.h"

/* The conditions of a rule. One that has several fits when all of them hold. */
enum security_condition {
    SECURITY_PATH = 1,
    SECURITY_CONTAINS = 2,
    SECURITY_FROM = 4,
    SECURITY_METHOD = 8,
    SECURITY_REFERER = 16,
};

struct security_rule {
    struct security_rule *next;
    mk_str key, value; /* as written */
    bool allows;
    unsigned parts, negated;       /* bits of enum security_condition */
    struct mk_pattern *paths;      /* any of them */
    struct mk_network *networks;   /* any of them */
    mk_str *texts, *other_methods; /* any of them */
    struct security_referers referers;
    unsigned methods; /* MK_METHOD_BITs */
    size_t n_paths, n_networks, n_texts, n_other_methods;
    const struct mk_network_set *except; /* of `not from`; NULL: it has none */
};

struct security_rules {
    struct security_rule *first, *last;
    size_t n;
    unsigned parts; /* those that any of them has */
};

struct security_networks {
    struct mk_network *at;
    mk_str *words; /* as written */
    size_t n;
    const struct mk_network_set *set; /* of them; NULL: not made yet */
    bool said;                        /* something was: `off`, if there are none */
};

#endif
