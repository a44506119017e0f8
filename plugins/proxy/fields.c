/* SPDX-License-Identifier: Apache-2.0 */
#include "fields.h"

#include <errno.h>
#include <monkey/proxy.h>
#include <sys/random.h>

/* Fields that are added: Host, Via, TE, X-Forwarded-*, Forwarded, Sec-WebSocket-Key. */
enum { ADDED = 8, ADDRESS_MAX = 64, KEY_BYTES = 16 };

struct list {
    struct mk_request *request;
    const struct proxy_route *route;
    mk_str host; /* that the client asked for */
    struct mk_field_line *at;
    size_t n;
    struct mk_buf text;
};

static bool is_one_of(mk_str name, const mk_str *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (name.len == names[i].len && mk_str_eq_nocase(name, names[i]))
            return true;
    return false;
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

/* Of one connection alone (RFC 9110, section 7.6.1), or of the framing, or met by this server. */
static bool is_hop(mk_str name)
{
    static const mk_str names[] = {MK_STR_INIT("Connection"),       MK_STR_INIT("Content-Length"),
                                   MK_STR_INIT("Expect"),           MK_STR_INIT("HTTP2-Settings"),
                                   MK_STR_INIT("Keep-Alive"),       MK_STR_INIT("Proxy-Authorization"),
                                   MK_STR_INIT("Proxy-Connection"), MK_STR_INIT("TE"),
                                   MK_STR_INIT("Trailer"),          MK_STR_INIT("Transfer-Encoding"),
                                   MK_STR_INIT("Upgrade")};
    return is_one_of(name, names, MK_LEN(names));
}

/* Ours to say: a client could claim anything in them. */
static bool is_ours(mk_str name)
{
    static const mk_str names[] = {MK_STR_INIT("Host"),
                                   MK_STR_INIT("Via"),
                                   MK_STR_INIT("Forwarded"),
                                   MK_STR_INIT("X-Forwarded-For"),
                                   MK_STR_INIT("X-Forwarded-Host"),
                                   MK_STR_INIT("X-Forwarded-Port"),
                                   MK_STR_INIT("X-Forwarded-Proto"),
                                   MK_STR_INIT("X-Forwarded-Server"),
                                   MK_STR_INIT("X-Real-IP")};
    return is_one_of(name, names, MK_LEN(names));
}

/* Programs that read variables, as those of CGI do, take `X_Real_IP` for `X-Real-IP`. */
static bool looks_like_ours(mk_str name)
{
    char room[32];
    if (mk_str_find(name, '_') == MK_STR_NONE || name.len > sizeof room)
        return false;
    for (size_t i = 0; i < name.len; i++)
        room[i] = name.p[i] == '_' ? '-' : name.p[i];
    return is_ours(mk_str_of(room, name.len));
}

static void add(struct list *l, mk_str name, mk_str value)
{
    l->at[l->n++] = (struct mk_field_line){name, value};
}

/* What was written since then. */
static mk_str since(const struct list *l, size_t from)
{
    return mk_str_skip(mk_buf_str(&l->text), from);
}

/* The client's values, and a comma: for fields that each proxy appends to. */
static void write_former(struct list *l, mk_str name)
{
    mk_str other, value;
    if (!mk_request_field(l->request, name).p)
        return;
    for (size_t i = 0; mk_request_field_at(l->request, i, &other, &value); i++)
        if (mk_str_eq_nocase(other, name)) {
            mk_buf_add(&l->text, value);
            mk_buf_add(&l->text, MK_STR(", "));
        }
}

static mk_str host_of(const struct mk_request *request)
{
    mk_str host = mk_request_field(request, MK_STR("Host"));
    return host.p ? host : mk_request_host(request);
}

/* RFC 7239: an IPv6 address is in quotes and brackets. */
static void write_node(struct mk_buf *out, mk_str address)
{
    bool is_ipv6 = mk_str_find(address, ':') != MK_STR_NONE;
    mk_buf_add(out, is_ipv6 ? MK_STR("\"[") : MK_STR(""));
    mk_buf_add(out, address);
    mk_buf_add(out, is_ipv6 ? MK_STR("]\"") : MK_STR(""));
}

static void add_forwarded(struct list *l, mk_str address)
{
    bool appends = l->route->forwarded == PROXY_FORWARDED_APPEND;
    mk_str host = l->host, scheme = mk_request_scheme(l->request);
    size_t from = l->text.len;
    if (appends)
        write_former(l, MK_STR("X-Forwarded-For"));
    mk_buf_add(&l->text, address);
    add(l, MK_STR("X-Forwarded-For"), since(l, from));
    from = l->text.len;
    if (appends)
        write_former(l, MK_STR("Forwarded"));
    mk_buf_add(&l->text, MK_STR("for="));
    write_node(&l->text, address);
    mk_buf_add(&l->text, MK_STR(";proto="));
    mk_buf_add(&l->text, scheme);
    if (host.len && mk_str_find(host, '"') == MK_STR_NONE && mk_str_find(host, '\\') == MK_STR_NONE) {
        mk_buf_add(&l->text, MK_STR(";host=\""));
        mk_buf_add(&l->text, host);
        mk_buf_add_char(&l->text, '"');
    }
    add(l, MK_STR("Forwarded"), since(l, from));
    add(l, MK_STR("X-Forwarded-Proto"), scheme);
    if (host.len)
        add(l, MK_STR("X-Forwarded-Host"), host);
}

static void add_via(struct list *l)
{
    unsigned version = mk_request_version(l->request);
    size_t from = l->text.len;
    write_former(l, MK_STR("Via"));
    mk_buf_add(&l->text, version >= 20   ? MK_STR("2 monkey")
                         : version == 11 ? MK_STR("1.1 monkey")
                                         : MK_STR("1.0 monkey"));
    add(l, MK_STR("Via"), since(l, from));
}

/* For a part of this server: what hooks have found out, in place of what a client claims. */
static void add_facts(struct list *l, mk_str address)
{
    size_t from = l->text.len;
    mk_str user = mk_request_user(l->request);
    mk_buf_addf(&l->text, "%.*s %u %.*s", MK_STR_ARG(address), mk_request_address(l->request)->port,
                MK_STR_ARG(mk_request_scheme(l->request)));
    if (user.len && mk_is_field_value(user))
        mk_buf_addf(&l->text, " %.*s", MK_STR_ARG(user));
    add(l, MK_STR(MK_PROXY_CLIENT), since(l, from));
}

/* HTTP/2 has no key (RFC 8441, section 5), HTTP/1.1 needs one. */
static bool add_websocket(struct list *l)
{
    char key[KEY_BYTES];
    size_t from = l->text.len;
    if (!mk_str_eq(mk_request_tunnel(l->request), MK_STR("websocket")) || mk_request_version(l->request) < 20)
        return true;
    if (getrandom(key, sizeof key, 0) != (ssize_t)sizeof key)
        return false;
    mk_base64_encode(&l->text, mk_str_of(key, sizeof key));
    add(l, MK_STR("Sec-WebSocket-Key"), since(l, from));
    return true;
}

static void add_clients(struct list *l)
{
    mk_str name, value;
    bool has_connection = mk_request_field(l->request, MK_STR("Connection")).p;
    for (size_t i = 0; mk_request_field_at(l->request, i, &name, &value); i++) {
        bool passes = l->route->forwarded == PROXY_FORWARDED_OFF && !mk_str_eq_nocase(name, MK_STR("Host")) &&
                      !mk_str_eq_nocase(name, MK_STR("Via"));
        if (is_hop(name) || (has_connection && is_of_connection(l->request, name)))
            continue;
        if (l->route->is_part
                ? !mk_str_eq_nocase(name, MK_STR("Host")) && !mk_str_eq_nocase(name, MK_STR(MK_PROXY_CLIENT))
                : passes || !(is_ours(name) || looks_like_ours(name)))
            add(l, name, value);
    }
}

/* Everything that may be written is bounded by what the client sent. */
static bool make_room(struct list *l, mk_str address)
{
    size_t n = ADDED,
           text = 256 + 4 * ADDRESS_MAX + 2 * l->host.len + 2 * address.len + mk_request_user(l->request).len;
    mk_str name, value;
    for (size_t i = 0; mk_request_field_at(l->request, i, &name, &value); i++) {
        n++;
        text += is_ours(name) ? value.len + 2 : 0;
    }
    l->at = mk_client_lines_new(l->request, n, text, &l->text);
    return l->at;
}

int proxy_fields_make(struct mk_request *request, const struct proxy_route *route, struct mk_field_line **out,
                      size_t *n)
{
    struct list l = {.request = request, .route = route, .host = host_of(request)};
    mk_str address = mk_request_peer(request);
    if (!make_room(&l, address))
        return -ENOMEM;
    mk_str host = route->host.p ? route->host : l.host;
    add(&l, MK_STR("Host"), host.p ? host : route->authority);
    add_clients(&l);
    if (route->forwarded != PROXY_FORWARDED_OFF)
        add_forwarded(&l, address);
    if (route->is_part)
        add_facts(&l, address);
    else
        add_via(&l);
    if (mk_request_accepts_trailers(request))
        add(&l, MK_STR("TE"), MK_STR("trailers"));
    if (!add_websocket(&l) || l.text.failed)
        return -ENOMEM;
    *out = l.at;
    *n = l.n;
    return 0;
}
