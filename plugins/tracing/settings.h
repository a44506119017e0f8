/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration section [TRACING]. */
#ifndef TRACING_SETTINGS_H
#define TRACING_SETTINGS_H

#include <monkey/plugin.h>

struct tracing_settings {
    bool request_id, trace_context;
    unsigned sample; /* parts of a million */
};

extern const struct mk_conf_table tracing_table;

#endif
