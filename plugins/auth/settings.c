/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of [AUTH]. */
#include "attempts.h"
#include "locations.h"
#include "nonce.h"

static const char *const types[] = {"Basic", "Digest", "None", NULL};

static bool parse_location(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    return mk_conf_ctx_location(ctx, value, field);
}

static bool show_quoted_string(const void *field, size_t i, struct mk_buf *out)
{
    if (i == 0)
        mk_buf_addf(out, "\"%.*s\"", MK_STR_ARG(*(const mk_str *)field));
    return i == 0;
}

/* The path is relative to the folder of the configuration file. */
static bool parse_file(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    mk_str *file = field, rest = value, word;
    if (!mk_conf_ctx_word(ctx, &rest, &word) || !word.p || word.len == 0 || mk_str_trim(rest).len)
        return false;
    *file = mk_conf_ctx_path(ctx, word);
    return file->p != NULL;
}

static bool show_file(const void *field, size_t i, struct mk_buf *out)
{
    return ((const mk_str *)field)->p && show_quoted_string(field, i, out);
}

static bool add_name(const struct mk_conf_ctx *ctx, struct auth_names *names, mk_str name)
{
    if (names->n == names->cap) {
        size_t cap = names->cap ? 2 * names->cap : 8;
        mk_str *v = mk_conf_ctx_alloc(ctx, cap * sizeof *v);
        if (!v)
            return false;
        for (size_t i = 0; i < names->n; i++)
            v[i] = names->v[i];
        names->v = v;
        names->cap = cap;
    }
    names->v[names->n++] = name;
    return true;
}

static bool grow_networks(const struct mk_conf_ctx *ctx, struct auth_networks *n)
{
    size_t cap = n->cap ? 2 * n->cap : 8;
    struct mk_network *v = mk_conf_ctx_alloc(ctx, cap * sizeof *v);
    mk_str *words = mk_conf_ctx_alloc(ctx, cap * sizeof *words);
    if (!v || !words)
        return false;
    for (size_t i = 0; i < n->n; i++) {
        v[i] = n->v[i];
        words[i] = n->words[i];
    }
    *n = (struct auth_networks){.v = v, .words = words, .n = n->n, .cap = cap};
    return true;
}

static bool add_network(const struct mk_conf_ctx *ctx, struct auth_networks *n, mk_str word)
{
    struct mk_network network;
    if (!mk_network_parse(word, &network)) {
        mk_conf_ctx_error(ctx, word, "`%.*s` is not an address, a network or `unix:`",
                          MK_STR_ARG(mk_str_first(word, 80)));
        return false;
    }
    if (network.is_all) {
        mk_conf_ctx_error(ctx, word, "`all` would allow every client without a password");
        mk_conf_ctx_hint(ctx, "use `Type None` to allow access without a password");
        return false;
    }
    if (n->n == n->cap && !grow_networks(ctx, n))
        return false;
    n->v[n->n] = network;
    n->words[n->n++] = word;
    return true;
}

static bool parse_require(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    struct auth_required *required = field;
    mk_str word, rest = value;
    size_t n = 0;
    if (!mk_conf_ctx_word(ctx, &rest, &word))
        return false;
    if (mk_str_eq(word, MK_STR("valid-user")) && mk_str_trim(rest).len == 0)
        return true;
    bool by_address = mk_str_eq(word, MK_STR("address"));
    if (!by_address && !mk_str_eq(word, MK_STR("user")))
        return false;
    for (;; n++) {
        if (!mk_conf_ctx_word(ctx, &rest, &word))
            return false;
        if (!word.p)
            return n > 0;
        if (!(by_address ? add_network(ctx, &required->networks, word)
                         : add_name(ctx, &required->names, word)))
            return false;
    }
}

static bool show_require(const void *field, size_t i, struct mk_buf *out)
{
    const struct auth_required *required = field;
    const struct auth_names *names = &required->names;
    size_t n_users = names->n ? names->n : 1;
    if (i >= n_users + required->networks.n)
        return false;
    if (i >= n_users)
        mk_buf_addf(out, "address %.*s", MK_STR_ARG(required->networks.words[i - n_users]));
    else if (names->n == 0)
        mk_buf_add(out, MK_STR("valid-user"));
    else
        mk_buf_addf(out, "user \"%.*s\"", MK_STR_ARG(names->v[i]));
    return true;
}

