/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of [CHALLENGE], and the files that they name. */
#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "token.h"

enum {
    KEY_MIN = 32,
    KEY_MAX = 4096,
    SUBJECTS = MK_CONDITION_PATH | MK_CONDITION_CONTAINS | MK_CONDITION_FROM | MK_CONDITION_METHOD |
               MK_CONDITION_REFERER | MK_CONDITION_HOST | MK_CONDITION_SCHEME | MK_CONDITION_QUERY |
               MK_CONDITION_HEADER | MK_CONDITION_COOKIE | MK_CONDITION_PARAMETER | MK_CONDITION_COUNTRY |
               MK_CONDITION_ASN
};

/* ---- Rules ---- */

static void parse_rule(const struct mk_conf_ctx *ctx, struct challenge_settings *s, bool allows)
{
    struct challenge_rule *rule = mk_conf_ctx_alloc(ctx, sizeof *rule);
    struct mk_conditions *conditions = rule ? mk_conditions_new(ctx) : NULL;
    if (!conditions || !mk_conditions_parse(conditions, ctx, mk_conf_ctx_value(ctx), SUBJECTS, true))
        return;
    *rule = (struct challenge_rule){.key = mk_conf_ctx_key(ctx),
                                    .value = mk_conf_ctx_value(ctx),
                                    .allows = allows,
                                    .conditions = conditions};
    *(s->last ? &s->last->next : &s->first) = rule;
    s->last = rule;
    s->n++;
    s->subjects |= mk_conditions_subjects(conditions);
    s->challenges |= !allows;
}

static void parse_entry(const struct mk_conf_ctx *ctx)
{
    struct challenge_settings *s = mk_conf_ctx_out(ctx);
    mk_str key = mk_conf_ctx_key(ctx);
    if (mk_str_eq_nocase(key, MK_STR("Challenge")))
        parse_rule(ctx, s, false);
    else if (mk_str_eq_nocase(key, MK_STR("Allow")))
        parse_rule(ctx, s, true);
    else
        mk_conf_ctx_error(ctx, key,
                          "unknown key `%.*s` in [CHALLENGE]: expected Challenge, Allow, Difficulty, "
                          "Lifetime, Status, Page or KeyFile",
                          MK_STR_ARG(mk_str_first(key, 80)));
}

static bool show_rule(const void *in, size_t i, struct mk_buf *key, struct mk_buf *value)
{
    const struct challenge_rule *rule = ((const struct challenge_settings *)in)->first;
    while (rule && i--)
        rule = rule->next;
    if (!rule)
        return false;
    mk_buf_add(key, rule->key);
    mk_buf_add(value, rule->value);
    return true;
}

/* ---- The section ---- */

static const unsigned statuses[] = {403, 200, 429, 503};
static const char *const status_words[] = {"403", "200", "429", "503", NULL};

static const struct mk_conf_key keys[] = {
    {.name = "Difficulty",
     .type = MK_CONF_NUM,
     MK_CONF_AT(struct challenge_settings, bits),
     .min = 1,
     .max = CHALLENGE_BITS_MAX,
     .default_value = "16",
     .help = MK_HELP("Number of zero bits that the hash must begin with. Each bit doubles the work of the "
                     "client. A pass for less work becomes invalid.")},
    {.name = "Lifetime",
     .type = MK_CONF_TIME,
     MK_CONF_AT(struct challenge_settings, lifetime_ms),
     .min = 60 * 1000,
     .max = UINT64_C(366) * 24 * 60 * 60 * 1000,
     .default_value = "1d",
     .help = MK_HELP("How long a pass is valid, from the challenge on.")},
    {.name = "Status",
     .type = MK_CONF_ENUM,
     MK_CONF_AT(struct challenge_settings, status),
     .choices = status_words,
     .default_value = "403",
     .help = MK_HELP("Status of the response with the challenge.")},
    {.name = "Page",
     .type = MK_CONF_TEXT,
     MK_CONF_AT(struct challenge_settings, page_file),
     .min = 1,
     .help = MK_HELP("An HTML file of at most 64 KB in place of the built-in page. The script takes the "
                     "place of `<!-- challenge -->`.")},
    {.name = "KeyFile",
     .type = MK_CONF_TEXT,
     .flags = MK_CONF_READS,
     MK_CONF_AT(struct challenge_settings, key_file),
     .min = 1,
     .help = MK_HELP(
         "A file whose first line is a secret of at least 32 characters, which signs challenges and passes. "
         "Default: a random key, which lives as long as the server.")},
};

