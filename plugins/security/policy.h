/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of [SECURITY] and [RULES], and those that apply to a host. */
#ifndef SECURITY_POLICY_H
#define SECURITY_POLICY_H

#include "networks.h"
#include "real_ip.h"
#include "rules.h"

enum security_status { SECURITY_403, SECURITY_404, SECURITY_CLOSE };

struct security_field {
    mk_str name; /* absent: `off` */
    bool is_set;
};

struct security_settings {
    struct security_rules rules;
    unsigned status; /* enum security_status */
    bool ignore_case;
    bool is_lower; /* the rules are already in lower case */
    struct security_networks trusted;
    struct security_field real, scheme;
    bool proxy_protocol;
};

/* The effective policy of a host. */
struct security_policy {
    struct security_rule *rules;
    size_t n;
    const struct mk_network_set *from; /* networks of rules with `from`, mapped to the rules' indexes */
    uint32_t *others;                  /* indexes of the other rules, in order */
    size_t n_others;
    const struct mk_condition_index *index; /* of the other rules */
    unsigned subjects;                      /* what the conditions of the rules test */
    bool ignore_case;
    unsigned status;
    struct security_real_ip real;
    const struct mk_network_set *trusted; /* trusted proxies; NULL: none */
};

/* Per-configuration data. */
struct security {
    struct security_settings *top;         /* [SECURITY] above all hosts; NULL: none */
    const struct security_rules *old_top;  /* [RULES] above all hosts */
    struct security_policy *shared;        /* policy of all hosts without sections of their own */
    struct security_policy *accept_policy; /* policy with rules that apply to new connections; NULL: none */
    bool requires_proxy_header;            /* trusted peers must send a PROXY header */
};

/* Iterates over the rules of a policy in order, skipping rules whose `from` does not match the peer. */
struct security_walk {
    const struct security_policy *place;
    const struct mk_addr *peer;
    size_t other;
    uint32_t found; /* next rule from the index; MK_NETWORK_NONE: none */
};

static inline struct security_walk security_walk_of(const struct security_policy *place,
                                                    const struct mk_addr *peer)
{
    return (struct security_walk){place, peer, 0, mk_network_set_next(place->from, peer, 0)};
}

/* Returns NULL if there are no more rules. */
static inline const struct security_rule *security_walk_next(struct security_walk *w)
{
    const struct security_policy *p = w->place;
    uint32_t other = w->other < p->n_others ? p->others[w->other] : MK_NETWORK_NONE, found = w->found;
    if (found == MK_NETWORK_NONE && other == MK_NETWORK_NONE)
        return NULL;
    if (other < found) {
        w->other++;
        return &p->rules[other];
    }
    w->found = mk_network_set_next(p->from, w->peer, found + 1);
    return &p->rules[found];
}

extern const struct mk_conf_table security_table, security_old_table;

int security_policy_load(struct mk_config *config, void **data);
int security_policy_bind_vhost(struct mk_config *config, struct mk_vhost *host, void *data, void **host_data);

#endif
