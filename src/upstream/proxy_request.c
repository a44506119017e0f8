/* SPDX-License-Identifier: Apache-2.0 */
/* The request to the upstream server: its target, the Destination of COPY and MOVE (RFC 4918, section 10.3),
 * and its headers. */
#include "upstream/proxy.h"

#include <monkey/text.h>
#include <monkey/tls.h>
#include <monkey/trace.h>
#include <sys/random.h>

#include "http/header_role.h"
#include "http/trace_context.h"

/* ---- The target ---- */

static bool path_is_separator(char c)
{
    return c == '/' || c == '\\';
}

/* Does the decoded path contain dot segments that only some servers recognize? Some strip path parameters and
 * read `..;x` as `..`; others read `\` as a slash. */
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

/* Removes the prefix from the raw path. False: the raw path does not spell the prefix literally. */
static bool path_cut_prefix(mk_str *raw, mk_str prefix)
{
    if (!mk_str_starts(*raw, prefix))
        return false;
    *raw = mk_str_skip(*raw, prefix.len);
    return true;
}

/* Writes the target from the raw path. The target never starts with two slashes, because a server could parse
 * the rest as a host. */
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

/* Builds the target if the route replaces the prefix, or if the request has no raw path. */
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

/* Returns the target as sent, with all its leading slashes, if the route passes raw paths; otherwise the
 * normalized target. */
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

mk_str mk_proxy_request_build_target(struct mk_request *request, const struct mk_proxy_route *route)
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

/* Maps Destination to the server's paths, without scheme and host: the upstream server might not recognize
 * the scheme and host that the client used. */
static unsigned map_destination(struct mk_request *request, const struct mk_proxy_route *route, mk_str *value)
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

/* Prepends the scheme of the connection to the server and the Host that the server gets. Absent if out of
 * memory. */
MK_COLD static mk_str destination_make_absolute(struct mk_request *request,
                                                const struct mk_proxy_route *route, mk_str host, mk_str path)
{
    mk_str scheme = mk_upstream_is_tls(route->upstream) ? MK_STR("https://") : MK_STR("http://");
    size_t cap = scheme.len + host.len + path.len;
    char *buf = mk_request_alloc(request, cap);
    struct mk_buf out = mk_buf_fixed(buf, cap);
    mk_buf_add(&out, scheme);
    mk_buf_add(&out, host);
    mk_buf_add(&out, path);
    return buf && !out.failed ? mk_buf_str(&out) : MK_STR_NULL;
}

/* ---- The headers ---- */

/* Upper bounds: ADDED for the fixed text of the headers that we add (Host, Via, X-Forwarded-*, Forwarded,
 * MK_LOCAL_BACKEND_CLIENT, MK_LOCAL_BACKEND_BODY_MAX, Client-Cert, Sec-WebSocket-Key), ADDRESS_MAX for an
 * address. */
enum { ADDED = 672, ADDRESS_MAX = 128, KEY_BYTES = 16 };

static const mk_str schemes[] = {MK_STR_INIT("https"), MK_STR_INIT("http")};

struct request_headers {
    struct mk_request *request;
    const struct mk_proxy_route *route;
    mk_str host;        /* the host that the client requested */
    mk_str site;        /* id of the virtual host, for a local backend */
    mk_str certificate; /* client certificate, if the route forwards it */
    unsigned roles;     /* bitmap of the roles of the received headers */
    struct mk_proxy_connection_options *named;
    mk_str destination;           /* the client's Destination, mapped by the route; absent: none */
    const struct mk_trace *trace; /* NULL: none */
    bool has_context;             /* the request has an ID or a trace */
    bool limits_hops;             /* Max-Forwards is among the headers that we add */
    struct mk_buf text;
};

/* ---- The client's fields ---- */

/* Adds the names listed in Connection, except for standard connection options. False: too many names. */
static bool connection_options_add(struct mk_proxy_connection_options *named, mk_str connection)
{
    mk_str option;
    while (mk_header_list_next(&connection, &option)) {
        if (mk_str_eq_nocase(option, MK_STR("keep-alive")) || mk_str_eq_nocase(option, MK_STR("close")))
            continue;
        if (named->n == MK_PROXY_CONNECTION_OPTIONS_MAX)
            return false;
        named->list[named->n++] = option;
    }
    return true;
}

static bool connection_options_has(const struct mk_proxy_connection_options *named, mk_str name)
{
    for (size_t i = 0; i < named->n; i++)
        if (named->list[i].len == name.len && mk_str_eq_nocase(named->list[i], name))
            return true;
    return false;
}

