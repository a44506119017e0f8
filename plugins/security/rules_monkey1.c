/* SPDX-License-Identifier: Apache-2.0 */
/* Parses [RULES] as Monkey 1's plugin mandril did. */
#include "conditions.h"
#include "rules.h"

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

static bool add_address(const struct mk_conf_ctx *ctx, struct security_rule *rule, mk_str word)
{
    struct mk_network network;
    if (parse_loose_network(word, &network))
        return security_add_parsed_network(ctx, rule, &network);
    return security_add_network(ctx, rule, word);
}

void security_rules_parse_monkey1(const struct mk_conf_ctx *ctx, struct security_rules *rules)
{
    mk_str key = mk_conf_ctx_key(ctx), value = mk_conf_ctx_value(ctx);
    struct security_rule *rule = security_rule_new(ctx, false);
    bool ok = rule;
    if (rule && mk_str_eq_nocase(key, MK_STR("IP"))) {
        rule->parts = SECURITY_FROM;
        ok = add_address(ctx, rule, value);
    } else if (rule && mk_str_eq_nocase(key, MK_STR("URL"))) {
        rule->parts = SECURITY_CONTAINS;
        ok = security_add_substring(ctx, rule, value);
    } else if (rule && mk_str_eq_nocase(key, MK_STR("deny_hotlink"))) {
        rule->parts = SECURITY_CONTAINS | SECURITY_REFERER;
        rule->negated = SECURITY_REFERER;
        rule->referers.kinds = SECURITY_REFERER_NONE | SECURITY_REFERER_SELF | SECURITY_REFERER_SIBLINGS;
        ok = security_add_substring(ctx, rule, value);
    } else if (rule) {
        mk_conf_ctx_error(ctx, key, "unknown key `%.*s` in [RULES]: expected IP, URL or deny_hotlink",
                          MK_STR_ARG(mk_str_first(key, 80)));
        ok = false;
    }
    if (ok)
        security_rule_append(rules, rule);
}
