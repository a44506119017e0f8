/* SPDX-License-Identifier: Apache-2.0 */
/* One request on its way through fastcgi, scgi or uwsgi. */
#include <errno.h>
#include <limits.h>
#include <monkey/cgi.h>
#include <stdlib.h>

#include "upstream/gateway_content.h"
#include "upstream/gateway_route.h"

enum { ERRORS_MAX = 64 * 1024 }; /* of standard error that become lines of the log */

enum step { RECEIVE, WAIT, CONTENT, OVER };

struct call {
    struct mk_request *request;
    struct mk_response *response;
    const struct mk_gateway_route *route;
    mk_str script, info; /* SCRIPT_NAME and PATH_INFO */
    enum step step;
    struct mk_upstream_request *client;
    struct mk_gateway_content content;
    struct mk_cgi_errors *errors; /* NULL: none so far */
};

/* Where the document root really is: the server behind need not resolve links or `..` as we do. */
struct place {
    mk_str root, real; /* without a slash at the end */
};

/* ---- The configuration ---- */

static int load(struct mk_config *config, void **data)
{
    (void)data;
    mk_config_want_spool(config);
    return 0;
}

static mk_str without_slash(mk_str path)
{
    return mk_str_first(path, path.len - mk_str_ends(path, MK_STR("/")));
}

static int enter_host(struct mk_config *config, struct mk_host *host, void *data, void **host_data)
{
    struct place *place = mk_config_alloc(config, sizeof *place);
    mk_str root = mk_host_root(host);
    char real[PATH_MAX];
    (void)data;
    *host_data = place;
    if (!place)
        return -ENOMEM;
    place->root = place->real = without_slash(root);
    if (root.len && realpath(root.p, real))
        place->real = without_slash(mk_config_copy(config, mk_str_from_c(real)));
    return place->real.p || !root.len ? 0 : -ENOMEM;
}

/* ---- The end ---- */

static void end(void *data)
{
    struct call *c = data;
    c->step = OVER;
    mk_upstream_request_free(c->client);
    c->client = NULL;
    if (c->errors)
        mk_cgi_errors_end(c->errors);
}

/* The client stays until the request ends: fields of the response may be in it. */
static enum mk_verdict refuse(struct call *c, unsigned status)
{
    c->step = OVER;
    mk_response_set_status(c->response, status);
    if (status == 503)
        (void)mk_response_add_static(c->response, MK_STR("Retry-After"), MK_STR("1"));
    return MK_REFUSE;
}

static void on_ready(void *ctx)
{
    mk_request_resume(((struct call *)ctx)->request);
}

static void say(void *ctx, mk_str line)
{
    struct call *c = ctx;
    mk_request_log(c->request, MK_LOG_WARN, "%s: %.*s", c->route->gateway->plugin->name, MK_STR_ARG(line));
}

static void on_error_text(void *ctx, mk_str text)
{
    struct call *c = ctx;
    if (!c->errors) {
        c->errors = mk_request_alloc(c->request, sizeof *c->errors);
        if (!c->errors)
            return;
        *c->errors = (struct mk_cgi_errors){.say = say,
                                            .ctx = c,
                                            .left = ERRORS_MAX,
                                            .full = "(this is more than 64 KB: the rest is not logged)"};
    }
    mk_cgi_errors_add(c->errors, text);
}

/* ---- The content of the response ---- */

/* The program may answer while it reads. */
static ssize_t read_on(struct call *c, char *room, size_t cap)
{
    c->content.is_called = true;
    mk_upstream_request_resume(c->client);
    ssize_t n = mk_upstream_request_read(c->client, room, cap);
    c->content.is_called = false;
    return n;
}

static ssize_t pull(void *ctx, char *room, size_t cap)
{
    struct call *c = ctx;
    if (!c->client)
        return -EPIPE;
    ssize_t n = read_on(c, room, cap);
    if (n >= 0 || n == -EAGAIN)
        return n;
    mk_upstream_request_log_error(c->client, c->request);
    (void)mk_response_fail(c->response, mk_upstream_status_for_error((int)n));
    return n;
}

