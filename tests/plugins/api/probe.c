/* SPDX-License-Identifier: Apache-2.0 */
/* Logs each hook call with its arguments, so that tests can check the order of calls. */
#include <monkey/plugin.h>

struct probe {
    mk_str name, skip;
    bool refuse;
};

static const struct mk_conf_key keys[] = {
    {.name = "Name", .type = MK_CONF_TEXT, MK_CONF_AT(struct probe, name), .default_value = "unnamed"},
    {.name = "Skip", .type = MK_CONF_TEXT, MK_CONF_AT(struct probe, skip)},
    {.name = "Refuse", .type = MK_CONF_BOOL, MK_CONF_AT(struct probe, refuse), .default_value = "off"},
};

static const struct mk_conf_table table = {.section = "PROBE",
                                           .keys = keys,
                                           .n = sizeof keys / sizeof keys[0],
                                           .size = sizeof(struct probe),
                                           .scope = MK_CONF_VHOST,
                                           .help = "What a test wants to hear."};

struct loads {
    unsigned hosts;
};

static int load(struct mk_config *config, void **data)
{
    *data = mk_config_alloc(config, sizeof(struct loads));
    return *data ? 0 : -1;
}

static int host(struct mk_config *config, struct mk_vhost *h, void *data, void **host_data)
{
    struct probe *p = mk_config_section(config, &table, NULL);
    ((struct loads *)data)->hosts++;
    if (p && p->refuse)
        mk_config_error(config, p, "Refuse", "the host %.*s is refused", MK_STR_ARG(mk_vhost_name(h)));
    *host_data = p;
    return 0;
}

static int worker_start(struct mk_worker *worker, void *data)
{
    mk_worker_log(worker, MK_LOG_INFO, "probe: start, %u hosts", ((struct loads *)data)->hosts);
    return 0;
}

static void worker_stop(struct mk_worker *worker, void *data)
{
    (void)data;
    mk_worker_log(worker, MK_LOG_INFO, "probe: stop");
}

static void log_hook(const struct mk_request *request, const struct probe *p, const char *what)
{
    mk_worker_log(mk_request_worker(request), MK_LOG_INFO, "probe %.*s: %s %.*s", MK_STR_ARG(p->name), what,
                  MK_STR_ARG(mk_request_path(request)));
}

static enum mk_verdict on_accept(struct mk_conn *connection, void *data)
{
    char buffer[64];
    struct mk_buf peer = mk_buf_fixed(buffer, sizeof buffer);
    (void)data;
    mk_addr_format(mk_conn_client_addr(connection), &peer);
    mk_worker_log(mk_conn_worker(connection), MK_LOG_INFO, "probe: accept %.*s",
                  MK_STR_ARG(mk_buf_str(&peer)));
    return MK_NEXT;
}

struct attached {
    struct mk_worker *worker;
    const struct probe *probe;
};

static void on_end(void *data)
{
    struct attached *a = data;
    mk_worker_log(a->worker, MK_LOG_INFO, "probe %.*s: destructor", MK_STR_ARG(a->probe->name));
}

MK_PLUGIN_DECLARE(probe);

static enum mk_verdict on_request(struct mk_request *request, struct mk_response *response, void *host_data)
{
    const struct probe *p = host_data;
    struct attached *a = mk_request_alloc(request, sizeof *a);
    (void)response;
    log_hook(request, p, "request");
    if (a)
        *a = (struct attached){mk_request_worker(request), p};
    if (!a || mk_request_attach(request, &MK_PLUGIN_OF(probe), a, on_end))
        return MK_ERROR;
    return MK_NEXT;
}

static void on_response(struct mk_request *request, struct mk_response *response, void *host_data)
{
    const struct attached *a = mk_request_attached(request, &MK_PLUGIN_OF(probe));
    log_hook(request, host_data, "response");
    if (a)
        mk_response_add_header(response, MK_STR("X-Probe"), a->probe->name);
}

static void on_abort(struct mk_request *request, void *host_data)
{
    log_hook(request, host_data, "abort");
}

static void on_done(const struct mk_access_record *record, void *host_data)
{
    const struct probe *p = host_data;
    const struct mk_request *request = mk_access_record_request(record);
    mk_str type = mk_access_record_header(record, MK_STR("Content-Type"));
    mk_worker_log(mk_request_worker(request), MK_LOG_INFO, "probe %.*s: done %.*s %u %s %llu [%.*s]%s",
                  MK_STR_ARG(p->name), MK_STR_ARG(mk_request_path(request)), mk_access_record_status(record),
                  mk_outcome_name(mk_access_record_outcome(record)),
                  (unsigned long long)mk_access_record_sent(record), MK_STR_ARG(type),
                  mk_access_record_duration_us(record) < 60000000 ? "" : " (long)");
}

static bool on_log(struct mk_request *request, enum mk_log_level level, mk_str message, void *host_data)
{
    const struct probe *p = host_data;
    if (!p->skip.len || !mk_str_starts(message, p->skip))
        return false;
    mk_worker_log(mk_request_worker(request), level, "probe %.*s: took <%.*s>", MK_STR_ARG(p->name),
                  MK_STR_ARG(message));
    return true;
}

static void on_message(struct mk_worker *worker, mk_str message, void *data)
{
    (void)data;
    mk_worker_log(worker, MK_LOG_INFO, "probe: worker %u heard %.*s", mk_worker_index(worker),
                  MK_STR_ARG(message));
}

/* /say?TEXT */
static enum mk_verdict send_message(struct mk_request *request, struct mk_response *response, void *data)
{
    struct mk_worker *w = mk_request_worker(request);
    (void)data;
    if (mk_worker_send(w, &MK_PLUGIN_OF(probe), MK_TO_ALL, mk_request_query(request)))
        mk_response_set_status(response, 503);
    return mk_response_set_body_nocopy(response, MK_STR("said\n")) ? MK_ERROR : MK_DONE;
}

/* /log?TEXT */
static enum mk_verdict log_it(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)data;
    mk_request_log(request, MK_LOG_WARN, "%.*s", MK_STR_ARG(mk_request_query(request)));
    return mk_response_set_body_nocopy(response, MK_STR("logged\n")) ? MK_ERROR : MK_DONE;
}

static const struct mk_handler say_handler = {.name = "probe-say", .handle = send_message};
static const struct mk_handler log_handler = {.name = "probe-log", .handle = log_it};

static void unload(void *data)
{
    (void)data;
}

MK_PLUGIN(probe) = {
    MK_PLUGIN_HEAD,
    .name = "probe",
    .version = "1",
    .help = "Says when it is called.",
    .sections = (const struct mk_conf_table *const[]){&table, NULL},
    .handlers = (const struct mk_handler *const[]){&say_handler, &log_handler, NULL},
    .load = load,
    .unload = unload,
    .host = host,
    .worker_start = worker_start,
    .worker_stop = worker_stop,
    .on_message = on_message,
    .on_accept = on_accept,
    .on_request = on_request,
    .on_response = on_response,
    .on_abort = on_abort,
    .on_done = on_done,
    .on_log = on_log,
};
