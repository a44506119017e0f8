/* SPDX-License-Identifier: Apache-2.0 */
#include "answer.h"

#include <errno.h>

#include "sticky.h"

/* Cuts the authority off, if it is that one and not the beginning of a longer name, or of another port. */
static bool cut_name(mk_str *rest, mk_str authority)
{
    mk_str after = mk_str_skip(*rest, authority.len);
    bool ends = !after.len || after.p[0] == '/' || after.p[0] == '?';
    if (!authority.len || !mk_str_starts(*rest, authority) || !ends)
        return false;
    *rest = after.len ? after : MK_STR("/");
    return true;
}

/* The server behind names itself in redirects: by the name of the route, or by the one that it was asked by.
 * The latter may be ours: then scheme and authority are kept, as they may lead from HTTP to HTTPS. */
static bool cut_authority(const struct proxy_call *c, mk_str *location, mk_str *kept)
{
    const struct proxy_route *r = c->route;
    bool tls = mk_str_starts(*location, MK_STR("https://"));
    if (!tls && !mk_str_starts(*location, MK_STR("http://")))
        return mk_str_starts(*location, MK_STR("/")) && !mk_str_starts(*location, MK_STR("//"));
    mk_str rest = mk_str_skip(*location, tls ? 8 : 7), asked = mk_request_field(c->request, MK_STR("Host"));
    bool same_scheme = mk_str_eq(mk_request_scheme(c->request), tls ? MK_STR("https") : MK_STR("http"));
    bool is_own = cut_name(&rest, r->authority) || (r->host.p && same_scheme && cut_name(&rest, r->host));
    if (!is_own && (!r->path.p || r->host.p || !cut_name(&rest, asked)))
        return false;
    if (!is_own)
        *kept = mk_str_first(*location, (tls ? 8 : 7) + asked.len);
    *location = rest;
    return true;
}

/* A path of the server behind, as clients see it. */
static void write_path(const struct proxy_call *c, mk_str path, struct mk_buf *out)
{
    const struct proxy_route *r = c->route;
    if (r->path.p && mk_str_starts(path, r->path)) {
        mk_buf_add(out, r->prefix);
        path = mk_str_skip(path, r->path.len);
        if (mk_str_ends(r->prefix, MK_STR("/")) && path.len && path.p[0] == '/')
            path = mk_str_skip(path, 1);
    }
    mk_buf_add(out, path);
}

static mk_str rewrite_location(const struct proxy_call *c, mk_str location)
{
    mk_str path = location, kept = MK_STR("");
    if (!c->route->rewrites_redirects || !cut_authority(c, &path, &kept))
        return location;
    size_t cap = kept.len + path.len + c->route->prefix.len + 1;
    char *room = mk_request_alloc(c->request, cap);
    struct mk_buf out = mk_buf_fixed(room, cap);
    if (!room)
        return location;
    mk_buf_add(&out, kept);
    write_path(c, path, &out);
    return out.failed ? location : mk_buf_str(&out);
}

/* Path becomes that of the route, and Domain goes: the cookie is this host's. */
static mk_str rewrite_cookie(const struct proxy_call *c, mk_str cookie)
{
    size_t cap = cookie.len + c->route->prefix.len + 2;
    char *room = c->route->rewrites_cookies ? mk_request_alloc(c->request, cap) : NULL;
    struct mk_buf out = mk_buf_fixed(room, cap);
    mk_str rest = cookie;
    if (!room)
        return cookie;
    mk_buf_add(&out, mk_str_cut(&rest, ';'));
    while (rest.p) {
        mk_str attribute = mk_str_cut(&rest, ';'), value = mk_str_trim(attribute),
               name = mk_str_cut(&value, '=');
        if (mk_str_eq_nocase(name, MK_STR("Domain")))
            continue;
        mk_buf_add_char(&out, ';');
        if (mk_str_eq_nocase(name, MK_STR("Path")) && value.len && value.p[0] == '/') {
            mk_buf_add(&out, MK_STR(" Path="));
            write_path(c, value, &out);
        } else {
            mk_buf_add(&out, attribute);
        }
    }
    return out.failed ? cookie : mk_buf_str(&out);
}

static bool is_name(mk_str name, mk_str known)
{
    return name.len == known.len && mk_str_eq_nocase(name, known);
}

/* The client has checked names and values, and keeps them until the request ends. */
static int add(struct proxy_call *c, mk_str name, mk_str value)
{
    if (is_name(name, MK_STR("Location")))
        value = rewrite_location(c, value);
    else if (is_name(name, MK_STR("Set-Cookie")))
        value = rewrite_cookie(c, value);
    else if (is_name(name, MK_STR("Sec-WebSocket-Accept")))
        return 0; /* the server makes its own for a tunnel */
    return mk_response_add_static(c->response, name, value);
}

/* Most responses have no field that is changed. */
static bool may_change(const struct mk_field_line *lines, size_t n)
{
    for (size_t i = 0; i < n; i++)
        switch (lines[i].name.len) {
        case sizeof "Location" - 1:
        case sizeof "Set-Cookie" - 1:
        case sizeof "Sec-WebSocket-Accept" - 1:
            return true;
        default:
            break;
        }
    return false;
}

static int copy_fields(struct proxy_call *c)
{
    mk_str text;
    size_t n;
    const struct mk_field_line *lines = mk_client_lines(c->client, &text, &n);
    int e = 0;
    if (!may_change(lines, n))
        return mk_response_add_lines(c->response, text, lines, n);
    for (size_t i = 0; !e && i < n; i++)
        e = add(c, lines[i].name, lines[i].value);
    return e;
}

int proxy_answer_copy(struct proxy_call *c)
{
    int e = c->step == PROXY_TUNNEL ? 0 : mk_response_set_status(c->response, mk_client_status(c->client));
    if (!e)
        e = copy_fields(c);
    if (!e && !c->route->is_part)
        e = mk_response_add_static(c->response, MK_STR("Via"), MK_STR("1.1 monkey"));
    return e ? e : proxy_sticky_set(c);
}
