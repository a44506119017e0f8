/* SPDX-License-Identifier: Apache-2.0 */
/* [LIMITS]: requests and bandwidth per client. */
#ifndef LIMITS_SETTINGS_H
#define LIMITS_SETTINGS_H

#include <monkey/plugin.h>

#include "rate_table.h"

/* What makes two requests the same for a rule. Nothing of it: all are. */
enum limits_by {
    LIMITS_BY_ADDRESS = 1,
    LIMITS_BY_PATH = 2,
    LIMITS_BY_FIELD = 4,
    LIMITS_BY_RESPONSE = 8, /* no two are */
};

struct limits_rule {
    struct limits_rule *next;
    mk_str written;
    struct mk_pattern *paths; /* any of them; all paths when there are none */
    size_t n_paths;
    unsigned by; /* bits of enum limits_by */
    mk_str field;
    uint64_t id;  /* the same after a reload */
    size_t index; /* among all rules of the section */
    /* Of requests, in ticks */
    uint64_t interval;
    /* Of bandwidth, in bytes */
    uint64_t rate; /* a second */
    uint64_t free; /* of each response, before it counts */
    uint64_t tolerance;
};

struct limits_rules {
    struct limits_rule *first, *last;
};

struct limits_exempt {
    struct mk_network *networks;
    const struct mk_network_set *set; /* of them; NULL: not made yet */
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

/* Numbers for the rules of the section: those of different hosts differ. */
void limits_settings_assign_ids(struct limits_settings *s, const struct mk_vhost *host);

bool limits_settings_match_paths(const struct mk_pattern *paths, size_t n, mk_str path);

#endif
