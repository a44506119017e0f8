/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <monkey/cgi.h>
#include <monkey/sized.h>
#include <monkey/tls.h>
#include <monkey/version.h>

/* Maximum number of variables not derived from headers, and the buffer size for addresses and numbers in
 * them. */
enum { OWN_MAX = 36, OWN_TEXT = 512 };

struct variable_list {
    struct mk_request *request;
    const struct mk_cgi_options *options;
    struct mk_header *at;
    size_t n;
    struct mk_buf text; /* buffer for generated text, large enough for all of it */
    uint64_t marks;     /* bitmap of the header_name_bit() of all headers */
    uint64_t doubles;   /* bits of `marks` that belong to more than one header */
};

static bool is_overridden(const struct variable_list *l, mk_str name)
{
    for (size_t i = 0; i < l->options->n_overrides; i++)
        if (mk_str_eq(l->options->overrides[i].name, name))
            return true;
    return false;
}

static void add_variable(struct variable_list *l, mk_str name, mk_str value)
{
    if (value.p && (!l->options->n_overrides || !is_overridden(l, name)))
        l->at[l->n++] = (struct mk_header){name, value};
}

#define ADD_VARIABLE(l, name, value) add_variable(l, MK_STR(name), value)

static mk_str variable_text_from(const struct variable_list *l, size_t from)
{
    return mk_str_skip(mk_buf_str(&l->text), from);
}

static void add_num_variable(struct variable_list *l, mk_str name, uint64_t n)
{
    size_t from = l->text.len;
    mk_buf_add_num(&l->text, n);
    add_variable(l, name, variable_text_from(l, from));
}

static mk_str format_addr(struct variable_list *l, const struct mk_addr *peer)
{
    size_t from = l->text.len;
    mk_addr_format(peer, &l->text);
    return variable_text_from(l, from);
}

/* ---- The request ---- */

static void add_target_variables(struct variable_list *l)
{
    const struct mk_cgi_options *o = l->options;
    mk_str query = mk_request_query(l->request);
    ADD_VARIABLE(l, "REQUEST_METHOD", mk_request_method_name(l->request));
    ADD_VARIABLE(l, "REQUEST_URI", mk_request_uri(l->request));
    ADD_VARIABLE(l, "QUERY_STRING", query.p ? query : MK_STR(""));
    ADD_VARIABLE(l, "SCRIPT_NAME", o->script_name);
    ADD_VARIABLE(l, "SCRIPT_FILENAME", o->script_filename);
    ADD_VARIABLE(l, "DOCUMENT_ROOT", o->document_root);
    if (!o->path_info.len)
        return;
    ADD_VARIABLE(l, "PATH_INFO", o->path_info);
    ADD_VARIABLE(l, "PATH_TRANSLATED", o->path_translated);
}

static void add_body_variables(struct variable_list *l)
{
    enum mk_method method = mk_request_method(l->request);
    bool has_none = method == MK_METHOD_GET || method == MK_METHOD_HEAD;
    bool says_length = mk_request_header(l->request, MK_STR("Content-Length")).p;
    if (l->options->length || (says_length && !has_none))
        ADD_VARIABLE(l, "CONTENT_TYPE", mk_request_header(l->request, MK_STR("Content-Type")));
}

static void add_client_variables(struct variable_list *l)
{
    const struct mk_addr *peer = mk_request_client_addr(l->request);
    mk_str user = mk_request_user(l->request), address = format_addr(l, peer);
    mk_str credentials = mk_request_header(l->request, MK_STR("Authorization"));
    ADD_VARIABLE(l, "REMOTE_ADDR", address);
    ADD_VARIABLE(l, "REMOTE_HOST", address); /* no reverse lookup (RFC 3875, section 4.1.9) */
    if (peer->port)
        add_num_variable(l, MK_STR("REMOTE_PORT"), peer->port);
    if (!user.p)
        return;
    ADD_VARIABLE(l, "REMOTE_USER", user);
    if (credentials.p)
        ADD_VARIABLE(l, "AUTH_TYPE", mk_str_word(&credentials));
}

/* Formats the address as in a URL. */
static mk_str format_host(struct variable_list *l, const struct mk_addr *peer)
{
    size_t from = l->text.len;
    mk_buf_add_char(&l->text, '[');
    mk_addr_format(peer, &l->text);
    mk_str bare = variable_text_from(l, from + 1);
    if (mk_str_find(bare, ':') == MK_STR_NONE)
        return bare;
    mk_buf_add_char(&l->text, ']');
    return variable_text_from(l, from);
}

/* Adds the host name that the client used, or else the name of the virtual host, or else the local
 * address. */
static void add_server_name(struct variable_list *l, const struct mk_addr *local)
{
    mk_str name = mk_request_host(l->request);
    if (!name.len)
        name = mk_vhost_name(mk_request_vhost(l->request));
    bool is_pattern = mk_str_starts(name, MK_STR("~")) || mk_str_find(name, '*') != MK_STR_NONE;
    if (name.len && !is_pattern)
        ADD_VARIABLE(l, "SERVER_NAME", name);
    else
        ADD_VARIABLE(l, "SERVER_NAME",
                     local && !local->is_unix ? format_host(l, local) : MK_STR("localhost"));
}

