/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of [MEMORY]. */
#ifndef MEMORY_SETTINGS_H
#define MEMORY_SETTINGS_H

#include <monkey/condition.h>
#include <monkey/plugin.h>

enum { MEMORY_LIMIT_MIN = 4 << 20 };

struct memory_exceptions {
    struct mk_conditions **at; /* a request is served if it meets all conditions of one list */
    mk_str *written;
    size_t n, n_written;
};

struct memory_settings {
    uint64_t limit; /* bytes; 0: a share of the memory that the server may use */
    uint32_t replace_ms;
    struct memory_exceptions except;
};

extern const struct mk_conf_table memory_table;

#endif
