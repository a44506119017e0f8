/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include "scoreboard.h"

#define AT(member) MK_CONF_AT(struct isolate_settings, member)

static const struct mk_conf_key keys[] = {
    {.name = "Service",
     .type = MK_CONF_TEXT,
     .flags = MK_CONF_REQUIRED,
     AT(service),
     .help = "The object, as `Load` in [PLUGINS] takes it. Only the processes of the group load it."},
    {.name = "Name",
     .type = MK_CONF_TEXT,
     AT(name),
     .max = 32,
     .help = "The name of the service, for [ROUTES]. The default is that of the file: `shop` of "
             "`monkey-shop.so`."},
    {.name = "Include",
     .type = MK_CONF_WORDS,
     AT(include),
     .help = "Files with sections for the group: those of the service, [SESSIONS], [SQLITE], other plugins. "
             "Its user must be able to read them."},
    {.name = "Env",
     .type = MK_CONF_WORDS,
     AT(env),
     .help = "Environment variables of the server that the group gets, besides PATH, HOME, LANG, LC_*, TZ, "
             "TMPDIR "
             "and SSL_CERT_*."},
    {.name = "SpoolFolder",
     .type = MK_CONF_TEXT,
     AT(spool_folder),
     .help =
         "Where the group keeps content of requests that it wants as a whole, such as forms with files. Its "
         "user must be able to write there. The default is SpoolFolder of [SERVER]; SpoolMax holds for each "
         "worker of the group, too."},
    {.name = "User",
     .type = MK_CONF_TEXT,
     AT(user),
     .help = "The user of all processes of the group. Needs root. The default is that of the workers."},
    {.name = "Group", .type = MK_CONF_TEXT, AT(group), .help = "Their group; by default the user's own."},
    {.name = "Memory",
     .type = MK_CONF_SIZE,
     AT(memory),
     .default_value = "unlimited",
     .min = 16 << 20,
     .zero_word = "unlimited",
     .help = "Memory that each process of the group may have for its data (RLIMIT_DATA)."},
    {.name = "MemoryMax",
     .type = MK_CONF_SIZE,
     AT(limits.memory),
     .default_value = "unlimited",
     .min = 16 << 20,
     .zero_word = "unlimited",
     .help = "Memory that all processes of the group may have together (control groups). Beyond it, one of "
             "them is "
             "killed."},
    {.name = "CPUQuota",
     .type = MK_CONF_NUM,
     AT(limits.cpu),
     .default_value = "unlimited",
     .min = 1,
     .max = 100000,
     .zero_word = "unlimited",
     .help = "Processor time that all processes of the group may have together, in percent of one processor "
             "(control "
             "groups): `50` is half of one, `200` are two."},
    {.name = "Nice",
     .type = MK_CONF_NUM,
     AT(nice),
     .default_value = "10",
     .max = 19,
     .zero_word = "off",
     .help = "How far the group gives way to the server when processors are short: its nice value."},
    {.name = "Workers",
     .type = MK_CONF_NUM,
     AT(workers),
     .default_value = "1",
     .min = 1,
     .max = ISOLATE_WORKERS_MAX,
     .help = "Worker processes of the group."},
    {.name = "HandlerTimeout",
     .type = MK_CONF_TIME,
     AT(handler_ms),
     .default_value = "60s",
     .min = 1000,
     .max = 86400000,
     .zero_word = "unlimited",
     .help = "How long a handler may wait for something other than the client, and a response may take to "
             "begin (504)."},
    {.name = "Sandbox",
     .type = MK_CONF_BOOL,
     AT(sandbox),
     .default_value = "on",
     .help = "Restrict the workers of the group to what the service declares (Landlock)."},
};

const struct mk_conf_table isolate_table = {
    .section = "ISOLATE",
    .keys = keys,
    .n = MK_LEN(keys),
    .repeatable = true,
    .help = "A service in processes of its own.",
    .size = sizeof(struct isolate_settings),
    .scope = MK_CONF_SERVER,
};
