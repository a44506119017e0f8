/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"

#include <errno.h>
#include <monkey/log.h>
#include <monkey/request.h>

static const mk_str words[] = {MK_STR_INIT("Add"), MK_STR_INIT("Set"), MK_STR_INIT("Remove")};

bool headers_rules_parse_kind(mk_str key, enum rule_kind *kind)
{
    for (size_t i = 0; i < MK_LEN(words); i++)
        if (mk_str_eq_nocase(key, words[i])) {
            *kind = (enum rule_kind)i;
            return true;
        }
    return false;
}

/* Returns whether the server writes the header itself, based on the connection and the body. */
static bool is_server_header(mk_str name)
{
    static const mk_str names[] = {MK_STR_INIT("Content-Length"), MK_STR_INIT("Transfer-Encoding"),
                                   MK_STR_INIT("Connection"),     MK_STR_INIT("Keep-Alive"),
                                   MK_STR_INIT("Upgrade"),        MK_STR_INIT("Date"),
                                   MK_STR_INIT("Server"),         MK_STR_INIT("Trailer")};
    for (size_t i = 0; i < MK_LEN(names); i++)
        if (mk_str_eq_nocase(name, names[i]))
            return true;
    return false;
}

static bool check_token(const struct mk_conf_ctx *ctx, mk_str name, const char *hint)
{
    if (mk_is_token(name))
        return true;
    mk_conf_ctx_error(ctx, name, "`%.*s` is neither a condition nor the name of a header", MK_STR_ARG(name));
    mk_conf_ctx_hint(ctx, "%s", hint);
    return false;
}

static void hint_request_header(const struct mk_conf_ctx *ctx, mk_str name)
{
    if (mk_str_eq_nocase(name, MK_STR("Host")))
        mk_conf_ctx_hint(ctx, "a backend gets another Host with the option `host=` of the route");
    else if (mk_str_eq_nocase(name, MK_STR("Destination")))
        mk_conf_ctx_hint(ctx, "proxy adapts it: see the option `destination=` of the route");
    else if (mk_header_role(name) == MK_ROLE_CERTIFICATE)
        mk_conf_ctx_hint(ctx, "the option `certificate=` of the route sets it");
    else if (mk_str_find(name, '_') != MK_STR_NONE)
        mk_conf_ctx_hint(ctx, "programs confuse `_` with `-` in names: use `-`");
}

static bool check_request_header_name(const struct mk_conf_ctx *ctx, mk_str name, bool removes)
{
    if (!check_token(ctx, name, "write `Set [PATH] NAME VALUE`; a name has no colon"))
        return false;
    if (mk_request_header_is_changeable(name, removes))
        return true;
    mk_conf_ctx_error(ctx, name, "request header `%.*s` cannot be %s", MK_STR_ARG(name),
                      removes ? "removed" : "set");
    hint_request_header(ctx, name);
    return false;
}

static bool check_header_name(const struct mk_conf_ctx *ctx, mk_str name)
{
    if (!check_token(ctx, name,
                     "write `Set [PATH] [type:TYPE] [status:STATUS] NAME VALUE`; a name has no colon"))
        return false;
    if (!is_server_header(name))
        return true;
    mk_conf_ctx_error(ctx, name, "header `%.*s` cannot be changed: the server sets it", MK_STR_ARG(name));
    if (mk_str_eq_nocase(name, MK_STR("Server")))
        mk_conf_ctx_hint(ctx, "`HideVersion on` in [SERVER] omits the version from it");
    return false;
}

/* Conditions on the type and status refer to responses. */
static bool check_request_condition(const struct mk_conf_ctx *ctx, mk_str word, const struct condition *when)
{
    if (!when->type.p && !when->status_max)
        return true;
    mk_conf_ctx_error(ctx, word, "`%.*s` is a condition on responses", MK_STR_ARG(word));
    mk_conf_ctx_hint(ctx, "a rule for requests accepts only a path");
    return false;
}

/* Parses the conditions and the header name after them. */
static bool parse_conditions_and_name(const struct mk_conf_ctx *ctx, enum rule_message message, mk_str *rest,
                                      struct rule *rule)
{
    mk_str word;
    for (;;) {
        if (!mk_conf_ctx_word(ctx, rest, &word))
            return false;
        if (!word.p) {
            mk_conf_ctx_error(ctx, rule->written, "missing header name: expected `[conditions] NAME%s`",
                              rule->kind == RULE_REMOVE ? "" : " VALUE");
            return false;
        }
        switch (headers_condition_parse(ctx, word, &rule->when)) {
        case CONDITION_TAKEN:
            if (message == RULE_REQUEST && !check_request_condition(ctx, word, &rule->when))
                return false;
            break;
        case CONDITION_WRONG:
            return false;
        case CONDITION_NONE:
            rule->name = word;
            rule->is_type = mk_str_eq_nocase(word, MK_STR("Content-Type"));
            return message == RULE_REQUEST ? check_request_header_name(ctx, word, rule->kind == RULE_REMOVE)
                                           : check_header_name(ctx, word);
        }
    }
}