static const struct mk_source_ops content = {.pull = pull};

/* Content that is small and came with the head goes out with it, and its program serves others at once. */
static int set_content(struct call *c)
{
    unsigned status = mk_upstream_request_status(c->client);
    bool is_bare = mk_request_method(c->request) == MK_METHOD_HEAD || status == 204 || status == 304;
    mk_str whole;
    if (!is_bare && mk_upstream_request_buffered_body(c->client, &whole))
        return mk_response_set_static(c->response, whole);
    if (!c->route->streams && !mk_upstream_request_spool(c->client, c->request))
        return -ENOMEM;
    return mk_response_set_source(c->response, &content, c, mk_upstream_request_length(c->client));
}

/* ---- The head of the response ---- */

static bool is_server_made(mk_str name)
{
    mk_str accept = MK_STR("Sec-WebSocket-Accept");
    return name.len == accept.len && mk_str_eq_nocase(name, accept);
}

static int add_others(struct call *c, const struct mk_field_line *lines, size_t n)
{
    int e = 0;
    for (size_t i = 0; !e && i < n; i++)
        if (!is_server_made(lines[i].name))
            e = mk_response_add_static(c->response, lines[i].name, lines[i].value);
    return e;
}

/* The client has checked them, and keeps them until the request ends. */
static int copy_head(struct call *c)
{
    mk_str text;
    size_t n;
    const struct mk_field_line *lines = mk_upstream_request_lines(c->client, &text, &n);
    int e = mk_response_set_status(c->response, mk_upstream_request_status(c->client));
    for (size_t i = 0; !e && i < n; i++)
        if (is_server_made(lines[i].name))
            return add_others(c, lines, n);
    return e ? e : mk_response_add_lines(c->response, text, lines, n);
}

/* RFC 3875, section 6.2.2. */
static enum mk_verdict redirect(struct call *c)
{
    int e = mk_request_rewrite(c->request, mk_upstream_request_field(c->client, MK_STR("Location")));
    if (e == -EINVAL)
        mk_request_log(c->request, MK_LOG_ERROR, "upstream %.*s: its Location leads nowhere",
                       MK_STR_ARG(mk_upstream_name(c->route->upstream)));
    if (e)
        return refuse(c, e == -EINVAL ? 502 : 503);
    end(c);
    return MK_REWRITTEN;
}

static enum mk_verdict answer(struct call *c)
{
    int e;
    do {
        e = mk_upstream_request_poll(c->client, c->request);
    } while (e == 1);
    if (e)
        return e == -EAGAIN ? MK_WAIT : refuse(c, mk_upstream_status_for_error(e));
    if (mk_upstream_request_is_local_redirect(c->client))
        return redirect(c);
    c->step = CONTENT;
    return copy_head(c) || set_content(c) ? refuse(c, 503) : MK_DONE;
}

/* ---- The request ---- */

static mk_str join(struct call *c, mk_str folder, mk_str path)
{
    char *room = mk_request_alloc(c->request, folder.len + path.len + 1);
    struct mk_buf out = mk_buf_fixed(room, folder.len + path.len + 1);
    mk_buf_add(&out, folder);
    mk_buf_add(&out, path);
    return room ? mk_buf_str(&out) : MK_ABSENT;
}

static mk_str file_name(struct call *c, const struct place *place)
{
    mk_str name = mk_request_file_name(c->request, c->script);
    if (c->route->root.p)
        return join(c, c->route->root, c->script);
    mk_str rest = mk_str_starts(name, place->root) ? mk_str_skip(name, place->root.len) : MK_ABSENT;
    if (!rest.len || rest.p[0] != '/' || mk_str_eq(place->root, place->real))
        return name; /* or it is beneath the folder of an Alias or of a user */
    return join(c, place->real, rest);
}

