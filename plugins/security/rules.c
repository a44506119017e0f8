/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"

enum {
    SUBJECTS = MK_CONDITION_PATH | MK_CONDITION_CONTAINS | MK_CONDITION_FROM | MK_CONDITION_METHOD |
               MK_CONDITION_REFERER | MK_CONDITION_HOST | MK_CONDITION_SCHEME | MK_CONDITION_QUERY |
               MK_CONDITION_HEADER | MK_CONDITION_COOKIE | MK_CONDITION_PARAMETER | MK_CONDITION_COUNTRY |
               MK_CONDITION_ASN
};

struct security_rule *security_rule_new(const struct mk_conf_ctx *ctx, bool allows)
{
    struct security_rule *rule = mk_conf_ctx_alloc(ctx, sizeof *rule);
    struct mk_conditions *conditions = rule ? mk_conditions_new(ctx) : NULL;
    if (!conditions)
        return NULL;
    rule->key = mk_conf_ctx_key(ctx);
    rule->value = mk_conf_ctx_value(ctx);
    rule->allows = allows;
    rule->conditions = conditions;
    return rule;
}

void security_rule_append(struct security_rules *rules, struct security_rule *rule)
{
    if (rules->last)
        rules->last->next = rule;
    else
        rules->first = rule;
    rules->last = rule;
    rules->n++;
    rules->subjects |= mk_conditions_subjects(rule->conditions);
}

static void parse_rule(const struct mk_conf_ctx *ctx, bool allows, struct security_rules *rules)
{
    struct security_rule *rule = security_rule_new(ctx, allows);
    if (rule && mk_conditions_parse(rule->conditions, ctx, rule->value, SUBJECTS, true))
        security_rule_append(rules, rule);
}

/* `deny_hotlink PATTERN [HOST...]` means `Deny PATTERN not referer none self HOST...`. */
static void parse_hotlink(const struct mk_conf_ctx *ctx, struct security_rules *rules)
{
    struct security_rule *rule = security_rule_new(ctx, false);
    mk_str rest = mk_conf_ctx_value(ctx), word, path;
    mk_str *hosts = NULL, none = MK_STR("none"), self = MK_STR("self");
    size_t n = 0;
    if (!rule || !mk_conf_ctx_word(ctx, &rest, &path) ||
        !mk_conditions_add(rule->conditions, ctx, MK_CONDITION_PATH, false, &path, 1) ||
        !mk_conf_ctx_append(ctx, &hosts, &n, &none, sizeof none) ||
        !mk_conf_ctx_append(ctx, &hosts, &n, &self, sizeof self))
        return;
    while (mk_conf_ctx_word(ctx, &rest, &word)) {
        if (!word.p && mk_conditions_add(rule->conditions, ctx, MK_CONDITION_REFERER, true, hosts, n))
            security_rule_append(rules, rule);
        if (!word.p || !mk_conf_ctx_append(ctx, &hosts, &n, &word, sizeof word))
            return;
    }
}

void security_rules_parse(const struct mk_conf_ctx *ctx, struct security_rules *rules)
{
    mk_str key = mk_conf_ctx_key(ctx);
    if (mk_str_eq_nocase(key, MK_STR("Allow")))
        parse_rule(ctx, true, rules);
    else if (mk_str_eq_nocase(key, MK_STR("Deny")))
        parse_rule(ctx, false, rules);
    else if (mk_str_eq_nocase(key, MK_STR("deny_hotlink")))
        parse_hotlink(ctx, rules);
    else
        mk_conf_ctx_error(ctx, key,
                          "unknown key `%.*s` in [SECURITY]: expected Allow, Deny, deny_hotlink, Status, "
                          "IgnoreCase, TrustedProxy, RealAddress or ProxyProtocol",
                          MK_STR_ARG(mk_str_first(key, 80)));
}
