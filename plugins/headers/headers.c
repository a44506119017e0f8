/* SPDX-License-Identifier: Apache-2.0 */
/* Changes response headers: rules, Expires, CORS, and security headers; and request headers: rules. */
#include <errno.h>
#include <monkey/plugin.h>

#include "cors.h"
#include "expires.h"
#include "rules.h"
#include "security_headers.h"

struct settings {
    struct rules rules;
    struct expiries expires;
    struct cors cors;
    unsigned secure; /* enum secure */
};

static const char *const secure_words[] = {"off", "on", "strict", NULL};

static const struct mk_conf_key keys[] = {
    {.name = "Secure",
     .type = MK_CONF_ENUM,
     MK_CONF_AT(struct settings, secure),
     .choices = secure_words,
     .default_value = "off",
     .help = MK_HELP("Adds security headers that the response does not set: `on` is safe for ordinary sites, "
                     "`strict` is for sites that load nothing from other origins.")},
    {.name = "Cors",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_REPEATABLE,
     MK_CONF_AT(struct settings, cors),
     .syntax = "[PATH] ORIGIN... [methods=A,B] [headers=A,B] [expose=A,B] [max-age=TIME] [credentials]",
     .help = MK_HELP(
         "Allows scripts of these origins to read responses for the path (CORS); the first matching rule "
         "decides."),
     .parse = headers_cors_parse,
     .show = headers_cors_show},
    {.name = "Expires",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_REPEATABLE,
     MK_CONF_AT(struct settings, expires),
     .syntax = "[PATH] [TYPE] [status:STATUS] TIME|off",
     .help = MK_HELP("Adds `Expires` and `Cache-Control: max-age` to responses; the first matching rule "
                     "decides. `0` is `no-cache`."),
     .parse = headers_expires_parse,
     .show = headers_expires_show},
};

static void parse_headers_key(const struct mk_conf_ctx *ctx)
{
    struct settings *s = mk_conf_ctx_out(ctx);
    mk_str key = mk_conf_ctx_key(ctx);
    enum rule_kind kind;
    if (headers_rules_parse_kind(key, &kind))
        headers_rules_parse(ctx, RULE_RESPONSE, kind, &s->rules);
    else
        mk_conf_ctx_error(ctx, key,
                          "unknown key `%.*s` in [HEADERS]: expected Add, Set, Remove, Expires, Cors or "
                          "Secure",
                          MK_STR_ARG(mk_str_first(key, 64)));
}

static bool show_headers_key(const void *in, size_t i, struct mk_buf *key, struct mk_buf *value)
{
    return headers_rules_show(&((const struct settings *)in)->rules, i, key, value);
}

static const struct mk_conf_table table = {
    .section = "HEADERS",
    .keys = keys,
    .n = MK_LEN(keys),
    .help = MK_HELP("Response headers."),
    .entry = parse_headers_key,
    .show_entry = show_headers_key,
    .entry_syntax = "Add|Set [PATH] [type:TYPE] [status:STATUS] NAME VALUE, or Remove [conditions] NAME",
    .entry_help =
        MK_HELP("Changes a response header, including in error responses, in the order of the rules."),
    .size = sizeof(struct settings),
    .scope = MK_CONF_VHOST,
};

static void parse_request_key(const struct mk_conf_ctx *ctx)
{
    mk_str key = mk_conf_ctx_key(ctx);
    enum rule_kind kind;
    if (headers_rules_parse_kind(key, &kind))
        headers_rules_parse(ctx, RULE_REQUEST, kind, mk_conf_ctx_out(ctx));
    else
        mk_conf_ctx_error(ctx, key, "unknown key `%.*s` in [REQUEST_HEADERS]: expected Add, Set or Remove",
                          MK_STR_ARG(mk_str_first(key, 64)));
}

static bool show_request_key(const void *in, size_t i, struct mk_buf *key, struct mk_buf *value)
{
    return headers_rules_show(in, i, key, value);
}

static const struct mk_conf_table request_table = {
    .section = "REQUEST_HEADERS",
    .help = MK_HELP("Request headers, as handlers, programs and backends get them."),
    .entry = parse_request_key,
    .show_entry = show_request_key,
    .entry_syntax = "Add|Set [PATH] NAME VALUE, or Remove [PATH] NAME",
    .entry_help = MK_HELP("Changes a request header after all access checks, in the order of the rules."),
    .size = sizeof(struct rules),
    .scope = MK_CONF_VHOST,
};

struct vhost_settings {
    struct settings response;
    struct rules request;
};

static bool has_any_rule(const struct vhost_settings *v)
{
    const struct settings *s = &v->response;
    return s->rules.n || s->expires.n || s->cors.n || s->secure || v->request.n;
}

static int bind_vhost(struct mk_config *config, struct mk_vhost *host, void *data, void **host_data)
{
    const struct settings *response = mk_config_section(config, &table, NULL);
    const struct rules *request = mk_config_section(config, &request_table, NULL);
    struct vhost_settings *v = mk_config_alloc(config, sizeof *v);
    (void)host;
    (void)data;
    if (!v)
        return -ENOMEM;
    *v = (struct vhost_settings){0};
    if (response)
        v->response = *response;
    if (request)
        v->request = *request;
    if (has_any_rule(v))
        *host_data = v;
    return 0;
}

static enum mk_verdict on_request(struct mk_request *request, struct mk_response *response, void *host_data)
{
    const struct vhost_settings *v = host_data;
    const struct settings *s = &v->response;
    unsigned status;
    headers_rules_begin_path(&v->request, request);
    if (s->cors.n == 0 || !headers_cors_match_preflight(&s->cors, request, &status))
        return MK_NEXT;
    mk_response_set_status(response, status);
    return status == 204 ? MK_DONE : MK_ERROR;
}

/* Runs after authentication: $remote_user is known, and Remove hides credentials from backends only. */
static unsigned on_handler(struct mk_request *request, void *host_data)
{
    const struct vhost_settings *v = host_data;
    return v->request.n ? headers_rules_apply_to_request(&v->request, request) : 0;
}

static void on_response(struct mk_request *request, struct mk_response *response, void *host_data)
{
    const struct settings *s = &((const struct vhost_settings *)host_data)->response;
    struct response_facts facts;
    headers_response_facts_init(&facts, request, response);
    headers_expires_apply(&s->expires, &facts);
    headers_cors_apply(&s->cors, &facts);
    headers_security_headers_apply((enum secure)s->secure, &facts);
    headers_rules_apply(&s->rules, &facts); /* explicit rules take precedence */
}

static const struct mk_conf_table *const sections[] = {&table, &request_table, NULL};

/* Runs before authentication: browsers send preflight requests without credentials. */
MK_PLUGIN(headers) = {
    MK_PLUGIN_HEAD,
    .name = "headers",
    .version = "1.0",
    .help = "Adds, sets and removes headers of responses and requests; CORS, security headers, Expires.",
    .priority = MK_PRIORITY_LIMIT + 50,
    .sections = sections,
    .host = bind_vhost,
    .on_request = on_request,
    .on_response = on_response,
    .on_handler = on_handler,
};
