/* SPDX-License-Identifier: Apache-2.0 */
#include "web/errorpage.h"

#include "http/status.h"
#include "web/static.h"

/* What it means for the reader, and what to do. Every status of the registry that may be
 * the end of a request has its sentence. */
static const struct {
    unsigned status;
    const char *text;
} advices[] = {
    {400, "The request was not valid HTTP."},
    {401, "This page needs a user name and a password, and they were missing or wrong."},
    {402, "This page requires payment."},
    {403, "You may not see this, or it is a folder without a page of its own."},
    {404, "There is nothing at this address."},
    {405, "This address does not support that method."},
    {406, "This page does not exist in a form that your browser accepts."},
    {407, "The proxy in between asks for a user name and a password."},
    {408, "The request took too long to arrive."},
    {409, "It was changed at the same time from elsewhere. Load it again."},
    {410, "This page was here, and is gone for good."},
    {411, "The request must say how long its content is."},
    {412, "It has changed since you saw it last. Load it again."},
    {413, "The request is larger than this server allows."},
    {414, "The address is longer than this server allows."},
    {415, "The server cannot use content of this type."},
    {416, "The requested part does not exist. Start the download again."},
    {417, "The request expects something that this server does not support."},
    {421, "This connection was made for another name. Open the page in a new connection."},
    {422, "The content is well formed, but makes no sense here."},
    {423, "It is locked at the moment. Try again later."},
    {424, "Something else that this depends on failed first."},
    {425, "The request came before the connection was safe. Try again."},
    {426, "The server requires a newer protocol for this."},
    {428, "The request must say which version it changes."},
    {429, "Too many requests. Wait a moment and try again."},
    {431, "The head of the request is larger than this server allows. Deleting the cookies of this site may "
          "help."},
    {451, "This page is unavailable for legal reasons."},
    {500, "Something is broken on this server. Its owner finds the reason in the error log."},
    {501, "This server does not support that."},
    {502, "A program behind this server gave no valid answer. Try again later."},
    {503, "The server is too busy, or down for maintenance. Try again soon."},
    {504, "A program behind this server took too long. Try again later."},
    {505, "This server does not support that version of HTTP."},
    {506, "The configuration of the server refers back to itself."},
    {507, "There is no room left to store this."},
    {508, "The server detected an endless loop."},
    {510, "The request lacks an extension that this server needs."},
    {511, "Sign in to this network first: open any page without https."},
};

static const char *advice(unsigned status)
{
    for (size_t i = 0; i < MK_LEN(advices); i++)
        if (advices[i].status == status)
            return advices[i].text;
    return status < 400   ? "The server answered with this status and nothing more."
           : status < 500 ? "The server cannot answer this request."
                          : "The server failed to answer this request.";
}

/* The colours of the welcome page (site/style.css) and its sun, as small as they get: every refusal sends
 * this. */
#define STYLE                                                                                                \
    ":root{color-scheme:light dark;--g:#fdf9f2;--i:#2c2018;--s:#6d5a4a;--a:#ffd04a;--r:#ffe5a0}"             \
    "@media(prefers-color-scheme:dark){:root{--g:#17110d;--i:#f5eadb;--s:#bda893;--a:#f4bd45;--r:#b9770f}}"  \
    "body{max-width:34rem;margin:14vh auto;padding:0 1.5rem;background:var(--g);color:var(--s);"             \
    "font:1.1rem/1.6 system-ui,sans-serif}"                                                                  \
    "h1{color:var(--i);font-size:2.5rem;line-height:1.1;letter-spacing:-.03em}"                              \
    "h1:before{content:\"\";display:block;width:2em;height:2em;margin:.6em 0;border-radius:50%%;"            \
    "background:radial-gradient(circle at 32%% 28%%,var(--a),var(--r) 78%%)}"

static void fill_builtin(struct mk_response *response, unsigned status)
{
    mk_str line = mk_status_line(status);
    if (line.len == 0) /* no reason is known */
        line = mk_arena_printf(response->arena, "%u", status);
    mk_str page = mk_arena_printf(response->arena,
                                  "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">"
                                  "<meta name=\"viewport\" content=\"width=device-width\">"
                                  "<title>%.*s</title>\n<style>" STYLE "</style></head>\n"
                                  "<body><h1>%.*s</h1><p>%s</p></body>\n</html>\n",
                                  MK_STR_ARG(line), MK_STR_ARG(line), advice(status));
    if (!line.p || !page.p ||
        !mk_response_add_ready(response, MK_STR("Content-Type"), MK_STR("text/html; charset=utf-8")))
        return;
    response->is_error_page = mk_content_add_text(&response->content, response->arena, page);
}

static void on_end(void *file)
{
    mk_open_file_drop(file);
}

/* A page that a route of its own gives to another handler is a script: it must not leave as text. */
static bool is_static(const struct mk_host *host, struct mk_arena *arena, mk_str path)
{
    mk_str whole = mk_arena_printf(arena, "/%.*s", MK_STR_ARG(path));
    const struct mk_route *route = whole.p ? mk_host_route(host, whole) : NULL;
    return whole.p && (!route || route->handler == &mk_static || mk_route_is_catch_all(route));
}

static bool fill_from_file(const struct mk_host *host, struct mk_request *request,
                           struct mk_response *response, mk_str path)
{
    struct mk_open_file *f;
    if (!is_static(host, request->arena, path))
        return false;
    mk_err e = mk_filecache_take(&request->web->files, &host->root, path, request->now_ms, &f);
    if (e) {
        mk_log_debug(request->web->log, "cannot open the error page %.*s of %s: %s", MK_STR_ARG(path),
                     host->root.path, mk_err_text(e));
        return false;
    }
    if (f->kind != MK_OPEN_FILE || !mk_arena_on_end(request->arena, on_end, f)) {
        mk_open_file_drop(f);
        return false;
    }
    mk_str type = mk_mime_find(host->mime, path);
    if (mk_mime_wants_charset(type))
        type = mk_arena_printf(request->arena, "%.*s; charset=utf-8", MK_STR_ARG(type));
    return type.p && mk_response_add_ready(response, MK_STR("Content-Type"), type) &&
           mk_content_add_file(&response->content, response->arena, f, 0, f->size);
}

mk_str mk_errorpage_find(const struct mk_host *host, unsigned status)
{
    mk_str of_class = {NULL, 0};
    for (size_t i = 0; host && i < host->n_error_pages; i++) {
        if (host->error_pages[i].status == status)
            return host->error_pages[i].path;
        if (host->error_pages[i].status == status / 100)
            of_class = host->error_pages[i].path;
    }
    return of_class;
}

void mk_errorpage_fill(const struct mk_host *host, struct mk_request *request, struct mk_response *response,
                       unsigned status)
{
    mk_str path = mk_errorpage_find(host, status);
    mk_content_fini(&response->content);
    response->n_blocks = 0;
    response->status = status;
    response->is_error_page = false;
    if (!path.p || !fill_from_file(host, request, response, path))
        fill_builtin(response, status);
}
