/* SPDX-License-Identifier: Apache-2.0 */
#include "server/explain.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "conf/print.h"
#include "http/method.h"
#include "http/status.h"
#include "os/access_check.h"
#include "server/explain_sandbox.h"
#include "setup/config_print.h"
#include "setup/https_rules.h"
#include "setup/keys.h"
#include "setup/plugin_object.h"
#include "setup/sandbox_rules.h"
#include "web/condition.h"
#include "web/dispatch.h"
#include "web/error_page.h"
#include "web/representation.h"
#include "web/request_target.h"
#include "web/static.h"
#include "worker/worker.h"

enum { WAIT_MAX_MS = 5000, WAIT_STEP_MS = 50, HEADERS_MAX = 16 * 1024 };

static void write_fact(struct mk_buf *out, const char *what, const char *fmt, ...) MK_PRINTF(3, 4);

static void write_fact(struct mk_buf *out, const char *what, const char *fmt, ...)
{
    va_list args;
    mk_buf_addf(out, "%-10s", what);
    va_start(args, fmt);
    mk_buf_addv(out, fmt, args);
    va_end(args);
    mk_buf_add_char(out, '\n');
}

/* Writes text of the configuration with references to values of the environment, as `monkey -T` does. */
static void write_config_fact(struct mk_buf *out, const struct mk_config_generation *g, const char *what,
                              mk_str text)
{
    mk_buf_addf(out, "%-10s", what);
    (void)mk_config_print_line_references(g, text, out);
    mk_buf_add_char(out, '\n');
}

static uint32_t request_port(const struct mk_request *r)
{
    if (r->target->target.port != MK_PORT_NONE && r->target->target.authority.p)
        return r->target->target.port;
    return mk_str_eq_nocase(r->target->target.scheme, MK_STR("https")) ? 443 : 80;
}

static bool host_has_name(const struct mk_vhost *h, mk_str name)
{
    for (size_t i = 0; i < h->n_names; i++)
        if (mk_str_eq_nocase(h->names[i], name))
            return true;
    return false;
}

static bool listener_fits(const struct mk_listen *l, const struct mk_request *r)
{
    return !r->target->target.authority.p ||
           (mk_sockaddr_port(&l->addr) == request_port(r) && l->tls == r->encrypted);
}

/* Returns the listener that the request would reach. Of several candidates, prefers one with a host of the
 * requested name, or else the first. For a bare path, every listener is a candidate. */
static const struct mk_listen *find_listener(const struct mk_config_generation *g, const struct mk_request *r)
{
    const struct mk_listen *first = NULL;
    for (size_t i = 0; i < g->listens.n; i++) {
        const struct mk_listen *l = &g->listens.at[i];
        if (!listener_fits(l, r))
            continue;
        if (host_has_name(mk_vhosts_find(l->hosts, r->host), r->host))
            return l;
        first = first ? first : l;
    }
    return first;
}

static void explain_listener(const struct mk_config_generation *g, struct mk_request *r, struct mk_buf *out)
{
    char buf[MK_SOCKADDR_TEXT_MAX];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    const struct mk_listen *l = find_listener(g, r);
    if (!l) {
        write_fact(out, "listener", "no listener on port %" PRIu32 "%s; the rest assumes that there is one",
                   request_port(r), r->encrypted ? " with TLS" : "");
        return;
    }
    mk_sockaddr_format(&l->addr, &text);
    write_fact(out, "listener", "%.*s%s", MK_STR_ARG(mk_buf_str(&text)), l->tls ? " tls" : "");
    r->encrypted = l->tls;
    r->hosts = l->hosts;
}

/* Explains the certificate, which the client receives before it sends its request. */
static void explain_certificate(const struct mk_config_generation *g, const struct mk_request *r,
                                struct mk_buf *out)
{
    char date[MK_HTTPS_RULES_DATE];
    if (!r->encrypted || !g->tls)
        return;
    if (!r->site->tls) {
        write_fact(out, "tls", "there is no certificate for it: the server refuses the client");
        return;
    }
    mk_https_rules_format_date(r->site->tls_expires, date);
    bool is_over = r->site->tls_expires <= mk_clock_unix();
    write_fact(out, "tls", is_over ? "its certificate expired on %s" : "its certificate expires on %s", date);
}