/* Records the role of a header. False: the request is invalid. */
static bool headers_record_role(struct request_headers *l, enum mk_header_role role, mk_str value)
{
    bool is_first = !(l->roles >> role & 1);
    l->roles |= 1u << role;
    if (role == MK_ROLE_HOST && is_first)
        l->host = value;
    if (role == MK_ROLE_DESTINATION)
        l->destination = value;
    return role != MK_ROLE_CONNECTION || connection_options_add(l->named, value);
}

static size_t base64_size(mk_str bytes)
{
    return (bytes.len + 2) / 3 * 4;
}

static mk_str host_to_send(const struct request_headers *l)
{
    mk_str host = l->route->host.p ? l->route->host : l->host;
    return host.p ? host : l->route->authority;
}

/* Maps Destination for the server. Returns 0 or a status. */
MK_COLD static unsigned headers_map_destination(struct request_headers *l)
{
    unsigned status = map_destination(l->request, l->route, &l->destination);
    if (status || !l->destination.p || !l->route->absolute_destination)
        return status;
    l->destination = destination_make_absolute(l->request, l->route, host_to_send(l), l->destination);
    return l->destination.p ? 0 : 503;
}

/* Reserves space for the longest possible output, which depends on the client's headers. Returns 0 or a
 * status. */
static unsigned headers_reserve(struct request_headers *l)
{
    mk_str name, value;
    size_t size =
        ADDED + ADDRESS_MAX + l->route->authority.len + l->route->host.len + mk_request_user(l->request).len;
    for (size_t i = 0; mk_request_header_at(l->request, i, &name, &value); i++) {
        if (!headers_record_role(l, mk_request_header_role(l->request, i), value))
            return 400;
        size += name.len + value.len + sizeof ": \r\n";
    }
    if (!l->host.p)
        l->host = mk_request_host(l->request);
    if (l->route->certificate == MK_PROXY_CERTIFICATE_ON)
        l->certificate = mk_request_client_certificate(l->request);
    if (mk_proxy_route_is_local(l->route))
        l->site = mk_request_vhost_name(l->request);
    unsigned status = l->destination.p ? headers_map_destination(l) : 0;
    if (status)
        return status;
    if (mk_request_has_id(l->request))
        size += sizeof MK_REQUEST_ID_HEADER ": \r\n" + mk_request_id(l->request).len;
    if (l->trace)
        size += sizeof "traceparent: \r\ntracestate: \r\n" + MK_TRACEPARENT_LEN + l->trace->state.len;
    size += 3 * l->host.len + 3 * l->site.len + base64_size(l->certificate) + l->destination.len;
    l->text = mk_buf_fixed(mk_request_alloc(l->request, size), size);
    return l->text.p ? 0 : 503;
}

/* Should a local backend receive this header? A local backend interprets headers as this server does, so it
 * receives all except those of the connection and those that we write ourselves. */
static bool local_backend_gets_header(enum mk_header_role role, mk_str name)
{
    bool is_of_connection = role == MK_ROLE_HOP || role == MK_ROLE_CONNECTION || role == MK_ROLE_FRAMING;
    return !is_of_connection && role != MK_ROLE_HOST &&
           !mk_str_eq_nocase(name, MK_STR("Proxy-Authorization")) &&
           !mk_str_eq_nocase(name, MK_STR(MK_LOCAL_BACKEND_CLIENT)) &&
           !mk_str_eq_nocase(name, MK_STR(MK_LOCAL_BACKEND_BODY_MAX)) &&
           !mk_str_eq_nocase(name, MK_STR(MK_LOCAL_BACKEND_SIGNATURE));
}

static bool route_sends_header(const struct mk_proxy_route *route, enum mk_header_role role, mk_str name)
{
    if (mk_proxy_route_is_local(route))
        return local_backend_gets_header(role, name);
    switch (role) {
    case MK_ROLE_CLIENT:
    case MK_ROLE_SERVER:
    case MK_ROLE_MAX_FORWARDS: /* without meaning for methods other than OPTIONS and TRACE */
    case MK_ROLE_DESTINATION:
        return true;
    case MK_ROLE_UNDERSCORE:
        return route->passes_underscores;
    case MK_ROLE_FORWARDED:
        return route->forwarded == MK_PROXY_FORWARDED_OFF;
    case MK_ROLE_CERTIFICATE:
        return route->certificate == MK_PROXY_CERTIFICATE_PASS;
    case MK_ROLE_HOP:
    case MK_ROLE_CONNECTION:
    case MK_ROLE_FRAMING:
    case MK_ROLE_HOST:
    case MK_ROLE_VIA:
    case MK_ROLE_NONE:
        break;
    }
    return false;
}

