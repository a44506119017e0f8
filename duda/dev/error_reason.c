/* SPDX-License-Identifier: Apache-2.0 */
#include "error_reason.h"

#include "error_page.h"
#include "ipc_protocol.h"
#include "request_messages.h"
#include "status_phrase.h"

#include <monkey/route_stats.h>
#include <stdio.h>

enum { ROUTES_SHOWN = 100, TARGET_SHOWN = 200 };

bool dev_error_reason_accepts_html(struct mk_request *request)
{
    mk_str accept = mk_request_header(request, MK_STR("Accept"));
    return memmem(accept.p ? accept.p : "", accept.len, "text/html", 9) != NULL;
}

/* ---- Routes ---- */

/* Returns the path at which the service is mounted on this host: "/shop" for "/shop/\*", empty for the whole
 * host. */
static mk_str service_mount_prefix(const struct mk_vhost *host, mk_str service)
{
    mk_str pattern, handler;
    for (size_t i = 0; mk_vhost_route_at(host, i, &pattern, &handler); i++)
        if (mk_str_eq(mk_str_word(&handler), service) && mk_str_ends(pattern, MK_STR("/*")))
            return mk_str_first(pattern, pattern.len - 2);
    return MK_STR("");
}

static void write_route(const struct dev_error_page *p, mk_str mount, mk_str method, mk_str pattern)
{
    char buf[MK_STAT_LABEL_BYTES_MAX + 256];
    struct mk_buf path = mk_buf_fixed(buf, sizeof buf);
    mk_buf_add(&path, mount);
    mk_buf_add(&path, mount.len && mk_str_eq(pattern, MK_STR("/")) ? MK_STR("") : pattern);
    dev_error_page_add_route(p, mk_str_eq(method, MK_STR("*")) ? MK_STR("any") : method, mk_buf_str(&path));
}

static void write_routes(const struct dev_error_page *p, struct mk_request *request)
{
    const struct mk_stat_registry *r = mk_worker_statistics(mk_request_worker(request));
    unsigned table = r ? mk_stat_find(r, MK_ROUTES_TABLE) : 0, n = 0;
    uint32_t series = table ? mk_stat_next(r, table, 0) : 0;
    if (!series)
        return;
    dev_error_page_add_heading(p, MK_STR("Routes"));
    for (; series && n++ < ROUTES_SHOWN; series = mk_stat_next(r, table, series)) {
        mk_str mount =
            service_mount_prefix(mk_request_vhost(request), mk_stat_label(r, series, MK_ROUTE_SERVICE));
        write_route(p, mount, mk_stat_label(r, series, MK_ROUTE_METHOD),
                    mk_stat_label(r, series, MK_ROUTE_PATTERN));
    }
    dev_error_page_add_doc_link(p);
}

/* ---- The page ---- */

/* Returns the status to show. The server responds with 403 if a folder has no index page; here, this means
 * that no route matches (404). A 403 from a handler has a recorded reason. */
static unsigned displayed_status(struct mk_request *request, unsigned status)
{
    static const mk_str none = MK_STR_INIT("no handler responds to this path");
    mk_str text = dev_request_messages_get(request);
    bool is_folder = status == 403 && mk_str_ends(mk_request_path(request), MK_STR("/"));
    return is_folder && text.len && memmem(text.p, text.len, none.p, none.len) ? 404 : status;
}

static void write_reason_page(const struct dev_error_page *p, struct mk_request *request, unsigned status)
{
    char title[80], about[TARGET_SHOWN + 64];
    mk_str text = dev_request_messages_get(request);
    struct mk_buf request_line = mk_buf_fixed(about, sizeof about);
    snprintf(title, sizeof title, "%u %s", status, dev_status_phrase(status));
    mk_buf_addf(&request_line, "%.*s %.*s", MK_STR_ARG(mk_str_first(mk_request_method_text(request), 16)),
                MK_STR_ARG(mk_str_first(mk_request_target(request), TARGET_SHOWN)));
    dev_error_page_begin(p, title, mk_buf_str(&request_line));
    if (text.len) {
        dev_error_page_add_heading(p, MK_STR("Why"));
        dev_error_page_add_prose(p, text);
    }
    if (status == 404 || status == 405)
        write_routes(p, request);
    dev_error_page_end(p, 0);
}

void dev_error_reason_on_response(struct mk_request *request, struct mk_response *response)
{
    unsigned status = mk_response_status(response);
    struct mk_buf out = mk_buf_growing(DEV_PAGE_MAX);
    const struct dev_error_page page = {.out = &out, .html = dev_error_reason_accepts_html(request)};
    if (status < 400 || !mk_response_is_error_page(response))
        return;
    status = displayed_status(request, status);
    write_reason_page(&page, request, status);
    if (!out.failed && mk_response_set_body(response, mk_buf_str(&out)) == 0) {
        (void)mk_response_set_status(response, status);
        (void)mk_response_set_header(response, MK_STR("Content-Type"),
                                     page.html ? MK_STR("text/html; charset=utf-8")
                                               : MK_STR("text/plain; charset=utf-8"));
        (void)mk_response_set_header(response, MK_STR("Cache-Control"), MK_STR("no-store"));
    }
    mk_buf_free(&out);
}