/* Does the name match one of the host's wildcards? */
static bool host_matches_wildcard(const struct mk_vhost *h, mk_str name)
{
    for (size_t i = 0; i < h->n_names; i++) {
        mk_str end = mk_str_skip(h->names[i], 1);
        if (mk_str_starts(h->names[i], MK_STR("*")) && name.len > end.len &&
            mk_str_eq_nocase(mk_str_skip(name, name.len - end.len), end))
            return true;
    }
    return false;
}

static void explain_host(const struct mk_request *r, struct mk_buf *out)
{
    const struct mk_vhost *h = r->site;
    mk_str regex = host_has_name(h, r->host) || host_matches_wildcard(h, r->host)
                       ? (mk_str){NULL, 0}
                       : mk_vhost_matching_regex(h, r->host);
    const char *message = !r->host.p                          ? "the request names no host: the default one"
                          : host_has_name(h, r->host)         ? "by its name"
                          : regex.p                           ? "by the regular expression "
                          : host_matches_wildcard(h, r->host) ? "by a name with a wildcard"
                                                              : "no host has this name: the default one";
    write_fact(out, "host", "%.*s (%s), %s%.*s",
               MK_STR_ARG(h->n_names ? h->names[0] : MK_STR("(without a name)")), h->written_at.p, message,
               MK_STR_ARG(regex));
}

/* Writes the values of the settings: the paths to `paths`, the access log to `log`, and all others to
 * `limits`. */
static void write_location_settings(const struct mk_location_settings *settings, struct mk_buf *paths,
                                    struct mk_buf *limits, struct mk_buf *log)
{
    const struct mk_conf_table *t = mk_keys_tables[MK_SECTION_LOCATION];
    for (const struct mk_conf_key *k = t->keys; k < t->keys + t->n; k++) {
        bool is_log = mk_str_starts(mk_str_from_c(k->name), MK_STR("AccessLog"));
        struct mk_buf *to = k->type == MK_CONF_WORDS ? paths : is_log ? log : limits;
        if (to == limits)
            mk_buf_addf(to, "%s%s ", to->len ? ", " : "", k->name);
        else if (to->len)
            mk_buf_add_char(to, ' ');
        mk_conf_print_value(k, settings, to);
    }
}

/* Prints the effective limits of the request in configuration syntax. */
static void explain_limits(const struct mk_request *r, struct mk_buf *out)
{
    bool gave_up;
    const struct mk_location *l = mk_vhost_location(r->site, r->received.path, &gave_up);
    const struct mk_vhost_config *site = r->site->source;
    struct mk_location_settings of_host = {.request = site->settings.site.request};
    const struct mk_location_config *own = l ? l->source : NULL;
    char rooms[3][1024];
    struct mk_buf paths = mk_buf_fixed(rooms[0], sizeof rooms[0]);
    struct mk_buf limits = mk_buf_fixed(rooms[1], sizeof rooms[1]);
    struct mk_buf log = mk_buf_fixed(rooms[2], sizeof rooms[2]);
    const struct mk_location_settings *settings = own ? &own->settings : &of_host;
    bool is_off = mk_str_eq_nocase(settings->request.access_log, MK_STR("off"));
    write_location_settings(settings, &paths, &limits, &log);
    if (l)
        write_fact(
            out, "location", "%.*s (%.*s)%s", MK_STR_ARG(mk_buf_str(&paths)), MK_STR_ARG(l->written_at),
            gave_up ? ", whose search exceeded its limits: the stricter of its limits and the host's apply"
                    : "");
    write_fact(out, "limits", "%.*s", MK_STR_ARG(mk_buf_str(&limits)));
    if (site->host.has_own_access_log)
        write_fact(out, "log", "written by a plugin");
    else
        write_fact(out, "log", "%.*s", MK_STR_ARG(is_off ? MK_STR("off") : mk_buf_str(&log)));
}

