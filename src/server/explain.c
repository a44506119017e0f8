/* SPDX-License-Identifier: Apache-2.0 */
#include "server/explain.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/mem.h"
#include "http/method.h"
#include "http/status.h"
#include "server/certificates.h"
#include "server/worker.h"
#include "web/flow.h"
#include "web/representation.h"
#include "web/static.h"

enum { WAIT_MAX_MS = 5000, WAIT_STEP_MS = 50 };

static void say(struct mk_buf *out, const char *what, const char *fmt, ...) MK_PRINTF(3, 4);

static void say(struct mk_buf *out, const char *what, const char *fmt, ...)
{
    va_list args;
    mk_buf_addf(out, "%-10s", what);
    va_start(args, fmt);
    mk_buf_addv(out, fmt, args);
    va_end(args);
    mk_buf_add_char(out, '\n');
}

static uint32_t port_of(const struct mk_request *r)
{
    if (r->target.port != MK_PORT_NONE && r->target.authority.p)
        return r->target.port;
    return mk_str_eq_nocase(r->target.scheme, MK_STR("https")) ? 443 : 80;
}

/* A path alone is asked for at the first listener. */
static void explain_listener(const struct mk_generation *g, struct mk_request *r, struct mk_buf *out)
{
    char room[MK_ADDR_TEXT];
    for (size_t i = 0; i < g->server.listens.n; i++) {
        const struct mk_listen *l = &g->server.listens.at[i];
        struct mk_buf text = mk_buf_fixed(room, sizeof room);
        bool fits =
            !r->target.authority.p || (mk_addr_port(&l->addr) == port_of(r) && l->tls == r->encrypted);
        mk_addr_print(&l->addr, &text);
        if (fits) {
            say(out, "listener", "%.*s%s", MK_STR_ARG(mk_buf_str(&text)), l->tls ? " tls" : "");
            r->encrypted = l->tls;
            return;
        }
    }
    say(out, "listener", "none listens on port %" PRIu32 "%s; the rest is what any other would do",
        port_of(r), r->encrypted ? " with TLS" : "");
}

/* What the client is shown before it can ask. */
static void explain_certificate(const struct mk_generation *g, const struct mk_request *r, struct mk_buf *out)
{
    char date[MK_CERTIFICATES_DATE];
    if (!r->encrypted || !g->tls)
        return;
    if (!r->site->tls) {
        say(out, "tls", "there is no certificate for it: the client is turned away");
        return;
    }
    mk_certificates_write_date(r->site->tls_expires, date);
    say(out, "tls", "its certificate ends on %s", date);
}

static bool has_name(const struct mk_host *h, mk_str name)
{
    for (size_t i = 0; i < h->n_names; i++)
        if (mk_str_eq_nocase(h->names[i], name))
            return true;
    return false;
}

static void explain_host(const struct mk_request *r, struct mk_buf *out)
{
    const struct mk_host *h = r->site;
    const char *why = !r->host.p                     ? "the request names no host: the default one"
                      : has_name(h, r->host)         ? "by its name"
                      : h == r->web->hosts->fallback ? "no host has this name: the default one"
                                                     : "by a name with a star";
    say(out, "host", "%.*s (%s), %s", MK_STR_ARG(h->n_names ? h->names[0] : MK_STR("(without a name)")),
        h->written_at.p, why);
}

static const char *name_of(enum mk_static_find what)
{
    switch (what) {
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
        return "nothing there";
    case MK_STATIC_FORBIDDEN:
        return "not to be read";
    case MK_STATIC_BROKEN:
        return "not readable";
    case MK_STATIC_BUSY:
        break;
    }
    return "no memory or descriptors left";
}

/* True when one of those that match serves files. */
static bool explain_route(struct mk_request *r, mk_str path, struct mk_buf *out)
{
    for (unsigned i = 0; i < r->site->n_routes; i++) {
        const struct mk_route *route = &r->site->routes[i];
        if (!mk_route_matches(route, path))
            continue;
        say(out, "route", "%.*s  %.*s", MK_STR_ARG(route->pattern.text), MK_STR_ARG(route->written));
        r->route = route;
        return route->handler == &mk_static;
    }
    return false;
}

static void explain_file(struct mk_request *r, struct mk_buf *out)
{
    struct mk_static_found found;
    mk_static_find(r, &found);
    if (found.what == MK_STATIC_ELSEWHERE) {
        say(out, "file", "%.*s, which another route answers for", MK_STR_ARG(found.elsewhere));
        (void)explain_route(r, found.elsewhere, out);
        return;
    }
    if (found.what != MK_STATIC_FILE) {
        bool link = found.error == -ELOOP || found.error == -EXDEV;
        say(out, "file", "%s beneath %s%s%s", name_of(found.what), found.root->path, found.error ? ": " : "",
            link          ? "a symbolic link that SymLink does not allow"
            : found.error ? mk_err_text(found.error)
                          : "");
        return;
    }
    const struct mk_representation *rep =
        mk_representation_choose(found.file, r->site, &r->fields, r->now_ms);
    say(out, "file", "%s/%.*s, %" PRIu64 " bytes%s", found.root->path, MK_STR_ARG(found.file->path),
        found.file->size, found.is_fallback ? " (the Fallback)" : "");
    if (rep)
        say(out, "type", "%.*s", MK_STR_ARG(rep->type));
    mk_open_file_drop(found.file);
}

