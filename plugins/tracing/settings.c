/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#define AT(member) MK_CONF_AT(struct tracing_settings, member)

enum { MILLION = 1000000, DECIMALS = 4 };

/* Parses a percentage with up to 4 decimals. */
static bool parse_sample(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    mk_str number = mk_str_first(value, value.len - mk_str_ends(value, MK_STR("%")));
    mk_str decimals = number, whole = mk_str_cut(&decimals, '.');
    uint64_t n, part = 0;
    (void)ctx;
    if (number.len == value.len || !mk_num_parse(whole, &n) || n > 100 || decimals.len > DECIMALS ||
        (decimals.p && !mk_num_parse(decimals, &part)))
        return false;
    for (size_t i = decimals.len; i < DECIMALS; i++)
        part *= 10;
    n = n * (MILLION / 100) + part;
    *(unsigned *)field = (unsigned)n;
    return n <= MILLION;
}

static bool show_sample(const void *field, size_t i, struct mk_buf *out)
{
    const unsigned *n = field;
    if (i == 0)
        mk_buf_addf(out, "%u.%04u%%", *n / (MILLION / 100), *n % (MILLION / 100));
    return i == 0;
}

static const struct mk_conf_key keys[] = {
    {.name = "RequestId",
     .type = MK_CONF_BOOL,
     AT(request_id),
     .default_value = "off",
     .help =
         MK_HELP("Gives each request an ID, which is in all log lines about the request, and in the header "
                 "X-Request-Id of the response and of requests to backends.")},
    {.name = "TraceContext",
     .type = MK_CONF_BOOL,
     AT(trace_context),
     .default_value = "off",
     .help = MK_HELP(
         "Passes the trace of a trusted proxy to backends, or begins one: the headers traceparent and "
         "tracestate (W3C Trace Context).")},
    {.name = "Sample",
     .type = MK_CONF_CUSTOM,
     AT(sample),
     .syntax = "a percentage, such as 1% or 0.01%",
     .default_value = "100%",
     .parse = parse_sample,
     .show = show_sample,
     .help =
         MK_HELP("Share of the traces that begin here which are marked as sampled, so that backends record "
                 "them.")},
};

const struct mk_conf_table tracing_table = {
    .section = "TRACING",
    .keys = keys,
    .n = MK_LEN(keys),
    .help = MK_HELP("Request IDs and traces."),
    .size = sizeof(struct tracing_settings),
    .scope = MK_CONF_VHOST,
};