/* Is it a header that headers_write_context() writes, or one that a server confuses with it? */
static bool is_context_header(const struct mk_request *request, const struct mk_trace *trace, mk_str name)
{
    switch (name.len) {
    case sizeof MK_REQUEST_ID_HEADER - 1:
        return mk_request_has_id(request) && mk_header_is_same_variable(name, MK_STR(MK_REQUEST_ID_HEADER));
    case sizeof "traceparent" - 1:
        return trace && mk_str_eq_nocase(name, MK_STR("traceparent"));
    case sizeof "tracestate" - 1:
        return trace && mk_str_eq_nocase(name, MK_STR("tracestate"));
    default:
        return false;
    }
}

bool mk_proxy_request_sends_trailer(const struct mk_proxy *p, mk_str name)
{
    const struct mk_request *request = p->handler.request;
    enum mk_header_role role = mk_header_role(name);
    return role != MK_ROLE_DESTINATION && route_sends_header(p->route, role, name) &&
           !connection_options_has(&p->named, name) && !mk_request_header_is_overridden(request, name) &&
           !is_context_header(request, mk_request_trace(request), name);
}

/* Has a hook set the header? */
static bool hook_has_set(const struct request_headers *l, mk_str name)
{
    mk_str other, value;
    for (size_t i = 0; mk_request_header_at(l->request, i, &other, &value); i++)
        if (mk_request_header_role(l->request, i) == MK_ROLE_SERVER && mk_str_eq_nocase(other, name))
            return true;
    return false;
}

/* The value of a hook replaces ours, except for a local backend: its log lines must have our request ID. */
static void headers_write_context_header(struct request_headers *l, mk_str name, mk_str value)
{
    bool may_be_set = l->roles >> MK_ROLE_SERVER & 1;
    if (MK_LIKELY(!may_be_set) || mk_proxy_route_is_local(l->route) || !hook_has_set(l, name))
        mk_header_append(&l->text, name, value);
}

/* Like mk_request_add_context(), without the cost of a change to the headers of the request. */
MK_COLD static void headers_write_context(struct request_headers *l)
{
    if (mk_request_has_id(l->request))
        headers_write_context_header(l, MK_STR(MK_REQUEST_ID_HEADER), mk_request_id(l->request));
    if (!l->trace)
        return;
    char text[MK_TRACEPARENT_LEN];
    (void)mk_request_format_traceparent(l->request, NULL, text);
    headers_write_context_header(l, MK_STR("traceparent"), mk_str_of(text, sizeof text));
    if (l->trace->state.p)
        headers_write_context_header(l, MK_STR("tracestate"), l->trace->state);
}

static void headers_write_received(struct request_headers *l)
{
    mk_str name, value;
    for (size_t i = 0; mk_request_header_at(l->request, i, &name, &value); i++) {
        enum mk_header_role role = mk_request_header_role(l->request, i);
        bool is_ours = role == MK_ROLE_MAX_FORWARDS && l->limits_hops;
        if (role == MK_ROLE_DESTINATION && l->destination.p)
            value = l->destination;
        bool is_listed = role != MK_ROLE_SERVER && connection_options_has(l->named, name);
        is_ours |= l->has_context && (role != MK_ROLE_SERVER || mk_proxy_route_is_local(l->route)) &&
                   is_context_header(l->request, l->trace, name);
        if (!is_ours && route_sends_header(l->route, role, name) && !is_listed)
            mk_header_append(&l->text, name, value);
    }
}

/* ---- Headers that we add ---- */

/* Writes the client's values and a comma, for headers to which each proxy appends. */
MK_NOINLINE static void headers_write_previous_values(struct request_headers *l, mk_str name)
{
    mk_str other, value;
    for (size_t i = 0; mk_request_header_at(l->request, i, &other, &value); i++)
        if (mk_str_eq_nocase(other, name)) {
            mk_buf_add(&l->text, value);
            mk_buf_add(&l->text, MK_STR(", "));
        }
}

/* RFC 7239: IPv6 addresses are quoted and in brackets. */
static void forwarded_write_node(struct mk_buf *out, mk_str address)
{
    bool is_ipv6 = mk_str_find(address, ':') != MK_STR_NONE;
    mk_buf_put(out, is_ipv6 ? MK_STR("\"[") : MK_STR(""));
    mk_buf_put(out, address);
    mk_buf_put(out, is_ipv6 ? MK_STR("]\"") : MK_STR(""));
}

