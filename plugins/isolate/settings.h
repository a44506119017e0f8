/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of [ISOLATE]. */
#ifndef ISOLATE_SETTINGS_H
#define ISOLATE_SETTINGS_H

#include <monkey/config.h>

#include "cgroup.h"

struct isolate_settings {
    mk_str service, name;
    struct mk_conf_words include, env;
    mk_str spool_folder;  /* empty: the server's */
    mk_str document_root; /* empty: none */
    mk_str user, group;
    uint64_t memory;                     /* bytes per process; 0: no limit */
    struct isolate_cgroup_limits limits; /* limits for all processes together */
    uint32_t nice, workers;
    uint32_t handler_ms;
    bool sandbox;
};

extern const struct mk_conf_table isolate_table;

#endif