static bool parse_variables(const struct mk_conf_ctx *ctx, struct rule *rule)
{
    if (mk_str_find(rule->value, '$') == MK_STR_NONE)
        return true;
    rule->template = mk_format_parse(ctx, rule->value);
    return rule->template != NULL;
}

/* Parses the value: the rest of the line, or a quoted string. */
static bool parse_value(const struct mk_conf_ctx *ctx, mk_str rest, struct rule *rule)
{
    mk_str whole = mk_str_trim(rest);
    rule->value = whole;
    if (mk_str_starts(whole, MK_STR("\""))) {
        if (!mk_conf_ctx_word(ctx, &rest, &rule->value))
            return false;
        rest = mk_str_trim(rest);
        if (rest.len) {
            mk_conf_ctx_error(ctx, rest, "unexpected `%.*s` after the value", MK_STR_ARG(rest));
            mk_conf_ctx_hint(ctx, "put quotes around all of the value, and write \\\" for a quote within it");
            return false;
        }
    } else if (whole.len == 0) {
        mk_conf_ctx_error(ctx, rule->written,
                          "missing value of `%.*s`: expected `%.*s [conditions] NAME VALUE`",
                          MK_STR_ARG(rule->name), MK_STR_ARG(words[rule->kind]));
        return false;
    }
    if (mk_is_header_value(rule->value))
        return parse_variables(ctx, rule);
    mk_conf_ctx_error(ctx, whole, "the value of `%.*s` contains a control character", MK_STR_ARG(rule->name));
    return false;
}

static bool expect_no_value(const struct mk_conf_ctx *ctx, mk_str rest)
{
    rest = mk_str_trim(rest);
    if (rest.len == 0)
        return true;
    mk_conf_ctx_error(ctx, rest, "unexpected `%.*s` after the name: expected `Remove [conditions] NAME`",
                      MK_STR_ARG(rest));
    return false;
}

void headers_rules_parse(const struct mk_conf_ctx *ctx, enum rule_message message, enum rule_kind kind,
                         struct rules *rules)
{
    mk_str rest = mk_conf_ctx_value(ctx);
    struct rule rule = {.kind = kind, .written = rest};
    if (!parse_conditions_and_name(ctx, message, &rest, &rule))
        return;
    if (kind == RULE_REMOVE ? !expect_no_value(ctx, rest) : !parse_value(ctx, rest, &rule))
        return;
    (void)mk_conf_ctx_append(ctx, &rules->v, &rules->n, &rule, sizeof rule);
}

bool headers_rules_show(const struct rules *rules, size_t i, struct mk_buf *key, struct mk_buf *value)
{
    if (i >= rules->n)
        return false;
    mk_buf_add(key, words[rules->v[i].kind]);
    mk_buf_add(value, rules->v[i].written);
    return true;
}

/* Adds the header. Omits it if out of memory. */
static void add_rule_header(struct response_facts *facts, const struct rule *r)
{
    mk_str value = r->template ? mk_format_expand(r->template, facts->request) : r->value;
    if (value.p)
        headers_response_add(facts, r->name, value);
}

void headers_rules_apply(const struct rules *rules, struct response_facts *facts)
{
    for (const struct rule *r = rules->v; r < rules->v + rules->n; r++) {
        if (!headers_condition_matches(&r->when, facts))
            continue;
        if (r->is_type) /* caches the type while the response still has the header */
            (void)headers_response_facts_media_type(facts);
        if (r->kind != RULE_ADD)
            headers_response_remove(facts, r->name);
        if (r->kind != RULE_REMOVE)
            add_rule_header(facts, r);
    }
}

static int apply_to_request(const struct rule *r, struct mk_request *request)
{
    if (r->kind == RULE_REMOVE)
        return mk_request_remove_header(request, r->name);
    mk_str value = r->template ? mk_format_expand(r->template, request) : r->value;
    if (!value.p)
        return -ENOMEM;
    return r->kind == RULE_SET ? mk_request_set_header(request, r->name, value)
                               : mk_request_add_header(request, r->name, value);
}

/* A request whose headers cannot be changed is rejected: a backend trusts the headers that a rule sets. */
static unsigned reject_request(struct mk_request *request, const struct rule *r, int e)
{
    unsigned status = e == -ENOMEM ? 503 : e == -E2BIG ? 431 : 400;
    mk_request_log(request, MK_LOG_WARN, "headers: cannot change the request header %.*s: %s: %u",
                   MK_STR_ARG(r->name),
                   e == -ENOMEM  ? "out of memory"
                   : e == -E2BIG ? "too many headers"
                                 : "its value contains a control character",
                   status);
    return status;
}

unsigned headers_rules_apply_to_request(const struct rules *rules, struct mk_request *request)
{
    mk_str path = mk_request_path(request);
    for (const struct rule *r = rules->v; r < rules->v + rules->n; r++) {
        if (r->when.has_path && !mk_pattern_matches(&r->when.path, path))
            continue;
        mk_request_explain(request, "headers", "%.*s request header %.*s", MK_STR_ARG(words[r->kind]),
                           MK_STR_ARG(r->name));
        int e = apply_to_request(r, request);
        if (e)
            return reject_request(request, r, e);
    }
    return 0;
}
