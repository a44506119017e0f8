/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of [FORWARD_AUTH]. */
#include "locations.h"

static const char *const cache_per[] = {"url", "host", NULL};

static bool parse_location(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    return mk_conf_ctx_location(ctx, value, field);
}

static bool show_location(const void *field, size_t i, struct mk_buf *out)
{
    if (i == 0)
        mk_buf_addf(out, "\"%.*s\"", MK_STR_ARG(*(const mk_str *)field));
    return i == 0;
}

static bool check_names(const struct mk_conf_ctx *ctx, mk_str value, bool must_be_changeable)
{
    mk_str rest = value, word;
    size_t n = 0;
    while (mk_conf_ctx_word(ctx, &rest, &word)) {
        if (!word.p)
            return n > 0;
        n++;
        if (!mk_is_token(word)) {
            mk_conf_ctx_error(ctx, word, "`%.*s` is not the name of a header", MK_STR_ARG(word));
            return false;
        }
        if (must_be_changeable && !mk_request_header_is_changeable(word, false)) {
            mk_conf_ctx_error(ctx, word, "request header `%.*s` cannot be set", MK_STR_ARG(word));
            return false;
        }
    }
    return false;
}

static bool append_names(const struct mk_conf_ctx *ctx, mk_str value, struct mk_conf_words *names)
{
    mk_str word;
    while (mk_conf_ctx_word(ctx, &value, &word) && word.p)
        if (!mk_conf_ctx_append(ctx, &names->v, &names->n, &word, sizeof word))
            return false;
    return true;
}

static bool parse_copy_headers(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    return check_names(ctx, value, true) && append_names(ctx, value, field);
}

static bool parse_cache_headers(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    return check_names(ctx, value, false) && append_names(ctx, value, field);
}

static bool show_names(const void *field, size_t i, struct mk_buf *out)
{
    const struct mk_conf_words *names = field;
    if (i < names->n)
        mk_buf_add(out, names->v[i]);
    return i < names->n;
}

static bool parse_user_header(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    mk_str *name = field;
    *name = value;
    return check_names(ctx, value, true);
}

static bool show_text(const void *field, size_t i, struct mk_buf *out)
{
    const mk_str *text = field;
    if (i == 0 && text->p)
        mk_buf_add(out, *text);
    return i == 0 && text->p;
}

/* The URL becomes a part of Location, to which the escaped URL of the request is appended. */
static bool parse_login_url(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    mk_str *url = field;
    (void)ctx;
    bool is_url = mk_str_starts(value, MK_STR("https://")) || mk_str_starts(value, MK_STR("http://")) ||
                  mk_str_starts(value, MK_STR("/"));
    for (size_t i = 0; i < value.len; i++)
        is_url = is_url && value.p[i] > ' ' && value.p[i] < 0x7f && value.p[i] != '"' && value.p[i] != '\\';
    *url = value;
    return is_url;
}

static const struct mk_conf_key keys[] = {
    {.name = "Location",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_REQUIRED,
     MK_CONF_AT(struct forward_auth_location, location),
     .syntax = "a path, such as /app/",
     .help = MK_HELP(
         "Protects every path that begins with this text. If several sections match, the longest `Location` "
         "counts."),
     .parse = parse_location,
     .show = show_location},
    {.name = "URL",
     .type = MK_CONF_TEXT,
     .flags = MK_CONF_REQUIRED,
     MK_CONF_AT(struct forward_auth_location, url),
     .min = 1,
     .max = 1000,
     .help =
         MK_HELP("The service that decides: `http[s]://SERVER[/PATH]`, where SERVER is `HOST:PORT`, "
                 "`unix:/path:` or the `Name` of an `[UPSTREAM]`. `off`: these paths need no permission.")},
    {.name = "CopyHeaders",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_REPEATABLE,
     MK_CONF_AT(struct forward_auth_location, copy_headers),
     .syntax = "names of headers, such as Remote-User Remote-Groups",
     .help =
         MK_HELP("Headers of the service's answer that the request gets. On the whole host, clients cannot "
                 "send these headers themselves."),
     .parse = parse_copy_headers,
     .show = show_names},
    {.name = "UserHeader",
     .type = MK_CONF_CUSTOM,
     MK_CONF_AT(struct forward_auth_location, user_header),
     .syntax = "the name of a header, such as Remote-User",
     .help = MK_HELP("The header of the service's answer that contains the name of the user, for logs, "
                     "`$remote_user` and the variable `REMOTE_USER`. The request gets this header, too."),
     .parse = parse_user_header,
     .show = show_text},
    {.name = "LoginURL",
     .type = MK_CONF_CUSTOM,
     MK_CONF_AT(struct forward_auth_location, login_url),
     .syntax = "a URL, such as https://auth.example.org/?rd=",
     .help =
         MK_HELP("Where to redirect a GET or HEAD that the service answers with 401. The escaped URL of the "
                 "request is appended."),
     .parse = parse_login_url,
     .show = show_text},
    {.name = "Timeout",
     .type = MK_CONF_TIME,
     MK_CONF_AT(struct forward_auth_location, timeout_ms),
     .min = 100,
     .max = 60 * 1000,
     .default_value = "5s",
     .help = MK_HELP("Time within which the service must answer; after that the client gets a 504.")},
    {.name = "CacheTTL",
     .type = MK_CONF_TIME,
     MK_CONF_AT(struct forward_auth_location, cache_ms),
     .min = 100,
     .max = 60 * 60 * 1000,
     .default_value = "off",
     .zero_word = "off",
     .help = MK_HELP("How long a worker reuses a permission for equal requests.")},
    {.name = "CachePer",
     .type = MK_CONF_ENUM,
     MK_CONF_AT(struct forward_auth_location, cache_per),
     .choices = cache_per,
     .default_value = "url",
     .help =
         MK_HELP("Which requests are equal, apart from `Cookie`, `Authorization`, host, scheme and client "
                 "address: those with the same method, path and query (`url`), or all (`host`).")},
    {.name = "CacheHeaders",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_REPEATABLE,
     MK_CONF_AT(struct forward_auth_location, cache_headers),
     .syntax = "names of headers, such as X-Api-Key",
     .help = MK_HELP("More headers in which equal requests must not differ."),
     .parse = parse_cache_headers,
     .show = show_names},
};

const struct mk_conf_table forward_auth_table = {
    .section = "FORWARD_AUTH",
    .keys = keys,
    .n = MK_LEN(keys),
    .repeatable = true,
    .help = MK_HELP("Paths that need the permission of another service."),
    .size = sizeof(struct forward_auth_location),
    .scope = MK_CONF_VHOST,
};