/* False: memory is out. */
static bool make_variables(struct call *c, struct mk_upstream_request_options *ask)
{
    const struct mk_gateway_route *route = c->route;
    const struct place *place = mk_host_data(mk_request_site(c->request), route->gateway->plugin);
    struct mk_field_line *variables;
    struct mk_cgi_options options = {.script_name = c->script,
                                     .document_root = route->root.p ? route->root : place->real,
                                     .path_info = c->info,
                                     .length = ask->length,
                                     .authorization = !mk_request_user(c->request).p,
                                     .underscores = route->passes_underscores,
                                     .forwarded = route->passes_forwarded,
                                     .set = route->set,
                                     .n_set = route->n_set};
    if (route->split.p) {
        options.script_filename = file_name(c, place);
        if (c->info.len)
            options.path_translated = join(c, options.document_root, c->info);
        if (!options.script_filename.p)
            return false;
    }
    if (mk_cgi_variables(c->request, &options, &variables, &ask->n_fields))
        return false;
    ask->fields = variables;
    return true;
}

static enum mk_verdict start(struct call *c)
{
    struct mk_upstream_request_options ask = {
        .to = c->route->upstream,
        .protocol = c->route->gateway->protocol,
        .method = mk_request_method_name(c->request),
        .is_safe_to_repeat = mk_method_is_idempotent(mk_request_method(c->request)),
        .limits = c->route->limits,
        .options = {.server = -1, .client = mk_request_address(c->request)},
        .on_error_text = on_error_text,
    };
    mk_gateway_content_add(&c->content, &ask);
    if (!make_variables(c, &ask))
        return refuse(c, 503);
    c->client = mk_upstream_request_start(mk_request_worker(c->request), &ask, on_ready, c);
    c->step = WAIT;
    return c->client ? answer(c) : refuse(c, 503);
}

static enum mk_verdict go_on(struct call *c)
{
    if (c->step == WAIT)
        return answer(c);
    if (c->step != RECEIVE)
        return MK_REFUSE;
    int e = mk_gateway_content_receive(&c->content, c->request, c->route->streams);
    if (e == -EAGAIN)
        return MK_WAIT;
    return e ? refuse(c, mk_spool_status(e)) : start(c);
}

static enum mk_verdict proceed(struct call *c)
{
    c->content.is_called = true;
    enum mk_verdict verdict = go_on(c);
    c->content.is_called = false;
    return verdict;
}

/* The pattern's beginning is the name of the program, the rest of the path is its own. */
static void split_path(const struct mk_gateway_route *route, mk_str path, mk_str *name, mk_str *info)
{
    mk_str rest = mk_str_skip(path, route->prefix.len);
    bool fits = mk_str_starts(path, route->prefix) && (!rest.len || rest.p[0] == '/');
    *name = fits ? route->prefix : MK_STR("");
    *info = fits ? rest : path;
}

static enum mk_verdict begin(struct mk_request *request, struct mk_response *response,
                             const struct mk_gateway_route *route)
{
    struct call call = {.request = request, .response = response, .route = route};
    unsigned status = 0;
    if (route->split.p)
        status = mk_request_find_script(request, route->split, &call.script, &call.info);
    else
        split_path(route, mk_request_path(request), &call.script, &call.info);
    if (status == 404) {
        if (call.script.p) /* said aloud, so that `static` does not send a script that comes back meanwhile */
            mk_response_set_status(response, 404);
        return MK_NEXT;
    }
    if (!status && !route->raw_paths)
        status = mk_request_check_path(request);
    struct call *c = status ? NULL : mk_request_alloc(request, sizeof *c);
    if (c)
        *c = call;
    if (!c || mk_request_on_end(request, end, c)) {
        mk_response_set_status(response, status ? status : 503);
        return MK_REFUSE;
    }
    mk_request_set_data(request, c);
    mk_request_follow_client(request);
    (void)mk_request_limit_wait(request, 0); /* the route has clocks of its own */
    return proceed(c);
}

