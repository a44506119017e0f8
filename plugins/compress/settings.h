/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of [COMPRESS]. */
#ifndef COMPRESS_SETTINGS_H
#define COMPRESS_SETTINGS_H

#include <monkey/config.h>
#include <monkey/text.h>

#include "coder.h"
#include "media_types.h"

struct codings {
    enum coding v[CODINGS]; /* in order of preference */
    size_t n;
    bool is_off;
};

struct paths {
    struct mk_pattern *v;
    size_t n;
};

struct settings {
    struct codings codings;
    struct media_types types;
    struct paths skip;
    uint64_t min_length;
    unsigned levels[CODINGS];
    uint32_t max_streams;
    uint64_t cache_size, max_cache_file;
    bool cross_site;
    unsigned pool; /* index of the worker's pool for this section, from 1; 0: not used by any host */
};

extern const struct mk_conf_table compress_table;

#endif