static const struct mk_conf_key keys[] = {
    {.name = "Location",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_REQUIRED,
     MK_CONF_AT(struct auth_location, location),
     .syntax = "a path, such as /private/",
     .help = MK_HELP(
         "Protects every path that begins with this text. If several sections match, the longest `Location` "
         "counts."),
     .parse = parse_location,
     .show = show_quoted_string},
    {.name = "Type",
     .type = MK_CONF_ENUM,
     MK_CONF_AT(struct auth_location, type),
     .choices = types,
     .default_value = "Basic",
     .help =
         MK_HELP("Authentication scheme. `None`: this part of a protected location requires no password.")},
    {.name = "Title", .alias_of = "Realm"}, /* the key's name in Monkey 1.6 */
    {.name = "Users", .alias_of = "UserFile"},
    {.name = "Realm",
     .type = MK_CONF_TEXT,
     MK_CONF_AT(struct auth_location, title),
     .min = 1,
     .max = 200,
     .default_value = "Restricted",
     .help = MK_HELP("The realm; browsers may show it in the password prompt.")},
    {.name = "UserFile",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_READS,
     MK_CONF_AT(struct auth_location, file),
     .syntax = "a file",
     .parse = parse_file,
     .show = show_file,
     .help = MK_HELP("Password file, written by `monkey passwd`. Read when the configuration is loaded.")},
    {.name = "Require",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_REPEATABLE,
     MK_CONF_AT(struct auth_location, required),
     .syntax = "valid-user, user NAME [NAME...], or address NETWORK [NETWORK...]",
     .help = MK_HELP(
         "Users with access: all in the file (`valid-user`, the default) or the named ones; `address`: "
         "networks whose clients need no password."),
     .parse = parse_require,
     .show = show_require},
    {.name = "MaxAttempts",
     .type = MK_CONF_NUM,
     MK_CONF_AT(struct auth_location, attempts),
     .min = 1,
     .max = AUTH_ATTEMPTS_MAX,
     .default_value = "10",
     .zero_word = "off",
     .help =
         MK_HELP("Failed attempts per address within `AttemptWindow`, after which the address gets 429.")},
    {.name = "AttemptWindow",
     .type = MK_CONF_TIME,
     MK_CONF_AT(struct auth_location, attempt_ms),
     .min = 1000,
     .max = AUTH_SPAN_MAX_S * 1000ULL,
     .default_value = "5m",
     .help = MK_HELP("Period in which failed attempts of an address are counted, from the first one.")},
    {.name = "CacheTTL",
     .type = MK_CONF_TIME,
     MK_CONF_AT(struct auth_location, cache_ms),
     .min = 1000,
     .max = 24 * 60 * 60 * 1000ULL,
     .default_value = "5m",
     .zero_word = "off",
     .help = MK_HELP(
         "How long a worker caches a successful password check before it computes the hash again (Basic).")},
    {.name = "NonceLifetime",
     .type = MK_CONF_TIME,
     MK_CONF_AT(struct auth_location, nonce_ms),
     .min = 1000,
     .max = AUTH_NONCE_SPAN_MAX_S * 1000ULL,
     .default_value = "5m",
     .help = MK_HELP("Lifetime of a nonce (Digest). Clients get a new nonce without another prompt.")},
    {.name = "DigestMD5",
     .type = MK_CONF_BOOL,
     MK_CONF_AT(struct auth_location, md5),
     .default_value = "off",
     .help = MK_HELP(
         "Accepts MD5 from users with an MD5 entry, for clients that do not support SHA-256 (Digest).")},
};

const struct mk_conf_table auth_table = {
    .section = "AUTH",
    .keys = keys,
    .n = MK_LEN(keys),
    .repeatable = true,
    .help = MK_HELP("Paths that require a password."),
    .size = sizeof(struct auth_location),
    .scope = MK_CONF_VHOST,
};
