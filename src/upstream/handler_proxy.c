/* SPDX-License-Identifier: Apache-2.0 */
/* The handler `proxy`: takes a request to an HTTP server and its response back. */
#include "upstream/proxy.h"

#include <errno.h>
#include <monkey/plugin.h>
#include <monkey/worker.h>

static void end(void *data)
{
    struct mk_proxy_call *c = data;
    c->step = MK_PROXY_OVER;
    mk_upstream_request_free(c->client);
    c->client = NULL;
}

static void on_ready(void *ctx)
{
    mk_request_resume(((struct mk_proxy_call *)ctx)->request);
}

/* The client stays until the request ends: fields of the response may be in it. */
static enum mk_verdict refuse(struct mk_proxy_call *c, unsigned status)
{
    c->step = MK_PROXY_OVER;
    mk_response_set_status(c->response, status);
    if (status == 503)
        (void)mk_response_add_static(c->response, MK_STR("Retry-After"), MK_STR("1"));
    return MK_REFUSE;
}

/* ---- The content of the response ---- */

static ssize_t fail_content(struct mk_proxy_call *c, ssize_t e)
{
    mk_upstream_request_log_error(c->client, c->request);
    (void)mk_response_fail(c->response, mk_upstream_status_for_error((int)e));
    return e;
}

static void add_trailers(struct mk_proxy_call *c)
{
    mk_str name, value;
    for (size_t i = 0; mk_upstream_request_trailer_at(c->client, i, &name, &value); i++)
        (void)mk_response_add_trailer(c->response, name, value);
}

static ssize_t read_content(struct mk_proxy_call *c, char *room, size_t cap)
{
    if (!c->client)
        return 0;
    ssize_t n = mk_upstream_request_read(c->client, room, cap);
    if (n == 0)
        add_trailers(c);
    return n >= 0 || n == -EAGAIN ? n : fail_content(c, n);
}

static ssize_t pull(void *ctx, char *room, size_t cap)
{
    struct mk_proxy_call *c = ctx;
    c->is_called = true;
    if (c->client && c->step == MK_PROXY_CONTENT)
        mk_upstream_request_resume(c->client); /* the server may answer while it reads */
    ssize_t n = read_content(c, room, cap);
    c->is_called = false;
    return n;
}

static const struct mk_source_ops content = {.pull = pull};

/* Small content that came with the head goes out with it. The client has given its connection back by then;
 * the fields of the response are in it, and the content. */
static int set_content(struct mk_proxy_call *c)
{
    int64_t length = mk_upstream_request_length(c->client);
    mk_str whole = MK_STR("");
    bool is_empty = length == 0 && mk_request_method(c->request) != MK_METHOD_HEAD;
    if (is_empty || mk_upstream_request_buffered_body(c->client, &whole))
        return mk_response_set_static(c->response, whole);
    if (!c->route->streams && !c->route->is_part && !mk_upstream_request_spool(c->client, c->request))
        return -ENOMEM;
    return mk_response_set_source(c->response, &content, c, length);
}

/* ---- Tunnels ---- */

static bool on_tunnel_input(void *ctx)
{
    struct mk_proxy_call *c = ctx;
    c->is_called = true;
    if (c->client)
        mk_upstream_request_resume(c->client);
    c->is_called = false;
    return c->client;
}

static const struct mk_tunnel_ops tunnel = {.source = {.pull = pull}, .on_input = on_tunnel_input};

static enum mk_verdict open_tunnel(struct mk_proxy_call *c)
{
    c->step = MK_PROXY_TUNNEL;
    if (mk_proxy_answer_copy(c))
        return refuse(c, 503);
    if (c->route->limits_tunnel && mk_request_limit_tunnel(c->request, c->route->tunnel_ms))
        return refuse(c, 503);
    int e = mk_response_open_tunnel(c->request, c->response, &tunnel, c);
    return e ? MK_REFUSE : MK_DONE;
}

/* ---- The head of the response ---- */

/* What was read of its content is gone: no other handler can have it. */
static bool passes_on(const struct mk_proxy_call *c)
{
    return mk_upstream_request_field(c->client, MK_STR(MK_LOCAL_BACKEND_DECLINED)).p &&
           mk_request_length(c->request) == 0;
}

/* Another handler takes over. The connection was read to its end, so that it is kept. */
static enum mk_verdict pass_on(struct mk_proxy_call *c)
{
    char room[64];
    while (mk_upstream_request_read(c->client, room, sizeof room) > 0)
        continue;
    c->step = MK_PROXY_OVER;
    mk_request_set_data(c->request, NULL);
    return MK_NEXT;
}

static enum mk_verdict answer(struct mk_proxy_call *c)
{
    int e;
    while ((e = mk_upstream_request_poll(c->client, c->request)) == 1)
        mk_proxy_answer_pass_interim(c);
    if (e)
        return e == -EAGAIN ? MK_WAIT : refuse(c, mk_upstream_status_for_error(e));
    if (mk_upstream_request_is_upgraded(c->client))
        return open_tunnel(c);
    if (c->route->is_part && passes_on(c))
        return pass_on(c);
    c->step = MK_PROXY_CONTENT;
    if (mk_proxy_answer_copy(c) || set_content(c))
        return refuse(c, 503);
    return MK_DONE;
}

