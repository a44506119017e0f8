/* SPDX-License-Identifier: Apache-2.0 */
/* Determines where a request goes: the target for the upstream server, the Destination of COPY and MOVE (RFC
 * 4918, section 10.3), and the server that a sticky cookie or a hash selects. */
#include "upstream/proxy.h"

#include <monkey/text.h>

static bool path_is_separator(char c)
{
    return c == '/' || c == '\\';
}

/* Some servers strip path parameters and read `..;x` as `..`, others read `\` as a slash. The path is decoded
 * and has no other dot segments. */
static bool path_hides_dot_segments(mk_str path)
{
    if (mk_str_find(path, '.') == MK_STR_NONE)
        return false;
    for (size_t i = 0, end = 0; i < path.len; i = end + 1) {
        for (end = i; end < path.len && !path_is_separator(path.p[end]);)
            end++;
        mk_str segment = mk_str_first(mk_str_skip(path, i), end - i), name = mk_str_cut(&segment, ';');
        if (mk_str_eq(name, MK_STR(".")) || mk_str_eq(name, MK_STR("..")))
            return true;
    }
    return false;
}

static void target_add_query(struct mk_buf *out, mk_str query)
{
    if (!query.p)
        return;
    mk_buf_add_char(out, '?');
    mk_buf_add(out, query);
}

/* The raw path without the prefix, if it spells the prefix literally. */
static bool path_cut_prefix(mk_str *raw, mk_str prefix)
{
    if (!mk_str_starts(*raw, prefix))
        return false;
    *raw = mk_str_skip(*raw, prefix.len);
    return true;
}

/* Never starts with two slashes: the rest would be parsed as a host. */
static void target_write_raw(struct mk_buf *out, const struct mk_proxy_route *route, mk_str rest)
{
    mk_buf_add(out, route->path);
    if (mk_str_ends(route->path, MK_STR("/")))
        while (rest.len && rest.p[0] == '/')
            rest = mk_str_skip(rest, 1);
    mk_buf_add(out, rest);
}

static bool target_is_below_prefix(const struct mk_proxy_route *route, mk_str raw)
{
    mk_str rest = raw;
    bool begins = path_cut_prefix(&rest, route->prefix);
    return begins &&
           (mk_str_ends(route->prefix, MK_STR("/")) || !rest.len || rest.p[0] == '/' || rest.p[0] == '?');
}

static mk_str target_replace_prefix(struct mk_request *request, const struct mk_proxy_route *route,
                                    mk_str raw)
{
    size_t cap = route->path.len + raw.len;
    char *buf = mk_request_alloc(request, cap);
    struct mk_buf out = mk_buf_fixed(buf, cap);
    (void)path_cut_prefix(&raw, route->prefix);
    target_write_raw(&out, route, raw);
    return buf && !out.failed ? mk_buf_str(&out) : mk_str_of(NULL, 0);
}

/* Might the target start with two slashes, including slashes that the backend decodes? */
static bool target_may_start_with_slashes(const struct mk_proxy_route *route, mk_str path)
{
    mk_str rest = mk_str_skip(path, route->path.p ? route->prefix.len : path.len);
    while (rest.len && rest.p[0] == '/')
        rest = mk_str_skip(rest, 1);
    return mk_str_eq(route->path, MK_STR("/")) && !route->raw_paths && mk_path_may_begin_with_slash(rest);
}

/* Writes the target from the decoded path, if the raw path does not spell the prefix literally. */
static void target_write_path(struct mk_buf *out, const struct mk_proxy_route *route,
                              struct mk_request *request)
{
    mk_str rest = mk_request_path(request);
    if (route->path.p) {
        rest = mk_str_skip(rest, route->prefix.len);
        mk_buf_add(out, route->path);
        if (mk_str_ends(route->path, MK_STR("/")) && mk_str_starts(rest, MK_STR("/")))
            rest = mk_str_skip(rest, 1);
    }
    mk_request_encode_path(request, rest, out);
}

/* Rebuilds the target if the client's cannot be passed on: the path was rewritten or is ambiguous. */
static bool target_write(struct mk_buf *out, struct mk_request *request, const struct mk_proxy_route *route,
                         mk_str raw, bool is_plain)
{
    mk_str path = mk_request_path(request);
    if (mk_str_eq(path, MK_STR("*"))) {
        mk_buf_add(out, path);
        return true;
    }
    if (is_plain && path_cut_prefix(&raw, route->prefix))
        target_write_raw(out, route, raw);
    else
        target_write_path(out, route, request);
    target_add_query(out, mk_request_query(request));
    return true;
}

/* Keeps all leading slashes if the route passes raw paths. */
static mk_str target_raw_or_sent(struct mk_request *request, const struct mk_proxy_route *route)
{
    mk_str sent = mk_request_target(request), target = mk_request_raw_target(request);
    bool is_rewritten = mk_request_path_at(request, 1).p;
    if (!route->raw_paths || is_rewritten || !mk_str_ends(sent, target))
        return target;
    for (size_t i = 0; i < sent.len - target.len; i++)
        if (sent.p[i] != '/')
            return target;
    return sent;
}

mk_str mk_proxy_target_build(struct mk_request *request, const struct mk_proxy_route *route)
{
    mk_str target = target_raw_or_sent(request, route), raw = mk_str_first(target, mk_str_find(target, '?'));
    bool is_plain = raw.len && raw.p[0] == '/';
    if (path_hides_dot_segments(mk_request_path(request)) ||
        target_may_start_with_slashes(route, mk_request_path(request)))
        return mk_str_of(NULL, 0);
    if (is_plain && !route->path.p)
        return target;
    size_t cap = target.len + 3 * mk_request_path(request).len + route->path.len + 2;
    char *buf = mk_request_alloc(request, cap);
    struct mk_buf out = mk_buf_fixed(buf, cap);
    if (!buf || !target_write(&out, request, route, raw, is_plain) || out.failed)
        return mk_str_of(NULL, 0);
    return mk_buf_str(&out);
}

