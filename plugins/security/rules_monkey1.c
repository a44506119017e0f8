/* SPDX-License-Identifier: Apache-2.0 */
/* Parses [RULES] as Monkey 1's plugin mandril did. */
#include "rules.h"

enum { NETWORK_LEN = 64 }; /* of an IPv6 address, `/` and a prefix length, and to spare */

/* In Monkey 1, "10.20.1.1/24" was valid and meant 10.20.1.0/24. */
static bool parse_loose_network(mk_str word, struct mk_network *out)
{
    struct mk_addr peer;
    uint64_t bits;
    mk_str length = word, address = mk_str_cut(&length, '/');
    if (!mk_addr_parse(address, &peer) || peer.port || !mk_num_parse(length, &bits) || bits > 32 ||
        mk_str_find(address, ':') != MK_STR_NONE)
        return false;
    *out = (struct mk_network){.bits = (uint8_t)(bits + 96)};
    for (unsigned bit = 0; bit < out->bits; bit++)
        out->ip[bit / 8] |= (uint8_t)(peer.ip[bit / 8] & 0x80u >> bit % 8);
    return true;
}

static bool add_condition(const struct mk_conf_ctx *ctx, struct security_rule *rule,
                          enum mk_condition_subject subject, mk_str value)
{
    return mk_conditions_add(rule->conditions, ctx, subject, false, &value, 1);
}

static bool add_address(const struct mk_conf_ctx *ctx, struct security_rule *rule, mk_str word)
{
    struct mk_network network;
    struct mk_buf text = mk_buf_fixed(mk_conf_ctx_alloc(ctx, NETWORK_LEN), NETWORK_LEN);
    if (!text.p || !parse_loose_network(word, &network))
        return text.p && add_condition(ctx, rule, MK_CONDITION_FROM, word);
    struct mk_addr address = {0};
    memcpy(address.ip, network.ip, sizeof address.ip);
    mk_addr_format(&address, &text);
    mk_buf_addf(&text, "/%d", network.bits - 96);
    return add_condition(ctx, rule, MK_CONDITION_FROM, mk_buf_str(&text));
}

static bool add_hotlink(const struct mk_conf_ctx *ctx, struct security_rule *rule, mk_str text)
{
    static const mk_str sites[] = {MK_STR_INIT("none"), MK_STR_INIT("self"), MK_STR_INIT("siblings")};
    return add_condition(ctx, rule, MK_CONDITION_CONTAINS, text) &&
           mk_conditions_add(rule->conditions, ctx, MK_CONDITION_REFERER, true, sites, MK_LEN(sites));
}

void security_rules_parse_monkey1(const struct mk_conf_ctx *ctx, struct security_rules *rules)
{
    mk_str key = mk_conf_ctx_key(ctx), value = mk_conf_ctx_value(ctx);
    struct security_rule *rule = security_rule_new(ctx, false);
    bool ok = false;
    if (rule && mk_str_eq_nocase(key, MK_STR("IP")))
        ok = add_address(ctx, rule, value);
    else if (rule && mk_str_eq_nocase(key, MK_STR("URL")))
        ok = add_condition(ctx, rule, MK_CONDITION_CONTAINS, value);
    else if (rule && mk_str_eq_nocase(key, MK_STR("deny_hotlink")))
        ok = add_hotlink(ctx, rule, value);
    else if (rule)
        mk_conf_ctx_error(ctx, key, "unknown key `%.*s` in [RULES]: expected IP, URL or deny_hotlink",
                          MK_STR_ARG(mk_str_first(key, 80)));
    if (ok)
        security_rule_append(rules, rule);
}
