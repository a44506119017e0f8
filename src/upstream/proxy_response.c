/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites the response head of the upstream server for clients. */
#include "upstream/proxy.h"

#include <monkey/text.h>

/* ---- Addresses of the backend ---- */

struct authority {
    mk_str host;
    uint64_t port;
    bool has_port;
};

/* Parses an authority; `port` is the default port. False: it has user information, or an invalid port. */
static bool authority_parse(mk_str text, uint64_t port, struct authority *out)
{
    size_t bracket = mk_str_find_last(text, ']'), colon = mk_str_find_last(text, ':');
    bool has_port = colon != MK_STR_NONE && (bracket == MK_STR_NONE || bracket < colon);
    mk_str digits = has_port ? mk_str_skip(text, colon + 1) : MK_STR_NULL;
    *out = (struct authority){
        .host = mk_str_first(text, has_port ? colon : text.len), .port = port, .has_port = digits.len};
    bool is_number = !digits.len || mk_num_parse(digits, &out->port);
    return out->host.len && mk_str_find(text, '@') == MK_STR_NONE && is_number;
}

static bool authority_equals(const struct authority *a, mk_str text, uint64_t port)
{
    struct authority b;
    return authority_parse(text, port, &b) && a->port == b.port && mk_str_eq_nocase(a->host, b.host);
}

/* Components of a URL; `authority` is absent for a path. */
struct location {
    mk_str scheme; /* includes "://" */
    mk_str authority, rest;
    uint64_t port; /* default port of the scheme */
};

static bool starts_nocase(mk_str text, mk_str start)
{
    return mk_str_eq_nocase(mk_str_first(text, start.len), start);
}

/* Parses a location. False: it is neither an HTTP URL nor a path. */
static bool location_parse(const struct mk_proxy *p, mk_str text, struct location *out)
{
    bool is_https = starts_nocase(text, MK_STR("https://")), is_http = starts_nocase(text, MK_STR("http://")),
         is_relative = mk_str_starts(text, MK_STR("//"));
    bool is_tls =
        is_https || (is_relative && mk_str_eq(mk_request_scheme(p->handler.request), MK_STR("https")));
    size_t len = is_https ? 8 : is_http ? 7 : is_relative ? 2 : 0, end = len;
    *out = (struct location){.rest = text, .port = is_tls ? 443 : 80};
    if (!len)
        return mk_str_starts(text, MK_STR("/"));
    while (end < text.len && !strchr("/?#", text.p[end]))
        end++;
    out->scheme = mk_str_first(text, len);
    out->authority = mk_str_first(mk_str_skip(text, len), end - len);
    out->rest = mk_str_skip(text, end);
    return true;
}

/* Detects redirects of the backend to itself: to the name in the route, or to the Host that we sent. The
 * latter may be our own name: then scheme and authority are kept, since the redirect may lead from HTTP to
 * HTTPS. */
static bool location_cut_authority(const struct mk_proxy *p, struct location *l, mk_str *kept)
{
    const struct mk_proxy_route *r = p->route;
    struct authority named;
    *kept = MK_STR("");
    if (!l->authority.p)
        return true;
    if (!authority_parse(l->authority, l->port, &named))
        return false;
    bool same_scheme =
        mk_str_eq(mk_request_scheme(p->handler.request), l->port == 443 ? MK_STR("https") : MK_STR("http"));
    /* Without a port, the scheme may differ: the backend may not know that its connection to us uses TLS. */
    if (authority_equals(&named, r->authority, named.has_port ? r->port : l->port) ||
        (r->host.p && same_scheme && authority_equals(&named, r->host, l->port)))
        return true;
    if (!r->path.p || r->host.p ||
        !authority_equals(&named, mk_request_header(p->handler.request, MK_STR("Host")), l->port))
        return false;
    *kept = mk_str_of(l->scheme.p, l->scheme.len + l->authority.len);
    return true;
}

/* ---- Paths of the backend ---- */

