/* SPDX-License-Identifier: Apache-2.0 */
/* The handler `proxy`: passes requests to HTTP servers and to local backends (parts of this server in other
 * processes). */
#include <errno.h>
#include <monkey/plugin.h>
#include <monkey/text.h>
#include <monkey/worker.h>

#include "upstream/grpc.h"
#include "upstream/proxy.h"

MK_PLUGIN_DECLARE(proxy);

static struct mk_proxy *proxy_of(struct mk_upstream_handler *h)
{
    return MK_CONTAINER(h, struct mk_proxy, handler);
}

/* ---- Choosing a server: by sticky cookie, or by a hash of the request ---- */

enum { ID_LEN = 16 };

/* Value of the cookie; absent if the client did not send it. */
static mk_str request_find_cookie(const struct mk_request *request, mk_str name)
{
    mk_str field, lines;
    for (size_t i = 0; mk_request_header_at(request, i, &field, &lines); i++) {
        if (!mk_str_eq_nocase(field, MK_STR("Cookie")))
            continue;
        while (lines.p) {
            mk_str pair = mk_str_trim(mk_str_cut(&lines, ';')), key = mk_str_cut(&pair, '=');
            if (mk_str_eq(key, name))
                return pair;
        }
    }
    return mk_str_of(NULL, 0);
}

static mk_str sticky_hash_key(const struct mk_proxy *p)
{
    const struct mk_proxy_route *r = p->route;
    switch (r->hash) {
    case MK_PROXY_HASH_ADDRESS:
        return mk_request_client_text(p->handler.request);
    case MK_PROXY_HASH_PATH:
        return mk_request_path(p->handler.request);
    case MK_PROXY_HASH_COOKIE:
        return request_find_cookie(p->handler.request, r->hash_name);
    case MK_PROXY_HASH_FIELD:
        return mk_request_header(p->handler.request, r->hash_name);
    case MK_PROXY_HASH_NONE:
        break;
    }
    return mk_str_of(NULL, 0);
}

static void server_id_format(uint64_t id, char out[ID_LEN])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = ID_LEN - 1; i >= 0; i--, id >>= 4)
        out[i] = digits[id & 15];
}

static int sticky_find_server(const struct mk_upstream *u, mk_str value)
{
    char id[ID_LEN];
    for (unsigned i = 0; value.len == ID_LEN && i < mk_upstream_count(u); i++) {
        server_id_format(mk_upstream_server_id(u, i), id);
        if (mk_consttime_eq(mk_str_of(id, sizeof id), value))
            return (int)i;
    }
    return -1;
}

static void proxy_choose_server(const struct mk_proxy *p, struct mk_upstream_conn_options *options)
{
    const struct mk_proxy_route *r = p->route;
    mk_str key = sticky_hash_key(p);
    *options =
        (struct mk_upstream_conn_options){.server = -1,
                                          /* a client that finds a collision only influences its own server */
                                          .hash = mk_fnv1a(MK_FNV1A_INIT, key),
                                          .has_hash = key.p,
                                          .request = p->handler.request,
                                          .client = mk_request_client_addr(p->handler.request)};
    if (r->sticky.p)
        options->server = sticky_find_server(r->upstream, request_find_cookie(p->handler.request, r->sticky));
}

/* Sets the sticky-session cookie unless the client's cookie already names this server. */
static int proxy_add_cookie(struct mk_proxy *p)
{
    const struct mk_proxy_route *r = p->route;
    int server = mk_upstream_request_server(p->handler.upstream);
    char buf[512], id[ID_LEN];
    struct mk_buf cookie = mk_buf_fixed(buf, sizeof buf);
    if (!r->sticky.p || server < 0 ||
        sticky_find_server(r->upstream, request_find_cookie(p->handler.request, r->sticky)) == server)
        return 0;
    server_id_format(mk_upstream_server_id(r->upstream, (unsigned)server), id);
    mk_buf_add(&cookie, r->sticky);
    mk_buf_add_char(&cookie, '=');
    mk_buf_add(&cookie, mk_str_of(id, sizeof id));
    mk_buf_add(&cookie, MK_STR("; Path=/; HttpOnly; SameSite=Lax"));
    if (mk_str_eq(mk_request_scheme(p->handler.request), MK_STR("https")))
        mk_buf_add(&cookie, MK_STR("; Secure"));
    return cookie.failed
               ? 0
               : mk_response_add_header(p->handler.response, MK_STR("Set-Cookie"), mk_buf_str(&cookie));
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
    options->target = mk_proxy_request_build_target(h->request, p->route);
    if (!options->target.p)
        return 400;
    unsigned status = mk_proxy_request_build_headers(p, options);
    if (status)
        return status;
    if (h->body.upgrade == MK_REQUEST_BODY_WANTS_UPGRADE)
        options->upgrade = p->upgrade;
    mk_request_body_attach(&h->body, options);
    proxy_choose_server(p, &options->conn);
    return 0;
}

