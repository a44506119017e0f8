/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include "rate.h"

#define AT(member) MK_CONF_AT(struct limits_settings, member)

static const char requests_form[] =
    "[PATH...] NUMBER/s|m|h|d [burst NUMBER] [by address|path|all|header NAME...] [when CONDITION...]";
static const char bandwidth_form[] = "[PATH...] SIZE [burst SIZE] [after SIZE] [by "
                                     "response|address|path|all|header NAME...] [when CONDITION...]";

enum {
    SUBJECTS = MK_CONDITION_PATH | MK_CONDITION_CONTAINS | MK_CONDITION_FROM | MK_CONDITION_METHOD |
               MK_CONDITION_REFERER | MK_CONDITION_HOST | MK_CONDITION_SCHEME | MK_CONDITION_QUERY |
               MK_CONDITION_HEADER | MK_CONDITION_COOKIE | MK_CONDITION_PARAMETER | MK_CONDITION_COUNTRY |
               MK_CONDITION_ASN,
    INDEX_MIN = 3
};

/* ---- Words ---- */

static bool is_path_pattern(mk_str word)
{
    return word.len && (word.p[0] == '/' || word.p[0] == '*');
}

static bool add_path_pattern(const struct mk_conf_ctx *ctx, struct mk_pattern **paths, size_t *n, mk_str word)
{
    struct mk_pattern path;
    return mk_pattern_set(&path, word) && mk_conf_ctx_append(ctx, paths, n, &path, sizeof path);
}

static bool report_rule_error(const struct mk_conf_ctx *ctx, mk_str part, const char *what,
                              const char *expected)
{
    mk_conf_ctx_error(ctx, part, "`%.*s` is %s: expected %s", MK_STR_ARG(mk_str_first(part, 80)), what,
                      expected);
    return false;
}

/* ---- Rules ---- */

struct line {
    const struct mk_conf_ctx *ctx;
    struct limits_rule *rule;
    bool is_bandwidth, has_rate;
    /* rest of the line; strings after `burst` and `after`, absent if the keyword is missing */
    mk_str rest, burst, after;
};

/* Parses the conditions in the rest of the line, after `when`. */
static bool parse_conditions(struct line *line, mk_str when)
{
    mk_str rest = line->rest;
    line->rest = MK_STR("");
    if (mk_str_trim(rest).len == 0)
        return report_rule_error(line->ctx, when, "the last word", "a condition after it");
    line->rule->when = mk_conditions_new(line->ctx);
    return line->rule->when && mk_conditions_parse(line->rule->when, line->ctx, rest, SUBJECTS, false);
}

/* Parses the word after the keyword `name`. */
static bool parse_keyword_value(struct line *line, mk_str name, mk_str *value)
{
    if (value->p)
        return report_rule_error(line->ctx, name, "already set", "it once");
    if (!mk_conf_ctx_word(line->ctx, &line->rest, value))
        return false;
    return value->p || report_rule_error(line->ctx, name, "the last word", "a value after it");
}

static bool parse_counting_key(struct line *line, mk_str word)
{
    struct limits_rule *rule = line->rule;
    if (mk_str_eq(word, MK_STR("address"))) {
        rule->by |= LIMITS_BY_ADDRESS;
    } else if (mk_str_eq(word, MK_STR("path"))) {
        rule->by |= LIMITS_BY_PATH;
    } else if (mk_str_eq(word, MK_STR("header"))) {
        rule->by |= LIMITS_BY_HEADER;
        if (!parse_keyword_value(line, word, &rule->header))
            return false;
        return mk_is_token(rule->header) ||
               report_rule_error(line->ctx, rule->header, "not the name of a header", "X-Api-Key");
    } else {
        return report_rule_error(line->ctx, word, "not a key to count by",
                                 line->is_bandwidth ? "response, address, path, all or header"
                                                    : "address, path, all or header");
    }
    return true;
}

