/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers `fastcgi`, `scgi` and `uwsgi`: pass requests to programs with CGI variables (RFC 3875). */
#include <errno.h>
#include <limits.h>
#include <monkey/cgi.h>
#include <monkey/text.h>
#include <stdlib.h>

#include "http/path_pattern.h"
#include "upstream/handler.h"
#include "upstream/route_option.h"

enum { ERRORS_MAX = 64 * 1024 }; /* maximum logged bytes of standard error */

/* The properties that distinguish the three handlers. */
struct cgi_handler_type {
    const struct mk_plugin *plugin;
    enum mk_upstream_protocol protocol;
    uint16_t port;     /* default port of servers */
    const char *split; /* default extension of scripts; NULL: the handler has no script files */
};

struct cgi_route {
    const struct cgi_handler_type *gateway;
    struct mk_upstream *upstream;
    mk_str root;   /* document root as seen by the backend; absent: that of the virtual host, resolved */
    mk_str split;  /* extension of scripts; absent: no script files */
    mk_str prefix; /* prefix of the pattern, without its trailing slash: SCRIPT_NAME if there are no script
                    * files */
    struct mk_header *set;
    size_t n_set;
    bool streams;
    const struct mk_route_statuses *intercepts;
    bool passes_underscores, passes_forwarded;
    bool raw_paths; /* allow paths that the program may interpret as paths of other routes */
    struct mk_upstream_limits limits;
};

struct cgi_request {
    struct mk_upstream_handler handler;
    const struct cgi_route *route;
    mk_str script_name, path_info;
    struct mk_cgi_stderr *errors; /* NULL: no error output so far */
};

/* Document root of a virtual host, as configured and with symbolic links resolved. Backends get the resolved
 * path, because they may resolve links and `..` differently. */
struct document_root {
    mk_str path, real; /* without a trailing slash */
};

static struct cgi_request *cgi_request_of(struct mk_upstream_handler *h)
{
    return MK_CONTAINER(h, struct cgi_request, handler);
}

/* ---- Options of a route ---- */

/* The path is not relative to the configuration folder: it may be a path in another container. */
static bool option_read_root(const struct mk_route_option *o)
{
    struct cgi_route *r = o->route;
    mk_str root = o->value;
    if (root.p[0] != '/')
        return mk_route_option_fail(o, "a folder that begins with `/`, as the backend sees it");
    r->root = mk_str_first(root, root.len - mk_str_ends(root, MK_STR("/")));
    return true;
}

static bool option_read_split(const struct mk_route_option *o)
{
    struct cgi_route *r = o->route;
    mk_str split = o->value;
    bool is_off = mk_str_eq(split, MK_STR("off"));
    r->split = is_off ? MK_STR_NULL : split;
    return is_off || (split.len > 1 && split.p[0] == '.' && mk_str_find(split, '/') == MK_STR_NONE) ||
           mk_route_option_fail(o, "an extension such as `.php`, or `off`");
}

static bool option_read_set(const struct mk_route_option *o)
{
    struct cgi_route *r = o->route;
    struct mk_header field = {.value = o->value};
    field.name = mk_str_cut(&field.value, '=');
    if (!field.value.p || !mk_is_token(field.name))
        return mk_route_option_fail(o, "a variable, such as `set=APP_ENV=production`");
    if (mk_str_eq(field.name, MK_STR("CONTENT_LENGTH")) || mk_str_eq(field.name, MK_STR("SCGI")))
        return mk_route_option_fail(o, "another variable: the server sets this one");
    return mk_conf_ctx_append(o->ctx, &r->set, &r->n_set, &field, sizeof field);
}

static bool option_read_intercept(const struct mk_route_option *o)
{
    struct cgi_route *r = o->route;
    return mk_route_option_read_statuses(o, &r->intercepts);
}

static const char *const checked_or_raw[] = {"checked", "raw"};
static const char *const off_or_on[] = {"off", "on"};
static const char *const off_or_pass[] = {"off", "pass"};

static const struct mk_route_option_type cgi_options[] = {
    {"root", .read = option_read_root},
    {"split", .read = option_read_split},
    {"set", .read = option_read_set},
    {"intercept_errors", .read = option_read_intercept},
    {"stream", MK_ROUTE_OPTION_FLAG(struct cgi_route, streams)},
    {"paths", MK_ROUTE_OPTION_CHOICE(struct cgi_route, raw_paths, checked_or_raw)},
    {"underscores", MK_ROUTE_OPTION_CHOICE(struct cgi_route, passes_underscores, off_or_on)},
    {"forwarded", MK_ROUTE_OPTION_CHOICE(struct cgi_route, passes_forwarded, off_or_pass)},
};

