/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include "scoreboard.h"

#define AT(member) MK_CONF_AT(struct isolate_settings, member)

static const struct mk_conf_key keys[] = {
    {.name = "Service",
     .type = MK_CONF_TEXT,
     .flags = MK_CONF_REQUIRED,
     AT(service),
     .help = MK_HELP("Shared object, as for `Load` in [PLUGINS]. Only the processes of the group load it.")},
    {.name = "Name",
     .type = MK_CONF_TEXT,
     AT(name),
     .max = 32,
     .help = MK_HELP(
         "Name of the service for [ROUTES]. Default: from the file name, `shop` for `monkey-shop.so`.")},
    {.name = "Include",
     .type = MK_CONF_WORDS,
     AT(include),
     .help = MK_HELP(
         "Configuration files for the group, with sections of the service, [SESSIONS], [SQLITE] or other "
         "plugins. The group's user must be able to read them.")},
    {.name = "Env",
     .type = MK_CONF_WORDS,
     AT(env),
     .help = MK_HELP(
         "Environment variables of the server to pass to the group, besides PATH, HOME, LANG, LC_*, TZ, "
         "TMPDIR and SSL_CERT_*.")},
    {.name = "DocumentRoot",
     .type = MK_CONF_TEXT,
     .flags = MK_CONF_READS,
     AT(document_root),
     .help =
         MK_HELP("Folder of the files that the service sends with duda_send_file(). The group's user must "
                 "be able to read it. Default: an empty folder.")},
    {.name = "SpoolFolder",
     .type = MK_CONF_TEXT,
     .flags = MK_CONF_WRITES,
     AT(spool_folder),
     .help = MK_HELP(
         "Folder for request bodies that the group buffers in full, such as forms with files. The "
         "group's user must be able to write to it. Default: SpoolFolder of [SERVER]. SpoolMax applies "
         "to each worker of the group, too.")},
    {.name = "User",
     .type = MK_CONF_TEXT,
     AT(user),
     .help = MK_HELP("User of all processes of the group. Requires root. Default: the user of the workers.")},
    {.name = "Group",
     .type = MK_CONF_TEXT,
     AT(group),
     .help = MK_HELP("Unix group of all processes of the group. Default: the user's primary group.")},
    {.name = "Memory",
     .type = MK_CONF_SIZE,
     AT(memory),
     .default_value = "unlimited",
     .min = 16 << 20,
     .zero_word = "unlimited",
     .help = MK_HELP("Data memory limit for each process of the group (RLIMIT_DATA).")},
    {.name = "MemoryMax",
     .type = MK_CONF_SIZE,
     AT(limits.memory),
     .default_value = "unlimited",
     .min = 16 << 20,
     .zero_word = "unlimited",
     .help = MK_HELP(
         "Memory limit for all processes of the group together (cgroup). When they exceed it, the kernel "
         "kills one of them.")},
    {.name = "CPUQuota",
     .type = MK_CONF_NUM,
     AT(limits.cpu),
     .default_value = "unlimited",
     .min = 1,
     .max = 100000,
     .zero_word = "unlimited",
     .help =
         MK_HELP("CPU limit for all processes of the group together, in percent of one CPU (cgroup): `50` is "
                 "half a CPU, `200` two CPUs.")},
    {.name = "Nice",
     .type = MK_CONF_NUM,
     AT(nice),
     .default_value = "10",
     .max = 19,
     .zero_word = "off",
     .help = MK_HELP("Nice value of the group's processes: with a higher value, they yield to the server "
                     "when CPU time is short.")},
    {.name = "Workers",
     .type = MK_CONF_NUM,
     AT(workers),
     .default_value = "1",
     .min = 1,
     .max = ISOLATE_WORKERS_MAX,
     .help = MK_HELP("Number of worker processes of the group.")},
    {.name = "HandlerTimeout",
     .type = MK_CONF_TIME,
     AT(handler_ms),
     .default_value = "60s",
     .min = 1000,
     .max = 86400000,
     .zero_word = "unlimited",
     .help = MK_HELP(
         "How long a handler may wait for something other than the client, and a response may take to "
         "begin (504).")},
    {.name = "Sandbox",
     .type = MK_CONF_BOOL,
     AT(sandbox),
     .default_value = "on",
     .help =
         MK_HELP("Restricts the workers of the group to the access that the service declares (Landlock).")},
};

const struct mk_conf_table isolate_table = {
    .section = "ISOLATE",
    .keys = keys,
    .n = MK_LEN(keys),
    .repeatable = true,
    .help = MK_HELP("A service in its own processes."),
    .size = sizeof(struct isolate_settings),
    .scope = MK_CONF_SERVER,
};
