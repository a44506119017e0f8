/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hook_environment.h"
#include "hostname.h"

#define AT(member)    MK_CONF_AT(struct acme_settings, member)
#define HOST(member)  MK_CONF_AT(struct acme_host, member)
#define LETS_ENCRYPT  "https://acme-v02.api.letsencrypt.org/directory"
#define STAGING       "https://acme-staging-v02.api.letsencrypt.org/directory"
#define NAMES_MAX     100
#define ACCOUNT_BYTES 1024

const char *const acme_challenge_words[] = {"default", "http-01", "tls-alpn-01", "dns-01", NULL};
const char *const acme_key_words[] = {"default", "ecdsa", "rsa", NULL};

/* ---- Values ---- */

static bool parse_directory_url(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    mk_str *out = field;
    if (mk_str_eq_nocase(value, MK_STR("letsencrypt")))
        *out = MK_STR(LETS_ENCRYPT);
    else if (mk_str_eq_nocase(value, MK_STR("staging")))
        *out = MK_STR(STAGING);
    else
        *out = value;
    if (mk_str_starts(*out, MK_STR("http://")))
        mk_conf_ctx_error(ctx, value, "`%.*s` is not encrypted: expected a URL that begins with https://",
                          MK_STR_ARG(value));
    else if (!mk_str_starts(*out, MK_STR("https://")) || out->len > 1024 ||
             mk_str_find(*out, ' ') != MK_STR_NONE)
        return false;
    return true;
}

static bool show_quoted_string(const void *field, size_t i, struct mk_buf *out)
{
    const mk_str *text = field;
    if (i > 0 || !text->len)
        return false;
    mk_buf_add(out, *text);
    return true;
}

static bool parse_path(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    mk_str rest = value, word;
    if (!mk_conf_ctx_word(ctx, &rest, &word) || !word.len || mk_str_trim(rest).len)
        return false;
    *(mk_str *)field = mk_conf_ctx_path(ctx, word);
    return true;
}

static bool parse_profile(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    (void)ctx;
    for (size_t i = 0; i < value.len; i++)
        if (!mk_char_is_alpha(value.p[i]) && !mk_char_is_digit(value.p[i]) && !memchr("-_.", value.p[i], 3))
            return false;
    *(mk_str *)field = value;
    return value.len > 0 && value.len <= 64;
}

static bool parse_account(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    struct acme_settings *s = mk_conf_ctx_out(ctx);
    mk_str rest = value, id, file;
    (void)field;
    if (!mk_conf_ctx_word(ctx, &rest, &id) || !mk_conf_ctx_word(ctx, &rest, &file) || !id.len || !file.len ||
        mk_str_trim(rest).len)
        return false;
    s->account_id = id;
    s->account_file = mk_conf_ctx_path(ctx, file);
    return true;
}

static bool show_account(const void *field, size_t i, struct mk_buf *out)
{
    const struct acme_settings *s =
        (const void *)((const char *)field - offsetof(struct acme_settings, account_id));
    if (i > 0 || !s->account_id.len)
        return false;
    mk_buf_addf(out, "%.*s %.*s", MK_STR_ARG(s->account_id), MK_STR_ARG(s->account_file));
    return true;
}

static bool parse_endpoint(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    (void)ctx;
    *(mk_str *)field = value;
    return (mk_str_starts(value, MK_STR("http://")) || mk_str_starts(value, MK_STR("https://"))) &&
           value.len < 1024;
}

static bool parse_rate(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    static const struct {
        char unit;
        uint64_t ms;
    } units[] = {{'s', 1000}, {'m', 60 * 1000}, {'h', 3600 * 1000}, {'d', 86400 * 1000}};
    struct acme_settings *s = mk_conf_ctx_out(ctx);
    mk_str unit = value, number = mk_str_cut(&unit, '/');
    uint64_t n;
    (void)field;
    if (!mk_num_parse(number, &n) || n < 1 || n > 10000 || unit.len != 1)
        return false;
    for (size_t i = 0; i < MK_LEN(units); i++)
        if (unit.p[0] == units[i].unit) {
            s->on_demand_interval_ms = units[i].ms / n;
            s->on_demand_burst = n;
            return s->on_demand_interval_ms;
        }
    return false;
}