/* Is the path that of the folder without its trailing slash? */
static bool path_is_folder_without_slash(mk_str path, mk_str folder)
{
    if (folder.len < 2 || !mk_str_ends(folder, MK_STR("/")))
        return false;
    mk_str rest = mk_str_skip(path, folder.len - 1);
    return mk_str_starts(path, mk_str_first(folder, folder.len - 1)) &&
           (!rest.len || strchr("?#;", rest.p[0]));
}

/* Maps a backend path to the client's view. */
static void path_write_rewritten(const struct mk_proxy *p, mk_str path, struct mk_buf *out)
{
    const struct mk_proxy_route *r = p->route;
    if (r->path.p && path_is_folder_without_slash(path, r->path)) {
        bool has_slash = mk_str_ends(r->prefix, MK_STR("/")) && r->prefix.len > 1;
        mk_buf_add(out, mk_str_first(r->prefix, r->prefix.len - has_slash));
        path = mk_str_skip(path, r->path.len - 1);
    } else if (r->path.p && mk_str_starts(path, r->path)) {
        mk_buf_add(out, r->prefix);
        path = mk_str_skip(path, r->path.len);
        if (mk_str_ends(r->prefix, MK_STR("/")) && path.len && path.p[0] == '/')
            path = mk_str_skip(path, 1);
    }
    mk_buf_add(out, path);
}

/* Escapes blanks and control characters. Browsers remove tabs, so `/<TAB>/host` would lead to another
 * host. */
static void location_escape(struct mk_buf *out, mk_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c > ' ' && c != 0x7f)
            mk_buf_add_char(out, text.p[i]);
        else
            mk_buf_addf(out, "%%%02X", c);
    }
}

/* Maps a Location to the client's view. */
static void location_write_rewritten(const struct mk_proxy *p, mk_str text, struct mk_buf *out)
{
    struct location l;
    mk_str kept;
    if (!location_parse(p, text, &l) || !location_cut_authority(p, &l, &kept)) {
        mk_buf_add(out, text);
        return;
    }
    mk_buf_add(out, kept);
    size_t from = out->len;
    mk_buf_add(out, MK_STR("/."));
    bool has_path = mk_str_starts(l.rest, MK_STR("/")); /* false for "http://backend" and
                                                         * "http://backend?x" */
    path_write_rewritten(p, has_path ? l.rest : MK_STR("/"), out);
    mk_buf_add(out, has_path ? MK_STR("") : l.rest);
    mk_str path = mk_str_skip(mk_buf_str(out), from + 2);
    bool looks_like_host = path.len > 1 && !kept.len && (path.p[1] == '/' || path.p[1] == '\\');
    if (!out->failed && !looks_like_host) { /* otherwise "/." stays, and clients resolve "/.//x" to the path
                                             * "//x" (RFC 3986, section 5.2.4) */
        memmove(out->p + from, path.p, path.len);
        out->len -= 2;
    }
}

MK_COLD static mk_str location_rewrite(const struct mk_proxy *p, mk_str location)
{
    size_t cap = location.len + p->route->prefix.len + sizeof "/./", escaped_cap = 3 * cap;
    char *buf = p->route->rewrites_redirects ? mk_request_alloc(p->handler.request, cap + escaped_cap) : NULL;
    struct mk_buf out = mk_buf_fixed(buf, cap), escaped = mk_buf_fixed(buf ? buf + cap : NULL, escaped_cap);
    if (!buf)
        return location;
    location_write_rewritten(p, location, &out);
    location_escape(&escaped, mk_buf_str(&out));
    return out.failed || escaped.failed ? location : mk_buf_str(&escaped);
}

/* Parses "5; url=http://backend/x" as browsers do: the separator may be a space, "url=" may be missing, and
 * quotes may be unterminated. False: there is no URL. */
