/* SPDX-License-Identifier: Apache-2.0 */
#include "subrequest.h"

#include <monkey/trace.h>

enum { OWN_HEADERS = 14, KEY_TEXT_MAX = 64 * 1024 };

/* ---- The client's headers ---- */

/* Is the header listed in Connection, and therefore only for this server (RFC 9110, section 7.6.1)? */
static bool is_listed_in_connection(const struct mk_request *request, mk_str name)
{
    mk_str field, value, option;
    for (size_t i = 0; mk_request_header_at(request, i, &field, &value); i++) {
        if (mk_request_header_role(request, i) != MK_ROLE_CONNECTION)
            continue;
        while (mk_header_list_next(&value, &option))
            if (mk_str_eq_nocase(option, name))
                return true;
    }
    return false;
}

/* Does the header refer to the body, to a stored response or to a part of one? The service gets no body, and
 * its own response has nothing to do with the one that the client has stored. */
static bool is_for_another_response(mk_str name)
{
    return mk_str_eq_nocase(mk_str_first(name, 8), MK_STR("Content-")) ||
           mk_str_eq_nocase(mk_str_first(name, 3), MK_STR("If-")) || mk_str_eq_nocase(name, MK_STR("Range"));
}

static char comparable_char(char c)
{
    return mk_char_is_alpha(c) || mk_char_is_digit(c) ? mk_char_lower(c) : '-';
}

/* Is it the header, or one that programs confuse with it, such as X.Request.Id? */
static bool is_like_header(mk_str name, mk_str header)
{
    for (size_t i = 0; i < name.len && name.len == header.len; i++)
        if (comparable_char(name.p[i]) != comparable_char(header.p[i]))
            return false;
    return name.len == header.len;
}

/* Does the header identify the request? A client could otherwise choose the IDs in the logs of the service. */
static bool is_context_header(mk_str name)
{
    return is_like_header(name, MK_STR(MK_REQUEST_ID_HEADER)) ||
           mk_str_eq_nocase(name, MK_STR("traceparent")) || mk_str_eq_nocase(name, MK_STR("tracestate"));
}

static bool is_passed(const struct mk_request *request, size_t i, mk_str name)
{
    enum mk_header_role role = mk_request_header_role(request, i);
    if (role == MK_ROLE_SERVER)
        return !is_for_another_response(name);
    return role == MK_ROLE_CLIENT && !is_for_another_response(name) && !is_context_header(name) &&
           !is_listed_in_connection(request, name);
}

static bool has_upper_case(mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] != mk_char_lower(s.p[i]))
            return true;
    return false;
}

/* Converts the host to lower case, and removes the trailing dot of the name before the port: it is the same host,
 * and rules of the service would miss it. Absent if out of memory. */
static mk_str normalize_host(struct mk_request *request, mk_str host)
{
    size_t colon = mk_str_find_last(host, ':');
    mk_str port = mk_str_skip(host, colon), name = mk_str_first(host, colon);
    bool has_dot = name.len > 1 && name.p[name.len - 1] == '.';
    if (!has_dot && !has_upper_case(host))
        return host;
    char *p = mk_request_alloc(request, host.len);
    struct mk_buf out = mk_buf_fixed(p, host.len);
    mk_buf_add(&out, mk_str_first(name, name.len - has_dot));
    mk_buf_add(&out, port);
    for (size_t i = 0; p && i < out.len; i++)
        p[i] = mk_char_lower(p[i]);
    return p && !out.failed ? mk_buf_str(&out) : MK_STR_NULL;
}

/* The Host header, with its port; for a request without one, the host. Absent if out of memory. */
static mk_str requested_host(struct mk_request *request)
{
    mk_str host = mk_request_header(request, MK_STR("Host"));
    if (!host.p)
        host = mk_request_host(request);
    return host.p ? normalize_host(request, host) : MK_STR("");
}

static mk_str requested_uri(const struct mk_request *request)
{
    mk_str uri = mk_request_uri(request);
    return uri.p ? uri : MK_STR("/");
}

mk_str forward_auth_original_url(struct mk_request *request)
{
    mk_str scheme = mk_request_scheme(request), host = requested_host(request), uri = requested_uri(request);
    size_t size = scheme.len + 3 + host.len + uri.len;
    char *p = mk_request_alloc(request, size);
    struct mk_buf out = mk_buf_fixed(p, size);
    mk_buf_add(&out, scheme);
    mk_buf_add(&out, MK_STR("://"));
    mk_buf_add(&out, host);
    mk_buf_add(&out, uri);
    return p && host.p && !out.failed ? mk_buf_str(&out) : MK_STR_NULL;
}

/* ---- The request ---- */

static void add_header(struct mk_header *headers, size_t *n, mk_str name, mk_str value)
{
    headers[(*n)++] = (struct mk_header){name, value};
}

/* The names that the documentation of services for nginx (X-Original-*) and for Traefik (X-Forwarded-*)
 * uses. A client's own headers with these names are not passed: mk_request_header_role(). */