/* ---- The pattern ---- */

/* The pattern up to its first wildcard, without a trailing slash. */
static mk_str pattern_prefix(mk_str pattern)
{
    size_t end = mk_str_find(pattern, '*'), other = mk_str_find(pattern, '?');
    if (!pattern.len || pattern.p[0] != '/')
        return MK_STR("");
    pattern = mk_str_first(pattern, end < other ? end : other);
    while (mk_str_ends(pattern, MK_STR("/")))
        pattern.len--;
    return pattern;
}

static bool cgi_route_bind(const struct mk_conf_ctx *conf, mk_str words,
                           const struct cgi_handler_type *gateway, void **data)
{
    struct cgi_route *r = mk_conf_ctx_alloc(conf, sizeof *r);
    struct mk_upstream_defaults defaults = {.port = gateway->port};
    mk_str server, pattern = mk_conf_ctx_key(conf), extension = mk_path_pattern_extension(pattern);
    if (!r || !mk_conf_ctx_word(conf, &words, &server) || !server.p)
        return false;
    *r = (struct cgi_route){.gateway = gateway, .prefix = pattern_prefix(pattern), .split = extension};
    if (!extension.p && gateway->split)
        r->split = mk_str_from_c(gateway->split);
    r->upstream = mk_upstream_find(conf, server, &defaults);
    if (!r->upstream)
        return false;
    *data = r;
    if (!mk_route_options_read(conf, words, cgi_options, MK_LEN(cgi_options), r, &r->limits))
        return false;
    if (!r->streams)
        mk_config_enable_body_spool(mk_conf_ctx_config(conf));
    return true;
}

/* ---- The configuration ---- */

static int cgi_load(struct mk_config *config, void **data)
{
    (void)data;
    mk_config_enable_body_spool(config);
    return 0;
}

static mk_str strip_trailing_slash(mk_str path)
{
    return mk_str_first(path, path.len - mk_str_ends(path, MK_STR("/")));
}

static int cgi_init_vhost(struct mk_config *config, struct mk_vhost *host, void *data, void **host_data)
{
    struct document_root *root = mk_config_alloc(config, sizeof *root);
    mk_str path = mk_vhost_root(host);
    char real[PATH_MAX];
    (void)data;
    *host_data = root;
    if (!root)
        return -ENOMEM;
    root->path = root->real = strip_trailing_slash(path);
    if (path.len && realpath(path.p, real))
        root->real = strip_trailing_slash(mk_config_copy(config, mk_str_from_c(real)));
    return root->real.p || !path.len ? 0 : -ENOMEM;
}

/* ---- Standard error ---- */

static void cgi_log_line(void *ctx, mk_str line)
{
    const struct cgi_request *c = ctx;
    mk_request_log(c->handler.request, MK_LOG_WARN, "%s: %.*s", c->route->gateway->plugin->name,
                   MK_STR_ARG(line));
}

static void cgi_on_error_text(void *ctx, mk_str text)
{
    struct cgi_request *c = cgi_request_of(ctx);
    if (!c->errors) {
        c->errors = mk_request_alloc(c->handler.request, sizeof *c->errors);
        if (!c->errors)
            return;
        *c->errors =
            (struct mk_cgi_stderr){.on_line = cgi_log_line,
                                   .ctx = c,
                                   .remaining = ERRORS_MAX,
                                   .limit_message = "(this is more than 64 KB: the rest is not logged)"};
    }
    mk_cgi_stderr_add(c->errors, text);
}

static void cgi_on_request_end(struct mk_upstream_handler *h)
{
    struct cgi_request *c = cgi_request_of(h);
    if (c->errors)
        mk_cgi_stderr_flush(c->errors);
}

/* ---- The response ---- */

static bool is_websocket_accept_header(mk_str name)
{
    mk_str accept = MK_STR("Sec-WebSocket-Accept");
    return name.len == accept.len && mk_str_eq_nocase(name, accept);
}

static int cgi_add_other_headers(struct mk_upstream_handler *h, const struct mk_header *lines, size_t n)
{
    int e = 0;
    for (size_t i = 0; !e && i < n; i++)
        if (!is_websocket_accept_header(lines[i].name))
            e = mk_response_add_header_nocopy(h->response, lines[i].name, lines[i].value);
    return e;
}

/* Does not copy the headers: they were validated by the upstream request, which lives until our request
 * ends. */
