/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of [SECURITY] and [RULES], and those that apply to a host. */
#ifndef SECURITY_PLACE_H
#define SECURITY_PLACE_H

#include "real.h"
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
    bool is_lower; /* so are its rules already */
    struct security_networks trusted;
    struct security_field real, scheme;
    bool proxy_protocol;
};

/* What holds for a host. */
struct security_place {
    struct security_rule *rules;
    size_t n;
    unsigned parts; /* that any rule has */
    bool ignore_case;
    unsigned status;
    struct security_real real;
};

/* What holds for all. */
struct security {
    struct security_settings *top;        /* [SECURITY] above the hosts; NULL: there is none */
    const struct security_rules *old_top; /* [RULES] there */
    struct security_place *door;          /* with rules that apply before there is a request; NULL: none */
    bool asks_proxies;                    /* trusted peers must begin with a header of the PROXY protocol */
};

extern const struct mk_conf_table security_table, security_old_table;

int security_load(struct mk_config *config, void **data);
int security_host(struct mk_config *config, struct mk_host *host, void *data, void **host_data);

#endif