static void proxy_send_mirror(struct mk_upstream_handler *h,
                              const struct mk_upstream_request_options *options)
{
    const struct mk_proxy_route *route = proxy_of(h)->route;
    struct mk_worker *worker = mk_request_worker(h->request);
    if (route->streams && options->length) /* whether all of the body is here depends on timing */
        return;
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
        mk_request_set_tunnel_timeout(h->request, p->route->tunnel_ms ? p->route->tunnel_ms : MK_FOREVER))
        return -ENOMEM;
    int e = mk_proxy_response_copy_head(p);
    return e ? e : proxy_add_cookie(p);
}

/* If the backend has declined a request with a body, the client gets its page: see
 * proxy_replaces_response(). */
static int local_copy_head(struct mk_upstream_handler *h)
{
    int e = proxy_copy_head(h);
    bool is_declined = mk_upstream_request_header(h->upstream, MK_STR(MK_LOCAL_BACKEND_DECLINED)).p;
    return e || !is_declined ? e : mk_response_remove_header(h->response, MK_STR(MK_LOCAL_BACKEND_DECLINED));
}

/* ---- Error responses of a local backend ---- */

enum { PAGE_MAX = 1 << 20 };

/* The response of a local backend that declined the request. The client gets it if no other handler
 * responds. */
struct declined_page {
    struct mk_buf body;
    struct mk_header *headers;
    size_t n;
    bool is_complete; /* the backend has written a page, and the whole page has arrived */
};

static const char declined_page_key;

/* Is it a header that belongs to the path, whichever handler responds? */
static bool is_cors_header(mk_str name)
{
    return mk_str_eq_nocase(name, MK_STR("Vary")) ||
           mk_str_eq_nocase(mk_str_first(name, sizeof "Access-Control-" - 1), MK_STR("Access-Control-"));
}

static bool is_local_backend_header(mk_str name)
{
    return mk_str_eq_nocase(name, MK_STR(MK_LOCAL_BACKEND_DECLINED)) ||
           mk_str_eq_nocase(name, MK_STR(MK_LOCAL_BACKEND_DEFAULT_PAGE));
}

/* Copies headers of the backend's response, because the upstream request ends before our response is sent.
 * False: out of memory. */
static bool copy_error_headers(struct mk_upstream_handler *h, bool only_cors)
{
    mk_str name, value;
    int e = 0;
    for (size_t i = 0; e != -ENOMEM && mk_upstream_request_header_at(h->upstream, i, &name, &value); i++)
        if (!is_local_backend_header(name) && (!only_cors || is_cors_header(name)))
            e = mk_response_add_header(h->response, name, value);
    return e != -ENOMEM;
}

static void declined_page_free(void *ctx)
{
    struct declined_page *page = ctx;
    mk_buf_free(&page->body);
}

static mk_str copy_text(struct mk_request *request, mk_str text)
{
    char *p = mk_request_alloc(request, text.len + 1);
    if (p && text.len)
        memcpy(p, text.p, text.len);
    return mk_str_of(p, p ? text.len : 0);
}

/* Copies the headers of the page, except CORS headers, which declined_page_of() adds to the response. */
static bool copy_page_headers(struct declined_page *page, const struct mk_upstream_handler *h)
{
    mk_str name, value;
    size_t n = 0;
    while (mk_upstream_request_header_at(h->upstream, n, &name, &value))
        n++;
    page->headers = mk_request_alloc(h->request, (n + 1) * sizeof *page->headers);
    for (size_t i = 0; page->headers && i < n; i++) {
        (void)mk_upstream_request_header_at(h->upstream, i, &name, &value);
        if (is_local_backend_header(name) || is_cors_header(name))
            continue;
        struct mk_header *to = &page->headers[page->n++];
        *to = (struct mk_header){copy_text(h->request, name), copy_text(h->request, value)};
        if (!to->name.p || !to->value.p)
            return false;
    }
    return page->headers;
}