static int cgi_copy_head(struct mk_upstream_handler *h)
{
    mk_str text;
    size_t n;
    const struct mk_header *lines = mk_upstream_request_headers(h->upstream, &text, &n);
    int e = mk_response_set_status(h->response, mk_upstream_request_status(h->upstream));
    for (size_t i = 0; !e && i < n; i++)
        if (is_websocket_accept_header(lines[i].name))
            return cgi_add_other_headers(h, lines, n);
    return e ? e : mk_response_add_headers(h->response, text, lines, n);
}

/* Local redirect response (RFC 3875, section 6.2.2). */
static bool cgi_follow_local_redirect(struct mk_upstream_handler *h, enum mk_verdict *verdict)
{
    if (!mk_upstream_request_is_local_redirect(h->upstream))
        return false;
    int e = mk_request_rewrite(h->request, mk_upstream_request_header(h->upstream, MK_STR("Location")));
    if (e == -EINVAL)
        mk_request_log(h->request, MK_LOG_ERROR, "upstream %.*s: its Location leads nowhere",
                       MK_STR_ARG(mk_upstream_name(cgi_request_of(h)->route->upstream)));
    *verdict = e ? mk_upstream_handler_error(h->response, e == -EINVAL ? 502 : 503) : MK_REWRITTEN;
    return true;
}

/* ---- The request ---- */

static mk_str cgi_join_path(struct cgi_request *c, mk_str folder, mk_str path)
{
    char *buf = mk_request_alloc(c->handler.request, folder.len + path.len + 1);
    struct mk_buf out = mk_buf_fixed(buf, folder.len + path.len + 1);
    mk_buf_add(&out, folder);
    mk_buf_add(&out, path);
    return buf ? mk_buf_str(&out) : MK_STR_NULL;
}

static mk_str cgi_script_filename(struct cgi_request *c, const struct document_root *root)
{
    mk_str name = mk_request_translate_path(c->handler.request, c->script_name);
    if (c->route->root.p)
        return cgi_join_path(c, c->route->root, c->script_name);
    mk_str rest = mk_str_starts(name, root->path) ? mk_str_skip(name, root->path.len) : MK_STR_NULL;
    if (!rest.len || rest.p[0] != '/' || mk_str_eq(root->path, root->real))
        return name; /* also for a file below an Alias or in a user's folder */
    return cgi_join_path(c, root->real, rest);
}

/* Builds the CGI variables. False: out of memory. */
static bool cgi_build_variables(struct cgi_request *c, struct mk_upstream_request_options *options)
{
    const struct cgi_route *route = c->route;
    const struct document_root *root =
        mk_vhost_data(mk_request_vhost(c->handler.request), route->gateway->plugin);
    struct mk_header *variables;
    struct mk_cgi_options choices = {.script_name = c->script_name,
                                     .document_root = route->root.p ? route->root : root->real,
                                     .path_info = c->path_info,
                                     .length = options->length,
                                     .authorization = !mk_request_user(c->handler.request).p,
                                     .underscores = route->passes_underscores,
                                     .forwarded = route->passes_forwarded,
                                     .overrides = route->set,
                                     .n_overrides = route->n_set};
    if (route->split.p) {
        choices.script_filename = cgi_script_filename(c, root);
        if (c->path_info.len)
            choices.path_translated = cgi_join_path(c, choices.document_root, c->path_info);
        if (!choices.script_filename.p)
            return false;
    }
    if (mk_request_add_context(c->handler.request) ||
        mk_cgi_variables(c->handler.request, &choices, &variables, &options->n_headers))
        return false;
    options->headers = variables;
    return true;
}

static unsigned cgi_build_request(struct mk_upstream_handler *h, struct mk_upstream_request_options *options)
{
    struct cgi_request *c = cgi_request_of(h);
    options->upstream = c->route->upstream;
    options->protocol = c->route->gateway->protocol;
    options->limits = c->route->limits;
    mk_request_body_attach(&h->body, options);
    return cgi_build_variables(c, options) ? 0 : 503;
}

static const struct mk_upstream_handler_ops cgi_ops = {.make_request = cgi_build_request,
                                                       .replace = cgi_follow_local_redirect,
                                                       .copy_head = cgi_copy_head,
                                                       .on_request_end = cgi_on_request_end,
                                                       .on_error_text = cgi_on_error_text};

/* The prefix of the pattern is SCRIPT_NAME, and the rest of the path is PATH_INFO. */
static void split_program_path(const struct cgi_route *route, mk_str path, mk_str *name, mk_str *info)
{
    mk_str rest = mk_str_skip(path, route->prefix.len);
    bool fits = mk_str_starts(path, route->prefix) && (!rest.len || rest.p[0] == '/');
    *name = fits ? route->prefix : MK_STR("");
    *info = fits ? rest : path;
}