/* ---- Destination ---- */

/* Is the destination on another server? A bare path means this server. Ports are ignored, because a proxy in
 * front may have changed the port in Host. */
static bool destination_is_elsewhere(const struct mk_request *request, mk_str host)
{
    mk_str ours = mk_request_host(request);
    return host.p && ours.p && !mk_str_eq_nocase(host, ours);
}

/* The result has no scheme and host, because the upstream server need not know those of the client. */
unsigned mk_proxy_target_map_destination(struct mk_request *request, const struct mk_proxy_route *route,
                                         mk_str *value)
{
    struct mk_destination to;
    bool passes = mk_proxy_route_is_local(route) || (route->raw_paths && !route->path.p);
    unsigned status = passes ? 0 : mk_request_destination(request, &to);
    *value = mk_str_of(NULL, 0);
    if (passes || status || !to.path.p)
        return status;
    if (destination_is_elsewhere(request, to.host))
        return 502;
    *value = to.uri;
    if (!route->path.p)
        return 0;
    if (!target_is_below_prefix(route, to.uri) || target_may_start_with_slashes(route, to.path))
        return 502;
    *value = target_replace_prefix(request, route, to.uri);
    return value->p ? 0 : 503;
}

/* ---- The server ---- */

enum { ID_LEN = 16 };

/* Value of the cookie; absent if the client did not send it. */
static mk_str request_find_cookie(const struct mk_request *request, mk_str name)
{
    mk_str field, lines;
    for (size_t i = 0; mk_request_header_at(request, i, &field, &lines); i++) {
        if (!mk_str_eq_nocase(field, MK_STR("Cookie")))
            continue;
        while (lines.p) {
            mk_str pair = mk_str_trim(mk_str_cut(&lines, ';')), key = mk_str_cut(&pair, '=');
            if (mk_str_eq(key, name))
                return pair;
        }
    }
    return mk_str_of(NULL, 0);
}

/* FNV-1a: a client that finds a collision only influences the choice of its own server. */
static uint64_t fnv1a_hash(mk_str text)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < text.len; i++)
        hash = (hash ^ (unsigned char)text.p[i]) * 0x100000001b3;
    return hash;
}

static mk_str sticky_hash_key(const struct mk_proxy *p)
{
    const struct mk_proxy_route *r = p->route;
    switch (r->hash) {
    case MK_PROXY_HASH_ADDRESS:
        return mk_request_client_text(p->handler.request);
    case MK_PROXY_HASH_PATH:
        return mk_request_path(p->handler.request);
    case MK_PROXY_HASH_COOKIE:
        return request_find_cookie(p->handler.request, r->hash_name);
    case MK_PROXY_HASH_FIELD:
        return mk_request_header(p->handler.request, r->hash_name);
    case MK_PROXY_HASH_NONE:
        break;
    }
    return mk_str_of(NULL, 0);
}

static void server_id_format(uint64_t id, char out[ID_LEN])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = ID_LEN - 1; i >= 0; i--, id >>= 4)
        out[i] = digits[id & 15];
}

static int sticky_find_server(const struct mk_upstream *u, mk_str value)
{
    char id[ID_LEN];
    for (unsigned i = 0; value.len == ID_LEN && i < mk_upstream_count(u); i++) {
        server_id_format(mk_upstream_server_id(u, i), id);
        if (mk_consttime_eq(mk_str_of(id, sizeof id), value))
            return (int)i;
    }
    return -1;
}

void mk_proxy_target_choose_server(const struct mk_proxy *p, struct mk_upstream_conn_options *options)
{
    const struct mk_proxy_route *r = p->route;
    mk_str key = sticky_hash_key(p);
    *options = (struct mk_upstream_conn_options){.server = -1,
                                                 .hash = fnv1a_hash(key),
                                                 .has_hash = key.p,
                                                 .client = mk_request_client_addr(p->handler.request)};
    if (r->sticky.p)
        options->server = sticky_find_server(r->upstream, request_find_cookie(p->handler.request, r->sticky));
}

int mk_proxy_target_add_cookie(struct mk_proxy *p)
{
    const struct mk_proxy_route *r = p->route;
    int server = mk_upstream_request_server(p->handler.upstream);
    char buf[512], id[ID_LEN];
    struct mk_buf cookie = mk_buf_fixed(buf, sizeof buf);
    if (!r->sticky.p || server < 0 ||
        sticky_find_server(r->upstream, request_find_cookie(p->handler.request, r->sticky)) == server)
        return 0;
    server_id_format(mk_upstream_server_id(r->upstream, (unsigned)server), id);
    mk_buf_add(&cookie, r->sticky);
    mk_buf_add_char(&cookie, '=');
    mk_buf_add(&cookie, mk_str_of(id, sizeof id));
    mk_buf_add(&cookie, MK_STR("; Path=/; HttpOnly; SameSite=Lax"));
    if (mk_str_eq(mk_request_scheme(p->handler.request), MK_STR("https")))
        mk_buf_add(&cookie, MK_STR("; Secure"));
    return cookie.failed
               ? 0
               : mk_response_add_header(p->handler.response, MK_STR("Set-Cookie"), mk_buf_str(&cookie));
}
