/* SPDX-License-Identifier: Apache-2.0 */
#include "web/redirect.h"

#include "web/request_type.h"

static bool set_redirect_response(struct mk_response *response, unsigned status, mk_str location)
{
    mk_str page = mk_arena_printf(response->arena,
                                  "<!doctype html>\n<html lang=\"en\"><head><title>Moved</title></head>\n"
                                  "<body><p>Moved.</p></body></html>\n");
    response->status = status;
    return page.p && mk_response_set_header(response, MK_STR("Location"), location) == 0 &&
           mk_response_set_header(response, MK_STR("Content-Type"), MK_STR("text/html; charset=utf-8")) ==
               0 &&
           mk_response_body_add_text(&response->content, response->arena, page);
}

bool mk_redirect_to_folder(struct mk_request *request, struct mk_response *response, unsigned status)
{
    mk_str path = request->target->path, query = request->target->target.query;
    size_t cap = 3 * path.len + sizeof "/?" + query.len;
    char *buf = mk_arena_alloc(response->arena, cap);
    struct mk_buf url = mk_buf_fixed(buf, cap);
    if (!buf)
        return false;
    mk_request_encode_path(request, path, &url);
    mk_buf_add_char(&url, '/');
    if (query.p) {
        mk_buf_add_char(&url, '?');
        mk_buf_add(&url, query);
    }
    return !url.failed && set_redirect_response(response, status, mk_buf_str(&url));
}

bool mk_redirect_is_valid_url(mk_str url)
{
    for (size_t i = 0; i < url.len; i++)
        if ((unsigned char)url.p[i] <= ' ' || url.p[i] == 0x7f)
            return false;
    if (mk_str_starts(url, MK_STR("/")))
        return !mk_str_starts(url, MK_STR("//")) && !mk_str_starts(url, MK_STR("/\\"));
    mk_str rest = url, scheme = mk_str_cut(&rest, ':');
    for (size_t i = 0; i < scheme.len; i++) {
        char c = scheme.p[i];
        if (!mk_char_is_alpha(c) && (i == 0 || !(mk_char_is_digit(c) || c == '+' || c == '-' || c == '.')))
            return false;
    }
    mk_str host = mk_str_skip(rest, 2);
    return scheme.len && mk_str_starts(rest, MK_STR("//")) && host.len && !strchr("/?#", host.p[0]);
}

static bool url_has_no_path(mk_str url)
{
    size_t colon = mk_str_find(url, ':');
    mk_str rest = mk_str_skip(url, colon == MK_STR_NONE ? url.len : colon + 1);
    return mk_str_starts(rest, MK_STR("//")) && mk_str_find(mk_str_skip(rest, 2), '/') == MK_STR_NONE;
}

static enum mk_verdict handle_redirect(struct mk_request *request, struct mk_response *response, void *data)
{
    const struct mk_redirect *to = data;
    mk_str url = to->url;
    if (url_has_no_path(url) && request->target->target.path.p)
        url = mk_arena_printf(
            request->arena, "%.*s%.*s%s%.*s", MK_STR_ARG(url), MK_STR_ARG(request->target->target.path),
            request->target->target.query.p ? "?" : "", MK_STR_ARG(request->target->target.query));
    if (url.p && set_redirect_response(response, to->status, url))
        return MK_DONE;
    (void)mk_response_set_status(response, 503);
    return MK_ERROR;
}

const struct mk_handler mk_redirect = {
    .name = "redirect",
    .syntax = "STATUS URL, where STATUS is 301, 302, 303, 307 or 308",
    .handle = handle_redirect,
};
