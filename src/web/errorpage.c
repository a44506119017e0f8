/* SPDX-License-Identifier: Apache-2.0 */
#include "web/errorpage.h"

#include "http/status.h"
#include "web/static.h"

/* What a person can do about it. */
static const char *advice(unsigned status)
{
    switch (status) {
    case 400:
        return "The request was not valid HTTP, so it was not answered.";
    case 403:
        return "This may not be seen, or is a folder without a page of its own.";
    case 404:
        return "There is nothing at this address.";
    case 405:
        return "This address cannot be used in that way.";
    case 408:
        return "The request took too long to arrive.";
    case 411:
        return "The request must say how long its content is.";
    case 412:
        return "It has changed since you saw it last.";
    case 413:
        return "The request is larger than this server allows.";
    case 414:
        return "The address is longer than this server allows.";
    case 416:
        return "The part that was asked for does not exist.";
    case 417:
        return "The request expects something that this server does not do.";
    case 421:
        return "This connection was made for another name: a new one is needed.";
    case 431:
        return "The head of the request is larger than this server allows.";
    case 500:
        return "Something is broken here. Its owner can find out more in the error log.";
    case 501:
        return "This server does not know how to do that.";
    case 503:
        return "The server is too busy at the moment. Try again soon.";
    case 505:
        return "This server speaks HTTP/1.0 and HTTP/1.1.";
    default:
        return "";
    }
}

static void fill_builtin(struct mk_response *response, unsigned status)
{
    mk_str line = mk_status_line(status);
    if (line.len == 0) /* no reason is known */
        line = mk_arena_printf(response->arena, "%u", status);
    mk_str page = mk_arena_printf(
        response->arena,
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">"
        "<meta name=\"viewport\" content=\"width=device-width\">"
        "<meta name=\"color-scheme\" content=\"light dark\"><title>%.*s</title></head>\n"
        "<body style=\"font-family:sans-serif;max-width:30em;margin:15vh auto;padding:0 1em\">"
        "<h1>%.*s</h1><p>%s</p></body>\n</html>\n",
        MK_STR_ARG(line), MK_STR_ARG(line), advice(status));
    if (!line.p || !page.p ||
        !mk_response_add_ready(response, MK_STR("Content-Type"), MK_STR("text/html; charset=utf-8")))
        return;
    (void)!mk_content_add_text(&response->content, response->arena, page);
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
    mk_err e = mk_file_cache_take(&request->web->files, &host->root, path, request->now_ms, &f);
    if (e) {
        mk_log_debug(request->web->log, "error page %.*s of %s: %s", MK_STR_ARG(path), host->root.path,
                     mk_err_text(e));
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

static mk_str find_page(const struct mk_host *host, unsigned status)
{
    for (size_t i = 0; host && i < host->n_error_pages; i++)
        if (host->error_pages[i].status == status)
            return host->error_pages[i].path;
    return (mk_str){NULL, 0};
}

void mk_errorpage_fill(const struct mk_host *host, struct mk_request *request, struct mk_response *response,
                       unsigned status)
{
    mk_str path = find_page(host, status);
    mk_content_fini(&response->content);
    response->n_blocks = 0;
    response->status = status;
    if (!path.p || !fill_from_file(host, request, response, path))
        fill_builtin(response, status);
}