/* Parses the rest of the line, after `by`. */
static bool parse_counting_keys(struct line *line, mk_str by)
{
    mk_str word = mk_str_of(NULL, 0), more;
    if (!parse_keyword_value(line, by, &word))
        return false;
    bool is_response = line->is_bandwidth && mk_str_eq(word, MK_STR("response"));
    bool alone = is_response || mk_str_eq(word, MK_STR("all"));
    line->rule->by = is_response ? LIMITS_BY_RESPONSE : 0;
    if (!alone && !parse_counting_key(line, word))
        return false;
    while (mk_conf_ctx_word(line->ctx, &line->rest, &more)) {
        if (!more.p)
            return true;
        if (mk_str_eq(more, MK_STR("when")))
            return parse_conditions(line, more);
        if (alone)
            return report_rule_error(line->ctx, more, "one too many", "nothing after `all` or `response`");
        if (!parse_counting_key(line, more))
            return false;
    }
    return false;
}

static bool parse_rate(struct line *line, mk_str word)
{
    struct limits_rule *rule = line->rule;
    if (line->has_rate)
        return report_rule_error(line->ctx, word, "unknown here",
                                 line->is_bandwidth ? "burst, after, by or when" : "burst, by or when");
    line->has_rate = true;
    if (line->is_bandwidth)
        return limits_rate_parse_bandwidth(word, &rule->rate) ||
               report_rule_error(line->ctx, word, "not a bandwidth", "bytes a second, from 1K to 1T: 500K");
    return limits_rate_parse_requests(word, &rule->interval, &rule->tolerance) ||
           report_rule_error(line->ctx, word, "not a rate",
                             "10/s, 100/m, 1000/h or 10000/d, at most 10000 a second");
}

static bool parse_rule_word(struct line *line, mk_str word)
{
    if (is_path_pattern(word))
        return add_path_pattern(line->ctx, &line->rule->paths, &line->rule->n_paths, word);
    if (mk_str_eq(word, MK_STR("burst")))
        return parse_keyword_value(line, word, &line->burst);
    if (line->is_bandwidth && mk_str_eq(word, MK_STR("after")))
        return parse_keyword_value(line, word, &line->after);
    if (mk_str_eq(word, MK_STR("by")))
        return parse_counting_keys(line, word);
    if (mk_str_eq(word, MK_STR("when")))
        return parse_conditions(line, word);
    return parse_rate(line, word);
}

static bool set_request_burst(struct line *line)
{
    struct limits_rule *rule = line->rule;
    uint64_t n;
    if (!line->burst.p)
        return true;
    if (!mk_num_parse(line->burst, &n) || n < 1 || n > 1000000)
        return report_rule_error(line->ctx, line->burst, "not a burst",
                                 "a number of requests from 1 to 1000000");
    rule->tolerance = (n - 1) * rule->interval;
    return rule->tolerance <= LIMITS_AHEAD_MAX / 2 ||
           report_rule_error(line->ctx, line->burst, "too large",
                             "a burst that the rate makes up for within a day");
}

static bool set_bandwidth(struct line *line)
{
    struct limits_rule *rule = line->rule;
    uint64_t burst = rule->rate / 4;
    if (line->burst.p && (!limits_rate_parse_size(line->burst, &burst) || burst / rule->rate > 86400))
        return report_rule_error(line->ctx, line->burst, "not a burst",
                                 "a size that is sent within a day: 1M");
    if (line->after.p && !limits_rate_parse_size(line->after, &rule->free))
        return report_rule_error(line->ctx, line->after, "not a size", "bytes: 1M");
    rule->tolerance = limits_rate_ticks_for_bytes(burst, rule->rate);
    return true;
}

static bool parse_rule_line(struct line *line)
{
    mk_str word;
    while (mk_conf_ctx_word(line->ctx, &line->rest, &word)) {
        if (word.p && !parse_rule_word(line, word))
            return false;
        if (word.p)
            continue;
        if (!line->has_rate)
            return false; /* the syntax text in the error lists the keywords */
        return line->is_bandwidth ? set_bandwidth(line) : set_request_burst(line);
    }
    return false;
}