static const char *describe_static_result(const struct mk_static_result *found, bool has_slash)
{
    switch (found->what) {
    case MK_STATIC_FILE:
    case MK_STATIC_ELSEWHERE:
        return "a file";
    case MK_STATIC_FOLDER_WITHOUT_SLASH:
        return "a folder: redirected to its name with a slash";
    case MK_STATIC_FOLDER_WITHOUT_INDEX:
        return "a folder without any of the index files";
    case MK_STATIC_HIDDEN:
        return "a name that begins with a dot (DotFiles is off)";
    case MK_STATIC_MISSING:
        return has_slash ? "nothing there, because no file name contains an encoded slash (%2F),"
                         : "nothing there";
    case MK_STATIC_FORBIDDEN:
        return found->error ? "not readable" : "neither a file nor a folder";
    case MK_STATIC_BROKEN:
        return "not readable";
    case MK_STATIC_BUSY:
        break;
    }
    return "no memory or descriptors left";
}

/* The first route whose pattern and conditions (When) match. */
static size_t next_matching_route(struct mk_request *r, mk_str path, enum mk_regex_result *result)
{
    size_t i = 0;
    for (;; i++) {
        i = mk_vhost_next_route(r->site, i, path, result);
        const struct mk_conditions *when = i < r->site->n_routes ? r->site->routes[i].when : NULL;
        if (!when || *result == MK_REGEX_LIMIT)
            return i;
        *result = when->match(when, r, path);
        if (*result != MK_REGEX_NO_MATCH)
            return i;
    }
}

/* Explains the route. True: a matching route serves files. */
static bool explain_route(const struct mk_config_generation *g, struct mk_request *r, mk_str path,
                          struct mk_buf *out)
{
    struct mk_buf text = mk_buf_growing(MK_CONF_FILE_MAX);
    enum mk_regex_result result;
    size_t i = next_matching_route(r, path, &result);
    if (i == r->site->n_routes || result == MK_REGEX_LIMIT) /* no route, or a failed search, which dispatch
                                                             * has reported */
        return false;
    const struct mk_route *route = &r->site->routes[i];
    mk_buf_addf(&text, "%.*s  %.*s", MK_STR_ARG(route->pattern.text), MK_STR_ARG(route->written));
    write_config_fact(out, g, "route", mk_buf_str(&text));
    out->failed |= text.failed;
    mk_buf_free(&text);
    r->route = route;
    return route->handler == &mk_static;
}

/* Warns, and returns true, if workers lack permission to read the file. `explain` itself may run as root,
 * which can read everything. */
static bool explain_file_access(const struct mk_config_generation *g, const struct mk_root *root, mk_str path,
                                struct mk_buf *out)
{
    char full[PATH_MAX];
    int len = snprintf(full, sizeof full, "%s/%.*s", root->path, MK_STR_ARG(path));
    if (!g->has_identity || len < 0 || (size_t)len >= sizeof full)
        return false;
    size_t closed = mk_access_check_find_denied(&g->identity, full, strlen(root->path));
    if (closed)
        write_fact(out, "warning", "the User %s may not read %.*s", g->identity.user, (int)closed, full);
    return closed;
}

