/* SPDX-License-Identifier: Apache-2.0 */
/* Rules: what a request must be for one to fit, and what becomes of it then. */
#ifndef SECURITY_RULES_H
#define SECURITY_RULES_H

#include <monkey/plugin.h>

#include "referer.h"

/* The conditions of a rule. One that has several fits when all of them hold. */
enum security_part {
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
    unsigned parts, negated;       /* bits of enum security_part */
    struct mk_pattern *paths;      /* any of them */
    struct mk_network *networks;   /* any of them */
    mk_str *texts, *other_methods; /* any of them */
    struct security_referers referers;
    unsigned methods; /* MK_METHOD_BITs */
    size_t n_paths, n_networks, n_texts, n_other_methods;
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
    bool said; /* something was: `off`, if there are none */
};

/* One entry of [SECURITY], and one of [RULES], as Monkey 1 had them. They report what is wrong. */
void security_rules_read(const struct mk_conf_spot *spot, struct security_rules *rules);
void security_rules_read_old(const struct mk_conf_spot *spot, struct security_rules *rules);
/* For rules that compare without case: the texts of their paths become lower. False: no memory. */
bool security_rules_lower(struct mk_config *config, const struct security_rules *rules);

/* A key whose value is networks, or `off`: a struct security_networks. */
bool security_networks_parse(const struct mk_conf_spot *spot, mk_str value, void *field);
bool security_networks_show(const void *field, size_t i, struct mk_buf *out);

static inline bool security_networks_have(const struct mk_network *at, size_t n, const struct mk_peer *peer)
{
    size_t i = 0;
    while (i < n && !mk_network_has(&at[i], peer))
        i++;
    return i < n;
}

/* What is known of a request. */
struct security_facts {
    const struct mk_request *request;
    const struct mk_peer *peer;
    mk_str path;    /* as it is read this time */
    mk_str referer; /* absent as long as nobody asked */
};

/* Only the `from` of one that has it. */
bool security_rule_is_from(const struct security_rule *rule, const struct security_facts *facts);
bool security_rule_fits(const struct security_rule *rule, struct security_facts *facts);

#endif
