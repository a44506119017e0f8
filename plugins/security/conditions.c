/* SPDX-License-Identifier: Apache-2.0 */
#include "conditions.h"

bool security_condition_error(const struct mk_conf_ctx *ctx, mk_str part, const char *what,
                              const char *expected)
{
    mk_conf_ctx_error(ctx, part, "`%.*s` is %s: expected %s", MK_STR_ARG(mk_str_first(part, 80)), what,
                      expected);
    return false;
}

bool security_add_path(const struct mk_conf_ctx *ctx, struct security_rule *rule, mk_str word)
{
    struct mk_pattern pattern;
    if (!mk_pattern_set(&pattern, word))
        return security_condition_error(ctx, word, "not a path", "/name, /folder/*, *.suffix or the like");
    return mk_conf_ctx_append(ctx, &rule->paths, &rule->n_paths, &pattern, sizeof pattern);
}

bool security_add_parsed_network(const struct mk_conf_ctx *ctx, struct security_rule *rule,
                                 const struct mk_network *network)
{
    return mk_conf_ctx_append(ctx, &rule->networks, &rule->n_networks, network, sizeof *network);
}

bool security_add_network(const struct mk_conf_ctx *ctx, struct security_rule *rule, mk_str word)
{
    struct mk_network network;
    if (!mk_network_parse(word, &network))
        return security_condition_error(
            ctx, word, "not an address or a network",
            "192.0.2.7, 192.0.2.0/24 or 2001:db8::/32 (without bits after its prefix), "
            "unix:, all, or a condition: path, "
            "contains, from, method or referer");
    return security_add_parsed_network(ctx, rule, &network);
}

static bool append_condition_text(const struct mk_conf_ctx *ctx, mk_str **texts, size_t *n, mk_str text)
{
    return mk_conf_ctx_append(ctx, texts, n, &text, sizeof text);
}

static bool is_upper_case(mk_str word)
{
    for (size_t i = 0; i < word.len; i++)
        if (mk_char_lower(word.p[i]) == word.p[i] && mk_char_is_alpha(word.p[i]))
            return false;
    return true;
}

/* Bits of known methods. */
static unsigned method_bit(mk_str word)
{
    static const struct {
        mk_str name;
        enum mk_method method;
    } methods[] = {
        {MK_STR_INIT("GET"), MK_METHOD_GET},         {MK_STR_INIT("HEAD"), MK_METHOD_HEAD},
        {MK_STR_INIT("POST"), MK_METHOD_POST},       {MK_STR_INIT("PUT"), MK_METHOD_PUT},
        {MK_STR_INIT("DELETE"), MK_METHOD_DELETE},   {MK_STR_INIT("CONNECT"), MK_METHOD_CONNECT},
        {MK_STR_INIT("OPTIONS"), MK_METHOD_OPTIONS}, {MK_STR_INIT("TRACE"), MK_METHOD_TRACE},
        {MK_STR_INIT("PATCH"), MK_METHOD_PATCH},
    };
    for (size_t i = 0; i < MK_LEN(methods); i++)
        if (mk_str_eq(word, methods[i].name))
            return MK_METHOD_BIT(methods[i].method);
    return 0;
}

bool security_add_method(const struct mk_conf_ctx *ctx, struct security_rule *rule, mk_str word)
{
    if (!mk_is_token(word) || !is_upper_case(word))
        return security_condition_error(ctx, word, "not a method",
                                        "GET, PUT, PROPFIND or the like, in capitals");
    unsigned bit = method_bit(word);
    rule->methods |= bit;
    return bit || append_condition_text(ctx, &rule->other_methods, &rule->n_other_methods, word);
}

static mk_str lowercase_copy(const struct mk_conf_ctx *ctx, mk_str text)
{
    char *buf = mk_conf_ctx_alloc(ctx, text.len + 1);
    for (size_t i = 0; buf && i < text.len; i++)
        buf[i] = mk_char_lower(text.p[i]);
    return mk_str_of(buf, buf ? text.len : 0);
}

static bool is_host_pattern(mk_str word)
{
    for (size_t i = 0; i < word.len; i++)
        if (!mk_char_is_alpha(word.p[i]) && !mk_char_is_digit(word.p[i]) && !strchr("-._*[:]", word.p[i]))
            return false;
    return word.len > 0;
}

bool security_add_referer(const struct mk_conf_ctx *ctx, struct security_rule *rule, mk_str word)
{
    struct security_referers *r = &rule->referers;
    unsigned kind = mk_str_eq(word, MK_STR("none"))       ? SECURITY_REFERER_NONE
                    : mk_str_eq(word, MK_STR("self"))     ? SECURITY_REFERER_SELF
                    : mk_str_eq(word, MK_STR("siblings")) ? SECURITY_REFERER_SIBLINGS
                                                          : 0;
    r->kinds |= kind;
    if (kind)
        return true;
    if (!is_host_pattern(word))
        return security_condition_error(ctx, word, "not a host",
                                        "a name such as example.org or *.example.org, self or none");
    mk_str host = lowercase_copy(ctx, word);
    return host.p && append_condition_text(ctx, &r->hosts, &r->n_hosts, host);
}

bool security_add_substring(const struct mk_conf_ctx *ctx, struct security_rule *rule, mk_str word)
{
    if (word.len == 0)
        return security_condition_error(ctx, word, "empty", "a part of a path");
    mk_str text = lowercase_copy(ctx, word);
    return text.p && append_condition_text(ctx, &rule->texts, &rule->n_texts, text);
}

static bool append_network(const struct mk_conf_ctx *ctx, struct security_networks *known, mk_str word)
{
    struct security_rule rule = {.networks = known->at, .n_networks = known->n};
    size_t n = known->n;
    if (!security_add_network(ctx, &rule, word) || !append_condition_text(ctx, &known->words, &n, word))
        return false;
    known->at = rule.networks;
    known->n = n;
    if (known->at[n - 1].bits == 0 && !known->at[n - 1].is_unix)
        mk_conf_ctx_warn(ctx, word, "`%.*s` trusts every client: any of them can claim any address",
                         MK_STR_ARG(word));
    return true;
}

bool security_networks_parse(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    struct security_networks *known = field;
    mk_str word;
    known->is_set = true;
    if (mk_str_eq_nocase(value, MK_STR("off")))
        return true;
    while (mk_conf_ctx_word(ctx, &value, &word)) {
        if (!word.p)
            return true;
        if (!append_network(ctx, known, word))
            return false;
    }
    return false;
}

bool security_networks_show(const void *field, size_t i, struct mk_buf *out)
{
    const struct security_networks *known = field;
    if (known->n == 0 && known->is_set && i == 0)
        mk_buf_add(out, MK_STR("off"));
    else if (i < known->n)
        mk_buf_add(out, known->words[i]);
    else
        return false;
    return true;
}

struct security_rule *security_rule_new(const struct mk_conf_ctx *ctx, bool allows)
{
    struct security_rule *rule = mk_conf_ctx_alloc(ctx, sizeof *rule);
    if (rule) {
        rule->key = mk_conf_ctx_key(ctx);
        rule->value = mk_conf_ctx_value(ctx);
        rule->allows = allows;
    }
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
    rules->parts |= rule->parts;
}