/* Explains whether and why the Fallback page is sent. */
static void explain_fallback(const struct mk_request *r, const struct mk_static_result *found,
                             struct mk_buf *out)
{
    mk_str page = r->site->fallback;
    if (!page.p)
        return;
    if (found->is_fallback && found->what != MK_STATIC_FILE && found->what != MK_STATIC_ELSEWHERE)
        write_fact(out, "fallback", "%.*s would answer, but cannot be sent", MK_STR_ARG(page));
    else if (found->is_fallback)
        write_fact(out, "fallback",
                   "%.*s, because there is no file at this path and its last part has no dot",
                   MK_STR_ARG(page));
    else if (found->what == MK_STATIC_MISSING || found->what == MK_STATIC_FOLDER_WITHOUT_INDEX)
        write_fact(out, "fallback",
                   "not %.*s, because the last part of the path has a dot: only a client that asks for "
                   "text/html gets it",
                   MK_STR_ARG(page));
    else
        write_fact(out, "fallback", "not %.*s, because there is a file or folder at this path",
                   MK_STR_ARG(page));
}

/* Explains the file. True: workers lack permission to read the file, and will reject the request. */
static bool explain_file(const struct mk_config_generation *g, struct mk_request *r, struct mk_buf *out)
{
    struct mk_static_result found;
    mk_static_find(r, &found);
    explain_fallback(r, &found, out);
    if (found.root->at.len)
        write_fact(out, "alias", "%.*s  %s", MK_STR_ARG(found.root->at), found.root->path);
    if (found.what == MK_STATIC_ELSEWHERE) {
        write_fact(out, "file", "%.*s, which another route handles", MK_STR_ARG(found.elsewhere));
        (void)explain_route(g, r, found.elsewhere, out);
        return false;
    }
    if (found.what != MK_STATIC_FILE) {
        bool link = found.error == -ELOOP || found.error == -EXDEV;
        write_fact(out, "file", "%s beneath %s%s%s",
                   describe_static_result(&found, r->target->path_flags & MK_PATH_ENCODED_SLASH),
                   found.root->path, found.error ? ": " : "",
                   link          ? "a symbolic link that FollowSymlinks does not allow"
                   : found.error ? mk_err_text(found.error)
                                 : "");
        return false;
    }
    const struct mk_representation *rep =
        mk_representation_choose(found.file, r->site, &r->fields, r->now_ms);
    write_fact(out, "file", "%s/%.*s, %" PRIu64 " bytes%s", found.root->path,
               MK_STR_ARG(mk_open_file_path(found.file)), found.file->size,
               found.is_fallback ? " (the Fallback)" : "");
    bool is_closed = explain_file_access(g, found.root, mk_open_file_path(found.file), out);
    if (rep)
        write_fact(out, "type", "%.*s", MK_STR_ARG(rep->type));
    mk_open_file_release(found.file);
    return is_closed;
}

/* Explains the 403 for a file that workers cannot read, although this process may be able to. */
static void explain_forbidden(const struct mk_request *r, struct mk_buf *out)
{
    mk_str page = mk_error_page_find(r->site, 403);
    if (page.p)
        write_fact(out, "page", "%.*s, of [ERROR_PAGES]", MK_STR_ARG(page));
    write_fact(out, "answer", "%.*s", MK_STR_ARG(mk_status_text(403)));
}

static void explain_response(const struct mk_exchange *x, struct mk_buf *out)
{
    const struct mk_response *r = &x->response;
    mk_str page = mk_error_page_find(x->request.site, r->status);
    if (r->status >= 400 && page.p)
        write_fact(out, "page", "%.*s, of [ERROR_PAGES]", MK_STR_ARG(page));
    write_fact(out, "answer", "%.*s", MK_STR_ARG(mk_status_text(r->status)));
    for (unsigned i = 0; i < r->n_blocks; i++)
        for (unsigned j = 0; j < r->blocks[i]->n; j++)
            write_fact(out, "", "%.*s: %.*s", MK_STR_ARG(r->blocks[i]->fields[j].name),
                       MK_STR_ARG(r->blocks[i]->fields[j].value));
    for (unsigned i = 0; i < r->n_fields; i++)
        write_fact(out, "", "%.*s: %.*s", MK_STR_ARG(r->fields[i].name), MK_STR_ARG(r->fields[i].value));
}

