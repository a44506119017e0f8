/* SPDX-License-Identifier: Apache-2.0 */
#include "fields.h"

#include <errno.h>
#include <monkey/proxy.h>
#include <monkey/text.h>
#include <monkey/tls.h>
#include <sys/random.h>

/* Bytes of all lines that are added, without the texts in them: Host, Via, X-Forwarded-*, Forwarded,
 * MK_PROXY_CLIENT, MK_PROXY_BODY_MAX, Client-Cert, Sec-WebSocket-Key; and those of an address. */
enum { ADDED = 576, ADDRESS_MAX = 128, KEY_BYTES = 16 };

static const mk_str schemes[] = {MK_STR_INIT("https"), MK_STR_INIT("http")};

/* What a field of the client is to us. */
enum kind {
    ORDINARY,
    HOP, /* of one connection alone (RFC 9110, section 7.6.1), or of the framing, or met by this server */
    CONNECTION,
    HOST,
    VIA,
    FORWARDED,   /* and its relatives, ours to say: a client could claim anything in them */
    CERTIFICATE, /* and its chain; so are these */
    KINDS
};

struct list {
    struct mk_request *request;
    const struct proxy_route *route;
    mk_str host;        /* that the client asked for */
    mk_str site;        /* the virtual host, for a part of this server */
    mk_str certificate; /* of the client, if the route passes it on */
    unsigned kinds;     /* of the client's fields: a bit for each */
    bool names_fields;  /* Connection does */
    struct mk_buf text;
};

/* ---- The client's fields ---- */

static bool is_name(mk_str name, const char *known)
{
    return (name.p[0] | 0x20) == (known[0] | 0x20) && mk_str_eq_nocase(name, mk_str_of(known, name.len));
}

/* Programs that read variables, as those of CGI do, take `X_Real_IP` for `X-Real-IP`. */
static bool looks_like(mk_str name, const char *known)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.p[i] == '_' ? '-' : mk_char_lower(name.p[i]);
        if (c != mk_char_lower(known[i]))
            return false;
    }
    return true;
}

/* Most lengths have one or two names. */
static enum kind kind_of(mk_str name)
{
    switch (name.len) {
    case sizeof "TE" - 1:
        return is_name(name, "TE") ? HOP : ORDINARY;
    case sizeof "Via" - 1:
        return is_name(name, "Via") ? VIA : ORDINARY;
    case sizeof "Host" - 1:
        return is_name(name, "Host") ? HOST : ORDINARY;
    case sizeof "Expect" - 1:
        return is_name(name, "Expect") ? HOP : ORDINARY;
    case sizeof "Upgrade" - 1:
        return is_name(name, "Upgrade") || is_name(name, "Trailer") ? HOP : ORDINARY;
    case sizeof "Forwarded" - 1:
        return looks_like(name, "Forwarded") || looks_like(name, "X-Real-IP") ? FORWARDED : ORDINARY;
    case sizeof "Connection" - 1:
        return is_name(name, "Connection") ? CONNECTION : is_name(name, "Keep-Alive") ? HOP : ORDINARY;
    case sizeof "Client-Cert" - 1:
        return looks_like(name, "Client-Cert") ? CERTIFICATE : ORDINARY;
    case sizeof "Content-Length" - 1:
        return is_name(name, "Content-Length") || is_name(name, "HTTP2-Settings") ? HOP : ORDINARY;
    case sizeof "X-Forwarded-For" - 1:
        return looks_like(name, "X-Forwarded-For") ? FORWARDED : ORDINARY;
    case sizeof "X-Forwarded-Host" - 1:
        if (is_name(name, "Proxy-Connection"))
            return HOP;
        return looks_like(name, "X-Forwarded-Host") || looks_like(name, "X-Forwarded-Port") ? FORWARDED
                                                                                            : ORDINARY;
    case sizeof "X-Forwarded-Proto" - 1:
        if (is_name(name, "Transfer-Encoding"))
            return HOP;
        if (looks_like(name, "Client-Cert-Chain"))
            return CERTIFICATE;
        return looks_like(name, "X-Forwarded-Proto") ? FORWARDED : ORDINARY;
    case sizeof "X-Forwarded-Server" - 1:
        return looks_like(name, "X-Forwarded-Server") ? FORWARDED : ORDINARY;
    case sizeof "Proxy-Authorization" - 1:
        return is_name(name, "Proxy-Authorization") ? HOP : ORDINARY;
    default:
        return ORDINARY;
    }
}

static bool is_listed(mk_str list, mk_str name)
{
    mk_str element;
    while (mk_element_next(&list, &element))
        if (mk_str_eq_nocase(element, name))
            return true;
    return false;
}

