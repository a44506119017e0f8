/* SPDX-License-Identifier: Apache-2.0 */
#include "web/error_page.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "http/status.h"
#include "web/static.h"
#include "web/web.h"

/* Explanation for the visitor, and what to do. Covers every registered status that can be final. */
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
    {500, "Something is broken on this site. Try again in a few minutes."},
    {501, "This server does not support that."},
    {502, "This site has a problem. Try again in a few minutes."},
    {503, "This site is busy, or down for maintenance. Try again in a few minutes."},
    {504, "This site takes too long to answer. Try again in a few minutes."},
    {505, "This server does not support that version of HTTP."},
    {506, "The configuration of the server refers back to itself."},
    {507, "There is no room left to store this."},
    {508, "The server detected an endless loop."},
    {510, "The request lacks an extension that this server needs."},
    {511, "Sign in to this network first: open any page without https."},
};

static const char *advice_for_status(unsigned status)
{
    for (size_t i = 0; i < MK_LEN(advices); i++)
        if (advices[i].status == status)
            return advices[i].text;
    return status < 400   ? "The server answered with this status and nothing more."
           : status < 500 ? "The server cannot answer this request."
                          : "The server failed to answer this request.";
}

/* The colours and the monkey of the welcome page (site/style.css), minimised because they are sent with every
 * error. */
#define STYLE                                                                                                \
    ":root{color-scheme:light dark;--g:#fdf9f2;--i:#2c2018;--s:#6d5a4a}"                                     \
    "@media(prefers-color-scheme:dark){:root{--g:#17110d;--i:#f5eadb;--s:#bda893}}"                          \
    "body{display:grid;place-content:center;justify-items:center;min-height:100vh;min-height:100svh;"        \
    "box-sizing:border-box;margin:0;padding:1.5rem;background:var(--g);color:var(--s);"                      \
    "font:1.1rem/1.6 system-ui,sans-serif;text-align:center;text-wrap:balance}"                              \
    "h1{margin:1.5rem 0 .5rem;color:var(--i);font-size:clamp(2rem,6vw,3rem);line-height:1.1;"                \
    "letter-spacing:-.03em}p{max-width:30rem;margin:0 0 1rem}small{font-size:.8rem}"
#define FACE                                                                                                 \
    "<svg viewBox=\"0 0 64 60\" width=\"128\" aria-hidden=\"true\"><g fill=\"#8a5a33\"><circle cx=\"9\" "    \
    "cy=\"32\" "                                                                                             \
    "r=\"9\"/><circle cx=\"55\" cy=\"32\" r=\"9\"/><circle cx=\"32\" cy=\"30\" r=\"25\"/></g><g "            \
    "fill=\"#f3cfa0\">"                                                                                      \
    "<circle cx=\"24\" cy=\"27\" r=\"10\"/><circle cx=\"40\" cy=\"27\" r=\"10\"/><ellipse cx=\"32\" "        \
    "cy=\"40\" "                                                                                             \
    "rx=\"17\" ry=\"12\"/></g><g fill=\"#2c2018\"><circle cx=\"25\" cy=\"28\" r=\"3\"/><circle cx=\"39\" "   \
    "cy=\"28\" r=\"3\"/><path d=\"M23 46q9-7 18 0q-9-4-18 0\"/></g></svg>"

enum { TIME_ROOM = 32, REFERENCE_ROOM = 48 };

/* Formats the time, which users can quote and the administrator finds in the logs. It reveals nothing about
 * the server. */
static void format_time(const struct mk_request *request, char buf[TIME_ROOM])
{
    time_t t = (time_t)request->now;
    struct tm tm;
    if (!t || !gmtime_r(&t, &tm) || !strftime(buf, TIME_ROOM, "%Y-%m-%d %H:%M:%S UTC", &tm))
        buf[0] = '\0';
}

/* Server errors get a reference number that is also in the error log. Limited to one log line per second,
 * because clients must not flood the log; pages without a number still show the time. */