static void explain_handler_response(const struct mk_request *r, const struct mk_route *route,
                                     struct mk_buf *out)
{
    mk_str page = mk_error_page_find(r->site, 404);
    write_fact(out, "answer", "comes from the handler `%s`, which explain does not call",
               route->handler->name);
    if (page.p)
        write_fact(out, "page", "%.*s, of [ERROR_PAGES], if it answers 404", MK_STR_ARG(page));
}

struct explain_ctx {
    struct mk_explain_sink explanation;
    const struct mk_config_generation *generation;
    struct mk_buf *out;
    bool resumed;
};

static void on_explanation(struct mk_explain_sink *e, const char *what, mk_str text)
{
    struct explain_ctx *x = MK_CONTAINER(e, struct explain_ctx, explanation);
    write_config_fact(x->out, x->generation, what, text);
}

static ssize_t read_empty_body(void *ctx, char *buf, size_t cap)
{
    (void)ctx, (void)buf, (void)cap;
    return 0;
}

static void on_resume(void *ctx)
{
    struct explain_ctx *x = ctx;
    x->resumed = true;
}

static const struct mk_request_ops ops = {.read = read_empty_body, .resume = on_resume};

/* Runs dispatch as a protocol does, but with a timeout. False: no response in time, or the loop failed. */
static bool run_handlers(struct mk_worker *w, struct mk_exchange *x, struct explain_ctx *ctx)
{
    uint64_t end_ms = mk_clock_ms() + WAIT_MAX_MS;
    while (!mk_dispatch_run(x)) {
        for (ctx->resumed = false; !ctx->resumed;)
            if (mk_clock_ms() >= end_ms || mk_loop_run_once(&w->loop, WAIT_STEP_MS))
                return false;
    }
    return true;
}

/* Explains the route and, if the route serves files, the file. True: workers lack permission to read the
 * file. */
static bool explain_route_and_file(const struct mk_config_generation *g, struct mk_request *r,
                                   struct mk_buf *out)
{
    return r->target->path.p && r->target->path.p[0] == '/' && explain_route(g, r, r->target->path, out) &&
           explain_file(g, r, out);
}

/* Prints the sandbox permissions granted to plugins, independent of the request. */
static void explain_sandbox(const struct mk_config_generation *g, struct mk_buf *out)
{
    char buf[128];
    for (const struct mk_loaded_plugin *l = g->plugins; l; l = l->next) {
        snprintf(buf, sizeof buf, "%-10sfor %s, workers may ", "sandbox", l->object.plugin->name);
        mk_sandbox_rules_print(g, l, buf, out);
    }
}

/* What the command line does not say, although rules may depend on it. */
static void explain_unknown_facts(const struct mk_explain_request *from, struct mk_buf *out)
{
    if (!from->from)
        write_fact(out, "note",
                   "the client is on this machine, for rules by address or country; --from ADDRESS "
                   "names another one");
    if (!from->headers)
        write_fact(out, "note",
                   "the request has no headers, for rules by header or cookie; -H 'NAME: VALUE' adds "
                   "one");
}

/* Adds `NAME: VALUE` to the headers, with the rules of a connection. */
static mk_err add_header(struct mk_headers *fields, mk_str line)
{
    mk_str name = mk_str_cut(&line, ':'), value = mk_str_trim(line);
    if (fields->n == MK_HEADERS_MAX || !mk_is_token(name) || !mk_is_header_value(value))
        return -EINVAL;
    enum mk_header_id id = mk_header_find_id(name);
    fields->at[fields->n++] = (struct mk_header_field){name, value, (uint8_t)id};
    if (!fields->first[id])
        fields->first[id] = (uint8_t)fields->n;
    return 0;
}