static bool refresh_parse(mk_str refresh, mk_str *seconds, mk_str *url)
{
    size_t n = 0;
    while (n < refresh.len && (mk_char_is_digit(refresh.p[n]) || refresh.p[n] == '.'))
        n++;
    *seconds = mk_str_first(refresh, n);
    mk_str rest = mk_str_trim(mk_str_skip(refresh, n));
    if (rest.len && (rest.p[0] == ';' || rest.p[0] == ','))
        rest = mk_str_trim(mk_str_skip(rest, 1));
    mk_str after = starts_nocase(rest, MK_STR("url")) ? mk_str_trim(mk_str_skip(rest, 3)) : MK_STR("");
    if (mk_str_starts(after, MK_STR("=")))
        rest = mk_str_trim(mk_str_skip(after, 1));
    if (rest.len && (rest.p[0] == '"' || rest.p[0] == '\'')) {
        char quote = rest.p[0];
        rest = mk_str_skip(rest, 1);
        rest = mk_str_first(rest, mk_str_find(rest, quote));
    }
    *url = rest;
    return n && rest.len;
}

static mk_str refresh_rewrite(const struct mk_proxy *p, mk_str refresh)
{
    mk_str seconds, url;
    if (!p->route->rewrites_redirects || !refresh_parse(refresh, &seconds, &url))
        return refresh;
    mk_str mapped = location_rewrite(p, url);
    if (mk_str_eq(mapped, url))
        return refresh;
    size_t cap = seconds.len + sizeof "; url=" + mapped.len;
    char *buf = mk_request_alloc(p->handler.request, cap);
    struct mk_buf out = mk_buf_fixed(buf, cap);
    mk_buf_add(&out, seconds);
    mk_buf_add(&out, MK_STR("; url="));
    mk_buf_add(&out, mapped);
    return !buf || out.failed ? refresh : mk_buf_str(&out);
}

/* Returns the text before the next unquoted "<" and moves *rest past it. */
static mk_str link_next_target(mk_str *rest)
{
    bool is_quoted = false;
    size_t n = 0;
    for (; n < rest->len && (is_quoted || rest->p[n] != '<'); n++) {
        if (is_quoted && rest->p[n] == '\\')
            n++;
        else if (rest->p[n] == '"')
            is_quoted = !is_quoted;
    }
    n = n < rest->len ? n + 1 : rest->len;
    mk_str before = mk_str_first(*rest, n);
    *rest = mk_str_skip(*rest, n);
    return before;
}

/* Rewrites the targets of a Link header (RFC 8288): "<target>; parameters", comma-separated. */
static mk_str link_rewrite(const struct mk_proxy *p, mk_str link)
{
    mk_str rest = link;
    size_t n = 0;
    for (size_t i = 0; i < link.len; i++)
        n += link.p[i] == '<';
    size_t cap = 3 * (link.len + n * (p->route->prefix.len + sizeof "/./"));
    char *buf = p->route->rewrites_redirects ? mk_request_alloc(p->handler.request, cap) : NULL;
    struct mk_buf out = mk_buf_fixed(buf, cap);
    if (!buf)
        return link;
    while (rest.len) {
        mk_buf_add(&out, link_next_target(&rest));
        mk_str target = mk_str_first(rest, mk_str_find(rest, '>'));
        rest = mk_str_skip(rest, target.len);
        if (rest.len)
            target = location_rewrite(p, target);
        mk_buf_add(&out, target);
    }
    return out.failed ? link : mk_buf_str(&out);
}

/* ---- Fields ---- */

/* Maps the cookie's Path to the route, and removes Domain, so that the cookie belongs to this host. Splits
 * attributes as browsers do (RFC 6265, section 5.2), with white space around names and values. */
static mk_str cookie_rewrite(const struct mk_proxy *p, mk_str cookie)
{
    size_t cap = cookie.len;
    for (size_t i = 0; i < cookie.len; i++)
        cap += cookie.p[i] == ';' ? p->route->prefix.len + sizeof " Path=" : 0;
    char *buf = p->route->rewrites_cookies ? mk_request_alloc(p->handler.request, cap) : NULL;
    struct mk_buf out = mk_buf_fixed(buf, cap);
    mk_str rest = cookie;
    if (!buf)
        return cookie;
    mk_buf_add(&out, mk_str_cut(&rest, ';'));
    while (rest.p) {
        mk_str attribute = mk_str_cut(&rest, ';'), value = attribute,
               name = mk_str_trim(mk_str_cut(&value, '='));
        value = mk_str_trim(value);
        if (mk_str_eq_nocase(name, MK_STR("Domain")))
            continue;
        mk_buf_add_char(&out, ';');
        if (mk_str_eq_nocase(name, MK_STR("Path")) && value.len && value.p[0] == '/') {
            mk_buf_add(&out, MK_STR(" Path="));
            path_write_rewritten(p, value, &out);
        } else {
            mk_buf_add(&out, attribute);
        }
    }
    return out.failed ? cookie : mk_buf_str(&out);
}