/* CGI requires CONTENT_LENGTH: a body of unknown length is buffered first. */
static enum mk_verdict cgi_start(struct mk_request *request, struct mk_response *response,
                                 const struct cgi_route *route, mk_str name, mk_str info)
{
    bool streams = route->streams && mk_request_length(request) != MK_LENGTH_UNKNOWN;
    struct cgi_request *c = mk_request_alloc(request, sizeof *c);
    if (!c)
        return mk_upstream_handler_error(response, 503);
    *c = (struct cgi_request){
        .handler = {.ops = &cgi_ops,
                    .request = request,
                    .response = response,
                    .spools = !route->streams,
                    .intercepts = route->intercepts,
                    .body = {.mode = streams ? MK_REQUEST_BODY_STREAM : MK_REQUEST_BODY_BUFFER}},
        .route = route,
        .script_name = name,
        .path_info = info};
    return mk_upstream_handler_start(&c->handler);
}

static enum mk_verdict cgi_handle(struct mk_request *request, struct mk_response *response, void *data)
{
    struct mk_upstream_handler *h = mk_upstream_handler_of(request);
    const struct cgi_route *route = data;
    mk_str name = MK_STR_NULL, info = MK_STR_NULL;
    unsigned status = 0;
    if (h)
        return mk_upstream_handler_run(h);
    if (route->split.p)
        status = mk_request_find_script(request, route->split, &name, &info);
    else
        split_program_path(route, mk_request_path(request), &name, &info);
    if (status == 404) {
        if (name.p) /* set here, so that `static` does not send the source of a script that reappears before
                     * `static` runs */
            mk_response_set_status(response, 404);
        return MK_NEXT;
    }
    if (!status && !route->raw_paths)
        status = mk_request_check_path(request);
    return status ? mk_upstream_handler_error(response, status)
                  : cgi_start(request, response, route, name, info);
}

/* ---- The plugins ---- */

#define FORM                                                                                                 \
    "SERVER, which is HOST:PORT, unix:/path or the Name of an [UPSTREAM], then [root=FOLDER] "               \
    "[split=.EXTENSION|off] [set=NAME=VALUE] [intercept_errors=on|off|STATUS,...] [stream] "                 \
    "[paths=checked|raw] "                                                                                   \
    "[underscores=off|on] [forwarded=off|pass] " MK_UPSTREAM_LIMITS_SYNTAX

static const char *const needs[] = {"upstream", NULL};

/* Defines the plugin `name_` with its handler of the same name; the other arguments are members of its struct
 * cgi_handler_type. */
#define GATEWAY(name_, help_, ...)                                                                           \
    MK_PLUGIN_DECLARE(name_);                                                                                \
    static const struct cgi_handler_type name_ = {.plugin = &MK_PLUGIN_OF(name_), __VA_ARGS__};              \
    static bool bind_##name_(const struct mk_conf_ctx *conf, mk_str words, void **data)                      \
    {                                                                                                        \
        return cgi_route_bind(conf, words, &name_, data);                                                    \
    }                                                                                                        \
    static const struct mk_handler name_##_handler = {.name = #name_,                                        \
                                                      .syntax = FORM,                                        \
                                                      .handle = cgi_handle,                                  \
                                                      .bind = bind_##name_,                                  \
                                                      .traits = MK_HANDLER_FILES | MK_HANDLER_FORWARDS};     \
    static const struct mk_handler *const name_##_handlers[] = {&name_##_handler, NULL};                     \
    MK_PLUGIN(name_) = {MK_PLUGIN_HEAD,                                                                      \
                        .name = #name_,                                                                      \
                        .version = MK_VERSION,                                                               \
                        .help = help_,                                                                       \
                        .handlers = name_##_handlers,                                                        \
                        .load = cgi_load,                                                                    \
                        .host = cgi_init_vhost,                                                              \
                        .needs = needs}

GATEWAY(fastcgi, "Passes requests to FastCGI servers: PHP-FPM and others.",
        .protocol = MK_UPSTREAM_PROTOCOL_FASTCGI, .port = 9000, .split = ".php");
GATEWAY(scgi, "Passes requests to SCGI servers.", .protocol = MK_UPSTREAM_PROTOCOL_SCGI, .port = 4000);
GATEWAY(uwsgi, "Passes requests to uWSGI and other servers that speak its protocol.",
        .protocol = MK_UPSTREAM_PROTOCOL_UWSGI, .port = 3031);
