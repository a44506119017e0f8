/* SPDX-License-Identifier: Apache-2.0 */
#include "policy.h"

#include <errno.h>

#define AT(member) MK_CONF_AT(struct security_settings, member)

static const char *const statuses[] = {"403", "404", "close", NULL};

static bool parse_real_header(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    struct security_field *real = field;
    (void)ctx;
    real->is_set = true;
    if (mk_str_eq_nocase(value, MK_STR("off")))
        return true;
    real->name = value;
    return mk_is_token(value);
}

static bool show_real_header(const void *field, size_t i, struct mk_buf *out)
{
    const struct security_field *real = field;
    mk_buf_add(out, real->name.p ? real->name : MK_STR("off"));
    return i == 0 && real->is_set;
}

static const struct mk_conf_key keys[] = {
    {.name = "Status",
     .type = MK_CONF_ENUM,
     AT(status),
     .choices = statuses,
     .default_value = "403",
     .help = MK_HELP(
         "Response to a denied request: 403, 404 (as if the file did not exist), or none (`close`).")},
    {.name = "IgnoreCase",
     .type = MK_CONF_BOOL,
     AT(ignore_case),
     .default_value = "off",
     .help = MK_HELP(
         "Makes path patterns case-insensitive; use it if the file system or a backend ignores case, too.")},
    {.name = "TrustedProxy",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_REPEATABLE,
     AT(trusted),
     .syntax = "addresses and networks, or off",
     .help = MK_HELP(
         "Proxies whose information about the client is trusted. Default of a host: the value above the "
         "first [HOST]."),
     .parse = security_networks_parse,
     .show = security_networks_show},
    {.name = "RealAddress",
     .type = MK_CONF_CUSTOM,
     AT(real),
     .syntax = "X-Forwarded-For, Forwarded, X-Real-IP, another header with a list of addresses, or off",
     .help = MK_HELP(
         "Header in which trusted proxies send the client's address: its last address that is not itself "
         "a trusted proxy. Requires TrustedProxy."),
     .parse = parse_real_header,
     .show = show_real_header},
    {.name = "RealScheme",
     .type = MK_CONF_CUSTOM,
     AT(scheme),
     .syntax = "X-Forwarded-Proto, Forwarded, another header with http or https, or off",
     .help =
         MK_HELP("Header in which trusted proxies send the client's scheme, `http` or `https`. Default: "
                 "`Forwarded` with `RealAddress Forwarded`, `X-Forwarded-Proto` with any other RealAddress."),
     .parse = parse_real_header,
     .show = show_real_header},
    {.name = "ProxyProtocol",
     .type = MK_CONF_BOOL,
     AT(proxy_protocol),
     .default_value = "off",
     .help = MK_HELP(
         "Requires a PROXY protocol header, version 1 or 2, on every connection from a trusted proxy; "
         "connections without it are closed. Only above the first [HOST].")},
};

static void parse_security_key(const struct mk_conf_ctx *ctx)
{
    struct security_settings *s = mk_conf_ctx_out(ctx);
    security_rules_parse(ctx, &s->rules);
}

const struct mk_conf_table security_table = {
    .section = "SECURITY",
    .keys = keys,
    .n = MK_LEN(keys),
    .help = MK_HELP("Access rules, and the client address behind trusted proxies."),
    .entry = parse_security_key,
    .entry_syntax =
        "Allow|Deny [PATH...] [NETWORK...] [[not] SUBJECT VALUE...]..., or deny_hotlink PATH "
        "[HOST...]; SUBJECT "
        "is path, contains, from, method, referer, host, scheme, query, header NAME, cookie NAME, "
        "parameter NAME, country or asn",
    .entry_help =
        MK_HELP("Access rules in order: the first match decides. Requests that match no rule are allowed."),
    .size = sizeof(struct security_settings),
    .scope = MK_CONF_VHOST,
};

static void parse_monkey1_entry(const struct mk_conf_ctx *ctx)
{
    security_rules_parse_monkey1(ctx, mk_conf_ctx_out(ctx));
}

