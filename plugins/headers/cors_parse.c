/* SPDX-License-Identifier: Apache-2.0 */
/* Parses Cors [PATH] ORIGIN... [methods=A,B] [headers=A,B] [expose=A,B] [max-age=TIME] [credentials]. */
#include "cors.h"

static bool is_host_char(char c)
{
    return mk_char_is_alpha(c) || mk_char_is_digit(c) || (c && strchr("-._~:[]", c));
}

/* Accepts only scheme://host[:port]; a `*` is allowed only as the first label. */
static bool parse_origin_pattern(mk_str word, struct cors_origin *origin)
{
    mk_str host = word, scheme = mk_str_cut(&host, ':');
    if (!mk_is_token(scheme) || !mk_char_is_alpha(scheme.p[0]) || !mk_str_starts(host, MK_STR("//")))
        return false;
    host = mk_str_skip(host, 2);
    *origin = (struct cors_origin){.front = word};
    if (mk_str_starts(host, MK_STR("*."))) {
        host = mk_str_skip(host, 1);
        *origin = (struct cors_origin){.front = mk_str_first(word, word.len - host.len - 1), .back = host};
    }
    for (size_t i = 0; i < host.len; i++)
        if (!is_host_char(host.p[i]))
            return false;
    return host.len > 1;
}

static bool report_bad_origin(const struct mk_conf_ctx *ctx, mk_str word)
{
    mk_conf_ctx_error(ctx, word, "`%.*s` is neither an origin nor an option", MK_STR_ARG(word));
    if (mk_str_eq_nocase(word, MK_STR("null")))
        mk_conf_ctx_hint(ctx, "any page can give itself the origin `null`");
    else
        mk_conf_ctx_hint(
            ctx, "an origin is `*`, or scheme://host[:port] without a path, as https://example.org or "
                 "https://*.example.org; options are methods=, headers=, expose=, max-age= and "
                 "credentials");
    return false;
}

static bool parse_origin(const struct mk_conf_ctx *ctx, mk_str word, struct cors_rule *rule)
{
    struct cors_origin origin;
    if (mk_str_eq(word, MK_STR("*"))) {
        rule->any = true;
        return true;
    }
    if (!parse_origin_pattern(word, &origin))
        return report_bad_origin(ctx, word);
    return mk_conf_ctx_append(ctx, &rule->origins, &rule->n, &origin, sizeof origin);
}

/* Converts "A,B" to a token list with a space after each comma. */
static bool parse_list(const struct mk_conf_ctx *ctx, mk_str word, mk_str list, mk_str *out)
{
    size_t cap = 2 * list.len + 1;
    char *buf = mk_conf_ctx_alloc(ctx, cap);
    if (!buf)
        return false;
    struct mk_buf text = mk_buf_fixed(buf, cap);
    while (list.p) {
        mk_str one = mk_str_cut(&list, ',');
        if (!mk_is_token(one)) {
            mk_conf_ctx_error(ctx, word,
                              "`%.*s` is not a list: expected names separated by commas, without spaces",
                              MK_STR_ARG(word));
            return false;
        }
        mk_buf_add(&text, text.len ? MK_STR(", ") : MK_STR(""));
        mk_buf_add(&text, one);
    }
    *out = mk_buf_str(&text);
    return true;
}

static bool parse_max_age(const struct mk_conf_ctx *ctx, mk_str word, mk_str time, mk_str *out)
{
    enum { ROOM = 16 };
    uint64_t seconds;
    if (!headers_parse_duration(time, &seconds)) {
        mk_conf_ctx_error(ctx, word, "`%.*s` is not a time: expected a number with s, m, h, d or w",
                          MK_STR_ARG(word));
        return false;
    }
    char *buf = mk_conf_ctx_alloc(ctx, ROOM);
    if (!buf)
        return false;
    struct mk_buf text = mk_buf_fixed(buf, ROOM);
    mk_buf_add_num(&text, seconds);
    *out = mk_buf_str(&text);
    return true;
}

static bool parse_cors_word(const struct mk_conf_ctx *ctx, mk_str word, struct cors_rule *rule)
{
    mk_str value = word, name = mk_str_cut(&value, '=');
    if (mk_str_eq(word, MK_STR("credentials")))
        return rule->credentials = true;
    if (value.p && mk_str_eq(name, MK_STR("methods")))
        return parse_list(ctx, word, value, &rule->methods);
    if (value.p && mk_str_eq(name, MK_STR("headers")))
        return parse_list(ctx, word, value, &rule->headers);
    if (value.p && mk_str_eq(name, MK_STR("expose")))
        return parse_list(ctx, word, value, &rule->expose);
    if (value.p && mk_str_eq(name, MK_STR("max-age")))
        return parse_max_age(ctx, word, value, &rule->max_age);
    return parse_origin(ctx, word, rule);
}

static bool is_wildcard(mk_str value)
{
    return mk_str_eq(value, MK_STR("*"));
}

static bool check_cors_rule(const struct mk_conf_ctx *ctx, const struct cors_rule *r)
{
    if (!r->any && r->n == 0)
        mk_conf_ctx_error(ctx, r->written,
                          "no origin given: expected `*` or an origin such as https://example.org");
    else if (r->any && r->n)
        mk_conf_ctx_error(ctx, r->written, "`*` allows all origins already");
    else if (r->credentials && r->any)
        mk_conf_ctx_error(ctx, r->written,
                          "`*` cannot be combined with `credentials`: every site could read your users' "
                          "private responses. List the origins");
    else if (r->credentials && (is_wildcard(r->methods) || is_wildcard(r->headers) || is_wildcard(r->expose)))
        mk_conf_ctx_error(ctx, r->written,
                          "with `credentials`, browsers take `*` as a literal name: list the names");
    else
        return true;
    return false;
}

bool headers_cors_parse(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    struct cors *cors = field;
    struct cors_rule rule = {.written = value};
    mk_str rest = value, word;
    for (bool first = true;; first = false) {
        if (!mk_conf_ctx_word(ctx, &rest, &word))
            return false;
        if (!word.p)
            break;
        if (first && mk_str_starts(word, MK_STR("/")))
            (void)headers_condition_parse(ctx, word, &rule.when); /* parsing a path cannot fail */
        else if (!parse_cors_word(ctx, word, &rule))
            return false;
    }
    return check_cors_rule(ctx, &rule) && mk_conf_ctx_append(ctx, &cors->v, &cors->n, &rule, sizeof rule);
}

bool headers_cors_show(const void *field, size_t i, struct mk_buf *out)
{
    const struct cors *cors = field;
    if (i < cors->n)
        mk_buf_add(out, cors->v[i].written);
    return i < cors->n;
}
