/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin that provides the functions of Duda to services. */
#include <duda/store_backend.h>
#include <errno.h>
#include <monkey/readiness.h>
#include <stdio.h>
#include <unistd.h>

#include "service/crash_report.h"
#include "service/public_url.h"
#include "service/readiness.h"
#include "service/scheduler.h"
#include "service/session_config.h"
#include "service/share.h"
#include "service/sse_streams.h"
#include "service/topics.h"
#include "service/worker_ctx.h"
#include "trace/backtrace.h"

MK_PLUGIN_DECLARE(duda);

struct section {
    struct duda_crash_policy rules;
    bool lines;
    uint32_t sse_keep_alive_ms, after_tasks_max;
    uint64_t topic_memory;
    struct mk_conf_words reads, writes, ports;
    struct duda_shares shares;
    struct duda_public_urls public_urls;
};

static const struct mk_conf_key keys[] = {
    {.name = "CrashLimit",
     .type = MK_CONF_NUM,
     MK_CONF_AT(struct section, rules.crashes),
     .default_value = "3",
     .zero_word = "off",
     .help = "Number of crashes of a handler within `CrashWindow` after which its route returns 503."},
    {.name = "CrashWindow",
     .type = MK_CONF_TIME,
     MK_CONF_AT(struct section, rules.window_ms),
     .default_value = "1m",
     .min = 1000,
     .help = "Period in which crashes are counted."},
    {.name = "CrashBackoff",
     .type = MK_CONF_TIME,
     MK_CONF_AT(struct section, rules.closed_ms),
     .default_value = "1m",
     .min = 1000,
     .help = "How long a route returns 503 after it has reached `CrashLimit`."},
    {.name = "CrashSymbols",
     .type = MK_CONF_BOOL,
     MK_CONF_AT(struct section, lines),
     .default_value = "off",
     .help = "Also log the source lines of a stack, which `addr2line` finds. Each worker then has a spawner, "
             "which starts programs outside of the sandbox."},
    {.name = "BackgroundTasks",
     .type = MK_CONF_NUM,
     MK_CONF_AT(struct section, after_tasks_max),
     .default_value = "1000",
     .max = 1000000,
     .help = "Maximum number of tasks of `duda_after_response()` in each worker."},
    {.name = "SSEKeepAlive",
     .type = MK_CONF_TIME,
     MK_CONF_AT(struct section, sse_keep_alive_ms),
     .default_value = "15s",
     .zero_word = "off",
     .help = "How long a stream of server-sent events may be silent before the server sends a comment, which "
             "keeps the connection open and detects clients that have vanished."},
    {.name = "TopicMemory",
     .type = MK_CONF_SIZE,
     MK_CONF_AT(struct section, topic_memory),
     .default_value = "4M",
     .min = 64 << 10,
     .max = (uint64_t)1 << 34,
     .help = "Memory for kept messages of topics (`.keep` of DUDA_TOPIC()), shared by all "
             "workers and allocated on first use. A topic uses at most a quarter of it. When it is full, "
             "topics of similar size compete: those that together use the most memory lose their oldest "
             "messages. A new size discards all messages."},
    {.name = "ReadablePaths",
     .type = MK_CONF_WORDS,
     .flags = MK_CONF_READS,
     MK_CONF_AT(struct section, reads),
     .help = "Folders that services may read, for example for duda_send_file_from(). The sandbox denies "
             "reading elsewhere, except in the folders of `WritablePaths`."},
    {.name = "WritablePaths",
     .type = MK_CONF_WORDS,
     .flags = MK_CONF_WRITES,
     MK_CONF_AT(struct section, writes),
     .help = "Folders that services may write to, for example for uploads. They must exist and be writable "
             "by the workers' user. The sandbox denies writing elsewhere."},
    {.name = "ConnectPorts",
     .type = MK_CONF_WORDS,
     MK_CONF_AT(struct section, ports),
     .default_value = "all",
     .help =
         "TCP ports that services may connect to with sockets and libraries of their own: `all`, `none`, or "
         "numbers. With numbers or `none`, services cannot bind to ports either. Packages of Duda need no "
         "entry."},
    {.name = "Share",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_REPEATABLE,
     MK_CONF_AT(struct section, shares),
     .syntax = "NAME SERVICE... [on HOST...]",
     .help = "Services that share their state: sessions, signed and sealed cookies, topics, locks, stores, "
             "[KV], limits and jobs. NAME identifies that state. Virtual hosts have separate sessions and "
             "cookies, except those listed after `on` by their first ServerName (`*`: all). Hosts of a "
             "ServerName pattern count as one. Default: each service has its own state.",
     .parse = duda_shares_parse,
     .show = duda_shares_format},
    {.name = "PublicUrl",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_REPEATABLE,
     MK_CONF_AT(struct section, public_urls),
     .syntax = "URL [SERVICE...]",
     .help = "The URL at which clients reach these services (default: all services), such as "
             "`https://www.example.org`. The paths of [ROUTES] follow. Absolute URLs in mails, jobs and "
             "background tasks begin with it.",
     .parse = duda_public_urls_parse,
     .show = duda_public_urls_format},
};