/* Adds a string from a certificate, which may contain any bytes. */
static void add_certificate_text(struct variable_list *l, mk_str name, mk_str value)
{
    if (value.p && mk_str_find(value, '\0') == MK_STR_NONE)
        add_variable(l, name, value);
}

/* Adds the TLS variables. A proxy that terminates TLS reports only the scheme. */
static void add_tls_variables(struct variable_list *l)
{
    struct mk_tls_info tls;
    if (!mk_request_tls(l->request, &tls))
        return;
    ADD_VARIABLE(l, "HTTPS", MK_STR("on"));
    if (!tls.version.len)
        return;
    ADD_VARIABLE(l, "SSL_PROTOCOL", tls.version);
    ADD_VARIABLE(l, "SSL_CIPHER", tls.cipher);
    add_certificate_text(l, MK_STR("SSL_TLS_SNI"), tls.server_name);
    ADD_VARIABLE(l, "SSL_SESSION_RESUMED", tls.resumed ? MK_STR("Resumed") : MK_STR("Initial"));
    ADD_VARIABLE(l, "SSL_CLIENT_VERIFY", tls.client_subject.p ? MK_STR("SUCCESS") : MK_STR("NONE"));
    add_certificate_text(l, MK_STR("SSL_CLIENT_S_DN"), tls.client_subject);
    add_certificate_text(l, MK_STR("SSL_CLIENT_I_DN"), tls.client_issuer);
    add_certificate_text(l, MK_STR("SSL_CLIENT_M_SERIAL"), tls.client_serial);
    add_certificate_text(l, MK_STR("SSL_CLIENT_FINGERPRINT"), tls.client_fingerprint);
}

static mk_str protocol_name(const struct mk_request *r)
{
    switch (mk_request_version(r)) {
    case 10:
        return MK_STR("HTTP/1.0");
    case 11:
        return MK_STR("HTTP/1.1");
    default:
        return MK_STR("HTTP/2.0");
    }
}

static void add_server_variables(struct variable_list *l)
{
    struct mk_addr local;
    bool is_known = mk_request_local_addr(l->request, &local) == 0;
    mk_str scheme = mk_request_scheme(l->request);
    unsigned usual = mk_str_eq(scheme, MK_STR("https")) ? 443 : 80;
    ADD_VARIABLE(l, "GATEWAY_INTERFACE", MK_STR("CGI/1.1"));
    ADD_VARIABLE(l, "SERVER_SOFTWARE", MK_STR("Monkey/" MONKEY_VERSION));
    ADD_VARIABLE(l, "SERVER_PROTOCOL", protocol_name(l->request));
    add_server_name(l, is_known ? &local : NULL);
    add_num_variable(l, MK_STR("SERVER_PORT"), is_known && local.port ? local.port : usual);
    if (is_known && !local.is_unix)
        ADD_VARIABLE(l, "SERVER_ADDR", format_addr(l, &local));
    ADD_VARIABLE(l, "REQUEST_SCHEME", scheme);
    add_tls_variables(l);
    ADD_VARIABLE(l, "REDIRECT_STATUS", MK_STR("200")); /* PHP refuses to run without it */
}

/* ---- The request headers ---- */

static inline bool is_header_named(mk_str name, mk_str known)
{
    return name.len == known.len && mk_str_eq_nocase(name, known);
}

/* Returns one of 64 bits; equal names have equal bits, whatever their case. */
static uint64_t header_name_bit(mk_str name)
{
    unsigned last = name.len ? (unsigned char)name.p[name.len - 1] | 0x20u : 0;
    unsigned first = name.len ? (unsigned char)name.p[0] | 0x20u : 0;
    return UINT64_C(1) << ((name.len * 5 + first * 3 + last) & 63);
}

static bool is_same_variable(mk_str a, mk_str b)
{
    for (size_t i = 0; i < a.len && a.len == b.len; i++)
        if (mk_char_lower(a.p[i] == '_' ? '-' : a.p[i]) != mk_char_lower(b.p[i] == '_' ? '-' : b.p[i]))
            return false;
    return a.len == b.len;
}

/* Would another header become the same variable? Of two names with underscores, the first wins. */
static bool has_ambiguous_name(const struct variable_list *l, mk_str name, size_t i)
{
    mk_str other, value;
    for (size_t k = 0; mk_request_header_at(l->request, k, &other, &value); k++) {
        bool counts = k < i || mk_str_find(other, '_') == MK_STR_NONE;
        if (k != i && counts && is_same_variable(name, other) && !mk_str_eq_nocase(name, other))
            return true;
    }
    return false;
}

static bool has_plain_name(mk_str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!mk_char_is_alpha(name.p[i]) && !mk_char_is_digit(name.p[i]) && name.p[i] != '-' &&
            name.p[i] != '_')
            return false;
    return true;
}