/* Not by mk_request_head_parse(): link-time optimization inlines it into its only caller. */
static mk_err set_headers(struct mk_exchange *x, const struct mk_explain_request *from)
{
    mk_str rest = mk_arena_copy(&x->arena, mk_str_from_c(from->headers));
    struct mk_header_field *at = mk_arena_zalloc(&x->arena, MK_HEADERS_MAX, sizeof *at);
    if (!rest.p || !at)
        return -ENOMEM;
    mk_headers_init(&x->request.fields, at);
    while (rest.len) {
        mk_str line = mk_str_cut(&rest, '\r');
        rest = mk_str_skip(rest, 1);
        mk_err e = add_header(&x->request.fields, line);
        if (e)
            return e;
    }
    return 0;
}

static mk_err explain_request(struct mk_worker *w, struct mk_exchange *x,
                              const struct mk_explain_request *from, struct mk_buf *out)
{
    struct mk_request *r = &x->request;
    struct explain_ctx ctx = {
        .explanation = {.say = on_explanation}, .generation = w->generation, .out = out};
    mk_str method = mk_str_from_c(from->method);
    r->received.method = mk_method_find(method);
    r->method_text = method;
    r->version = 11;
    mk_err e = from->headers ? set_headers(x, from) : 0;
    if (e)
        return e;
    int refused = mk_request_target_init(&x->request, mk_str_from_c(from->url),
                                         mk_headers_get(&r->fields, MK_HEADER_HOST));
    if (!mk_is_token(method) || (refused && !r->target->target.path.p))
        return -EINVAL;
    r->ops = &ops;
    r->ops_ctx = &ctx;
    r->encrypted = mk_str_eq_nocase(r->target->target.scheme, MK_STR("https"));
    explain_listener(w->generation, r, out);
    r->site = mk_vhosts_find(r->hosts, r->host);
    explain_host(r, out);
    explain_certificate(w->generation, r, out);
    if (refused) {
        write_fact(out, "path", "refused: it leads above the root, or contains a NUL or an invalid escape");
        mk_dispatch_error(x, (unsigned)refused);
        explain_response(x, out);
        return 0;
    }
    w->web.explanation = &ctx.explanation;
    w->web.is_watched = true;
    bool ready = run_handlers(w, x, &ctx);
    const struct mk_route *last = r->route;
    bool is_closed = false;
    if (!x->deciding_plugin)
        is_closed = explain_route_and_file(w->generation, r, out);
    else
        write_fact(out, "decided", "by the plugin %s", x->deciding_plugin->name);
    explain_limits(r, out);
    explain_sandbox(w->generation, out);
    explain_unknown_facts(from, out);
    if (!ready)
        write_fact(out, "answer", "none within %d seconds", WAIT_MAX_MS / 1000);
    else if (x->handler_skipped)
        explain_handler_response(r, last, out);
    else if (is_closed)
        explain_forbidden(r, out);
    else
        explain_response(x, out);
    return 0;
}

static const struct mk_addr local_peer = {.is_unix = 1};

/* Uses a real worker without listeners, so that hooks behave normally. */
mk_err mk_explain(struct mk_config_generation *g, const struct mk_explain_request *request,
                  struct mk_buf *out)
{
    struct mk_addr peer;
    if (request->from && !mk_addr_parse(mk_str_from_c(request->from), &peer))
        return -EINVAL;
    struct mk_counters counters = {0};
    struct mk_worker *w = mk_mem_zalloc(1, sizeof *w);
    if (!w)
        return -ENOMEM;
    mk_err e =
        mk_worker_init(w, &(struct mk_worker_options){.generation = g, .workers = 1, .counters = &counters});
    if (e) {
        mk_mem_free(w);
        return e;
    }
    struct mk_exchange *x = mk_exchange_new(&w->web, NULL, mk_clock_ms(), mk_clock_unix());
    e = -ENOMEM;
    if (x) {
        x->request.peer = request->from ? &peer : &local_peer;
        e = explain_request(w, x, request, out);
        mk_exchange_free(x);
    }
    mk_worker_fini(w);
    mk_mem_free(w);
    return e;
}

/* ---- The command line ---- */