/* Returns NULL if out of memory. */
static struct declined_page *declined_page_of(struct mk_upstream_handler *h)
{
    struct declined_page *page = mk_request_attached(h->request, &declined_page_key);
    if (page || !(page = mk_request_alloc(h->request, sizeof *page)))
        return page;
    *page = (struct declined_page){.body = mk_buf_growing(PAGE_MAX)};
    if (mk_request_attach(h->request, &declined_page_key, page, declined_page_free))
        return NULL;
    page->body.failed = !copy_page_headers(page, h) || !copy_error_headers(h, true);
    return page;
}

/* Reads the response to the end, so that the connection can be reused, and keeps the page unless it is the
 * default page, which comes without a body. */
MK_COLD static enum mk_verdict receive_declined_page(struct mk_upstream_handler *h)
{
    struct declined_page *page = declined_page_of(h);
    char buf[4096];
    ssize_t n;
    while ((n = mk_upstream_request_read(h->upstream, buf, sizeof buf)) > 0)
        if (page)
            mk_buf_add(&page->body, mk_str_of(buf, (size_t)n));
    if (n == -EAGAIN)
        return MK_WAIT;
    if (page && n == 0)
        page->is_complete = !page->body.failed &&
                            !mk_upstream_request_header(h->upstream, MK_STR(MK_LOCAL_BACKEND_DEFAULT_PAGE)).p;
    return MK_NEXT;
}

/* Is the response of the local backend not for the client? If the backend has declined the request, another
 * handler may respond. No other handler gets a request with a body: part of the body may already have been
 * read. A default error page is replaced by that of this server. */
static bool proxy_replaces_response(struct mk_upstream_handler *h, enum mk_verdict *verdict)
{
    if (mk_upstream_request_header(h->upstream, MK_STR(MK_LOCAL_BACKEND_DECLINED)).p &&
        mk_request_length(h->request) == 0) {
        *verdict = receive_declined_page(h);
        return true;
    }
    if (!mk_upstream_request_header(h->upstream, MK_STR(MK_LOCAL_BACKEND_DEFAULT_PAGE)).p)
        return false;
    char buf[64];
    while (mk_upstream_request_read(h->upstream, buf, sizeof buf) > 0)
        continue;
    (void)mk_response_set_status(
        h->response, copy_error_headers(h, false) ? mk_upstream_request_status(h->upstream) : 503);
    *verdict = MK_ERROR;
    return true;
}

static enum mk_verdict proxy_respond_with_grpc_error(struct mk_upstream_handler *h, unsigned status)
{
    return mk_grpc_respond_with_error(h->response, status);
}

static const struct mk_upstream_handler_ops grpc_ops = {.make_request = proxy_build_request,
                                                        .on_interim = proxy_send_interim,
                                                        .copy_head = proxy_copy_head,
                                                        .respond_with_error = proxy_respond_with_grpc_error};
static const struct mk_upstream_handler_ops proxy_ops = {
    .make_request = proxy_build_request, .on_interim = proxy_send_interim, .copy_head = proxy_copy_head};
static const struct mk_upstream_handler_ops mirrored_ops = {.make_request = proxy_build_request,
                                                            .on_start = proxy_send_mirror,
                                                            .on_interim = proxy_send_interim,
                                                            .copy_head = proxy_copy_head};
static const struct mk_upstream_handler_ops local_ops = {.make_request = proxy_build_request,
                                                         .on_interim = proxy_send_interim,
                                                         .replace = proxy_replaces_response,
                                                         .copy_head = local_copy_head};

/* ---- Max-Forwards ---- */

/* Finds Max-Forwards. False: it is repeated or not a number. */
static bool find_max_forwards(const struct mk_request *request, mk_str *found)
{
    mk_str name, value;
    *found = MK_STR_NULL;
    for (size_t i = 0; mk_request_header_at(request, i, &name, &value); i++) {
        if (mk_request_header_role(request, i) != MK_ROLE_MAX_FORWARDS)
            continue;
        if (found->p || !value.len)
            return false;
        *found = value;
    }
    for (size_t i = 0; i < found->len; i++)
        if (!mk_char_is_digit(found->p[i]))
            return false;
    return true;
}