static const struct mk_conf_table table = {
    .section = "DUDA",
    .keys = keys,
    .n = MK_LEN(keys),
    .help = "Duda services.",
    .size = sizeof(struct section),
    .scope = MK_CONF_SERVER,
};

static bool allow_readable_paths(struct mk_config *config, const struct section *section)
{
    for (size_t i = 0; i < section->reads.n; i++) {
        mk_str folder = mk_config_path(config, section, section->reads.v[i]);
        if (!folder.p)
            return false;
        mk_config_allow_path(config, section, "ReadablePaths", folder);
    }
    return true;
}

static bool allow_writable_paths(struct mk_config *config, const struct section *section)
{
    for (size_t i = 0; i < section->writes.n; i++) {
        mk_str folder = mk_config_path(config, section, section->writes.v[i]);
        if (!folder.p)
            return false;
        mk_config_allow_writing(config, section, "WritablePaths", folder);
    }
    return true;
}

static bool is_only_word(const struct mk_conf_words *words, const char *word)
{
    return words->n == 1 && mk_str_eq_nocase(words->v[0], mk_str_from_c(word));
}

static bool allow_ports(struct mk_config *config, const struct section *section)
{
    if (is_only_word(&section->ports, "all")) {
        mk_config_allow_connect(config, section, "ConnectPorts", 0);
        mk_config_allow_bind(config, section, "ConnectPorts", 0);
        return true;
    }
    for (size_t i = 0; i < section->ports.n && !is_only_word(&section->ports, "none"); i++) {
        uint64_t port = 0;
        if (!mk_num_parse(section->ports.v[i], &port) || !port || port > UINT16_MAX) {
            mk_config_report(
                config, MK_LOG_ERROR, section, "ConnectPorts", section->ports.v[i],
                "`%.*s` is not a TCP port: expected numbers from 1 to 65535, or only `all` or `none`",
                MK_STR_ARG(mk_str_first(section->ports.v[i], 40)));
            return false;
        }
        mk_config_allow_connect(config, section, "ConnectPorts", (uint16_t)port);
    }
    return true;
}

static int load_topic_log(struct mk_config *config, const struct section *section, struct duda_topic_log *log)
{
    void *memory = duda_shared_memory(config, "duda-topics", (size_t)section->topic_memory);
    return memory ? duda_topic_log_init(log, memory, (size_t)section->topic_memory) : -ENOMEM;
}

static int load(struct mk_config *config, void **data)
{
    struct duda_plugin_config *settings = mk_config_alloc(config, sizeof *settings);
    const struct section *section = mk_config_settings(config, &table);
    duda_worker_ctx_set_plugin(&MK_PLUGIN_OF(duda));
    duda_worker_ctx_set_loading(config);
    duda_crash_report_preload();
    if (!settings || !section || !allow_readable_paths(config, section) ||
        !allow_writable_paths(config, section))
        return -ENOMEM;
    if (!allow_ports(config, section))
        return -EINVAL;
    settings->crash_table = duda_crash_table_get(config);
    (void)mk_readiness_register_table(mk_config_statistics(config));
    settings->n_published = mk_meter_get(config, MK_STR("topics"), MK_STR("main"));
    int e = load_topic_log(config, section, &settings->topic_log);
    if (e)
        return e;
    settings->subscriber_counts =
        mk_config_shared(config, "duda-subscribers", sizeof *settings->subscriber_counts);
    if (!settings->subscriber_counts)
        return -ENOMEM;
    duda_subscriber_counts_init(settings->subscriber_counts);
    settings->rules = section->rules;
    settings->sse_keep_alive_ms = section->sse_keep_alive_ms;
    settings->after_tasks_max = section->after_tasks_max;
    settings->shares = &section->shares;
    settings->public_urls = &section->public_urls;
    settings->section = section;
    settings->loader = getpid();
    settings->session_config = duda_session_config_load(config);
    if (section->lines && !duda_symbolizer_find_program(config, &settings->sources))
        mk_config_warn(config, section, "CrashSymbols", "addr2line is not installed (package binutils)");
    mk_config_enable_body_spool(config);
    *data = settings;
    if (!settings->crash_table || !settings->session_config)
        return settings->crash_table ? -EINVAL : -ENOMEM;
    duda_worker_ctx_set_loading(NULL);
    return 0;
}