static mk_str headers_write_client_addr(struct request_headers *l)
{
    size_t from = l->text.len;
    mk_addr_format(mk_request_client_addr(l->request), &l->text);
    return mk_str_skip(mk_buf_str(&l->text), from);
}

/* Writes the client's address, or `unknown` for a peer on a unix socket (RFC 7239, section 6.2). */
static mk_str headers_write_client(struct request_headers *l)
{
    if (!mk_request_client_addr(l->request)->is_unix)
        return headers_write_client_addr(l);
    mk_buf_put(&l->text, MK_STR("unknown"));
    return MK_STR("unknown");
}

/* The scheme of the client, as reported by the proxy in front of us if that proxy terminates TLS. */
MK_NOINLINE static mk_str headers_find_scheme(struct request_headers *l)
{
    mk_str list = mk_request_header(l->request, MK_STR("X-Forwarded-Proto")), first;
    if (mk_header_list_next(&list, &first))
        for (size_t i = 0; i < MK_LEN(schemes); i++)
            if (mk_str_eq_nocase(first, schemes[i]))
                return schemes[i];
    return mk_request_scheme(l->request);
}

/* Removes the lines after `from` whose header a hook has set: the hook's value replaces ours. */
MK_COLD static void headers_remove_overridden(struct request_headers *l, size_t from)
{
    mk_str rest = mk_str_skip(mk_buf_str(&l->text), from);
    l->text.len = l->text.failed ? l->text.len : from;
    while (rest.len && !l->text.failed) {
        size_t len = mk_str_find(rest, '\n') + 1;
        mk_str line = mk_str_first(rest, len), name = mk_str_first(rest, mk_str_find(rest, ':'));
        rest = mk_str_skip(rest, len);
        if (hook_has_set(l, name))
            continue;
        memmove(l->text.p + l->text.len, line.p, line.len);
        l->text.len += line.len;
    }
}

static void headers_write_forwarded(struct request_headers *l)
{
    struct mk_buf *out = &l->text;
    bool appends = l->route->forwarded == MK_PROXY_FORWARDED_APPEND && l->roles >> MK_ROLE_FORWARDED & 1;
    mk_str host = l->host, scheme = mk_request_scheme(l->request);
    mk_buf_put(out, MK_STR("X-Forwarded-For: "));
    if (appends)
        headers_write_previous_values(l, MK_STR("X-Forwarded-For"));
    mk_str address = headers_write_client(l);
    mk_buf_put(out, MK_STR("\r\nForwarded: "));
    if (appends)
        headers_write_previous_values(l, MK_STR("Forwarded"));
    mk_buf_put(out, MK_STR("for="));
    forwarded_write_node(out, address);
    mk_buf_put(out, MK_STR(";proto="));
    mk_buf_put(out, scheme);
    if (host.len && mk_str_find(host, '"') == MK_STR_NONE && mk_str_find(host, '\\') == MK_STR_NONE) {
        mk_buf_put(out, MK_STR(";host=\""));
        mk_buf_put(out, host);
        mk_buf_put(out, MK_STR("\""));
    }
    mk_buf_put(out, MK_STR("\r\n"));
    mk_header_append(out, MK_STR("X-Forwarded-Proto"), appends ? headers_find_scheme(l) : scheme);
    if (host.len)
        mk_header_append(out, MK_STR("X-Forwarded-Host"), host);
}

/* RFC 9440. Client-Cert-Chain is never sent: session tickets store no chain, so it would be missing after
 * resumption. */
static void headers_write_client_cert(struct request_headers *l)
{
    if (!l->certificate.len)
        return;
    mk_buf_put(&l->text, MK_STR("Client-Cert: :"));
    mk_base64_encode(&l->text, l->certificate);
    mk_buf_put(&l->text, MK_STR(":\r\n"));
}

static void headers_write_via(struct request_headers *l)
{
    unsigned version = mk_request_version(l->request);
    mk_buf_put(&l->text, MK_STR("Via: "));
    if (l->roles >> MK_ROLE_VIA & 1)
        headers_write_previous_values(l, MK_STR("Via"));
    mk_buf_put(&l->text, version >= 20   ? MK_STR("2 monkey\r\n")
                         : version == 11 ? MK_STR("1.1 monkey\r\n")
                                         : MK_STR("1.0 monkey\r\n"));
}