static bool parse_rule(const struct mk_conf_ctx *ctx, mk_str value, struct limits_rules *rules,
                       bool is_bandwidth)
{
    struct limits_rule *rule = mk_conf_ctx_alloc(ctx, sizeof *rule);
    struct line line = {.ctx = ctx, .rule = rule, .rest = value, .is_bandwidth = is_bandwidth};
    if (!rule)
        return false;
    rule->written = mk_conf_ctx_value(ctx);
    rule->by = is_bandwidth ? LIMITS_BY_RESPONSE : LIMITS_BY_ADDRESS;
    if (!parse_rule_line(&line))
        return false;
    if (rules->last)
        rules->last->next = rule;
    else
        rules->first = rule;
    rules->last = rule;
    rules->n++;
    return true;
}

static bool parse_requests(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    return parse_rule(ctx, value, field, false);
}

static bool parse_bandwidth(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    return parse_rule(ctx, value, field, true);
}

static bool show_rule(const void *field, size_t i, struct mk_buf *out)
{
    const struct limits_rule *rule = ((const struct limits_rules *)field)->first;
    while (rule && i--)
        rule = rule->next;
    if (rule)
        mk_buf_add(out, rule->written);
    return rule;
}

/* ---- Exemptions ---- */

static bool add_exemption(const struct mk_conf_ctx *ctx, struct limits_exempt *e, mk_str word)
{
    struct mk_network network;
    if (!mk_conf_ctx_append(ctx, &e->words, &e->n_words, &word, sizeof word))
        return false;
    if (is_path_pattern(word))
        return add_path_pattern(ctx, &e->paths, &e->n_paths, word);
    if (!mk_network_parse(word, &network))
        return report_rule_error(ctx, word, "neither a path nor a network",
                                 "/path, 192.0.2.7, 192.0.2.0/24, 2001:db8::/32 or unix:");
    return mk_conf_ctx_append(ctx, &e->networks, &e->n_networks, &network, sizeof network);
}

/* Parses `when CONDITION...`, which is printed as one word. */
static bool add_exempt_conditions(const struct mk_conf_ctx *ctx, struct limits_exempt *e, mk_str when,
                                  mk_str text)
{
    struct mk_conditions *conditions = mk_conditions_new(ctx);
    mk_str whole = mk_str_of(when.p, (size_t)(text.p + text.len - when.p));
    if (mk_str_trim(text).len == 0)
        return report_rule_error(ctx, when, "the last word", "a condition after it");
    return conditions && mk_conditions_parse(conditions, ctx, text, SUBJECTS, false) &&
           mk_conf_ctx_append(ctx, &e->words, &e->n_words, &whole, sizeof whole) &&
           mk_conf_ctx_append(ctx, &e->when, &e->n_when, &conditions, sizeof(struct mk_conditions *));
}

static bool parse_exempt(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    mk_str word;
    while (mk_conf_ctx_word(ctx, &value, &word)) {
        if (!word.p)
            return true;
        if (mk_str_eq(word, MK_STR("when")))
            return add_exempt_conditions(ctx, field, word, value);
        if (!add_exemption(ctx, field, word))
            return false;
    }
    return false;
}

static bool show_exempt(const void *field, size_t i, struct mk_buf *out)
{
    const struct limits_exempt *e = field;
    if (i < e->n_words)
        mk_buf_add(out, e->words[i]);
    return i < e->n_words;
}

/* ---- The section ---- */

