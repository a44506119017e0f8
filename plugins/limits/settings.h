/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of [LIMITS]: limits for requests and bandwidth. */
#ifndef LIMITS_SETTINGS_H
#define LIMITS_SETTINGS_H

#include <monkey/condition.h>
#include <monkey/plugin.h>

#include "rate_table.h"

/* The properties that identify the client of a rule. With none of them, all requests share one limit. */
enum limits_by {
    LIMITS_BY_ADDRESS = 1,
    LIMITS_BY_PATH = 2,
    LIMITS_BY_HEADER = 4,
    LIMITS_BY_RESPONSE = 8, /* each response has its own limit */
};

struct limits_rule {
    struct limits_rule *next;
    mk_str written;
    struct mk_pattern *paths; /* a path must match one of them; none: all paths match */
    size_t n_paths;
    struct mk_conditions *when; /* NULL: every request */
    unsigned by;                /* flags of enum limits_by */
    mk_str header;
    uint64_t id;  /* identifies the rule, also across reloads */
    size_t index; /* index among all rules of the section */
    /* Requests, in ticks: */
    uint64_t interval;
    /* Bandwidth, in bytes: */
    uint64_t rate; /* bytes per second */
    uint64_t free; /* bytes of each response that are not counted */
    uint64_t tolerance;
};

struct limits_rules {
    struct limits_rule *first, *last;
    size_t n;
    /* Set once, if enough rules have conditions: */
    const struct mk_condition_index *index; /* of the conditions; NULL: none */
    const struct limits_rule **at;          /* n rules */
};

struct limits_exempt {
    struct mk_network *networks;
    const struct mk_network_set *set; /* NULL: not built yet */
    struct mk_pattern *paths;
    struct mk_conditions **when; /* each of them exempts requests */
    const struct mk_condition_index *index;
    size_t n_networks, n_paths, n_when;
    mk_str *words; /* networks and paths as written in the configuration */
    size_t n_words;
};

struct limits_settings {
    struct limits_rules requests, bandwidth;
    struct limits_exempt exempt;
    size_t n_rules;
    bool report;
    bool has_ids;
};

extern const struct mk_conf_table limits_conf_table;

/* Sets the ids of the section's rules, which differ for each host. */
void limits_settings_assign_ids(struct limits_settings *s, const struct mk_vhost *host);

/* Builds the set of exempt networks and the indexes of conditions, once for each section. Returns false if out of
 * memory. */
bool limits_settings_prepare(struct mk_config *config, struct limits_settings *s);

/* Does the rule apply to a request for this path? A condition that cannot be decided counts as true. */
bool limits_rule_matches(const struct limits_rule *rule, struct mk_request *request, mk_str path);
bool limits_settings_match_paths(const struct mk_pattern *paths, size_t n, mk_str path);

#endif