static void headers_write_max_forwards(struct request_headers *l, uint32_t left)
{
    mk_buf_addf(&l->text, "Max-Forwards: %u\r\n", left);
}

MK_COLD static void headers_write_signature(struct request_headers *l, mk_str client, mk_str body_max)
{
    char proof[32];
    mk_local_backend_sign(l->route->secret, client, body_max, proof);
    mk_buf_put(&l->text, MK_STR(MK_LOCAL_BACKEND_SIGNATURE ": "));
    mk_hex_encode(&l->text, mk_str_of(proof, sizeof proof));
    mk_buf_put(&l->text, MK_STR("\r\n"));
}

/* Writes the headers for a local backend: values determined by this server and its hooks, not copied from the
 * client's headers. */
MK_NOINLINE static void headers_write_client_info(struct request_headers *l)
{
    mk_str user = mk_request_user(l->request);
    mk_buf_put(&l->text, MK_STR(MK_LOCAL_BACKEND_CLIENT ": "));
    size_t client = l->text.len;
    headers_write_client_addr(l);
    mk_buf_addf(&l->text, " %u %.*s", mk_request_client_addr(l->request)->port,
                MK_STR_ARG(mk_request_scheme(l->request)));
    mk_buf_put(&l->text, MK_STR(" /"));
    mk_url_escape(&l->text, l->site);
    if (user.len && mk_is_header_value(user))
        mk_buf_addf(&l->text, " %.*s", MK_STR_ARG(user));
    size_t client_len = l->text.len - client;
    mk_buf_addf(&l->text, "\r\n" MK_LOCAL_BACKEND_BODY_MAX ": ");
    size_t max = l->text.len;
    mk_buf_add_num(&l->text, mk_request_body_max(l->request));
    size_t max_len = l->text.len - max;
    mk_buf_put(&l->text, MK_STR("\r\n"));
    if (l->route->secret.len && !l->text.failed)
        headers_write_signature(l, mk_str_of(l->text.p + client, client_len),
                                mk_str_of(l->text.p + max, max_len));
}

/* HTTP/2 has no Sec-WebSocket-Key (RFC 8441, section 5), but HTTP/1.1 requires one. */
static bool lacks_websocket_key(const struct mk_request *request)
{
    return mk_str_eq(mk_request_tunnel(request), MK_STR("websocket")) && mk_request_version(request) >= 20;
}

MK_COLD static bool headers_write_websocket_key(struct request_headers *l)
{
    char key[KEY_BYTES];
    if (getrandom(key, sizeof key, 0) != (ssize_t)sizeof key)
        return false;
    mk_buf_put(&l->text, MK_STR("Sec-WebSocket-Key: "));
    mk_base64_encode(&l->text, mk_str_of(key, sizeof key));
    mk_buf_put(&l->text, MK_STR("\r\n"));
    return true;
}

unsigned mk_proxy_request_build_headers(struct mk_proxy *p, struct mk_upstream_request_options *options)
{
    static const struct mk_header trailers = {MK_STR_INIT("TE"), MK_STR_INIT("trailers")};
    struct mk_request *request = p->handler.request;
    const struct mk_proxy_route *route = p->route;
    struct request_headers l = {
        .request = request, .route = route, .named = &p->named, .limits_hops = p->hops.is_limited};
    l.trace = mk_request_trace(request);
    l.has_context = l.trace || mk_request_has_id(request);
    unsigned status = headers_reserve(&l);
    if (status)
        return status;
    mk_header_append(&l.text, MK_STR("Host"), host_to_send(&l));
    headers_write_received(&l);
    if (MK_UNLIKELY(l.has_context))
        headers_write_context(&l);
    if (route->forwarded == MK_PROXY_FORWARDED_REPLACE || route->forwarded == MK_PROXY_FORWARDED_APPEND) {
        size_t from = l.text.len;
        headers_write_forwarded(&l);
        if (MK_UNLIKELY(l.roles >> MK_ROLE_SERVER & 1))
            headers_remove_overridden(&l, from);
    }
    headers_write_client_cert(&l);
    if (mk_proxy_route_is_local(route))
        headers_write_client_info(&l);
    else
        headers_write_via(&l);
    if (l.limits_hops)
        headers_write_max_forwards(&l, p->hops.left);
    if ((lacks_websocket_key(request) && !headers_write_websocket_key(&l)) || l.text.failed)
        return 503;
    options->raw_headers = mk_buf_str(&l.text);
    if (mk_request_accepts_trailers(request)) {
        options->headers = &trailers;
        options->n_headers = 1;
    }
    return 0;
}