/* Parses the number; saturates at the largest value that we support. */
static uint32_t parse_max_forwards(mk_str digits)
{
    uint64_t n;
    return mk_num_parse(digits, &n) && n <= UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* Responds to a request whose Max-Forwards is 0. TRACE is rejected, because its response would expose headers
 * that browsers hide from scripts. */
static enum mk_verdict respond_to_max_forwards_0(struct mk_proxy *p, enum mk_method method)
{
    if (method == MK_METHOD_OPTIONS && !mk_response_set_status(p->handler.response, 200) &&
        !mk_response_set_body_nocopy(p->handler.response, MK_STR("")))
        return MK_DONE;
    (void)mk_response_set_status(p->handler.response, method == MK_METHOD_TRACE ? 501 : 503);
    return MK_ERROR;
}

/* Checks Max-Forwards of OPTIONS and TRACE, and sets the value to forward. True: the request ends here; the
 * handler returns *verdict. */
static bool proxy_check_hops(struct mk_proxy *p, enum mk_verdict *verdict)
{
    enum mk_method method = mk_request_method(p->handler.request);
    mk_str limit;
    if ((method != MK_METHOD_OPTIONS && method != MK_METHOD_TRACE) || mk_proxy_route_is_local(p->route))
        return false;
    if (!find_max_forwards(p->handler.request, &limit)) {
        (void)mk_response_set_status(p->handler.response, 400);
        *verdict = MK_ERROR;
        return true;
    }
    uint32_t n = limit.p ? parse_max_forwards(limit) : 0;
    if (limit.p && n == 0) {
        *verdict = respond_to_max_forwards_0(p, method);
        return true;
    }
    p->hops = (struct mk_proxy_max_forwards){.is_limited = limit.p, .left = n - (limit.p != NULL)};
    return false;
}

/* ---- The first call ---- */

/* A tunnel with another HTTP version, or with TLS inside, would let the client send requests that no route
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

/* Does the client wait for 100 Continue? A local backend sends it, or rejects the request before receiving
 * the body, as a handler of this server does. */
static bool proxy_expects_continue(struct mk_request *request)
{
    return mk_request_version(request) >= 11 && mk_request_length(request) &&
           mk_str_eq_nocase(mk_request_header(request, MK_STR("Expect")), MK_STR("100-continue"));
}

static bool proxy_sends_trailer(struct mk_request_body *b, mk_str name)
{
    return mk_proxy_request_sends_trailer(MK_CONTAINER(b, struct mk_proxy, handler.body), name);
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
                    .intercepts = route->intercepts,
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

/* A call of gRPC may last for hours, and its messages go in both directions: nothing is buffered, and either
 * side may be silent for as long as the server may. */
static void proxy_init_grpc(struct mk_proxy *p, struct mk_request *request)
{
    uint32_t timeout = p->route->limits.read_timeout_ms;
    p->handler.ops = &grpc_ops;
    p->handler.spools = false;
    p->handler.body.mode = MK_REQUEST_BODY_STREAM;
    (void)mk_request_set_body_timeout(request, timeout ? timeout : MK_FOREVER);
}

/* handle() of the handler; `data` is the route. */
static enum mk_verdict handle_request(struct mk_request *request, struct mk_response *response, void *data)
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
    if (MK_UNLIKELY(route->is_http2) && mk_grpc_is_request(request))
        proxy_init_grpc(p, request);
    return proxy_check_hops(p, &verdict) ? verdict : mk_upstream_handler_start(&p->handler);
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
    (void)mk_request_id(request); /* the log lines of both servers contain the same ID */
    return handle_request(request, response, &backend->route);
}

/* Does the status say that no handler responds to the path? Other errors occurred in a later handler. */
static bool is_unknown_resource(unsigned status)
{
    return status == 404 || status == 405 || status == 501;
}

enum mk_verdict mk_local_backend_error(struct mk_request *request, struct mk_response *response)
{
    const struct declined_page *page = mk_request_attached(request, &declined_page_key);
    if (!page || !page->is_complete || !is_unknown_resource(mk_response_status(response)))
        return MK_NEXT;
    int e = mk_response_remove_header(response, MK_STR("Allow"));
    for (size_t i = 0; !e && i < page->n; i++)
        e = mk_response_add_header_nocopy(response, page->headers[i].name, page->headers[i].value);
    e = e ? e : mk_response_set_body_nocopy(response, mk_buf_str(&page->body));
    return e ? MK_NEXT : mk_response_set_status(response, 404) ? MK_NEXT : MK_DONE;
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
    .handle = handle_request,
    .bind = mk_proxy_route_bind,
    .traits = MK_HANDLER_FORWARDS,
};

static const struct mk_handler *const handlers[] = {&handler, NULL};
static const char *const needs[] = {"upstream", NULL};

MK_PLUGIN(proxy) = {
    MK_PLUGIN_HEAD,
    .name = "proxy",
    .version = MK_VERSION,
    .help = "Passes requests to backend HTTP servers.",
    .handlers = handlers,
    .needs = needs,
    .worker_start = proxy_start_worker,
    .worker_stop = proxy_stop_worker,
};
