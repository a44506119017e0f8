/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

#include <errno.h>
#include <monkey/upstream.h>

#include "answer.h"
#include "fields.h"
#include "hops.h"
#include "mirror.h"
#include "sticky.h"
#include "target.h"
#include "upload.h"

static void end(void *data)
{
    struct proxy_call *c = data;
    c->step = PROXY_OVER;
    mk_upstream_request_free(c->client);
    c->client = NULL;
}

static void on_ready(void *ctx)
{
    mk_request_resume(((struct proxy_call *)ctx)->request);
}

/* The client stays until the request ends: fields of the response may be in it. */
static enum mk_verdict refuse(struct proxy_call *c, unsigned status)
{
    c->step = PROXY_OVER;
    mk_response_set_status(c->response, status);
    if (status == 503)
        (void)mk_response_add_static(c->response, MK_STR("Retry-After"), MK_STR("1"));
    return MK_REFUSE;
}

/* ---- The content of the response ---- */

static ssize_t fail_content(struct proxy_call *c, ssize_t e)
{
    mk_upstream_request_log_error(c->client, c->request);
    (void)mk_response_fail(c->response, mk_upstream_status_for_error((int)e));
    return e;
}

static void add_trailers(struct proxy_call *c)
{
    mk_str name, value;
    for (size_t i = 0; mk_upstream_request_trailer_at(c->client, i, &name, &value); i++)
        (void)mk_response_add_trailer(c->response, name, value);
}

static ssize_t read_content(struct proxy_call *c, char *room, size_t cap)
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
    struct proxy_call *c = ctx;
    c->is_called = true;
    if (c->client && c->step == PROXY_CONTENT)
        mk_upstream_request_resume(c->client); /* the server may answer while it reads */
    ssize_t n = read_content(c, room, cap);
    c->is_called = false;
    return n;
}

static const struct mk_source_ops content = {.pull = pull};

/* Small content that came with the head goes out with it. The client has given its connection back by then;
 * the fields of the response are in it, and the content. */
static int set_content(struct proxy_call *c)
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
    struct proxy_call *c = ctx;
    c->is_called = true;
    if (c->client)
        mk_upstream_request_resume(c->client);
    c->is_called = false;
    return c->client;
}

static const struct mk_tunnel_ops tunnel = {.source = {.pull = pull}, .on_input = on_tunnel_input};

static enum mk_verdict open_tunnel(struct proxy_call *c)
{
    c->step = PROXY_TUNNEL;
    if (proxy_answer_copy(c))
        return refuse(c, 503);
    if (c->route->limits_tunnel && mk_request_limit_tunnel(c->request, c->route->tunnel_ms))
        return refuse(c, 503);
    int e = mk_response_open_tunnel(c->request, c->response, &tunnel, c);
    return e ? MK_REFUSE : MK_DONE;
}

/* ---- The head of the response ---- */

/* What was read of its content is gone: no other handler can have it. */
static bool passes_on(const struct proxy_call *c)
{
    return mk_upstream_request_field(c->client, MK_STR(MK_LOCAL_BACKEND_DECLINED)).p &&
           mk_request_length(c->request) == 0;
}

/* Another handler takes over. The connection was read to its end, so that it is kept. */
static enum mk_verdict pass_on(struct proxy_call *c)
{
    char room[64];
    while (mk_upstream_request_read(c->client, room, sizeof room) > 0)
        continue;
    c->step = PROXY_OVER;
    mk_request_set_data(c->request, NULL);
    return MK_NEXT;
}

static enum mk_verdict answer(struct proxy_call *c)
{
    int e;
    while ((e = mk_upstream_request_poll(c->client, c->request)) == 1)
        proxy_answer_pass_interim(c);
    if (e)
        return e == -EAGAIN ? MK_WAIT : refuse(c, mk_upstream_status_for_error(e));
    if (mk_upstream_request_is_upgraded(c->client))
        return open_tunnel(c);
    if (c->route->is_part && passes_on(c))
        return pass_on(c);
    c->step = PROXY_CONTENT;
    if (proxy_answer_copy(c) || set_content(c))
        return refuse(c, 503);
    return MK_DONE;
}

static enum mk_verdict start(struct proxy_call *c)
{
    mk_str upgrade = c->upgrade;
    enum mk_method method = mk_request_method(c->request);
    struct mk_upstream_request_options ask = {
        .to = c->route->upstream,
        .protocol = MK_UPSTREAM_PROTOCOL_HTTP,
        .method = mk_request_method_name(c->request),
        .target = proxy_target_make(c->request, c->route),
        .upgrade = upgrade,
        .is_safe_to_repeat = mk_method_is_idempotent(method),
        .limits = c->route->limits,
    };
    if (method == MK_METHOD_CONNECT && !upgrade.p)
        return refuse(c, 501);
    if (!ask.target.p)
        return refuse(c, 400);
    unsigned status = proxy_fields_make(c, &ask);
    if (status)
        return refuse(c, status);
    proxy_upload_add(c, &ask);
    proxy_sticky_wish(c, &ask.options);
    c->client = mk_upstream_request_start(mk_request_worker(c->request), &ask, on_ready, c);
    c->step = PROXY_WAIT;
    proxy_mirrors_send(mk_request_worker(c->request), c->route, &ask);
    return c->client ? answer(c) : refuse(c, 503);
}

static enum mk_verdict go_on(struct proxy_call *c)
{
    if (c->step == PROXY_OVER)
        return MK_REFUSE;
    if (c->step == PROXY_WAIT)
        return answer(c);
    int e = proxy_upload_gather(c);
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

static struct proxy_call *begin(struct mk_request *request, struct mk_response *response, void *route)
{
    struct proxy_call *c = mk_request_alloc(request, sizeof *c);
    if (!c)
        return NULL;
    *c = (struct proxy_call){
        .request = request, .response = response, .route = route, .upgrade = find_upgrade(request)};
    if (!proxy_upload_begin(c) || mk_request_on_end(request, end, c))
        return NULL;
    mk_request_set_data(request, c);
    mk_request_follow_client(request);
    (void)mk_request_limit_wait(request, 0); /* the route has clocks of its own */
    return c;
}

enum mk_verdict proxy_call_handle(struct mk_request *request, struct mk_response *response, void *data)
{
    struct proxy_call *c = mk_request_data(request);
    const struct proxy_route *route = data;
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
    if (!is_new || !proxy_hops_end(c, &verdict))
        verdict = go_on(c);
    c->is_called = false;
    return verdict;
}
