/* SPDX-License-Identifier: Apache-2.0 */
/* [LIMITS]: requests and bandwidth per client. */
#ifndef LIMITS_SETTINGS_H
#define LIMITS_SETTINGS_H

#include <monkey/plugin.h>

#include "rate_table.h"

/* Properties that identify the client of a rule. None: all requests share one limit. */
enum limits_by {
    LIMITS_BY_ADDRESS = 1,
    LIMITS_BY_PATH = 2,
    LIMITS_BY_FIELD = 4,
    LIMITS_BY_RESPONSE = 8, /* each response separately */
};

struct limits_rule {
    struct limits_rule *next;
    mk_str written;
    struct mk_pattern *paths; /* any of them; none: all paths */
    size_t n_paths;
    unsigned by; /* flags of enum limits_by */
    mk_str field;
    uint64_t id;  /* the same after a reload */
    size_t index; /* index among all rules of the section */
    /* Requests, in ticks: */
    uint64_t interval;
    /* Bandwidth, in bytes: */
    uint64_t rate; /* a second */
    uint64_t free; /* free bytes per response */
    uint64_t tolerance;
};

struct limits_rules {
    struct limits_rule *first, *last;
};

struct limits_exempt {
    struct mk_network *networks;
    const struct mk_network_set *set; /* built set; NULL: not built yet */
    struct mk_pattern *paths;
    size_t n_networks, n_paths;
    mk_str *words; /* as written */
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

/* Numbers the rules of the section, different for each host. */
void limits_settings_assign_ids(struct limits_settings *s, const struct mk_vhost *host);

bool limits_settings_match_paths(const struct mk_pattern *paths, size_t n, mk_str path);

#endif
