/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"

#include "conditions.h"

struct part {
    mk_str word;
    unsigned bit;
    bool (*add)(const struct mk_conf_ctx *ctx, struct security_rule *rule, mk_str word);
};

static const struct part parts[] = {
    {MK_STR_INIT("path"), SECURITY_PATH, security_add_path},
    {MK_STR_INIT("contains"), SECURITY_CONTAINS, security_add_substring},
    {MK_STR_INIT("from"), SECURITY_FROM, security_add_network},
    {MK_STR_INIT("method"), SECURITY_METHOD, security_add_method},
    {MK_STR_INIT("referer"), SECURITY_REFERER, security_add_referer},
};

static const struct part *find_condition(mk_str word)
{
    for (size_t i = 0; i < MK_LEN(parts); i++)
        if (mk_str_eq(word, parts[i].word))
            return &parts[i];
    return NULL;
}

/* The form of a word before the first condition determines its meaning. */
static const struct part *default_condition_of_word(mk_str word)
{
    bool is_path = word.len && (word.p[0] == '/' || word.p[0] == '*');
    return find_condition(is_path ? MK_STR("path") : MK_STR("from"));
}

struct line {
    const struct mk_conf_ctx *ctx;
    struct security_rule *rule;
    const struct part *part; /* the condition whose values follow; NULL: none yet */
    mk_str named;            /* name of that condition, until it has a value */
    mk_str negation;         /* the word `not` before a condition */
};

static bool begin_condition(struct line *line, const struct part *part, mk_str word)
{
    if (line->named.p)
        return security_condition_error(line->ctx, line->named, "without a value", "a value after it");
    if (line->rule->parts & part->bit)
        return security_condition_error(line->ctx, word, "already set", "each condition once");
    line->rule->parts |= part->bit;
    if (line->negation.p)
        line->rule->negated |= part->bit;
    line->part = part;
    line->named = word;
    line->negation = mk_str_of(NULL, 0);
    return true;
}

static bool parse_rule_word(struct line *line, mk_str word)
{
    const struct part *part = find_condition(word);
    if (part)
        return begin_condition(line, part, word);
    if (line->negation.p)
        return security_condition_error(line->ctx, word, "not a condition",
                                        "path, from, method, referer or contains after `not`");
    if (mk_str_eq(word, MK_STR("not"))) {
        line->negation = word;
        return true;
    }
    part = line->part ? line->part : default_condition_of_word(word);
    line->rule->parts |= part->bit;
    line->named = mk_str_of(NULL, 0);
    return part->add(line->ctx, line->rule, word);
}

static bool parse_rule_line(struct line *line, mk_str rest)
{
    mk_str word;
    while (mk_conf_ctx_word(line->ctx, &rest, &word)) {
        if (!word.p && line->named.p)
            return security_condition_error(line->ctx, line->named, "without a value", "a value after it");
        if (!word.p && line->negation.p)
            return security_condition_error(line->ctx, line->negation, "the last word",
                                            "path, from, method, referer or contains after it");
        if (!word.p)
            return true;
        if (!parse_rule_word(line, word))
            return false;
    }
    return false;
}

static void parse_rule(const struct mk_conf_ctx *ctx, bool allows, struct security_rules *rules)
{
    struct line line = {.ctx = ctx, .rule = security_rule_new(ctx, allows)};
    if (line.rule && parse_rule_line(&line, mk_conf_ctx_value(ctx)))
        security_rule_append(rules, line.rule);
}

/* `deny_hotlink PATTERN [HOST...]` means `Deny PATTERN not referer none self HOST...`. */
static void parse_hotlink(const struct mk_conf_ctx *ctx, struct security_rules *rules)
{
    struct security_rule *rule = security_rule_new(ctx, false);
    mk_str rest = mk_conf_ctx_value(ctx), word;
    if (!rule || !mk_conf_ctx_word(ctx, &rest, &word) || !security_add_path(ctx, rule, word))
        return;
    rule->parts = SECURITY_PATH | SECURITY_REFERER;
    rule->negated = SECURITY_REFERER;
    rule->referers.kinds = SECURITY_REFERER_NONE | SECURITY_REFERER_SELF;
    while (mk_conf_ctx_word(ctx, &rest, &word)) {
        if (!word.p) {
            security_rule_append(rules, rule);
            return;
        }
        if (!security_add_referer(ctx, rule, word))
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

/* ---- Rules that ignore case ---- */

static bool lowercase_pattern(struct mk_config *config, struct mk_pattern *pattern)
{
    char *buf = mk_config_alloc(config, pattern->text.len + 1);
    for (size_t i = 0; buf && i < pattern->text.len; i++)
        buf[i] = mk_char_lower(pattern->text.p[i]);
    return buf && mk_pattern_set(pattern, mk_str_of(buf, pattern->text.len));
}

bool security_rules_to_lower(struct mk_config *config, const struct security_rules *rules)
{
    for (struct security_rule *r = rules->first; r; r = r->next)
        for (size_t i = 0; i < r->n_paths; i++)
            if (!lowercase_pattern(config, &r->paths[i]))
                return false;
    return true;
}
