/* SPDX-License-Identifier: Apache-2.0 */
/* Stored rules and network lists. */
#ifndef SECURITY_RULE_TYPE_H
#define SECURITY_RULE_TYPE_H

#include <monkey/plugin.h>

#include "referer.h"

/* Conditions of a rule. All of them must hold. */
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
    unsigned parts, negated;       /* flags of enum security_condition */
    struct mk_pattern *paths;      /* any of them */
    struct mk_network *networks;   /* any of them */
    mk_str *texts, *other_methods; /* any of them */
    struct security_referers referers;
    unsigned methods; /* MK_METHOD_BITs */
    size_t n_paths, n_networks, n_texts, n_other_methods;
    const struct mk_network_set *except; /* of `not from`; NULL: none */
};

struct security_rules {
    struct security_rule *first, *last;
    size_t n;
    unsigned parts; /* conditions used by any rule */
};

struct security_networks {
    struct mk_network *at;
    mk_str *words; /* as written */
    size_t n;
    const struct mk_network_set *set; /* built set; NULL: not built yet */
    bool said;                        /* configured: `off` if empty */
};

#endif