const struct mk_conf_table challenge_table = {
    .section = "CHALLENGE",
    .keys = keys,
    .n = MK_LEN(keys),
    .help = MK_HELP("Decides which clients must solve a computational task."),
    .entry = parse_entry,
    .show_entry = show_rule,
    .entry_syntax = "Challenge|Allow [PATH...] [NETWORK...] [[not] SUBJECT VALUE...]...; SUBJECT is path, "
                    "contains, from, method, referer, host, scheme, query, header NAME, cookie NAME, "
                    "parameter NAME, country or asn",
    .entry_help = MK_HELP(
        "Rules in order: the first match decides. Requests that match no rule need not solve a challenge."),
    .size = sizeof(struct challenge_settings),
    .scope = MK_CONF_VHOST,
};

unsigned challenge_settings_status(const struct challenge_settings *s)
{
    return statuses[s->status];
}

/* ---- Files ---- */

/* Reads a file of at most `max` bytes into memory of the configuration. Returns an absent string after reporting an
 * error. */
static mk_str read_file(struct mk_config *config, const struct challenge_settings *s, const char *key,
                        mk_str name, size_t max)
{
    mk_str path = mk_config_path(config, s, name);
    char *text = path.p ? mk_config_alloc(config, max + 1) : NULL;
    if (!text)
        return MK_STR_NULL;
    int fd = open(path.p, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : 0;
    size_t len = 0;
    while (fd >= 0 && len <= max && (n = read(fd, text + len, max + 1 - len)) > 0)
        len += (size_t)n;
    if (n < 0)
        mk_config_error(config, s, key, "cannot read %.*s: %s", MK_STR_ARG(path), strerror(errno));
    else if (len > max)
        mk_config_error(config, s, key, "%.*s is longer than %zu bytes", MK_STR_ARG(path), max);
    if (fd >= 0)
        close(fd);
    return n < 0 || len > max ? MK_STR_NULL : mk_str_of(text, len);
}

static void read_key(struct mk_config *config, struct challenge_settings *s)
{
    mk_str text = read_file(config, s, "KeyFile", s->key_file, KEY_MAX);
    s->key = mk_str_trim(mk_str_cut(&text, '\n'));
    if (s->key.p && s->key.len < KEY_MIN) {
        mk_config_error(config, s, "KeyFile", "the secret has %zu characters, but must have at least %d",
                        s->key.len, KEY_MIN);
        mk_config_hint(config, "`openssl rand -hex 32` prints a suitable one");
    }
}

/* All workers of this server have this key, across reloads and upgrades. */
static bool derive_server_key(struct mk_config *config, struct challenge_settings *s)
{
    struct mk_hash_key *key = mk_config_alloc(config, sizeof *key);
    if (!key || mk_config_hash_key(config, "challenge: key", key))
        return false;
    s->key = mk_str_of((const char *)key, sizeof *key);
    return true;
}

static void read_page(struct mk_config *config, struct challenge_settings *s)
{
    mk_str html = read_file(config, s, "Page", s->page_file, CHALLENGE_PAGE_MAX);
    if (html.p && !challenge_page_split(html, &s->page))
        mk_config_error(config, s, "Page", "the file must contain `" CHALLENGE_PAGE_MARK "` exactly once");
}

static bool make_policy(struct mk_config *config, struct challenge_settings *s)
{
    char room[512];
    struct mk_buf b = mk_buf_fixed(room, sizeof room);
    challenge_page_write_policy(&b);
    s->policy = mk_config_copy(config, mk_buf_str(&b));
    return s->policy.p && !b.failed;
}

static bool index_rules(struct mk_config *config, struct challenge_settings *s)
{
    const struct mk_conditions **lists = mk_config_alloc(config, (s->n + 1) * sizeof *lists);
    size_t i = 0;
    s->rules = mk_config_alloc(config, (s->n + 1) * sizeof *s->rules);
    if (!lists || !s->rules)
        return false;
    for (const struct challenge_rule *rule = s->first; rule; rule = rule->next) {
        s->rules[i] = rule;
        lists[i++] = rule->conditions;
    }
    s->index = mk_condition_index_new(config, lists, s->n);
    return s->index;
}

int challenge_settings_prepare(struct mk_config *config, struct challenge_settings *s)
{
    if (s->is_prepared)
        return 0;
    s->is_prepared = true;
    if (!s->challenges)
        mk_config_warn(config, s, NULL, "no rule `Challenge`: no request is challenged");
    if (!index_rules(config, s) || (!s->key_file.p && !derive_server_key(config, s)) ||
        !make_policy(config, s))
        return -ENOMEM;
    if (s->key_file.p)
        read_key(config, s);
    if (s->page_file.p)
        read_page(config, s);
    else
        (void)challenge_page_split(challenge_page_html, &s->page);
    return 0;
}