static bool show_rate(const void *field, size_t i, struct mk_buf *out)
{
    const struct acme_settings *s =
        (const void *)((const char *)field - offsetof(struct acme_settings, on_demand_interval_ms));
    if (i > 0 || !s->on_demand_burst)
        return false;
    uint64_t ms = s->on_demand_interval_ms * s->on_demand_burst;
    char unit = ms <= 1000 ? 's' : ms <= 60 * 1000 ? 'm' : ms <= 3600 * 1000 ? 'h' : 'd';
    mk_buf_addf(out, "%llu/%c", (unsigned long long)s->on_demand_burst, unit);
    return true;
}

/* ---- The tables ---- */

static const struct mk_conf_key keys[] = {
    {.name = "AgreeToTerms",
     .type = MK_CONF_BOOL,
     AT(agreed),
     .default_value = "off",
     .help = MK_HELP("Agrees to the terms of service of the authority. Required.")},
    {.name = "Contact",
     .type = MK_CONF_WORDS,
     AT(contact),
     .max = 10,
     .help = MK_HELP("Contact address for the authority, such as `mailto:me@example.org`.")},
    {.name = "Directory",
     .type = MK_CONF_CUSTOM,
     AT(directory),
     .syntax = "a URL that begins with https://, letsencrypt or staging",
     .default_value = "letsencrypt",
     .parse = parse_directory_url,
     .show = show_quoted_string,
     .help =
         MK_HELP("The ACME server. `staging` is the test server of Let's Encrypt; browsers do not trust its "
                 "certificates.")},
    {.name = "Authority",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_READS,
     AT(authority),
     .syntax = "a file",
     .parse = parse_path,
     .show = show_quoted_string,
     .help = MK_HELP("PEM file of trusted authorities for the connection to the `Directory`, instead of the "
                     "system's: for a private ACME server.")},
    {.name = "Challenge",
     .type = MK_CONF_ENUM,
     AT(challenge),
     .choices = acme_challenge_words + 1,
     .default_value = "http-01",
     .help = MK_HELP(
         "How the authority verifies a name: through port 80 (`http-01`) or 443 (`tls-alpn-01`), or by a "
         "DNS record that `DNSHook` adds (`dns-01`), which also permits wildcard names.")},
    {.name = "DNSHook",
     .type = MK_CONF_WORDS,
     .flags = MK_CONF_READS,
     AT(hook),
     .max = ACME_HOOK_WORDS,
     .syntax = "PROGRAM [ARGUMENT...]",
     .help =
         MK_HELP("The program that adds and removes DNS records for dns-01: an absolute path, or the bundled "
                 "`rfc2136` or `http`.")},
    {.name = "DNSHookEnvironment",
     .type = MK_CONF_CUSTOM,
     AT(hook_env_file),
     .syntax = "a file",
     .parse = parse_path,
     .show = show_quoted_string,
     .help = MK_HELP(
         "File with the environment of `DNSHook`, such as its credentials: lines `NAME=VALUE`. The master "
         "reads it.")},
    {.name = "DNSHookTimeout",
     .type = MK_CONF_TIME,
     AT(hook_timeout_ms),
     .min = 1000,
     .max = 600 * 1000,
     .default_value = "2m",
     .help = MK_HELP("Maximum time of a call of `DNSHook`, which is then killed.")},
    {.name = "PropagationDelay",
     .type = MK_CONF_TIME,
     AT(propagation_ms),
     .max = 3600 * 1000,
     .default_value = "30s",
     .help = MK_HELP("Time between adding the DNS records and telling the authority to look them up.")},
    {.name = "Key",
     .type = MK_CONF_ENUM,
     AT(key),
     .choices = acme_key_words + 1,
     .default_value = "ecdsa",
     .help = MK_HELP("Type of the keys: P-256, or RSA with 2048 bits.")},
    {.name = "Profile",
     .type = MK_CONF_CUSTOM,
     AT(profile),
     .syntax = "a name of letters, digits, `-`, `_` and dots",
     .parse = parse_profile,
     .show = show_quoted_string,
     .help = MK_HELP("Kind of certificate that the authority offers, such as `shortlived`. "
                     "Default: the authority's.")},
    {.name = "StateFolder",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_WRITES,
     AT(state),
     .syntax = "a folder",
     .default_value = "/var/lib/monkey/acme",
     .parse = parse_path,
     .show = show_quoted_string,
     .help = MK_HELP("Folder for account, keys and certificates; created if missing.")},
    {.name = "ExternalAccount",
     .type = MK_CONF_CUSTOM,
     AT(account_id),
     .syntax = "ID FILE",
     .parse = parse_account,
     .show = show_account,
     .help =
         MK_HELP("External account binding, if the authority requires it: the key ID and a file with the key "
                 "(base64url).")},
    {.name = "RenewAfter",
     .type = MK_CONF_NUM,
     AT(renew_after),
     .min = 1,
     .max = 95,
     .default_value = "67",
     .help = MK_HELP("Percentage of a certificate's lifetime after which it is renewed.")},
    {.name = "RetryDelay",
     .type = MK_CONF_TIME,
     AT(retry_ms),
     .min = 1000,
     .max = 6 * 3600 * 1000,
     .default_value = "5m",
     .help = MK_HELP("Delay after a failure; it doubles each time, up to a day.")},
    {.name = "AllowEndpoint",
     .type = MK_CONF_CUSTOM,
     AT(endpoint),
     .syntax = "http://SERVER/PATH or https://SERVER/PATH",
     .parse = parse_endpoint,
     .show = show_quoted_string,
     .help = MK_HELP("Decides which names get a certificate on demand: the server requests "
                     "`URL?domain=NAME`, and status 200 allows the name.")},
    {.name = "AllowFile",
     .type = MK_CONF_TEXT,
     AT(allow_file),
     .flags = MK_CONF_READS,
     .min = 1,
     .help = MK_HELP(
         "File with names that get a certificate on demand, one a line; `*.example.com` means all names "
         "below the domain. `AllowEndpoint` decides about other names. Reload after a change.")},
    {.name = "MaxCertificates",
     .type = MK_CONF_NUM,
     AT(max_certificates),
     .min = 1,
     .max = 100000,
     .default_value = "1000",
     .help = MK_HELP("Maximum number of certificates on demand.")},
    {.name = "OnDemandRate",
     .type = MK_CONF_CUSTOM,
     AT(on_demand_interval_ms),
     .syntax = "NUMBER/s|m|h|d, such as 100/h",
     .default_value = "100/h",
     .parse = parse_rate,
     .show = show_rate,
     .help = MK_HELP(
         "How many certificates are requested on demand; a client network (IPv4 /24, IPv6 /56) may use a "
         "tenth of them.")},
};