void duda_data_declare(struct mk_config *config, duda_fn *fn, const char *(*check)(const void *data))
{
    struct duda_plugin_config *settings = mk_config_data(config, &MK_PLUGIN_OF(duda));
    if (settings && !duda_data_checks_add(&settings->data_checks, fn, check))
        mk_config_error(config, NULL, NULL, "more than %d functions of packages check their `.data`",
                        DUDA_DATA_CHECKS_MAX);
}

static int master_start(struct mk_config *config, void *data)
{
    struct duda_plugin_config *settings = data;
    (void)config;
    settings->sources.is_started = true;
    return 0;
}

/* By now the packages have registered their stores. */
static int host(struct mk_config *config, struct mk_vhost *h, void *data, void **host_data)
{
    struct duda_plugin_config *settings = data;
    const struct duda_session_config *v = settings->session_config;
    bool is_dev_before = settings->rules.tries;
    (void)h;
    if (!settings->is_checked && v->store == DUDA_SESSION_BACKEND_STORE)
        duda_store_require(config, v, "Store", v->store_name);
    if (!settings->is_checked) {
        duda_shares_check(config, settings->section, settings->shares, settings->services,
                          settings->n_services);
        duda_public_urls_check(config, settings->section, settings->public_urls, settings->services,
                               settings->n_services);
    }
    settings->is_checked = true;
    const uint32_t *tries = mk_config_shared(config, MK_ROUTES_DEV_MODE, sizeof *tries);
    settings->rules.tries = tries && *tries;
    if (settings->rules.tries) {
        struct duda_backtrace_running *running =
            mk_config_shared(config, DUDA_BACKTRACE_RUNNING, sizeof *running);
        settings->rules.crashes = 0;
        if (!is_dev_before)
            mk_config_allow_path(config, NULL, NULL, MK_STR("/proc/self/task")); /* for the stall detector */
        if (running)
            running->describe = duda_crash_report_describe;
    }
    *host_data = data;
    return 0;
}

/* Lines of printf(3) in services appear at once, and a killed worker loses none, even if standard output is a
 * file or a pipe. A program with libmonkey chooses the buffering itself. */
static void buffer_stdout_by_line(const struct duda_plugin_config *settings)
{
    if (getpid() != settings->loader)
        (void)setvbuf(stdout, NULL, _IOLBF, 0);
}

static int worker_start(struct mk_worker *worker, void *data)
{
    int e = duda_worker_ctx_new(worker, data);
    buffer_stdout_by_line(data);
    return e ? e : duda_scheduler_init(duda_worker_ctx(worker));
}

static void worker_drain(struct mk_worker *worker, void *data)
{
    (void)data;
    if (duda_worker_ctx(worker))
        duda_sse_streams_drain(duda_worker_ctx(worker));
}

static void worker_stop(struct mk_worker *worker, void *data)
{
    (void)data;
    if (duda_worker_ctx(worker)) {
        duda_scheduler_fini(duda_worker_ctx(worker));
        duda_readiness_free(duda_worker_ctx(worker)->components);
        duda_worker_ctx(worker)->components = NULL;
    }
    duda_worker_ctx_free(worker);
}

static void on_message(struct mk_worker *worker, mk_str message, void *data)
{
    (void)data;
    if (duda_worker_ctx(worker))
        duda_topics_deliver(duda_worker_ctx(worker), message);
}

MK_PLUGIN(duda) = {
    MK_PLUGIN_HEAD,
    .name = "duda",
    .version = "2.0",
    .help = "Runs web services in C.",
    .sections = (const struct mk_conf_table *const[]){&table, &duda_session_config_table, NULL},
    .load = load,
    .host = host,
    .master_start = master_start,
    .worker_start = worker_start,
    .worker_drain = worker_drain,
    .worker_stop = worker_stop,
    .on_message = on_message,
    .needs = (const char *const[]){"websocket", NULL},
};