static const struct mk_conf_key keys[] = {
    {.name = "Requests",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_REPEATABLE,
     AT(requests),
     .syntax = requests_form,
     .help =
         MK_HELP("Request rate limit for these paths; clients above it get 429. All matching rules apply."),
     .parse = parse_requests,
     .show = show_rule},
    {.name = "Bandwidth",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_REPEATABLE,
     AT(bandwidth),
     .syntax = bandwidth_form,
     .help = MK_HELP("Bandwidth limit for response bodies on these paths. All matching rules apply."),
     .parse = parse_bandwidth,
     .show = show_rule},
    {.name = "Except",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_REPEATABLE,
     AT(exempt),
     .syntax = "networks and paths, or when CONDITION...",
     .help = MK_HELP("Clients, paths and requests without limits."),
     .parse = parse_exempt,
     .show = show_exempt},
    {.name = "DryRun",
     .type = MK_CONF_BOOL,
     AT(report),
     .default_value = "off",
     .help = MK_HELP("Logs requests that would be rejected, without rejecting them.")},
};

const struct mk_conf_table limits_conf_table = {
    .section = "LIMITS",
    .keys = keys,
    .n = MK_LEN(keys),
    .help = MK_HELP("Limits for request rate and bandwidth."),
    .size = sizeof(struct limits_settings),
    .scope = MK_CONF_VHOST,
};

static void assign_rule_ids(struct limits_settings *s, struct limits_rules *rules, mk_str place)
{
    static const struct mk_hash_key fixed = {0};
    for (struct limits_rule *r = rules->first; r; r = r->next) {
        r->id = mk_hash(&fixed, place) ^ (mk_hash(&fixed, r->written) << 1);
        r->index = s->n_rules++;
    }
}

void limits_settings_assign_ids(struct limits_settings *s, const struct mk_vhost *host)
{
    mk_str name = host ? mk_vhost_name(host) : MK_STR("");
    if (s->has_ids)
        return;
    s->has_ids = true;
    assign_rule_ids(s, &s->requests, name.len || !host ? name : mk_vhost_root(host));
    assign_rule_ids(s, &s->bandwidth, name.len || !host ? name : mk_vhost_root(host));
}

static size_t count_conditions(const struct limits_rules *rules)
{
    size_t n = 0;
    for (const struct limits_rule *rule = rules->first; rule; rule = rule->next)
        n += rule->when != NULL;
    return n;
}

/* An index of few conditions costs as much as their evaluation. */
static bool index_rules(struct mk_config *config, struct limits_rules *rules)
{
    size_t n = 0;
    if (count_conditions(rules) < INDEX_MIN)
        return true;
    const struct mk_conditions **lists = mk_config_alloc(config, rules->n * sizeof *lists);
    rules->at = mk_config_alloc(config, rules->n * sizeof *rules->at);
    if (!lists || !rules->at)
        return false;
    for (const struct limits_rule *rule = rules->first; rule; rule = rule->next) {
        rules->at[n] = rule;
        lists[n++] = rule->when;
    }
    rules->index = mk_condition_index_new(config, lists, n);
    return rules->index;
}

bool limits_settings_prepare(struct mk_config *config, struct limits_settings *s)
{
    struct limits_exempt *e = &s->exempt;
    if (e->set)
        return true;
    e->set = mk_config_network_set(config, e->networks, NULL, e->n_networks);
    e->index = mk_condition_index_new(config, (const struct mk_conditions *const *)e->when, e->n_when);
    return e->set && e->index && index_rules(config, &s->requests) && index_rules(config, &s->bandwidth);
}

bool limits_rule_matches(const struct limits_rule *rule, struct mk_request *request, mk_str path)
{
    if (rule->n_paths && !limits_settings_match_paths(rule->paths, rule->n_paths, path))
        return false;
    return !rule->when || mk_conditions_match_path(rule->when, request, path, 0) != MK_REGEX_NO_MATCH;
}

bool limits_settings_match_paths(const struct mk_pattern *paths, size_t n, mk_str path)
{
    size_t i = 0;
    while (i < n && !mk_pattern_matches(&paths[i], path))
        i++;
    return i < n;
}