static enum mk_verdict start(struct mk_proxy_call *c)
{
    mk_str upgrade = c->upgrade;
    enum mk_method method = mk_request_method(c->request);
    struct mk_upstream_request_options ask = {
        .to = c->route->upstream,
        .protocol = MK_UPSTREAM_PROTOCOL_HTTP,
        .method = mk_request_method_name(c->request),
        .target = mk_proxy_target_make(c->request, c->route),
        .upgrade = upgrade,
        .is_safe_to_repeat = mk_method_is_idempotent(method),
        .limits = c->route->limits,
    };
    if (method == MK_METHOD_CONNECT && !upgrade.p)
        return refuse(c, 501);
    if (!ask.target.p)
        return refuse(c, 400);
    unsigned status = mk_proxy_fields_make(c, &ask);
    if (status)
        return refuse(c, status);
    mk_proxy_upload_add(c, &ask);
    mk_proxy_sticky_wish(c, &ask.options);
    c->client = mk_upstream_request_start(mk_request_worker(c->request), &ask, on_ready, c);
    c->step = MK_PROXY_WAIT;
    mk_proxy_mirrors_send(mk_request_worker(c->request), c->route, &ask);
    return c->client ? answer(c) : refuse(c, 503);
}

static enum mk_verdict go_on(struct mk_proxy_call *c)
{
    if (c->step == MK_PROXY_OVER)
        return MK_REFUSE;
    if (c->step == MK_PROXY_WAIT)
        return answer(c);
    int e = mk_proxy_upload_gather(c);
    if (e == -EAGAIN)
        return MK_WAIT;
    return e ? refuse(c, mk_spool_status(e)) : start(c);
}

/* Over another version of HTTP in a tunnel, or one in TLS, the client could ask for what no route allows. */
static mk_str find_upgrade(const struct mk_request *request)
{
    static const mk_str refused[] = {MK_STR_INIT("h2c"), MK_STR_INIT("h2"), MK_STR_INIT("HTTP"),
                                     MK_STR_INIT("TLS")};
    mk_str protocol = mk_request_upgrade(request), rest = protocol;
    if (!protocol.p)
        return protocol;
    mk_str name = mk_str_cut(&rest, '/');
    for (size_t i = 0; i < MK_LEN(refused); i++)
        if (mk_str_eq_nocase(name, refused[i]))
            return mk_str_of(NULL, 0);
    return protocol;
}

static struct mk_proxy_call *begin(struct mk_request *request, struct mk_response *response, void *route)
{
    struct mk_proxy_call *c = mk_request_alloc(request, sizeof *c);
    if (!c)
        return NULL;
    *c = (struct mk_proxy_call){
        .request = request, .response = response, .route = route, .upgrade = find_upgrade(request)};
    if (!mk_proxy_upload_begin(c) || mk_request_on_end(request, end, c))
        return NULL;
    mk_request_set_data(request, c);
    mk_request_follow_client(request);
    (void)mk_request_limit_wait(request, 0); /* the route has clocks of its own */
    return c;
}

enum mk_verdict mk_handler_proxy_handle(struct mk_request *request, struct mk_response *response, void *data)
{
    struct mk_proxy_call *c = mk_request_data(request);
    const struct mk_proxy_route *route = data;
    bool is_new = !c;
    unsigned status = c || route->is_part || route->raw_paths ? 0 : mk_request_check_path(request);
    if (!c && !status)
        c = begin(request, response, data);
    if (!c) {
        mk_response_set_status(response, status ? status : 503);
        return MK_REFUSE;
    }
    c->is_called = true;
    enum mk_verdict verdict;
    if (!is_new || !mk_proxy_hops_end(c, &verdict))
        verdict = go_on(c);
    c->is_called = false;
    return verdict;
}

/* ---- The plugin ---- */

MK_PLUGIN_DECLARE(proxy);

static bool bind_proxy(const struct mk_conf_spot *spot, mk_str words, void **data)
{
    return mk_proxy_route_bind(&MK_PLUGIN_OF(proxy), spot, words, data);
}

static int start_worker(struct mk_worker *worker, void *data)
{
    (void)data;
    struct mk_proxy_mirrors *m = mk_proxy_mirrors_new(worker);
    mk_worker_set_data(worker, &MK_PLUGIN_OF(proxy), m);
    return m ? 0 : -ENOMEM;
}

static void stop_worker(struct mk_worker *worker, void *data)
{
    (void)data;
    mk_proxy_mirrors_free(mk_worker_data(worker, &MK_PLUGIN_OF(proxy)));
}

static const struct mk_handler handler = {
    .name = "proxy",
    .form = mk_proxy_route_form,
    .handle = mk_handler_proxy_handle,
    .bind = bind_proxy,
    .traits = MK_HANDLER_FORWARDS,
};

static const struct mk_handler *const handlers[] = {&handler, NULL};
static const char *const needs[] = {"upstream", NULL};

MK_PLUGIN(proxy) = {
    MK_PLUGIN_HEAD,
    .name = "proxy",
    .version = MK_VERSION,
    .help = "Passes requests to HTTP servers behind this one.",
    .handlers = handlers,
    .needs = needs,
    .worker_start = start_worker,
    .worker_stop = stop_worker,
};