const struct mk_conf_table security_old_table = {
    .section = "RULES",
    .help = MK_HELP("Deny rules in the syntax of Monkey 1, checked before the rules of [SECURITY]."),
    .entry = parse_monkey1_entry,
    .entry_syntax = "IP ADDRESS[/BITS], URL TEXT, or deny_hotlink TEXT",
    .entry_help =
        MK_HELP("Denies an address or network, paths that contain a text, or hotlinks from other sites to "
                "such paths."),
    .size = sizeof(struct security_rules),
    .scope = MK_CONF_VHOST,
};

/* ---- Effective policies ---- */

static void append_default_rules(struct security_policy *place, const struct security_rules *rules)
{
    for (const struct security_rule *r = rules ? rules->first : NULL; r; r = r->next)
        place->rules[place->n++] = *r;
    place->subjects |= rules ? rules->subjects : 0;
}

/* Marks the rules that are found by their networks. Returns the number of these networks. */
static size_t mark_indexed_rules(const struct security_policy *place)
{
    size_t n, all = 0;
    for (size_t i = 0; i < place->n; i++) {
        place->rules[i].is_indexed = mk_conditions_networks(place->rules[i].conditions, &n);
        all += n;
    }
    return all;
}

/* Indexes the rules that are not found by their networks. */
static bool index_others(struct mk_config *config, struct security_policy *place)
{
    const struct mk_conditions **lists = mk_config_alloc(config, (place->n_others + 1) * sizeof *lists);
    for (size_t i = 0; lists && i < place->n_others; i++)
        lists[i] = place->rules[place->others[i]].conditions;
    place->index = lists ? mk_condition_index_new(config, lists, place->n_others) : NULL;
    return place->index;
}

/* Indexes rules with `from` by network. */
static bool index_rules(struct mk_config *config, struct security_policy *place)
{
    size_t n = mark_indexed_rules(place);
    struct mk_network *networks = mk_config_alloc(config, (n + 1) * sizeof *networks);
    uint32_t *numbers = mk_config_alloc(config, (n + 1) * sizeof *numbers);
    place->others = mk_config_alloc(config, (place->n + 1) * sizeof *place->others);
    if (!networks || !numbers || !place->others)
        return false;
    n = 0;
    for (uint32_t i = 0; i < place->n; i++) {
        size_t of_rule;
        const struct mk_network *from = mk_conditions_networks(place->rules[i].conditions, &of_rule);
        for (size_t j = 0; j < of_rule; j++, n++) {
            networks[n] = from[j];
            numbers[n] = i;
        }
        if (!place->rules[i].is_indexed)
            place->others[place->n_others++] = i;
    }
    place->from = mk_config_network_set(config, networks, numbers, n);
    return place->from && index_others(config, place);
}

static bool lower_rules(struct mk_config *config, const struct security_rules *rules)
{
    for (const struct security_rule *r = rules->first; r; r = r->next)
        if (!mk_conditions_fold_paths(r->conditions, config))
            return false;
    return true;
}

static bool build_rules(struct mk_config *config, struct security_policy *place, struct security_settings *s,
                        const struct security_rules *old)
{
    size_t n = (s ? s->rules.n : 0) + (old ? old->n : 0);
    if (s && s->ignore_case && !s->is_lower && !lower_rules(config, &s->rules))
        return false;
    if (s) {
        s->is_lower = s->ignore_case;
        place->ignore_case = s->ignore_case;
        place->status = s->status;
    }
    place->rules = mk_config_alloc(config, (n + 1) * sizeof *place->rules);
    if (!place->rules)
        return false;
    append_default_rules(place, old);
    append_default_rules(place, s ? &s->rules : NULL);
    return index_rules(config, place);
}

static bool is_forwarded_header(mk_str field)
{
    return mk_str_eq_nocase(field, MK_STR("Forwarded"));
}

/* A proxy that reports the client's address usually also reports the scheme. */
static mk_str default_scheme_header(mk_str field)
{
    return !field.p ? MK_STR_NULL : is_forwarded_header(field) ? field : MK_STR("X-Forwarded-Proto");
}

