/* SPDX-License-Identifier: Apache-2.0 */
/* Executes commands from requests, so that tests can observe the services that workers offer to plugins: `GET
 * /worker/COMMAND?TEXT`. Each response is text. */
#include <errno.h>
#include <fcntl.h>
#include <monkey/plugin.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct settings {
    bool children, flood;
    mk_str log, allow;
    uint64_t size;
    uint32_t keep;
};

struct options {
    const struct settings *settings;
    struct mk_logfile *log;
    atomic_uint_least64_t *counter;
};

/* State of one worker. */
struct worker_state {
    struct mk_buf lines;
    struct mk_subprocess *child; /* the subprocess started last */
    uint64_t written;
};

static const struct mk_conf_key keys[] = {
    {.name = "Children", .type = MK_CONF_BOOL, MK_CONF_AT(struct settings, children), .default_value = "off"},
    {.name = "Flood", .type = MK_CONF_BOOL, MK_CONF_AT(struct settings, flood), .default_value = "off"},
    {.name = "Log", .type = MK_CONF_TEXT, MK_CONF_AT(struct settings, log)},
    {.name = "LogSize", .type = MK_CONF_SIZE, MK_CONF_AT(struct settings, size), .default_value = "0"},
    {.name = "LogKeep", .type = MK_CONF_NUM, MK_CONF_AT(struct settings, keep), .default_value = "1"},
    {.name = "Allow", .type = MK_CONF_TEXT, MK_CONF_AT(struct settings, allow)},
};

static const struct mk_conf_table table = {
    .section = "WORKER_SERVICES", .keys = keys, .n = 6, .size = sizeof(struct settings)};

extern MK_API const struct mk_plugin mk_plugin;

static struct worker_state *worker_state_of(struct mk_worker *w)
{
    return mk_worker_data(w, &mk_plugin);
}

static int number(mk_str s)
{
    uint64_t n = 0;
    bool negative = mk_str_starts(s, MK_STR("-"));
    (void)mk_num_parse(mk_str_skip(s, negative), &n);
    return negative ? -(int)n : (int)n;
}

static void on_end(void *ctx, int status)
{
    struct worker_state *state = ctx;
    state->child = NULL;
    mk_buf_addf(&state->lines, "ended %d\n", status);
}

static int run(struct mk_worker *w, const char *script)
{
    const char *argv[] = {"/bin/sh", "-c", script, NULL}, *envp[] = {"PATH=/usr/bin:/bin", NULL};
    const struct mk_subprocess_options o = {.argv = argv, .envp = envp, .in = -1, .out = -1, .err = -1};
    worker_state_of(w)->child = mk_subprocess_start(w, &o, on_end, worker_state_of(w));
    return worker_state_of(w)->child ? 0 : -ECHILD;
}

/* Sends the message "INDEX TEXT"; the index -1 means all workers. */
static int send(struct mk_worker *w, mk_str text)
{
    mk_str to = mk_str_cut(&text, ' ');
    return mk_worker_send(w, &mk_plugin, (unsigned)number(to), text);
}

static int send_large_messages(struct mk_worker *w, int n)
{
    static const char message[32 * 1024];
    int e = 0;
    for (int i = 0; i < n && !e; i++)
        e = mk_worker_send(w, &mk_plugin, MK_TO_ALL, mk_str_of(message, sizeof message));
    return e;
}

static void write_lines(struct mk_worker *w, const struct options *options, int n)
{
    char line[128];
    for (int i = 0; i < n; i++) {
        int len = snprintf(line, sizeof line, "%d %llu %060d", (int)getpid(),
                           (unsigned long long)++worker_state_of(w)->written, 0);
        mk_log_write(w, options->log, mk_str_of(line, (size_t)len));
    }
}

