/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"

#include <monkey/request.h>

const mk_str headers_rule_words[] = {MK_STR_INIT("Add"), MK_STR_INIT("Set"), MK_STR_INIT("Remove")};

bool headers_rules_parse_kind(mk_str key, enum rule_kind *kind)
{
    for (size_t i = 0; i <= RULE_REMOVE; i++)
        if (mk_str_eq_nocase(key, headers_rule_words[i])) {
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
                          MK_STR_ARG(rule->name), MK_STR_ARG(headers_rule_words[rule->kind]));
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
    if (mk_conf_ctx_append(ctx, &rules->v, &rules->n, &rule, sizeof rule))
        rules->has_path = rules->has_path || rule.when.has_path;
}

bool headers_rules_show(const struct rules *rules, size_t i, struct mk_buf *key, struct mk_buf *value)
{
    if (i >= rules->n)
        return false;
    mk_buf_add(key, headers_rule_words[rules->v[i].kind]);
    mk_buf_add(value, rules->v[i].written);
    return true;
}
