/* SPDX-License-Identifier: Apache-2.0 */
#include "recorder/recorder_settings.h"

#define AT(member) MK_CONF_AT(struct mk_recorder_settings, member)

static const struct mk_conf_key keys[] = {
    {.name = "File",
     .type = MK_CONF_TEXT,
     .flags = MK_CONF_WRITES,
     AT(file),
     .min = 1,
     .default_value = MK_RECORDER_FILE,
     .help = MK_HELP(
         "The file of the recording, which only its owner can read. It outlives crashes and restarts.")},
    {.name = "Requests",
     .type = MK_CONF_NUM,
     AT(requests),
     .min = MK_RECORDER_RECORDS_MIN,
     .max = MK_RECORDER_RECORDS_MAX,
     .default_value = "2000",
     .help = MK_HELP("How many requests each worker keeps; each takes 512 bytes.")},
    {.name = "Failures",
     .type = MK_CONF_NUM,
     AT(failures),
     .min = MK_RECORDER_RECORDS_MIN,
     .max = MK_RECORDER_RECORDS_MAX,
     .default_value = "1000",
     .help = MK_HELP("How many failed and slow requests each worker keeps in addition.")},
    {.name = "Slow",
     .type = MK_CONF_TIME,
     AT(slow_ms),
     .min = 1,
     .default_value = "1s",
     .help = MK_HELP("Duration from which a request is slow.")},
    {.name = "Query",
     .type = MK_CONF_BOOL,
     AT(query),
     .default_value = "off",
     .help = MK_HELP("Records the query of requests, too. It may contain secrets.")},
    {.name = "Processes",
     .type = MK_CONF_NUM,
     AT(processes),
     .max = MK_RECORDER_SLOTS_MAX,
     .default_value = "auto",
     .zero_word = "auto",
     .help =
         MK_HELP("How many worker processes, draining ones included, can record at the same time; `auto`: "
                 "two for each processor, and two more, but at least 8.")},
};

const struct mk_conf_table mk_recorder_table = {
    .section = "RECORDER",
    .keys = keys,
    .n = MK_LEN(keys),
    .help = MK_HELP("Recording of the last requests."),
    .size = sizeof(struct mk_recorder_settings),
    .scope = MK_CONF_SERVER,
};
