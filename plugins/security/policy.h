/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of [SECURITY] and [RULES], and those that apply to a host. */
#ifndef SECURITY_POLICY_H
#define SECURITY_POLICY_H

#include "real_ip.h"
#include "rules.h"

enum security_status { SECURITY_403, SECURITY_404, SECURITY_CLOSE };

struct security_field {
    mk_str name; /* absent: `off` */
    bool said;
};

struct security_settings {
    struct security_rules rules;
    unsigned status; /* enum security_status */
    bool ignore_case;
    bool is_lower; /* its rules are in lower case already */
    struct security_networks trusted;
    struct security_field real, scheme;
    bool proxy_protocol;
};

/* Effective policy of a host. */
struct security_policy {
    struct security_rule *rules;
    size_t n;
    const struct mk_network_set *from; /* networks of rules with `from`, with rule indexes */
    uint32_t *others;                  /* indexes of the other rules, in order */
    size_t n_others;
    unsigned parts; /* conditions used by any rule */
    bool ignore_case;
    unsigned status;
    struct security_real_ip real;
};

/* Per configuration. */
struct security {
    struct security_settings *top;        /* [SECURITY] outside hosts; NULL: none */
    const struct security_rules *old_top; /* [RULES] outside hosts */
    struct security_policy *shared;       /* for all hosts without sections of their own */
    struct security_policy *door;         /* with rules that apply before a request exists; NULL: none */
    bool asks_proxies;                    /* trusted peers must send a PROXY header */
};

/* Iterates over a location's rules in order, skipping those whose `from` does not match the peer. */
struct security_walk {
    const struct security_policy *place;
    const struct mk_addr *peer;
    size_t other;
    uint32_t found; /* next rule found by network; MK_NETWORK_NONE: none */
};

static inline struct security_walk security_walk_of(const struct security_policy *place,
                                                    const struct mk_addr *peer)
{
    return (struct security_walk){place, peer, 0, mk_network_set_next(place->from, peer, 0)};
}

/* NULL: no more rules. */
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
