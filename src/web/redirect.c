/* SPDX-License-Identifier: Apache-2.0 */
#include "web/redirect.h"

#include "web/request_type.h"

/* Bytes that a path may hold as they are (RFC 3986, section 3.3); also bytes that could end an attribute stay
 * out.
 */
static bool is_path_char(char c)
{
    return mk_char_is_alpha(c) || mk_char_is_digit(c) || (c && strchr("/-._~!$&()*+,;=:@", c));
}

static char *encode(char *out, mk_str path)
{
    for (size_t i = 0; i < path.len; i++) {
        unsigned char c = (unsigned char)path.p[i];
        if (is_path_char((char)c)) {
            *out++ = (char)c;
        } else {
            *out++ = '%';
            *out++ = "0123456789ABCDEF"[c >> 4];
            *out++ = "0123456789ABCDEF"[c & 15];
        }
    }
    return out;
}

static bool answer(struct mk_response *response, unsigned status, mk_str location)
{
    mk_str page = mk_arena_printf(response->arena,
                                  "<!doctype html>\n<html lang=\"en\"><head><title>Moved</title></head>\n"
                                  "<body><p>Moved.</p></body></html>\n");
    response->status = status;
    return page.p && mk_response_add_ready(response, MK_STR("Location"), location) &&
           mk_response_add_ready(response, MK_STR("Content-Type"), MK_STR("text/html; charset=utf-8")) &&
           mk_content_add_text(&response->content, response->arena, page);
}

bool mk_redirect_to_path(struct mk_response *response, unsigned status, mk_str path, mk_str more,
                         mk_str query)
{
    char *room = mk_arena_alloc(response->arena, 3 * (path.len + more.len) + query.len + 1);
    if (!room)
        return false;
    char *end = encode(encode(room, path), more);
    if (query.p) {
        *end++ = '?';
        memcpy(end, query.p, query.len);
        end += query.len;
    }
    return answer(response, status, mk_str_of(room, (size_t)(end - room)));
}

bool mk_redirect_is_target(mk_str url)
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

static bool ends_at_host(mk_str url)
{
    size_t colon = mk_str_find(url, ':');
    mk_str rest = mk_str_skip(url, colon == MK_STR_NONE ? url.len : colon + 1);
    return mk_str_starts(rest, MK_STR("//")) && mk_str_find(mk_str_skip(rest, 2), '/') == MK_STR_NONE;
}

static enum mk_verdict handle(struct mk_request *request, struct mk_response *response, void *data)
{
    const struct mk_redirect *to = data;
    mk_str url = to->url;
    if (ends_at_host(url) && request->asked->target.path.p)
        url = mk_arena_printf(
            request->arena, "%.*s%.*s%s%.*s", MK_STR_ARG(url), MK_STR_ARG(request->asked->target.path),
            request->asked->target.query.p ? "?" : "", MK_STR_ARG(request->asked->target.query));
    if (url.p && answer(response, to->status, url))
        return MK_DONE;
    (void)mk_response_set_status(response, 503);
    return MK_REFUSE;
}

const struct mk_handler mk_redirect = {
    .name = "redirect",
    .form = "STATUS URL, where STATUS is 301, 302, 303, 307 or 308",
    .handle = handle,
};