const struct mk_conf_table acme_table = {
    .section = "ACME",
    .keys = keys,
    .n = MK_LEN(keys),
    .help = MK_HELP("Certificates from an ACME authority, such as Let's Encrypt."),
    .size = sizeof(struct acme_settings),
    .scope = MK_CONF_SERVER,
};

static const struct mk_conf_key host_keys[] = {
    {.name = "Acme",
     .type = MK_CONF_BOOL,
     HOST(on),
     .default_value = "on",
     .help = MK_HELP("Requests a certificate for this host.")},
    {.name = "OnDemand",
     .type = MK_CONF_BOOL,
     HOST(on_demand),
     .default_value = "off",
     .help = MK_HELP("Requests certificates for other names when clients request them, if `AllowEndpoint` or "
                     "`AllowFile` in [ACME] allows the name.")},
    {.name = "Domains",
     .type = MK_CONF_WORDS,
     HOST(names),
     .max = NAMES_MAX,
     .help = MK_HELP("Names in the certificate. Default: all names of `ServerName`.")},
    {.name = "Challenge",
     .type = MK_CONF_ENUM,
     HOST(challenge),
     .choices = acme_challenge_words,
     .default_value = "default",
     .help = MK_HELP("Default: the value in [ACME].")},
    {.name = "Key",
     .type = MK_CONF_ENUM,
     HOST(key),
     .choices = acme_key_words,
     .default_value = "default",
     .help = MK_HELP("Default: the value in [ACME].")},
    {.name = "Profile",
     .type = MK_CONF_CUSTOM,
     HOST(profile),
     .syntax = "a name of letters, digits, `-`, `_` and dots",
     .parse = parse_profile,
     .show = show_quoted_string,
     .help = MK_HELP("Default: the value in [ACME].")},
};