static bool is_client_header_passed(const struct variable_list *l, mk_str name)
{
    return has_plain_name(name) && !is_header_named(name, MK_STR("Content-Type")) &&
           (l->options->authorization || !is_header_named(name, MK_STR("Authorization")));
}

static bool is_header_passed(const struct variable_list *l, mk_str name, size_t i)
{
    switch (mk_request_header_role(l->request, i)) {
    case MK_ROLE_CLIENT:
    case MK_ROLE_SERVER:
        return is_client_header_passed(l, name);
    case MK_ROLE_UNDERSCORE:
        return l->options->underscores && has_plain_name(name) && !has_ambiguous_name(l, name, i);
    case MK_ROLE_FORWARDED:
        return l->options->forwarded;
    case MK_ROLE_HOP: /* passed: CGI variables describe the client's connection */
    case MK_ROLE_CONNECTION:
    case MK_ROLE_HOST:
    case MK_ROLE_VIA:
    case MK_ROLE_MAX_FORWARDS:
    case MK_ROLE_DESTINATION:
        return true;
    case MK_ROLE_FRAMING: /* CONTENT_LENGTH */
    case MK_ROLE_CERTIFICATE:
    case MK_ROLE_NONE:
        break;
    }
    return false;
}

static char variable_char(char c)
{
    if (c == '-')
        return '_';
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static mk_str format_variable_name(struct variable_list *l, mk_str name)
{
    size_t from = l->text.len;
    mk_buf_add(&l->text, MK_STR("HTTP_"));
    if (!mk_buf_reserve(&l->text, name.len))
        return MK_STR("");
    char *at = l->text.p + l->text.len;
    for (size_t i = 0; i < name.len; i++)
        at[i] = variable_char(name.p[i]);
    l->text.len += name.len;
    return variable_text_from(l, from);
}

static bool is_repeated_header(struct mk_request *r, mk_str name, size_t i)
{
    mk_str other, value;
    for (size_t k = 0; k < i && mk_request_header_at(r, k, &other, &value); k++)
        if (mk_str_eq_nocase(other, name))
            return true;
    return false;
}

/* Joins the lines of a header (RFC 9110, section 5.3; cookies: RFC 6265, section 5.4). */
static mk_str join_header_values(struct variable_list *l, mk_str name, mk_str value, size_t i)
{
    mk_str other, more, comma = mk_str_eq_nocase(name, MK_STR("Cookie")) ? MK_STR("; ") : MK_STR(", ");
    size_t from = l->text.len;
    while (mk_request_header_at(l->request, ++i, &other, &more)) {
        if (!mk_str_eq_nocase(other, name))
            continue;
        if (l->text.len == from)
            mk_buf_add(&l->text, value);
        mk_buf_add(&l->text, comma);
        mk_buf_add(&l->text, more);
    }
    return l->text.len == from ? value : variable_text_from(l, from);
}

static void add_header_variables(struct variable_list *l)
{
    mk_str name, value;
    for (size_t i = 0; mk_request_header_at(l->request, i, &name, &value); i++) {
        bool may_repeat = l->doubles & header_name_bit(name);
        if (!is_header_passed(l, name, i) || (may_repeat && is_repeated_header(l->request, name, i)))
            continue;
        mk_str variable = format_variable_name(l, name);
        add_variable(l, variable, may_repeat ? join_header_values(l, name, value, i) : value);
    }
}

/* ---- All variables ---- */

static bool alloc_variables(struct variable_list *l)
{
    size_t n = OWN_MAX + l->options->n_overrides, text = OWN_TEXT;
    mk_str name, value;
    for (size_t i = 0; mk_request_header_at(l->request, i, &name, &value); i++) {
        uint64_t mark = header_name_bit(name);
        l->doubles |= l->marks & mark;
        l->marks |= mark;
        n++;
        text += sizeof "HTTP_" + name.len + value.len + sizeof ", ";
    }
    l->at = mk_request_alloc(l->request, n * sizeof *l->at + text);
    if (l->at)
        l->text = mk_buf_fixed((char *)(l->at + n), text);
    return l->at;
}

int mk_cgi_variables_sized(struct mk_request *r, const struct mk_cgi_options *o, size_t o_size,
                           struct mk_header **out, size_t *n)
{
    struct mk_cgi_options full;
    o = mk_sized_in(&full, sizeof full, o, o_size);
    struct variable_list l = {.request = r, .options = o};
    if (!alloc_variables(&l))
        return -ENOMEM;
    if (o->n_overrides)
        memcpy(l.at, o->overrides, o->n_overrides * sizeof *o->overrides);
    l.n = o->n_overrides;
    add_server_variables(&l);
    add_target_variables(&l);
    add_client_variables(&l);
    add_body_variables(&l);
    add_header_variables(&l);
    if (l.text.failed)
        return -ENOMEM;
    *out = l.at;
    *n = l.n;
    return 0;
}
