/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <stddef.h>

#define AT(member) MK_CONF_AT(struct otlp_settings, member)

enum { HEADERS_MAX = 32 * 1024, N_HEADERS_MAX = 64 }; /* they must fit into the environment of the helper */

/* ---- Endpoint ---- */

static bool is_url_char(char c)
{
    return c > ' ' && c < 0x7f && c != '"' && c != '\\' && c != '<' && c != '>' && c != '#';
}

/* Is it HOST[:PORT] without a user name? libcurl checks the rest. */
static bool is_authority(mk_str text)
{
    uint64_t port = 1;
    size_t colon = mk_str_find_last(text, ':');
    if (mk_str_find(text, '@') != MK_STR_NONE || !text.len || text.p[0] == ':')
        return false;
    if (colon != MK_STR_NONE && !mk_str_ends(text, MK_STR("]")) &&
        (!mk_num_parse(mk_str_skip(text, colon + 1), &port) || port == 0 || port > 65535))
        return false;
    return true;
}

/* Parses the URL; without a path, it gets the one of the specification. */
static bool parse_endpoint(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    static const char path[] = "/v1/traces";
    mk_str rest = mk_str_starts(value, MK_STR("https://"))  ? mk_str_skip(value, 8)
                  : mk_str_starts(value, MK_STR("http://")) ? mk_str_skip(value, 7)
                                                            : MK_STR_NULL;
    size_t slash = mk_str_find(rest, '/'), end = slash == MK_STR_NONE ? rest.len : slash;
    for (size_t i = 0; i < rest.len; i++)
        if (!is_url_char(rest.p[i]))
            return false;
    if (!rest.p || value.len > 2000 || !is_authority(mk_str_first(rest, end)))
        return false;
    size_t n = slash == MK_STR_NONE || end + 1 == rest.len ? value.len - (rest.len - end) : value.len;
    char *text = mk_conf_ctx_alloc(ctx, n + sizeof path);
    if (!text)
        return true; /* already reported */
    struct mk_buf out = mk_buf_fixed(text, n + sizeof path);
    mk_buf_add(&out, mk_str_first(value, n));
    if (n < value.len || slash == MK_STR_NONE)
        mk_buf_add(&out, mk_str_from_c(path));
    *(mk_str *)field = mk_buf_str(&out);
    return true;
}

static bool show_endpoint(const void *field, size_t i, struct mk_buf *out)
{
    const mk_str *endpoint = field;
    size_t query = mk_str_find(*endpoint, '?');
    if (i == 0)
        mk_buf_add(out, mk_str_first(*endpoint, query));
    if (i == 0 && query != MK_STR_NONE)
        mk_buf_add(out, MK_STR("?(hidden)"));
    return i == 0 && endpoint->len;
}

/* ---- Header ---- */

/* Parses `NAME VALUE`. */
static bool parse_header(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    struct otlp_settings *s = mk_conf_ctx_out(ctx);
    mk_str rest = value;
    struct otlp_header h = {.name = mk_str_cut(&rest, ' ')};
    h.value = mk_str_trim(rest);
    (void)field;
    if (!mk_is_token(h.name) || !h.value.len || !mk_is_header_value(h.value))
        return false;
    if (mk_str_eq_nocase(h.name, MK_STR("Content-Type")) ||
        mk_str_eq_nocase(h.name, MK_STR("Content-Length")) || mk_str_eq_nocase(h.name, MK_STR("Host")) ||
        mk_str_eq_nocase(h.name, MK_STR("Transfer-Encoding"))) {
        mk_conf_ctx_error(ctx, h.name, "the plugin sets this header itself");
        return false;
    }
    size_t size = value.len;
    for (size_t i = 0; i < s->n_headers; i++)
        size += s->headers[i].name.len + s->headers[i].value.len;
    if (size > HEADERS_MAX || s->n_headers == N_HEADERS_MAX) {
        mk_conf_ctx_error(ctx, value, "the headers are more than %d, or have more than %d bytes",
                          N_HEADERS_MAX, HEADERS_MAX);
        return false;
    }
    return mk_conf_ctx_append(ctx, &s->headers, &s->n_headers, &h, sizeof h);
}

/* The values may be secret. */
static bool show_header(const void *field, size_t i, struct mk_buf *out)
{
    const struct otlp_settings *s =
        (const void *)((const char *)field - offsetof(struct otlp_settings, headers));
    if (i >= s->n_headers)
        return false;
    mk_buf_add(out, s->headers[i].name);
    mk_buf_add(out, MK_STR(" (hidden)"));
    return true;
}

/* ---- Certificate ---- */

static bool parse_path(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    return (*(mk_str *)field = mk_conf_ctx_path(ctx, value)).p;
}

static bool show_path(const void *field, size_t i, struct mk_buf *out)
{
    const mk_str *path = field;
    if (i == 0 && path->len)
        mk_buf_add(out, *path);
    return i == 0 && path->len;
}

static const struct mk_conf_key keys[] = {
    {.name = "Endpoint",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_REQUIRED,
     AT(endpoint),
     .syntax = "a URL such as http://127.0.0.1:4318/v1/traces",
     .parse = parse_endpoint,
     .show = show_endpoint,
     .help = MK_HELP("URL of the collector (OTLP over HTTP). Without a path, it is /v1/traces.")},
    {.name = "Header",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_REPEATABLE,
     AT(headers),
     .syntax = "a name and a value, such as `Authorization Bearer ${TOKEN}`",
     .parse = parse_header,
     .show = show_header,
     .help = MK_HELP("A header of the requests to the collector, such as credentials. May be repeated.")},
    {.name = "ServiceName",
     .type = MK_CONF_TEXT,
     AT(service),
     .default_value = "monkey",
     .min = 1,
     .max = 200,
     .help = MK_HELP("Name of this server in traces: the resource attribute `service.name`.")},
    {.name = "Certificate",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_READS,
     AT(certificate),
     .syntax = "the path of a PEM file",
     .parse = parse_path,
     .show = show_path,
     .help = MK_HELP(
         "PEM file with the certificate authorities to trust for the collector. Default: those of the "
         "system.")},
    {.name = "Timeout",
     .type = MK_CONF_TIME,
     AT(timeout_ms),
     .default_value = "10s",
     .min = 100,
     .max = 300000,
     .help = MK_HELP("Time limit for a request to the collector.")},
    {.name = "Interval",
     .type = MK_CONF_TIME,
     AT(interval_ms),
     .default_value = "5s",
     .min = 10,
     .max = 300000,
     .help = MK_HELP("How long a batch waits for more spans, after its first one or after the previous "
                     "batch. 512 spans are sent at once.")},
    {.name = "QueueSize",
     .type = MK_CONF_NUM,
     AT(queue),
     .default_value = "2048",
     .min = 1,
     .max = 1000000,
     .help = MK_HELP("Spans that wait for the collector at most, at 1 KB each. Further spans are lost.")},
};

const struct mk_conf_table otlp_table = {
    .section = "OTLP",
    .keys = keys,
    .n = MK_LEN(keys),
    .help = MK_HELP("Exports the spans of sampled traces to a collector, by OTLP over HTTP."),
    .size = sizeof(struct otlp_settings),
    .scope = MK_CONF_SERVER,
};