const struct mk_conf_table acme_host_table = {
    .section = "ACME_HOST",
    .keys = host_keys,
    .n = MK_LEN(host_keys),
    .help = MK_HELP("Certificate settings of one host."),
    .size = sizeof(struct acme_host),
    .scope = MK_CONF_VHOST,
};

/* ---- Cross-key checks ---- */

static void check_contact(struct mk_config *config, const struct acme_settings *s)
{
    for (size_t i = 0; i < s->contact.n; i++) {
        mk_str each = s->contact.v[i];
        if (mk_str_find(each, ':') == MK_STR_NONE || mk_str_find(each, ':') + 1 == each.len)
            mk_config_error(config, s, "Contact", "`%.*s` is not a URL: expected mailto:me@example.org",
                            MK_STR_ARG(each));
    }
}

/* Reads a small file in the master, because the helper may lack permission to read it. Returns the number of bytes,
 * `size` if there may be more, or a negative errno value. */
static ssize_t read_small_file(const char *path, char *buf, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -errno : read(fd, buf, size);
    if (n < 0 && fd >= 0)
        n = -errno;
    if (fd >= 0)
        close(fd);
    return n;
}

static bool is_base64url(mk_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!mk_char_is_alpha(text.p[i]) && !mk_char_is_digit(text.p[i]) && text.p[i] != '-' &&
            text.p[i] != '_' && text.p[i] != '=')
            return false;
    return text.len;
}

static mk_str trim_right(mk_str text)
{
    while (text.len && (unsigned char)text.p[text.len - 1] <= ' ')
        text.len--;
    return text;
}

static void read_account_file(struct mk_config *config, struct acme_settings *s)
{
    char buf[ACCOUNT_BYTES];
    if (!s->account_file.p)
        return;
    ssize_t n = read_small_file(s->account_file.p, buf, sizeof buf);
    mk_str text = n < 0 ? MK_STR("") : trim_right(mk_str_of(buf, (size_t)n));
    if (n < 0)
        mk_config_error(config, s, "ExternalAccount", "%s cannot be read: %s", s->account_file.p,
                        strerror((int)-n));
    else if (n == (ssize_t)sizeof buf || !is_base64url(text))
        mk_config_error(config, s, "ExternalAccount", "no key found in %s: expected one line of base64url",
                        s->account_file.p);
    else
        s->account_key = mk_config_copy(config, text);
}

static mk_str join_variable(struct mk_config *config, mk_str name, mk_str value)
{
    size_t size = name.len + value.len + 2;
    char *p = mk_config_alloc(config, size);
    struct mk_buf text = mk_buf_fixed(p, p ? size - 1 : 0);
    mk_buf_addf(&text, "%.*s=%.*s", MK_STR_ARG(name), MK_STR_ARG(value));
    return mk_buf_str(&text);
}

static void keep_hook_environment(struct mk_config *config, struct acme_settings *s, mk_str text)
{
    struct acme_hook_environment e = {.rest = text};
    s->hook_env = mk_config_alloc(config, ACME_HOOK_ENV * sizeof *s->hook_env);
    for (mk_str name, value; s->hook_env && acme_hook_environment_next(&e, &name, &value);) {
        if (s->n_hook_env == ACME_HOOK_ENV) {
            mk_config_error(config, s, "DNSHookEnvironment", "%s has more than %d variables",
                            s->hook_env_file.p, ACME_HOOK_ENV);
            return;
        }
        s->hook_env[s->n_hook_env++] = join_variable(config, name, value);
    }
    if (e.error)
        mk_config_error(config, s, "DNSHookEnvironment", "%s, line %u: %s", s->hook_env_file.p, e.line,
                        e.error);
}