static bool add_own_headers(struct mk_request *request, struct mk_header *headers, size_t *n)
{
    mk_str url = forward_auth_original_url(request);
    mk_str client = mk_request_client_addr(request)->is_unix ? MK_STR("unknown") /* RFC 7239, section 6.2 */
                                                             : mk_request_client_text(request);
    mk_str method = mk_request_method_text(request), uri = requested_uri(request);
    mk_str host = requested_host(request);
    add_header(headers, n, MK_STR("X-Original-URL"), url);
    add_header(headers, n, MK_STR("X-Original-Method"), method);
    add_header(headers, n, MK_STR("X-Original-URI"), uri);
    add_header(headers, n, MK_STR("X-Original-Host"), host);
    add_header(headers, n, MK_STR("X-Forwarded-Method"), method);
    add_header(headers, n, MK_STR("X-Forwarded-Proto"), mk_request_scheme(request));
    add_header(headers, n, MK_STR("X-Forwarded-Host"), host);
    add_header(headers, n, MK_STR("X-Forwarded-URI"), uri);
    add_header(headers, n, MK_STR("X-Forwarded-For"), client);
    add_header(headers, n, MK_STR("X-Real-IP"), client);
    return url.p && host.p && client.p;
}

/* Adds the ID and the trace of the request, as for a backend. False: out of memory. */
static bool add_context_headers(struct mk_request *request, struct mk_header *headers, size_t *n)
{
    const struct mk_trace *trace = mk_request_trace(request);
    char *parent = trace ? mk_request_alloc(request, MK_TRACEPARENT_SIZE) : NULL;
    if (mk_request_has_id(request))
        add_header(headers, n, MK_STR(MK_REQUEST_ID_HEADER), mk_request_id(request));
    if (!parent)
        return !trace;
    (void)mk_request_format_traceparent(request, NULL, parent);
    add_header(headers, n, MK_STR("traceparent"), mk_str_of(parent, MK_TRACEPARENT_SIZE));
    if (trace->state.p)
        add_header(headers, n, MK_STR("tracestate"), trace->state);
    return true;
}

/* Is it one of the names above? A hook may have set it for the backend. */
static bool is_own_header(const struct mk_header *headers, size_t n_own, mk_str name)
{
    for (size_t i = 0; i < n_own; i++)
        if (mk_str_eq_nocase(headers[i].name, name))
            return true;
    return false;
}

bool forward_auth_subrequest_build(struct mk_request *request, const struct forward_auth_location *place,
                                   struct mk_upstream_request_options *options)
{
    mk_str name, value;
    size_t max = OWN_HEADERS, n = 0;
    while (mk_request_header_at(request, max - OWN_HEADERS, &name, &value))
        max++;
    struct mk_header *headers = mk_request_alloc(request, max * sizeof *headers);
    if (!headers)
        return false;
    add_header(headers, &n, MK_STR("Host"), place->authority);
    if (!add_own_headers(request, headers, &n) || !add_context_headers(request, headers, &n))
        return false;
    size_t n_own = n;
    for (size_t i = 0; mk_request_header_at(request, i, &name, &value); i++)
        if (is_passed(request, i, name) && !is_own_header(headers, n_own, name))
            add_header(headers, &n, name, value);
    options->method = MK_STR("GET");
    options->target = place->target;
    options->headers = headers;
    options->n_headers = n;
    return true;
}

/* ---- The key of a cached answer ---- */

/* Writes the length first, so that different inputs never yield the same text. */
static void add_input(struct mk_buf *text, mk_str value)
{
    mk_buf_addf(text, "%zu:", value.len);
    mk_buf_add(text, value);
}

static void add_header_inputs(struct mk_buf *text, const struct mk_request *request, mk_str wanted)
{
    mk_str name, value;
    for (size_t i = 0; mk_request_header_at(request, i, &name, &value); i++)
        if (mk_str_eq_nocase(name, wanted))
            add_input(text, value);
    mk_buf_add_char(text, ';');
}

static void add_inputs(struct mk_buf *text, struct mk_request *request,
                       const struct forward_auth_location *place)
{
    mk_str host = requested_host(request);
    text->failed |= !host.p;
    mk_buf_addf(text, "%u;", place->id);
    add_input(text, mk_request_scheme(request));
    add_input(text, host);
    add_input(text, mk_request_client_text(request));
    add_header_inputs(text, request, MK_STR("Cookie"));
    add_header_inputs(text, request, MK_STR("Authorization"));
    for (size_t i = 0; i < place->cache_headers.n; i++)
        add_header_inputs(text, request, place->cache_headers.v[i]);
    if (place->cache_per != FORWARD_AUTH_PER_URL)
        return;
    add_input(text, mk_request_method_text(request));
    add_input(text, requested_uri(request));
}

bool forward_auth_subrequest_key(struct mk_request *request, const struct forward_auth_location *place,
                                 mk_str secret, char out[32])
{
    struct mk_buf text = mk_buf_growing(KEY_TEXT_MAX);
    add_inputs(&text, request, place);
    bool ok = !text.failed;
    if (ok)
        mk_hmac_sha256(secret, mk_buf_str(&text), out);
    if (text.p)
        explicit_bzero(text.p, text.len);
    mk_buf_free(&text);
    return ok;
}