static bool header_is(mk_str name, mk_str known)
{
    return name.len == known.len && mk_str_eq_nocase(name, known);
}

/* Maps a header to the client's view. */
static mk_str header_rewrite(const struct mk_proxy *p, mk_str name, mk_str value)
{
    if (header_is(name, MK_STR("Location")) || header_is(name, MK_STR("Content-Location")))
        return location_rewrite(p, value);
    if (header_is(name, MK_STR("Link")))
        return link_rewrite(p, value);
    if (header_is(name, MK_STR("Refresh")))
        return refresh_rewrite(p, value);
    return header_is(name, MK_STR("Set-Cookie")) ? cookie_rewrite(p, value) : value;
}

/* Does not copy name and value: they were validated by the upstream request, which lives until our request
 * ends. */
static int response_add_header(struct mk_proxy *p, mk_str name, mk_str value)
{
    if (header_is(name, MK_STR("Sec-WebSocket-Accept")))
        return 0; /* the server generates this header itself for a tunnel */
    return mk_response_add_header_nocopy(p->handler.response, name, header_rewrite(p, name, value));
}

/* Might a header need rewriting? Most responses have no such header. */
static bool headers_may_change(const struct mk_header *lines, size_t n)
{
    for (size_t i = 0; i < n; i++)
        switch (lines[i].name.len) {
        case sizeof "Refresh" - 1:
            if (!header_is(lines[i].name, MK_STR("Refresh"))) /* Expires has the same length */
                break;
            return true;
        case sizeof "Link" - 1:
            if (!header_is(lines[i].name, MK_STR("Link"))) /* Date and ETag have the same length */
                break;
            return true;
        case sizeof "Location" - 1:
        case sizeof "Content-Location" - 1:
        case sizeof "Set-Cookie" - 1:
        case sizeof "Sec-WebSocket-Accept" - 1:
            return true;
        default:
            break;
        }
    return false;
}

static int response_copy_headers(struct mk_proxy *p)
{
    mk_str text;
    size_t n;
    const struct mk_header *lines = mk_upstream_request_headers(p->handler.upstream, &text, &n);
    int e = 0;
    if (!headers_may_change(lines, n))
        return mk_response_add_headers(p->handler.response, text, lines, n);
    for (size_t i = 0; !e && i < n; i++)
        e = response_add_header(p, lines[i].name, lines[i].value);
    return e;
}

int mk_proxy_response_copy_head(struct mk_proxy *p)
{
    int e =
        p->handler.step.current == MK_HANDLER_TUNNEL
            ? 0
            : mk_response_set_status(p->handler.response, mk_upstream_request_status(p->handler.upstream));
    if (!e)
        e = response_copy_headers(p);
    if (!e && !mk_proxy_route_is_local(p->route))
        e = mk_response_add_header_nocopy(p->handler.response, MK_STR("Via"),
                                          p->route->is_http2 ? MK_STR("2 monkey") : MK_STR("1.1 monkey"));
    return e;
}

void mk_proxy_response_send_interim(struct mk_proxy *p)
{
    mk_str text;
    size_t n;
    const struct mk_header *lines = mk_upstream_request_headers(p->handler.upstream, &text, &n);
    struct mk_header *mapped =
        headers_may_change(lines, n) ? mk_request_alloc(p->handler.request, n * sizeof *mapped) : NULL;
    for (size_t i = 0; mapped && i < n; i++)
        mapped[i] = (struct mk_header){lines[i].name, header_rewrite(p, lines[i].name, lines[i].value)};
    /* Errors are ignored, because interim responses are optional, and HTTP/1.0 has none. */
    (void)mk_response_send_1xx(p->handler.request, p->handler.response,
                               mk_upstream_request_status(p->handler.upstream), mapped ? mapped : lines, n);
}