/* By one of the lines of Connection. */
static bool is_of_connection(struct mk_request *request, mk_str name)
{
    mk_str other, value;
    for (size_t i = 0; mk_request_field_at(request, i, &other, &value); i++)
        if (mk_str_eq_nocase(other, MK_STR("Connection")) && is_listed(value, name))
            return true;
    return false;
}

/* What it usually says names none. */
static bool names_fields(mk_str connection)
{
    return !mk_str_eq_nocase(connection, MK_STR("keep-alive")) &&
           !mk_str_eq_nocase(connection, MK_STR("close"));
}

static void look_at(struct list *l, mk_str name, mk_str value)
{
    enum kind kind = kind_of(name);
    if (kind == HOST && !(l->kinds >> HOST & 1))
        l->host = value;
    if (kind == CONNECTION)
        l->names_fields |= names_fields(value);
    l->kinds |= 1u << kind;
}

static size_t base64_size(mk_str bytes)
{
    return (bytes.len + 2) / 3 * 4;
}

/* Everything that may be written is bounded by what the client sent. */
static bool make_room(struct list *l)
{
    mk_str name, value;
    size_t size =
        ADDED + ADDRESS_MAX + l->route->authority.len + l->route->host.len + mk_request_user(l->request).len;
    for (size_t i = 0; mk_request_field_at(l->request, i, &name, &value); i++) {
        look_at(l, name, value);
        size += name.len + value.len + sizeof ": \r\n";
    }
    if (!l->host.p)
        l->host = mk_request_host(l->request);
    if (l->route->certificate == PROXY_CERTIFICATE_ON)
        l->certificate = mk_request_client_certificate(l->request);
    if (l->route->is_part)
        l->site = mk_request_site_name(l->request);
    size += 3 * l->host.len + 3 * l->site.len + base64_size(l->certificate);
    l->text = mk_buf_fixed(mk_request_alloc(l->request, size), size);
    return l->text.p;
}

bool proxy_fields_may_have(const struct proxy_route *route, mk_str name)
{
    enum kind kind = kind_of(name);
    if (kind == HOP || kind == CONNECTION || kind == HOST)
        return false;
    if (route->is_part)
        return !mk_str_eq_nocase(name, MK_STR(MK_PROXY_CLIENT)) &&
               !mk_str_eq_nocase(name, MK_STR(MK_PROXY_BODY_MAX));
    return kind == ORDINARY || (kind == FORWARDED && route->forwarded == PROXY_FORWARDED_OFF) ||
           (kind == CERTIFICATE && route->certificate == PROXY_CERTIFICATE_PASS);
}

static bool passes(const struct list *l, mk_str name)
{
    return proxy_fields_may_have(l->route, name) && !(l->names_fields && is_of_connection(l->request, name));
}

static void write_clients(struct list *l)
{
    mk_str name, value;
    for (size_t i = 0; mk_request_field_at(l->request, i, &name, &value); i++)
        if (passes(l, name))
            mk_field_put(&l->text, name, value);
}

/* ---- Ours ---- */

/* The client's values, and a comma: for fields that each proxy appends to. */
static void write_former(struct list *l, mk_str name)
{
    mk_str other, value;
    for (size_t i = 0; mk_request_field_at(l->request, i, &other, &value); i++)
        if (mk_str_eq_nocase(other, name)) {
            mk_buf_add(&l->text, value);
            mk_buf_add(&l->text, MK_STR(", "));
        }
}

/* RFC 7239: an IPv6 address is in quotes and brackets. */
static void write_node(struct mk_buf *out, mk_str address)
{
    bool is_ipv6 = mk_str_find(address, ':') != MK_STR_NONE;
    mk_buf_put(out, is_ipv6 ? MK_STR("\"[") : MK_STR(""));
    mk_buf_put(out, address);
    mk_buf_put(out, is_ipv6 ? MK_STR("]\"") : MK_STR(""));
}

static mk_str write_address(struct list *l)
{
    size_t from = l->text.len;
    mk_peer_print(mk_request_address(l->request), &l->text);
    return mk_str_skip(mk_buf_str(&l->text), from);
}

/* What is said of it to others: a peer over a unix socket has no address (RFC 7239, section 6.2). */
static mk_str write_client(struct list *l)
{
    if (!mk_request_address(l->request)->is_unix)
        return write_address(l);
    mk_buf_put(&l->text, MK_STR("unknown"));
    return MK_STR("unknown");
}

/* As the proxy in front of us names it: it may have ended TLS. */
static mk_str find_scheme(struct list *l)
{
    mk_str list = mk_request_field(l->request, MK_STR("X-Forwarded-Proto")), first;
    if (mk_element_next(&list, &first))
        for (size_t i = 0; i < MK_LEN(schemes); i++)
            if (mk_str_eq_nocase(first, schemes[i]))
                return schemes[i];
    return mk_request_scheme(l->request);
}