static void read_hook_environment(struct mk_config *config, struct acme_settings *s)
{
    char buf[ACME_HOOK_ENV_BYTES];
    struct stat st;
    if (!s->hook_env_file.p)
        return;
    ssize_t n = read_small_file(s->hook_env_file.p, buf, sizeof buf);
    if (n < 0)
        mk_config_error(config, s, "DNSHookEnvironment", "%s cannot be read: %s", s->hook_env_file.p,
                        strerror((int)-n));
    else if (n == (ssize_t)sizeof buf)
        mk_config_error(config, s, "DNSHookEnvironment", "%s has more than %d bytes", s->hook_env_file.p,
                        ACME_HOOK_ENV_BYTES - 1);
    else
        keep_hook_environment(config, s, mk_str_of(buf, (size_t)n));
    explicit_bzero(buf, sizeof buf);
    if (n >= 0 && stat(s->hook_env_file.p, &st) == 0 && st.st_mode & (S_IROTH | S_IWOTH)) {
        mk_config_warn(config, s, "DNSHookEnvironment", "every user can read %s", s->hook_env_file.p);
        mk_config_hint(config, "`chmod 600 %s`: only the master reads it", s->hook_env_file.p);
    }
}

static void read_allow_file(struct mk_config *config, struct acme_settings *s)
{
    if (!s->allow_file.len)
        return;
    s->allow_file = mk_config_path(config, s, s->allow_file);
    if (s->allow_file.p)
        acme_allow_list_read(config, s, s->allow_file.p, &s->allow_list);
}

struct acme_settings *acme_settings_load(struct mk_config *config)
{
    struct acme_settings *s = mk_config_section(config, &acme_table, NULL);
    if (!s)
        return NULL;
    if (s->authority.p && access(s->authority.p, R_OK) < 0)
        mk_config_error(config, s, "Authority", "%s cannot be read: %s", s->authority.p, strerror(errno));
    check_contact(config, s);
    read_account_file(config, s);
    read_hook_environment(config, s);
    read_allow_file(config, s);
    return s;
}

void acme_settings_check(struct mk_config *config, const struct acme_settings *s)
{
    if (!s) {
        mk_config_error(config, NULL, NULL, "the plugin `acme` needs a section [ACME]");
        mk_config_hint(config, "read the terms of service of Let's Encrypt, or of the authority that you set "
                               "as `Directory`; then add [ACME] with `AgreeToTerms on`");
        return;
    }
    if (!s->agreed) {
        mk_config_error(
            config, s, "AgreeToTerms",
            "the authority requires that you agree to its terms of service: expected `AgreeToTerms on`");
        mk_config_hint(config, "first read the terms of %.*s", MK_STR_ARG(s->directory));
    }
    if (!mk_config_has_tls(config))
        mk_config_warn(config, s, NULL, "no `Listen` uses TLS: certificates are requested but not used");
}

/* ---- Names ---- */

/* Accepts letters, digits and `-`, and with dns-01 a first label `*`, which are valid in file names and in certificates. */
static bool is_certifiable_name(mk_str name, bool allows_wildcard)
{
    return acme_hostname_is_valid(allows_wildcard && mk_str_starts(name, MK_STR("*.")) ? mk_str_skip(name, 2)
                                                                                       : name);
}

static mk_str lowercase_copy(struct mk_config *config, mk_str text)
{
    char *buf = mk_config_alloc(config, text.len + 1);
    for (size_t i = 0; buf && i < text.len; i++)
        buf[i] = mk_char_lower(text.p[i]);
    return mk_str_of(buf, buf ? text.len : 0);
}

static bool matches_regex(mk_str name, mk_str pattern)
{
    struct mk_regex_error error;
    struct mk_regex *r = mk_regex_new(pattern, true, &error);
    bool is = r && mk_regex_match(r, name, NULL) == MK_REGEX_MATCH;
    mk_regex_free(r);
    return is;
}

