/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration section [RECORDER]. */
#ifndef MK_RECORDER_RECORDER_SETTINGS_H
#define MK_RECORDER_RECORDER_SETTINGS_H

#include <monkey/plugin.h>
#include <monkey/recording.h>

struct mk_recorder_settings {
    mk_str file;
    uint32_t requests, failures, processes;
    uint64_t slow_ms;
    bool query;
};

extern const struct mk_conf_table mk_recorder_table;

#endif
