/* SPDX-License-Identifier: Apache-2.0 */
/* Access and error logs of hosts. */
#include <errno.h>
#include <monkey/attempt.h>
#include <monkey/plugin.h>
#include <unistd.h>

#include "format.h"
#include "request_filter.h"

struct settings {
    mk_str access_log, error_log;
    struct format format;
    struct request_filters skip, only;
    unsigned log_level; /* enum mk_log_level */
    uint64_t max_size;
    uint32_t keep;
    /* The files are opened once for all hosts with this section. */
    bool opened;
    struct mk_logfile *access, *error; /* NULL: none */
};

MK_PLUGIN_DECLARE(logger);

static const char *const level_words[] = {"error", "warn", "info", "debug", NULL};

static const struct mk_conf_key keys[] = {
    {.name = "AccessLog",
     .type = MK_CONF_TEXT,
     MK_CONF_AT(struct settings, access_log),
     .help =
         MK_HELP("Access log of the host, instead of the AccessLog of [SERVER]: a file, `stdout`, `stderr`, "
                 "`syslog` or `off`. Lines are buffered for up to a second.")},
    {.name = "Format",
     .type = MK_CONF_CUSTOM,
     MK_CONF_AT(struct settings, format),
     .default_value = "combined",
     .syntax = "combined, common, json, detailed or a string with verbs like %h or %{Referer}i",
     .parse = logger_format_parse,
     .show = logger_format_show,
     .help = MK_HELP("Format of a line: `combined`, `common`, `json`, `detailed`, or a text with verbs (`%h "
                     "%t \"%r\" %s %b`). A "
                     "text that "
                     "begins with `{` is JSON.")},
    {.name = "Except",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_REPEATABLE,
     MK_CONF_AT(struct settings, skip),
     .syntax = "paths and statuses: /health *.css 304 2xx",
     .parse = logger_request_filter_parse,
     .show = logger_request_filter_show,
     .help = MK_HELP("Excludes requests from the log, by path or status.")},
    {.name = "Only",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_REPEATABLE,
     MK_CONF_AT(struct settings, only),
     .syntax = "paths and statuses: /api/* 4xx 5xx",
     .parse = logger_request_filter_parse,
     .show = logger_request_filter_show,
     .help = MK_HELP("Logs only these requests, by path or status, unless `Except` also matches.")},
    {.name = "ErrorLog",
     .type = MK_CONF_TEXT,
     MK_CONF_AT(struct settings, error_log),
     .help =
         MK_HELP("Error log of the host, instead of the ErrorLog of [SERVER]: a file, `stdout`, `stderr`, "
                 "`syslog` or `off`.")},
    {.name = "LogLevel",
     .type = MK_CONF_ENUM,
     MK_CONF_AT(struct settings, log_level),
     .choices = level_words,
     .default_value = "info",
     .help = MK_HELP("Minimum severity of messages in this `ErrorLog`.")},
    {.name = "MaxSize",
     .type = MK_CONF_SIZE,
     MK_CONF_AT(struct settings, max_size),
     .min = 4096,
     .default_value = "off",
     .zero_word = "off",
     .help =
         MK_HELP("Size at which a log file is rotated: it is renamed to FILE.1, and a new file is created.")},
    {.name = "Keep",
     .type = MK_CONF_NUM,
     MK_CONF_AT(struct settings, keep),
     .max = 1000,
     .default_value = "8",
     .help = MK_HELP("Number of rotated files to keep.")},
    {.name = "FlushTimeout",
     .flags = MK_CONF_IGNORED,
     .help = MK_HELP("Lines are now written within a second.")},
    {.name = "MasterLog",
     .flags = MK_CONF_IGNORED,
     .help = MK_HELP("The output of a daemon now goes to the ErrorLog of [SERVER].")},
};