/* Returns whether `name` is `*.DOMAIN`, and `its` has one label before that domain. */
static bool is_below_wildcard(mk_str its, mk_str name)
{
    size_t dot = mk_str_find(its, '.');
    return mk_str_starts(name, MK_STR("*.")) && dot != MK_STR_NONE &&
           mk_str_eq_nocase(mk_str_skip(its, dot), mk_str_skip(name, 1));
}

static bool is_address_text(mk_str name)
{
    char buf[INET6_ADDRSTRLEN];
    unsigned char a[16];
    if (!name.len || name.len >= sizeof buf)
        return false;
    memcpy(buf, name.p, name.len);
    buf[name.len] = '\0';
    return inet_pton(AF_INET, buf, a) == 1 || inet_pton(AF_INET6, buf, a) == 1;
}

/* Returns a copy in lower case or, of an IP address, in its canonical form (RFC 8738, section 3) without brackets. */
static mk_str canonical_name(struct mk_config *config, mk_str name)
{
    char buf[INET6_ADDRSTRLEN], text[INET6_ADDRSTRLEN];
    unsigned char a[16];
    bool has_brackets = name.len > 2 && name.p[0] == '[' && name.p[name.len - 1] == ']';
    mk_str inner = has_brackets ? mk_str_of(name.p + 1, name.len - 2) : name;
    if (mk_str_find(inner, ':') == MK_STR_NONE || !is_address_text(inner))
        return lowercase_copy(config, name);
    memcpy(buf, inner.p, inner.len);
    buf[inner.len] = '\0';
    (void)inet_pton(AF_INET6, buf, a);
    return mk_config_copy(config, mk_str_from_c(inet_ntop(AF_INET6, a, text, sizeof text)));
}

static bool is_name_served(struct mk_config *config, const struct mk_vhost *host, mk_str name)
{
    mk_str its;
    for (size_t i = 0; (its = mk_vhost_name_at(host, i)).p; i++)
        if (mk_str_starts(its, MK_STR("~"))
                ? matches_regex(name, mk_str_skip(its, 1))
                : mk_str_match(name, lowercase_copy(config, its)) || is_below_wildcard(its, name) ||
                      mk_str_eq(canonical_name(config, its), name))
            return true;
    return false;
}

static void report_bad_name(struct mk_config *config, const struct acme_host *h, mk_str name)
{
    bool own = h && h->names.n;
    const void *section = own ? h : NULL;
    const char *key = own ? "Domains" : "ServerName";
    if (mk_str_find(name, '*') != MK_STR_NONE)
        mk_config_report(
            config, MK_LOG_ERROR, section, key, name,
            "cannot certify `%.*s`: wildcard names require dns-01: expected `Challenge dns-01` and `DNSHook`",
            MK_STR_ARG(name));
    else
        mk_config_report(
            config, MK_LOG_ERROR, section, key, name,
            "cannot certify `%.*s`: expected a host name of letters, digits and `-`, such as www.example.org",
            MK_STR_ARG(name));
    if (!own)
        mk_config_hint(
            config,
            "below that [HOST], add [ACME_HOST] with the names to certify as `Domains`, or with `Acme off`");
}

static bool add_cert_name(struct mk_config *config, struct acme_cert_spec *w, const struct acme_host *h,
                          const struct mk_vhost *host, mk_str name)
{
    mk_str small = canonical_name(config, name);
    bool is_address = mk_str_find(small, ':') != MK_STR_NONE || is_address_text(small);
    if (is_address && strcmp(w->challenge, "dns-01") == 0) {
        mk_config_report(config, MK_LOG_ERROR, h && h->names.n ? h : NULL,
                         h && h->names.n ? "Domains" : "ServerName", name,
                         "cannot certify `%.*s` by dns-01: IP addresses require http-01 or tls-alpn-01",
                         MK_STR_ARG(name));
        return false;
    }
    if (!is_address && !is_certifiable_name(small, strcmp(w->challenge, "dns-01") == 0)) {
        report_bad_name(config, h, name);
        return false;
    }
    if (!is_name_served(config, host, small)) {
        mk_config_report(config, MK_LOG_ERROR, h, "Domains", name, "`%.*s` is not a ServerName of this host",
                         MK_STR_ARG(name));
        return false;
    }
    for (size_t i = 0; i < w->n; i++)
        if (mk_str_eq(w->names[i], small))
            return true;
    w->names[w->n++] = small;
    return small.p;
}

