/* SPDX-License-Identifier: Apache-2.0 */
#include "web/error_page.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/json.h"
#include "http/status.h"
#include "web/error_page_text.h"
#include "web/static.h"
#include "web/web.h"

enum { TIME_MAX = 32, REFERENCE_MAX = MK_REQUEST_ID_MAX + 1, PROBLEM_MAX = 512 };

/* Formats the time, which users can quote so that the administrator can find the error in the logs. It
 * reveals nothing about the server. */
static void format_time(const struct mk_request *request, char buf[TIME_MAX])
{
    time_t t = (time_t)request->now;
    struct tm tm;
    if (!t || !gmtime_r(&t, &tm) || !strftime(buf, TIME_MAX, "%Y-%m-%d %H:%M:%S UTC", &tm))
        buf[0] = '\0';
}

/* Server errors get a reference that is also in the error log: the ID of the request, or else a random number.
 * Only one line per second is logged at info level, because clients must not flood the log; pages without a
 * reference still show the time. Writes the reference to `buf`, or an empty string. */
static void log_reference(struct mk_request *request, unsigned status, char buf[REFERENCE_MAX])
{
    struct mk_web_ctx *web = request->web;
    enum mk_log_level level = web->reference_logged_at == request->now ? MK_LOG_DEBUG : MK_LOG_INFO;
    mk_str id = mk_request_known_id(request);
    uint32_t number;
    buf[0] = '\0';
    if (status < 500)
        return;
    if (id.p)
        snprintf(buf, REFERENCE_MAX, "%.*s", MK_STR_ARG(id));
    if (!web->log || web->log->level < level)
        return;
    web->reference_logged_at = request->now;
    if (id.p) { /* each message about the request contains the ID */
        mk_request_log(request, level, "status %u", status);
        return;
    }
    mk_random(&number, sizeof number);
    snprintf(buf, REFERENCE_MAX, "%08" PRIx32, number);
    mk_request_log(request, level, "status %u, reference %s", status, buf);
}

/* Problem details (RFC 9457). The type is `about:blank`, so the title is the reason phrase. */
static mk_str problem_json(struct mk_arena *arena, unsigned status, const char *reference)
{
    char buf[PROBLEM_MAX];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    struct mk_json_writer w = mk_json_writer_to(&text);
    mk_str line = mk_status_text(status);
    mk_json_begin_object(&w);
    if (line.len)
        mk_json_string(mk_json_key(&w, "title"), mk_str_skip(line, 4)); /* without "404 " */
    mk_json_uint(mk_json_key(&w, "status"), status);
    mk_json_string(mk_json_key(&w, "detail"), mk_status_detail(status));
    if (*reference)
        mk_json_cstr(mk_json_key(&w, "reference"), reference);
    mk_json_end_object(&w);
    mk_buf_add_char(&text, '\n');
    return text.failed ? MK_STR_NULL : mk_arena_copy(arena, mk_buf_str(&text));
}

static mk_str html_page(const struct mk_request *request, struct mk_arena *arena, unsigned status,
                        const char *reference)
{
    char when[TIME_MAX];
    mk_str line = mk_status_text(status);
    if (line.len == 0) /* no reason phrase is known */
        line = mk_arena_printf(arena, "%u", status);
    if (!line.p)
        return line;
    format_time(request, when);
    return mk_arena_printf(arena,
                           "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">"
                           "<meta name=\"viewport\" content=\"width=device-width\">"
                           "<title>%.*s</title>\n<style>%s</style></head>\n"
                           "<body>%s<h1>%.*s</h1><p>%s</p><p><small>%s%s%s</small></p></body>\n</html>\n",
                           MK_STR_ARG(line), mk_error_page_style, mk_error_page_picture, MK_STR_ARG(line),
                           mk_error_page_explanation(status), when, *reference ? ", reference " : "",
                           reference);
}

static void fill_builtin_page(struct mk_request *request, struct mk_response *response, unsigned status,
                              enum mk_error_format format)
{
    char reference[REFERENCE_MAX];
    bool is_json = format == MK_ERROR_FORMAT_JSON;
    log_reference(request, status, reference);
    mk_str page = is_json ? problem_json(response->arena, status, reference)
                          : html_page(request, response->arena, status, reference);
    if (!page.p || !mk_response_add_header_unchecked(response, MK_STR("Content-Type"),
                                                     is_json ? MK_STR("application/problem+json")
                                                             : MK_STR("text/html; charset=utf-8")))
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

void mk_error_page_clear(struct mk_response *response, unsigned status)
{
    mk_response_body_fini(&response->content);
    response->n_blocks = 0;
    response->status = status;
    response->is_error_page = false;
}

void mk_error_page_fill(const struct mk_vhost *host, struct mk_request *request, struct mk_response *response,
                        unsigned status)
{
    mk_str path = mk_error_page_find(host, status);
    mk_error_page_clear(response, status);
    if (!path.p || !fill_page_from_file(host, request, response, path))
        fill_builtin_page(request, response, status, host ? host->error_format : MK_ERROR_FORMAT_HTML);
}