static int can_read(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

static void run_command(struct mk_worker *w, const struct options *options, mk_str command, mk_str text,
                        struct mk_buf *out)
{
    int n = number(text);
    if (mk_str_eq(command, MK_STR("info")))
        mk_buf_addf(out, "%u %d", mk_worker_index(w), (int)getpid());
    else if (mk_str_eq(command, MK_STR("send")))
        mk_buf_addf(out, "%d", send(w, text));
    else if (mk_str_eq(command, MK_STR("flood")))
        mk_buf_addf(out, "%d", send_large_messages(w, n));
    else if (mk_str_eq(command, MK_STR("received")))
        mk_buf_add(out, mk_buf_str(&worker_state_of(w)->lines));
    else if (mk_str_eq(command, MK_STR("reload")))
        mk_buf_addf(out, "%d", mk_worker_request_reload(w));
    else if (mk_str_eq(command, MK_STR("level")))
        mk_buf_addf(out, "%d",
                    text.len ? mk_worker_set_log_level(w, (enum mk_log_level)n)
                             : (int)mk_worker_log_level(w));
    else if (mk_str_eq(command, MK_STR("run")))
        mk_buf_addf(out, "%d", run(w, text.p));
    else if (mk_str_eq(command, MK_STR("signal")))
        mk_subprocess_signal(worker_state_of(w)->child, n);
    else if (mk_str_eq(command, MK_STR("drop")))
        mk_subprocess_kill(worker_state_of(w)->child);
    else if (mk_str_eq(command, MK_STR("count")))
        mk_buf_addf(out, "%llu", (unsigned long long)atomic_fetch_add(options->counter, 1));
    else if (mk_str_eq(command, MK_STR("write")))
        write_lines(w, options, n);
    else if (mk_str_eq(command, MK_STR("read")))
        mk_buf_addf(out, "%d", can_read(text.p));
    else if (mk_str_eq(command, MK_STR("abort")))
        abort();
}

static enum mk_verdict handle(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)data;
    mk_str command = mk_str_skip(mk_request_path(request), sizeof "/worker/" - 1);
    struct mk_buf text = mk_buf_growing(64 * 1024), out = mk_buf_growing(1024 * 1024);
    mk_url_unescape(&text, mk_request_query(request));
    mk_buf_add_char(&text, '\0');
    run_command(mk_request_worker(request), mk_vhost_data(mk_request_vhost(request), &mk_plugin), command,
                mk_str_of(text.p, text.len - 1), &out);
    mk_response_set_body(response, mk_buf_str(&out));
    mk_buf_free(&text);
    mk_buf_free(&out);
    return MK_DONE;
}

static int load(struct mk_config *c, void **data)
{
    struct options *options = mk_config_alloc(c, sizeof *options);
    if (!options)
        return -ENOMEM;
    *data = options;
    options->settings = mk_config_section(c, &table, NULL);
    options->counter = mk_config_shared(c, "worker_services.counter", sizeof *options->counter);
    if (!options->settings)
        return 0;
    if (options->settings->children)
        mk_config_allow_program(c, options->settings, "Children", &(struct mk_program){.path = "/"});
    if (options->settings->log.len)
        options->log = mk_config_log(c, options->settings, "Log", options->settings->log,
                                     options->settings->size, options->settings->keep);
    if (options->settings->allow.len)
        mk_config_allow_path(c, options->settings, "Allow",
                             mk_config_path(c, options->settings, options->settings->allow));
    return 0;
}

/* Sends until the queue is full. */
static void flood(struct mk_worker *w)
{
    static const char text[32 * 1024];
    while (mk_worker_send(w, &mk_plugin, MK_TO_ALL, mk_str_of(text, sizeof text)) == 0)
        ;
}

static int start(struct mk_worker *w, void *data)
{
    const struct options *options = data;
    struct worker_state *state = mk_mem_zalloc(1, sizeof *state);
    if (!state)
        return -ENOMEM;
    state->lines = mk_buf_growing(1024 * 1024);
    mk_worker_set_data(w, &mk_plugin, state);
    if (options->settings && options->settings->flood)
        flood(w);
    return 0;
}

static void stop(struct mk_worker *w, void *data)
{
    (void)data;
    struct worker_state *state = worker_state_of(w);
    mk_subprocess_kill(state->child);
    mk_buf_free(&state->lines);
    mk_mem_free(state);
}

static void on_message(struct mk_worker *w, mk_str message, void *data)
{
    (void)data;
    if (message.len < 1000)
        mk_buf_addf(&worker_state_of(w)->lines, "%.*s\n", MK_STR_ARG(message));
    else
        mk_buf_addf(&worker_state_of(w)->lines, "%zu bytes\n", message.len);
}

static const struct mk_handler worker_services_handler = {
    .name = "worker-services", .methods = MK_METHOD_BIT(MK_METHOD_GET), .handle = handle};

MK_PLUGIN(worker_services) = {
    MK_PLUGIN_HEAD,
    .name = "worker-services",
    .version = "1",
    .help = "For tests.",
    .sections = (const struct mk_conf_table *const[]){&table, NULL},
    .handlers = (const struct mk_handler *const[]){&worker_services_handler, NULL},
    .load = load,
    .worker_start = start,
    .worker_stop = stop,
    .on_message = on_message,
};
