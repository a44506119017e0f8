/* SPDX-License-Identifier: Apache-2.0 */
/* The handler `proxy`: passes requests to HTTP servers and to local backends (parts of this server in other
 * processes). */
#include <errno.h>
#include <monkey/plugin.h>
#include <monkey/worker.h>

#include "upstream/proxy.h"

MK_PLUGIN_DECLARE(proxy);

static struct mk_proxy *proxy_of(struct mk_upstream_handler *h)
{
    return MK_CONTAINER(h, struct mk_proxy, handler);
}

/* ---- The request ---- */

static unsigned proxy_build_request(struct mk_upstream_handler *h,
                                    struct mk_upstream_request_options *options)
{
    struct mk_proxy *p = proxy_of(h);
    if (mk_request_method(h->request) == MK_METHOD_CONNECT && h->body.upgrade == MK_REQUEST_BODY_NO_UPGRADE)
        return 501;
    options->upstream = p->route->upstream;
    options->protocol = MK_UPSTREAM_PROTOCOL_HTTP;
    options->limits = p->route->limits;
    options->target = mk_proxy_target_build(h->request, p->route);
    if (!options->target.p)
        return 400;
    unsigned status = mk_proxy_headers_build(p, options);
    if (status)
        return status;
    if (h->body.upgrade == MK_REQUEST_BODY_WANTS_UPGRADE)
        options->upgrade = p->upgrade;
    mk_request_body_attach(&h->body, options);
    mk_proxy_target_choose_server(p, &options->conn);
    return 0;
}

static void proxy_send_mirror(struct mk_upstream_handler *h,
                              const struct mk_upstream_request_options *options)
{
    const struct mk_proxy_route *route = proxy_of(h)->route;
    struct mk_worker *worker = mk_request_worker(h->request);
    mk_proxy_mirror_send(mk_worker_data(worker, &MK_PLUGIN_OF(proxy)), worker, route, options);
}

/* ---- The response ---- */

static void proxy_send_interim(struct mk_upstream_handler *h)
{
    mk_proxy_response_send_interim(proxy_of(h));
}

static int proxy_copy_head(struct mk_upstream_handler *h)
{
    struct mk_proxy *p = proxy_of(h);
    if (h->step.current == MK_HANDLER_TUNNEL && p->route->limits_tunnel &&
        mk_request_set_tunnel_timeout(h->request, p->route->tunnel_ms))
        return -ENOMEM;
    return mk_proxy_response_copy_head(p);
}

/* Has the local backend declined the request? Its response is then read to the end, so that the connection
 * can be reused. If part of the request body was read, that part is lost, and no other handler can take the
 * request. */
static bool proxy_is_declined(struct mk_upstream_handler *h, enum mk_verdict *verdict)
{
    char buf[64];
    if (!mk_upstream_request_header(h->upstream, MK_STR(MK_LOCAL_BACKEND_DECLINED)).p ||
        mk_request_length(h->request) != 0)
        return false;
    while (mk_upstream_request_read(h->upstream, buf, sizeof buf) > 0)
        continue;
    *verdict = MK_NEXT;
    return true;
}

static const struct mk_upstream_handler_ops proxy_ops = {
    .make_request = proxy_build_request, .on_interim = proxy_send_interim, .copy_head = proxy_copy_head};
static const struct mk_upstream_handler_ops mirrored_ops = {.make_request = proxy_build_request,
                                                            .on_start = proxy_send_mirror,
                                                            .on_interim = proxy_send_interim,
                                                            .copy_head = proxy_copy_head};
static const struct mk_upstream_handler_ops local_ops = {.make_request = proxy_build_request,
                                                         .on_interim = proxy_send_interim,
                                                         .replace = proxy_is_declined,
                                                         .copy_head = proxy_copy_head};

/* ---- The first call ---- */

/* A tunnel with another HTTP version, or with TLS inside, would let the client request anything that no route
 * allows. */
static mk_str proxy_find_upgrade(const struct mk_request *request)
{
    static const mk_str refused[] = {MK_STR_INIT("h2c"), MK_STR_INIT("h2"), MK_STR_INIT("HTTP"),
                                     MK_STR_INIT("TLS")};
    mk_str protocol = mk_request_upgrade(request), rest = protocol;
    if (!protocol.p)
        return protocol;
    mk_str name = mk_str_cut(&rest, '/');
    for (size_t i = 0; i < MK_LEN(refused); i++)
        if (mk_str_eq_nocase(name, refused[i]))
            return MK_STR_NULL;
    return protocol;
}