static size_t count_vhost_names(const struct mk_vhost *host)
{
    size_t n = 0;
    while (mk_vhost_name_at(host, n).p)
        n++;
    return n;
}

static bool is_pattern(mk_str name)
{
    return mk_str_starts(name, MK_STR("*")) || mk_str_starts(name, MK_STR("~"));
}

static bool collect_cert_names(struct mk_config *config, struct acme_cert_spec *w, const struct acme_host *h,
                               const struct mk_vhost *host)
{
    bool own = h && h->names.n;
    size_t n = own ? h->names.n : count_vhost_names(host);
    w->names = mk_config_alloc(config, (n + 1) * sizeof *w->names);
    if (n > NAMES_MAX)
        mk_config_error(config, h, NULL, "the host has %zu names, but a certificate can have at most %d", n,
                        NAMES_MAX);
    if (!w->names || n > NAMES_MAX)
        return false;
    bool ok = true;
    for (size_t i = 0; i < n; i++) { /* checks all names, to report each error */
        mk_str name = own ? h->names.v[i] : mk_vhost_name_at(host, i);
        if (own || !h || !h->on_demand || !is_pattern(name))
            ok &= add_cert_name(config, w, h, host, name);
    }
    return ok && w->n;
}

static mk_str cert_file_name(struct mk_config *config, mk_str name)
{
    mk_str prefix = MK_STR("_wildcard."); /* no host name begins with `_` */
    if (!mk_str_starts(name, MK_STR("*.")))
        return name;
    size_t size = prefix.len + name.len;
    char *buf = mk_config_alloc(config, size);
    struct mk_buf text = mk_buf_fixed(buf, buf ? size - 1 : 0);
    mk_buf_addf(&text, "%.*s%.*s", MK_STR_ARG(prefix), MK_STR_ARG(mk_str_skip(name, 2)));
    return mk_buf_str(&text);
}

bool acme_settings_needs_cert(struct mk_config *config, const struct mk_vhost *host)
{
    const struct acme_host *h = mk_config_section(config, &acme_host_table, NULL);
    return (!h || h->on) && (mk_vhost_name(host).len || (h && h->names.n)) &&
           !mk_config_has_certificate(config);
}

bool acme_settings_has_on_demand(struct mk_config *config)
{
    const struct acme_host *h = mk_config_section(config, &acme_host_table, NULL);
    return h && h->on && h->on_demand;
}

struct acme_cert_spec *acme_settings_cert_options(struct mk_config *config, const struct acme_settings *s)
{
    const struct acme_host *h = mk_config_section(config, &acme_host_table, NULL);
    struct acme_cert_spec *w = mk_config_alloc(config, sizeof *w);
    enum acme_challenge c = h ? h->challenge : ACME_CHALLENGE_SERVER;
    enum acme_key k = h ? h->key : ACME_KEY_SERVER;
    if (!w)
        return NULL;
    w->challenge = acme_challenge_words[c ? c : s->challenge + 1];
    w->key = acme_key_words[k ? k : s->key + 1];
    w->profile = h && h->profile.len ? h->profile : s->profile;
    return w;
}

struct acme_cert_spec *acme_settings_vhost_cert(struct mk_config *config, const struct acme_settings *s,
                                                const struct mk_vhost *host)
{
    const struct acme_host *h = mk_config_section(config, &acme_host_table, NULL);
    struct acme_cert_spec *w = acme_settings_cert_options(config, s);
    if (!w || !collect_cert_names(config, w, h, host))
        return NULL;
    w->file = cert_file_name(config, w->names[0]);
    return w->file.len ? w : NULL;
}