static void explain_answer(const struct mk_exchange *x, struct mk_buf *out)
{
    const struct mk_response *r = &x->response;
    say(out, "answer", "%.*s", MK_STR_ARG(mk_status_line(r->status)));
    for (unsigned i = 0; i < r->n_blocks; i++)
        for (unsigned j = 0; j < r->blocks[i]->n; j++)
            say(out, "", "%.*s: %.*s", MK_STR_ARG(r->blocks[i]->fields[j].name),
                MK_STR_ARG(r->blocks[i]->fields[j].value));
    for (unsigned i = 0; i < r->n_fields; i++)
        say(out, "", "%.*s: %.*s", MK_STR_ARG(r->fields[i].name), MK_STR_ARG(r->fields[i].value));
}

struct explaining {
    struct mk_explanation explanation;
    struct mk_buf *out;
    bool resumed;
};

static void on_say(struct mk_explanation *e, const char *what, mk_str text)
{
    struct explaining *x = MK_CONTAINER(e, struct explaining, explanation);
    say(x->out, what, "%.*s", MK_STR_ARG(text));
}

static ssize_t on_read(void *ctx, char *room, size_t cap)
{
    (void)ctx, (void)room, (void)cap;
    return 0;
}

static void on_resume(void *ctx)
{
    struct explaining *x = ctx;
    x->resumed = true;
}

static const struct mk_request_ops ops = {.read = on_read, .resume = on_resume};

/* As the protocol would, but that nobody waits for ever. */
static bool run(struct mk_worker *w, struct mk_exchange *x, struct explaining *ctx)
{
    uint64_t end_ms = mk_clock_ms() + WAIT_MAX_MS;
    while (!mk_flow_run(x)) {
        for (ctx->resumed = false; !ctx->resumed;)
            if (mk_clock_ms() >= end_ms || mk_loop_turn(&w->loop, WAIT_STEP_MS))
                return false;
    }
    return true;
}

static void explain_decision(struct mk_request *r, struct mk_buf *out)
{
    if (r->path.p && r->path.p[0] == '/' && explain_route(r, r->path, out))
        explain_file(r, out);
}

static mk_err explain(struct mk_worker *w, struct mk_exchange *x, mk_str method, mk_str url,
                      struct mk_buf *out)
{
    struct mk_request *r = &x->request;
    struct explaining ctx = {.explanation = {.say = on_say}, .out = out};
    r->method = mk_method_find(method);
    r->method_text = method;
    r->version = 11;
    int refused = mk_exchange_set_target(x, url, (mk_str){NULL, 0});
    if (!mk_is_token(method) || (refused && !r->target.path.p))
        return -EINVAL;
    r->site = mk_hosts_find(&w->generation->hosts, r->host);
    r->ops = &ops;
    r->ops_ctx = &ctx;
    r->encrypted = mk_str_eq_nocase(r->target.scheme, MK_STR("https"));
    explain_listener(w->generation, r, out);
    explain_host(r, out);
    explain_certificate(w->generation, r, out);
    if (refused) {
        say(out, "path", "refused: it leads above the root, or holds a NUL or what is no escape");
        mk_flow_refuse(x, (unsigned)refused);
        explain_answer(x, out);
        return 0;
    }
    w->web.explanation = &ctx.explanation;
    bool ready = run(w, x, &ctx);
    if (!x->decided_by)
        explain_decision(r, out);
    else
        say(out, "decided", "by the plugin %s", x->decided_by->name);
    if (!ready)
        say(out, "answer", "none within %d seconds", WAIT_MAX_MS / 1000);
    else if (x->untold)
        say(out, "answer", "is for the handler `%s` to make; it was not asked", r->route->handler->name);
    else
        explain_answer(x, out);
    return 0;
}

static const struct mk_peer nobody = {.is_unix = 1};

/* A worker like any other, but that nobody can connect to: hooks do what they always do. */
mk_err mk_explain(struct mk_generation *g, mk_str method, mk_str url, struct mk_buf *out)
{
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
        x->request.peer = &nobody;
        e = explain(w, x, method, url, out);
        mk_exchange_free(x);
    }
    mk_worker_fini(w);
    mk_mem_free(w);
    return e;
}