/* Hosts inherit the trusted proxies, because trust depends more on the network than on the host. */
static void set_real_ip(struct security_policy *place, const struct security *all,
                        const struct security_settings *s)
{
    const struct security_settings *trusts = s && s->trusted.is_set ? s : all->top;
    const struct security_settings *names = s && s->real.is_set ? s : all->top;
    const struct security_settings *schemes = s && s->scheme.is_set ? s : all->top;
    if (!trusts)
        return;
    place->trusted = trusts->trusted.n ? trusts->trusted.set : NULL;
    mk_str field = names ? names->real.name : MK_STR_NULL;
    mk_str scheme = schemes && schemes->scheme.is_set ? schemes->scheme.name : default_scheme_header(field);
    if (!field.p && !scheme.p)
        return;
    place->real = (struct security_real_ip){.field = field,
                                            .scheme_field = scheme,
                                            .is_forwarded = is_forwarded_header(field),
                                            .scheme_is_forwarded = is_forwarded_header(scheme),
                                            .trusted = place->trusted};
}

static struct security_policy *new_policy(struct mk_config *config, const struct security *all,
                                          struct security_settings *s, const struct security_rules *old)
{
    struct security_policy *place = mk_config_alloc(config, sizeof *place);
    if (!place || !build_rules(config, place, s, old))
        return NULL;
    if (s && !s->trusted.set)
        s->trusted.set = mk_config_network_set(config, s->trusted.at, NULL, s->trusted.n);
    if (s && !s->trusted.set)
        return NULL;
    set_real_ip(place, all, s);
    return place;
}

static void check_proxy_protocol(struct mk_config *config, const struct security_settings *top)
{
    if (top->proxy_protocol && top->trusted.n == 0) {
        mk_config_error(config, top, "ProxyProtocol", "`ProxyProtocol` without `TrustedProxy`");
        mk_config_hint(config, "add the proxies: `TrustedProxy 192.0.2.7 10.0.0.0/8`");
    }
}

/* Warns of a header without trusted proxies, and of trusted proxies without a header: both are probably
 * mistakes. */
static void check_real_ip(struct mk_config *config, const struct security *all,
                          const struct security_settings *s, const struct security_policy *place)
{
    bool has_trusted = s->trusted.n || (!s->trusted.is_set && all->top && all->top->trusted.n);
    if ((s->real.name.p || s->scheme.name.p) && !has_trusted)
        mk_config_warn(config, s, s->real.name.p ? "RealAddress" : "RealScheme",
                       "no effect without `TrustedProxy`");
    else if (s->trusted.n && !place->real.trusted && !all->requires_proxy_header)
        mk_config_warn(config, s, "TrustedProxy",
                       "no effect on addresses without RealAddress, RealScheme or ProxyProtocol: the address "
                       "of the connection is used");
}

int security_policy_load(struct mk_config *config, void **data)
{
    struct security *all = mk_config_alloc(config, sizeof *all);
    if (!all)
        return -ENOMEM;
    all->top = mk_config_section(config, &security_table, NULL);
    all->old_top = mk_config_section(config, &security_old_table, NULL);
    all->accept_policy = all->shared = new_policy(config, all, all->top, all->old_top);
    if (!all->shared)
        return -ENOMEM;
    if (all->top) {
        all->requires_proxy_header = all->top->proxy_protocol;
        check_proxy_protocol(config, all->top);
        check_real_ip(config, all, all->top, all->accept_policy);
    }
    *data = all;
    return 0;
}

int security_policy_bind_vhost(struct mk_config *config, struct mk_vhost *host, void *data, void **host_data)
{
    struct security *all = data;
    struct security_settings *s = mk_config_section(config, &security_table, NULL);
    const struct security_rules *old = mk_config_section(config, &security_old_table, NULL);
    (void)host;
    bool has_others = s != all->top || old != all->old_top;
    if (has_others)
        all->accept_policy = NULL; /* this host may admit clients that other hosts reject */
    bool is_own = s && s != all->top;
    if (is_own && s->proxy_protocol)
        mk_config_error(config, s, "ProxyProtocol",
                        "not allowed below a [HOST]: move it to a [SECURITY] above the first [HOST]");
    struct security_policy *place = has_others ? new_policy(config, all, s, old) : all->shared;
    if (!place)
        return -ENOMEM;
    if (is_own)
        check_real_ip(config, all, s, place);
    if (place->n || place->trusted)
        *host_data = place;
    return 0;
}