static const struct mk_conf_table table = {
    .section = "LOGGER",
    .keys = keys,
    .n = MK_LEN(keys),
    .help = MK_HELP("Logs of a host."),
    .size = sizeof(struct settings),
    .scope = MK_CONF_VHOST,
};

/* ---- Configuration ---- */

static bool is_special_target(mk_str where)
{
    return mk_str_eq(where, MK_STR("stdout")) || mk_str_eq(where, MK_STR("stderr")) ||
           mk_str_eq(where, MK_STR("syslog"));
}

/* Opens a log by its absolute path, which stays valid when the working folder changes. */
static struct mk_logfile *open_log(struct mk_config *config, const struct settings *s, const char *key,
                                   mk_str *where)
{
    if (where->len == 0 || mk_str_eq_nocase(*where, MK_STR("off")))
        return NULL;
    if (!is_special_target(*where))
        *where = mk_config_path(config, s, *where);
    return where->p ? mk_config_log(config, s, key, *where, s->max_size, s->keep) : NULL;
}

static int bind_vhost(struct mk_config *config, struct mk_vhost *host, void *data, void **host_data)
{
    struct settings *s = mk_config_section(config, &table, NULL);
    (void)host, (void)data;
    if (!s || (!s->access_log.len && !s->error_log.len))
        return 0;
    if (!s->opened) {
        s->opened = true;
        s->access = open_log(config, s, "AccessLog", &s->access_log);
        s->error = open_log(config, s, "ErrorLog", &s->error_log);
    }
    if (s->access && s->format.uses_attempts)
        mk_config_record_attempts(config);
    if (s->access_log.len)
        mk_config_replace_access_log(config);
    if (s->access || s->error_log.len)
        *host_data = s;
    return 0;
}

static int worker_start(struct mk_worker *worker, void *data)
{
    struct clock *clock = mk_mem_zalloc(1, sizeof *clock);
    (void)data;
    if (!clock)
        return -ENOMEM;
    clock->pid = getpid();
    mk_worker_set_data(worker, &MK_PLUGIN_OF(logger), clock);
    return 0;
}

static void worker_stop(struct mk_worker *worker, void *data)
{
    (void)data;
    mk_mem_free(mk_worker_data(worker, &MK_PLUGIN_OF(logger)));
}

/* ---- Requests ---- */

static bool should_log(const struct settings *s, const struct mk_access_record *record)
{
    return (!s->only.n || logger_request_filter_match(&s->only, record)) &&
           !(s->skip.n && logger_request_filter_match(&s->skip, record));
}

static void log_request(const struct mk_access_record *record, void *host_data)
{
    const struct settings *s = host_data;
    char buf[LOGGER_LINE_MAX];
    if (!s->access || !should_log(s, record))
        return;
    const struct mk_request *request = mk_access_record_request(record);
    struct mk_worker *worker = mk_request_worker(request);
    struct line line = {.out = mk_buf_fixed(buf, sizeof buf),
                        .record = record,
                        .request = request,
                        .clock = mk_worker_data(worker, &MK_PLUGIN_OF(logger))};
    logger_format_write(&s->format, &line);
    mk_log_write(worker, s->access, mk_buf_str(&line.out));
}

static bool log_message(struct mk_request *request, enum mk_log_level level, mk_str message, void *host_data)
{
    const struct settings *s = host_data;
    if (!s->error_log.len)
        return false;
    if (s->error && level <= s->log_level)
        mk_request_log_to(request, s->error, level, message);
    return true;
}

MK_PLUGIN(logger) = {
    MK_PLUGIN_HEAD,
    .name = "logger",
    .version = "1.0",
    .help = "Writes access and error logs for each host, in custom formats.",
    .priority = MK_PRIORITY_LATE,
    .sections = (const struct mk_conf_table *const[]){&table, NULL},
    .host = bind_vhost,
    .worker_start = worker_start,
    .worker_stop = worker_stop,
    .on_done = log_request,
    .on_log = log_message,
};