static const struct mk_option options[] = {
    {'X', "request", MK_ARG_WORD, "METHOD", "The method, in place of the word before the URL."},
    {'H', "header", MK_ARG_WORD, "HEADER", "A header of the request (name, colon, value); may be repeated."},
#ifdef MK_HAS_EXPLAIN_SANDBOX
    {2, "sandbox", MK_ARG_NONE, NULL,
     "Instead of a request: what each process may access, and the setting that needs it."},
    {3, "systemd", MK_ARG_NONE, NULL,
     "Instead of a request: print a drop-in with restrictions for the systemd unit."},
#endif
    {1, "from", MK_ARG_WORD, "ADDRESS", "The address of the client, for rules by address or country."},
};

const struct mk_option *mk_explain_options(size_t *n)
{
    *n = MK_LEN(options);
    return options;
}

static bool usage_error(const char *what, const char *word)
{
    fprintf(stderr, "monkey: %s%s\nTry `monkey help explain`.\n", what, word);
    return false;
}

/* The value of the option, if this argument is the option: -Xv, -X v, --long v or --long=v. */
static const char *option_value(char **argv, int *i, const char *letter, const char *name)
{
    const char *word = argv[*i], *after = "";
    size_t len = strlen(name);
    if (letter && strncmp(word, letter, 2) == 0)
        after = word + 2;
    else if (strncmp(word, name, len) == 0 && (word[len] == '=' || !word[len]))
        after = word[len] ? word + len + 1 : "";
    else
        return NULL;
    if (*after)
        return after;
    if (argv[*i + 1])
        ++*i;
    return argv[*i] == word ? "" : argv[*i];
}

static bool append_header(char text[HEADERS_MAX], const char *line)
{
    size_t used = strlen(text), len = strlen(line);
    const char *colon = strchr(line, ':');
    if (!colon || !mk_is_token(mk_str_of(line, (size_t)(colon - line))))
        return usage_error("-H expects `NAME: VALUE`, not ", line);
    if (used + len + 3 > HEADERS_MAX)
        return usage_error("there are too many headers: ", line);
    memcpy(text + used, line, len);
    memcpy(text + used + len, "\r\n", 3);
    return true;
}

/* 1: taken; 0: another argument; -1: invalid. */
static int take_option(char **argv, int *i, struct mk_explain_request *out)
{
    static char headers[HEADERS_MAX];
    const char *value;
    struct mk_addr ignored;
    if ((value = option_value(argv, i, "-X", "--request"))) {
        out->method = value;
    } else if ((value = option_value(argv, i, "-H", "--header"))) {
        out->headers = headers;
        return append_header(headers, value) ? 1 : -1;
    } else if ((value = option_value(argv, i, NULL, "--from"))) {
        out->from = value;
        if (!mk_addr_parse(mk_str_from_c(value), &ignored))
            return usage_error("--from expects an address, such as 192.0.2.7, not ", value) ? 1 : -1;
    } else {
        return mk_explain_sandbox_take_option(argv[*i], out);
    }
    return 1;
}

bool mk_explain_take_options(int *argc, char **argv, struct mk_explain_request *out)
{
    int verb = 0, kept;
    *out = (struct mk_explain_request){0};
    while (verb < *argc && strcmp(argv[verb], "explain") != 0)
        verb++;
    kept = verb + 1;
    for (int i = verb + 1; i < *argc; i++) {
        char *word = argv[i];
        int taken = take_option(argv, &i, out);
        if (taken < 0)
            return false;
        if (!taken)
            argv[kept++] = word;
    }
    if (verb >= *argc)
        return true;
    if (out->method && kept < *argc) { /* -X occupied two arguments, or one that is free now */
        memmove(&argv[verb + 2], &argv[verb + 1], (size_t)(kept - verb - 1) * sizeof *argv);
        argv[verb + 1] = (char *)(uintptr_t)out->method;
        kept++;
    }
    argv[ *argc = kept] = NULL;
    return true;
}

void mk_explain_config(const struct mk_config_generation *g, struct mk_buf *out)
{
    mk_config_print_references(g, out);
}