/* A local backend sends 100 Continue or rejects the request without its body, like a handler of this
 * server. */
static bool proxy_expects_continue(struct mk_request *request)
{
    return mk_request_version(request) >= 11 && mk_request_length(request) &&
           mk_str_eq_nocase(mk_request_header(request, MK_STR("Expect")), MK_STR("100-continue"));
}

static bool proxy_sends_trailer(struct mk_request_body *b, mk_str name)
{
    return mk_proxy_headers_may_send(MK_CONTAINER(b, struct mk_proxy, handler.body), name);
}

static void proxy_init(struct mk_proxy *p, struct mk_request *request, struct mk_response *response,
                       const struct mk_proxy_route *route)
{
    *p = (struct mk_proxy){
        .handler = {.ops = mk_proxy_route_is_local(route) ? &local_ops
                           : route->mirror                ? &mirrored_ops
                                                          : &proxy_ops,
                    .request = request,
                    .response = response,
                    .spools = !route->streams && !mk_proxy_route_is_local(route),
                    .body = {.sends_trailer = proxy_sends_trailer,
                             .mode = route->streams                   ? MK_REQUEST_BODY_STREAM
                                     : mk_proxy_route_is_local(route) ? MK_REQUEST_BODY_BUFFER_SMALL
                                                                      : MK_REQUEST_BODY_BUFFER,
                             .is_held = mk_proxy_route_is_local(route) && proxy_expects_continue(request)}},
        .route = route,
        .upgrade = proxy_find_upgrade(request)};
    if (p->upgrade.p)
        p->handler.body.upgrade = MK_REQUEST_BODY_WANTS_UPGRADE;
}

enum mk_verdict mk_handler_proxy_handle(struct mk_request *request, struct mk_response *response, void *data)
{
    struct mk_upstream_handler *h = mk_upstream_handler_of(request);
    const struct mk_proxy_route *route = data;
    enum mk_verdict verdict;
    if (h)
        return mk_upstream_handler_run(h);
    unsigned status = mk_proxy_route_is_local(route) || route->raw_paths ? 0 : mk_request_check_path(request);
    struct mk_proxy *p = status ? NULL : mk_request_alloc(request, sizeof *p);
    if (!p)
        return mk_upstream_handler_error(response, status ? status : 503);
    proxy_init(p, request, response, route);
    return mk_proxy_headers_check_hops(p, &verdict) ? verdict : mk_upstream_handler_start(&p->handler);
}

/* ---- Local backends ---- */

enum { KEEP = 128 };

struct mk_local_backend {
    struct mk_proxy_route route;
};

struct mk_local_backend *mk_local_backend_open(struct mk_config *config, const void *section, const char *key,
                                               mk_str socket, mk_str secret, uint32_t wait_ms)
{
    static const struct mk_upstream_defaults defaults = {.keepalive = KEEP};
    struct mk_local_backend *backend = mk_config_alloc(config, sizeof *backend);
    struct mk_upstream *upstream = backend ? mk_upstream_open(config, section, key, socket, &defaults) : NULL;
    if (!upstream)
        return NULL;
    backend->route = (struct mk_proxy_route){.upstream = upstream,
                                             .authority = MK_STR("localhost"),
                                             .forwarded = MK_PROXY_FORWARDED_LOCAL,
                                             .secret = mk_config_copy(config, secret),
                                             .limits = {.response_timeout_ms = wait_ms}};
    return backend->route.secret.len == secret.len ? backend : NULL;
}

enum mk_verdict mk_local_backend_handle(struct mk_request *request, struct mk_response *response,
                                        struct mk_local_backend *backend)
{
    return mk_handler_proxy_handle(request, response, &backend->route);
}

/* ---- The plugin ---- */

static int proxy_start_worker(struct mk_worker *worker, void *data)
{
    (void)data;
    struct mk_proxy_mirror *m = mk_proxy_mirror_new(worker);
    mk_worker_set_data(worker, &MK_PLUGIN_OF(proxy), m);
    return m ? 0 : -ENOMEM;
}

static void proxy_stop_worker(struct mk_worker *worker, void *data)
{
    (void)data;
    mk_proxy_mirror_free(mk_worker_data(worker, &MK_PLUGIN_OF(proxy)));
}

static const struct mk_handler handler = {
    .name = "proxy",
    .syntax = mk_proxy_route_form,
    .handle = mk_handler_proxy_handle,
    .bind = mk_proxy_route_bind,
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
    .worker_start = proxy_start_worker,
    .worker_stop = proxy_stop_worker,
};