static void log_reference_number(struct mk_request *request, unsigned status, char buf[REFERENCE_ROOM])
{
    struct mk_web_ctx *web = request->web;
    enum mk_log_level level = web->reference_logged_at == request->now ? MK_LOG_DEBUG : MK_LOG_INFO;
    uint32_t number;
    buf[0] = '\0';
    if (status < 500 || !web->log || web->log->level < level)
        return;
    mk_random(&number, sizeof number);
    snprintf(buf, REFERENCE_ROOM, ", reference %08" PRIx32, number);
    mk_log(web->log, level, "%u: %.*s, reference %08" PRIx32, status, MK_STR_ARG(request->target->path),
           number);
    web->reference_logged_at = request->now;
}

static void fill_builtin_page(struct mk_request *request, struct mk_response *response, unsigned status)
{
    char when[TIME_ROOM], reference[REFERENCE_ROOM];
    mk_str line = mk_status_text(status);
    if (line.len == 0) /* no reason known */
        line = mk_arena_printf(response->arena, "%u", status);
    format_time(request, when);
    log_reference_number(request, status, reference);
    mk_str page =
        mk_arena_printf(response->arena,
                        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">"
                        "<meta name=\"viewport\" content=\"width=device-width\">"
                        "<title>%.*s</title>\n<style>" STYLE "</style></head>\n"
                        "<body>" FACE "<h1>%.*s</h1><p>%s</p><p><small>%s%s</small></p></body>\n</html>\n",
                        MK_STR_ARG(line), MK_STR_ARG(line), advice_for_status(status), when, reference);
    if (!line.p || !page.p ||
        !mk_response_add_header_unchecked(response, MK_STR("Content-Type"),
                                          MK_STR("text/html; charset=utf-8")))
        return;
    response->is_error_page = mk_response_body_add_text(&response->content, response->arena, page);
}

static void release_file(void *file)
{
    mk_open_file_release(file);
}

/* Is the page a static file? If a more specific route assigns the page to another handler, the page is a
 * script, whose source must not be sent. */
static bool is_static_page(const struct mk_vhost *host, struct mk_arena *arena, mk_str path)
{
    mk_str whole = mk_arena_printf(arena, "/%.*s", MK_STR_ARG(path));
    const struct mk_route *route = whole.p ? mk_vhost_route(host, whole) : NULL;
    return whole.p && (!route || route->handler == &mk_static || mk_route_is_catch_all(route));
}

static bool fill_page_from_file(const struct mk_vhost *host, struct mk_request *request,
                                struct mk_response *response, mk_str path)
{
    struct mk_open_file *f;
    if (!is_static_page(host, request->arena, path))
        return false;
    mk_err e = mk_file_cache_acquire(&request->web->files, &host->root, path, request->now_ms, &f);
    if (e) {
        mk_log_debug(request->web->log, "cannot open the error page %.*s of %s: %s", MK_STR_ARG(path),
                     host->root.path, mk_err_text(e));
        return false;
    }
    if (f->kind != MK_OPEN_FILE || !mk_arena_add_cleanup(request->arena, release_file, f)) {
        mk_open_file_release(f);
        return false;
    }
    mk_str type = mk_mime_find(host->mime, path);
    if (mk_mime_wants_charset(type))
        type = mk_arena_printf(request->arena, "%.*s; charset=utf-8", MK_STR_ARG(type));
    return type.p && mk_response_add_header_unchecked(response, MK_STR("Content-Type"), type) &&
           mk_response_body_add_file(&response->content, response->arena, f, 0, f->size);
}

mk_str mk_error_page_find(const struct mk_vhost *host, unsigned status)
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

void mk_error_page_fill(const struct mk_vhost *host, struct mk_request *request, struct mk_response *response,
                        unsigned status)
{
    mk_str path = mk_error_page_find(host, status);
    mk_response_body_fini(&response->content);
    response->n_blocks = 0;
    response->status = status;
    response->is_error_page = false;
    if (!path.p || !fill_page_from_file(host, request, response, path))
        fill_builtin_page(request, response, status);
}
