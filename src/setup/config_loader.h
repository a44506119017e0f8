/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a configuration that is being loaded. */
#ifndef MK_SETUP_CONFIG_LOADER_H
#define MK_SETUP_CONFIG_LOADER_H

#include "setup/config_generation_type.h"

struct mk_config_loader {
    struct mk_config_generation *g;
    const struct mk_config_source *origin;
    struct mk_conf_report *report;
    struct mk_vhost_config **end; /* end of the list of hosts */
    bool unread;                  /* monkey.conf is missing or unreadable */
};

/* Appends a host with the settings that it inherits from [SERVER]. NULL: out of memory. */
struct mk_vhost_config *mk_config_loader_add_host(struct mk_config_loader *l,
                                                  const struct mk_conf_section *section) MK_MUST_USE;
/* Binds [SERVER], or sets the defaults if there is none. The report contains the reason for -EINVAL and
 * -ENOMEM. */
mk_err mk_config_loader_bind_server(struct mk_config_loader *l);

#endif