static enum mk_verdict handle(struct mk_request *request, struct mk_response *response, void *data)
{
    struct call *c = mk_request_data(request);
    return c ? proceed(c) : begin(request, response, data);
}

/* ---- The plugins ---- */

#define FORM                                                                                                 \
    "SERVER, which is HOST:PORT, unix:/path or the Name of an [UPSTREAM], then [root=FOLDER] "               \
    "[split=.EXTENSION|off] [set=NAME=VALUE] [stream] [paths=checked|raw] "                                  \
    "[underscores=off|on] [forwarded=off|pass] " MK_UPSTREAM_LIMITS_FORM

static const char *const needs[] = {"upstream", NULL};

MK_PLUGIN_DECLARE(fastcgi);

static const struct mk_gateway fastcgi = {.plugin = &MK_PLUGIN_OF(fastcgi),
                                          .protocol = MK_UPSTREAM_PROTOCOL_FASTCGI,
                                          .port = 9000,
                                          .split = ".php"};

static bool bind_fastcgi(const struct mk_conf_spot *spot, mk_str words, void **data)
{
    return mk_gateway_bind(&fastcgi, spot, words, data);
}

static const struct mk_handler fastcgi_handler = {
    .name = "fastcgi",
    .form = FORM,
    .handle = handle,
    .bind = bind_fastcgi,
    .traits = MK_HANDLER_FILES | MK_HANDLER_FORWARDS,
};

static const struct mk_handler *const fastcgi_handlers[] = {&fastcgi_handler, NULL};

MK_PLUGIN(fastcgi) = {
    MK_PLUGIN_HEAD,
    .name = "fastcgi",
    .version = MK_VERSION,
    .help = "Passes requests to FastCGI servers: PHP-FPM and others.",
    .handlers = fastcgi_handlers,
    .load = load,
    .host = enter_host,
    .needs = needs,
};

MK_PLUGIN_DECLARE(scgi);

static const struct mk_gateway scgi = {
    .plugin = &MK_PLUGIN_OF(scgi), .protocol = MK_UPSTREAM_PROTOCOL_SCGI, .port = 4000};

static bool bind_scgi(const struct mk_conf_spot *spot, mk_str words, void **data)
{
    return mk_gateway_bind(&scgi, spot, words, data);
}

static const struct mk_handler scgi_handler = {
    .name = "scgi",
    .form = FORM,
    .handle = handle,
    .bind = bind_scgi,
    .traits = MK_HANDLER_FILES | MK_HANDLER_FORWARDS,
};

static const struct mk_handler *const scgi_handlers[] = {&scgi_handler, NULL};

MK_PLUGIN(scgi) = {
    MK_PLUGIN_HEAD,
    .name = "scgi",
    .version = MK_VERSION,
    .help = "Passes requests to SCGI servers.",
    .handlers = scgi_handlers,
    .load = load,
    .host = enter_host,
    .needs = needs,
};

MK_PLUGIN_DECLARE(uwsgi);

static const struct mk_gateway uwsgi = {
    .plugin = &MK_PLUGIN_OF(uwsgi), .protocol = MK_UPSTREAM_PROTOCOL_UWSGI, .port = 3031};

static bool bind_uwsgi(const struct mk_conf_spot *spot, mk_str words, void **data)
{
    return mk_gateway_bind(&uwsgi, spot, words, data);
}

static const struct mk_handler uwsgi_handler = {
    .name = "uwsgi",
    .form = FORM,
    .handle = handle,
    .bind = bind_uwsgi,
    .traits = MK_HANDLER_FILES | MK_HANDLER_FORWARDS,
};

static const struct mk_handler *const uwsgi_handlers[] = {&uwsgi_handler, NULL};

MK_PLUGIN(uwsgi) = {
    MK_PLUGIN_HEAD,
    .name = "uwsgi",
    .version = MK_VERSION,
    .help = "Passes requests to uWSGI and other servers that speak its protocol.",
    .handlers = uwsgi_handlers,
    .load = load,
    .host = enter_host,
    .needs = needs,
};
