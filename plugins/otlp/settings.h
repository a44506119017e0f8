/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration section [OTLP]. */
#ifndef OTLP_SETTINGS_H
#define OTLP_SETTINGS_H

#include <monkey/plugin.h>

struct otlp_header {
    mk_str name, value;
};

struct otlp_settings {
    mk_str endpoint, service, certificate;
    struct otlp_header *headers;
    size_t n_headers;
    uint32_t timeout_ms, interval_ms, queue;
};

extern const struct mk_conf_table otlp_table;

#endif
