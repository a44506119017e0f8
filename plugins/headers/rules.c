/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"

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

static bool check_header_name(const struct mk_conf_ctx *ctx, mk_str name)
{
    if (!mk_is_token(name)) {
        mk_conf_ctx_error(ctx, name, "`%.*s` is neither a condition nor the name of a header",
                          MK_STR_ARG(name));
        mk_conf_ctx_hint(ctx,
                         "write `Set [PATH] [type:TYPE] [status:STATUS] NAME VALUE`; a name has no colon");
        return false;
    }
    if (!is_server_header(name))
        return true;
    mk_conf_ctx_error(ctx, name, "header `%.*s` cannot be changed: the server sets it", MK_STR_ARG(name));
    if (mk_str_eq_nocase(name, MK_STR("Server")))
        mk_conf_ctx_hint(ctx, "`HideVersion on` in [SERVER] omits the version from it");
    return false;
}

/* Parses the conditions and the header name after them. */
static bool parse_conditions_and_name(const struct mk_conf_ctx *ctx, mk_str *rest, struct rule *rule)
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
            break;
        case CONDITION_WRONG:
            return false;
        case CONDITION_NONE:
            rule->name = word;
            rule->is_type = mk_str_eq_nocase(word, MK_STR("Content-Type"));
            return check_header_name(ctx, word);
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

void headers_rules_parse(const struct mk_conf_ctx *ctx, enum rule_kind kind, struct rules *rules)
{
    mk_str rest = mk_conf_ctx_value(ctx);
    struct rule rule = {.kind = kind, .written = rest};
    if (!parse_conditions_and_name(ctx, &rest, &rule))
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