static void write_forwarded(struct list *l)
{
    struct mk_buf *out = &l->text;
    bool appends = l->route->forwarded == PROXY_FORWARDED_APPEND && l->kinds >> FORWARDED & 1;
    mk_str host = l->host, scheme = mk_request_scheme(l->request);
    mk_buf_put(out, MK_STR("X-Forwarded-For: "));
    if (appends)
        write_former(l, MK_STR("X-Forwarded-For"));
    mk_str address = write_client(l);
    mk_buf_put(out, MK_STR("\r\nForwarded: "));
    if (appends)
        write_former(l, MK_STR("Forwarded"));
    mk_buf_put(out, MK_STR("for="));
    write_node(out, address);
    mk_buf_put(out, MK_STR(";proto="));
    mk_buf_put(out, scheme);
    if (host.len && mk_str_find(host, '"') == MK_STR_NONE && mk_str_find(host, '\\') == MK_STR_NONE) {
        mk_buf_put(out, MK_STR(";host=\""));
        mk_buf_put(out, host);
        mk_buf_put(out, MK_STR("\""));
    }
    mk_buf_put(out, MK_STR("\r\n"));
    mk_field_put(out, MK_STR("X-Forwarded-Proto"), appends ? find_scheme(l) : scheme);
    if (host.len)
        mk_field_put(out, MK_STR("X-Forwarded-Host"), host);
}

/* RFC 9440. There is no Client-Cert-Chain: it would come and go, because tickets keep no chain. */
static void write_certificate(struct list *l)
{
    if (!l->certificate.len)
        return;
    mk_buf_put(&l->text, MK_STR("Client-Cert: :"));
    mk_base64_encode(&l->text, l->certificate);
    mk_buf_put(&l->text, MK_STR(":\r\n"));
}

static void write_via(struct list *l)
{
    unsigned version = mk_request_version(l->request);
    mk_buf_put(&l->text, MK_STR("Via: "));
    if (l->kinds >> VIA & 1)
        write_former(l, MK_STR("Via"));
    mk_buf_put(&l->text, version >= 20   ? MK_STR("2 monkey\r\n")
                         : version == 11 ? MK_STR("1.1 monkey\r\n")
                                         : MK_STR("1.0 monkey\r\n"));
}

/* For a part of this server: what hooks have found out, in place of what a client claims. */
static void write_facts(struct list *l)
{
    mk_str user = mk_request_user(l->request);
    mk_buf_put(&l->text, MK_STR(MK_PROXY_CLIENT ": "));
    write_address(l);
    mk_buf_addf(&l->text, " %u %.*s", mk_request_address(l->request)->port,
                MK_STR_ARG(mk_request_scheme(l->request)));
    mk_buf_put(&l->text, MK_STR(" /"));
    mk_url_escape(&l->text, l->site);
    if (user.len && mk_is_field_value(user))
        mk_buf_addf(&l->text, " %.*s", MK_STR_ARG(user));
    mk_buf_addf(&l->text, "\r\n" MK_PROXY_BODY_MAX ": %llu\r\n",
                (unsigned long long)mk_request_body_max(l->request));
}

/* HTTP/2 has no key (RFC 8441, section 5), HTTP/1.1 needs one. */
static bool write_websocket(struct list *l)
{
    char key[KEY_BYTES];
    if (!mk_str_eq(mk_request_tunnel(l->request), MK_STR("websocket")) || mk_request_version(l->request) < 20)
        return true;
    if (getrandom(key, sizeof key, 0) != (ssize_t)sizeof key)
        return false;
    mk_buf_put(&l->text, MK_STR("Sec-WebSocket-Key: "));
    mk_base64_encode(&l->text, mk_str_of(key, sizeof key));
    mk_buf_put(&l->text, MK_STR("\r\n"));
    return true;
}

int proxy_fields_make(struct mk_request *request, const struct proxy_route *route,
                      struct mk_client_request *ask)
{
    static const struct mk_field_line trailers = {MK_STR_INIT("TE"), MK_STR_INIT("trailers")};
    struct list l = {.request = request, .route = route};
    if (!make_room(&l))
        return -ENOMEM;
    mk_str host = route->host.p ? route->host : l.host;
    mk_field_put(&l.text, MK_STR("Host"), host.p ? host : route->authority);
    write_clients(&l);
    if (route->forwarded != PROXY_FORWARDED_OFF)
        write_forwarded(&l);
    write_certificate(&l);
    if (route->is_part)
        write_facts(&l);
    else
        write_via(&l);
    if (!write_websocket(&l) || l.text.failed)
        return -ENOMEM;
    ask->lines = mk_buf_str(&l.text);
    if (mk_request_accepts_trailers(request)) {
        ask->fields = &trailers;
        ask->n_fields = 1;
    }
    return 0;
}
