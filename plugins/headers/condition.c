/* SPDX-License-Identifier: Apache-2.0 */
#include "condition.h"

static bool report_duplicate(const struct mk_conf_ctx *ctx, mk_str word, const char *what)
{
    mk_conf_ctx_error(ctx, word, "duplicate condition `%.*s`: a rule accepts one %s", MK_STR_ARG(word), what);
    mk_conf_ctx_hint(ctx, "add another rule");
    return false;
}

static bool parse_path(const struct mk_conf_ctx *ctx, mk_str word, struct condition *c)
{
    if (c->has_path)
        return report_duplicate(ctx, word, "path");
    c->has_path = true;
    return mk_pattern_set(&c->path, word); /* always succeeds: the caller has checked the first character */
}

bool headers_condition_parse_type(mk_str word, struct condition *c)
{
    mk_str minor = word, major = mk_str_cut(&minor, '/');
    if (!mk_is_token(major) || !minor.p || !mk_is_token(minor) || mk_str_find(major, '*') != MK_STR_NONE)
        return false;
    bool is_range = mk_str_eq(minor, MK_STR("*"));
    if (!is_range && mk_str_find(minor, '*') != MK_STR_NONE)
        return false;
    c->type = is_range ? mk_str_first(word, word.len - 1) : word;
    return true;
}

static bool parse_type(const struct mk_conf_ctx *ctx, mk_str word, mk_str type, struct condition *c)
{
    if (c->type.p)
        return report_duplicate(ctx, word, "type");
    if (headers_condition_parse_type(type, c))
        return true;
    mk_conf_ctx_error(ctx, word, "`%.*s` is not a media type: expected `type:text/html` or `type:image/*`",
                      MK_STR_ARG(word));
    return false;
}

static bool parse_status(const struct mk_conf_ctx *ctx, mk_str word, mk_str status, struct condition *c)
{
    uint64_t n = 0;
    if (c->status_max)
        return report_duplicate(ctx, word, "status");
    bool is_class = status.len == 3 && mk_str_eq_nocase(mk_str_skip(status, 1), MK_STR("xx"));
    bool ok = mk_num_parse(is_class ? mk_str_first(status, 1) : status, &n);
    n = is_class && n < 10 ? n * 100 : n;
    if (!ok || n < 200 || n > 599) {
        mk_conf_ctx_error(ctx, word, "`%.*s` is not a status: expected `status:404` or `status:4xx`, 2 to 5",
                          MK_STR_ARG(word));
        return false;
    }
    c->status_min = (uint16_t)n;
    c->status_max = (uint16_t)(is_class ? n + 99 : n);
    return true;
}

enum condition_word headers_condition_parse(const struct mk_conf_ctx *ctx, mk_str word, struct condition *c)
{
    bool ok;
    if (mk_str_starts(word, MK_STR("/")) || mk_str_starts(word, MK_STR("*")))
        ok = parse_path(ctx, word, c);
    else if (mk_str_starts(word, MK_STR("type:")))
        ok = parse_type(ctx, word, mk_str_skip(word, 5), c);
    else if (mk_str_starts(word, MK_STR("status:")))
        ok = parse_status(ctx, word, mk_str_skip(word, 7), c);
    else
        return CONDITION_NONE;
    return ok ? CONDITION_TAKEN : CONDITION_WRONG;
}

static bool matches_type(const struct condition *c, struct response_facts *f)
{
    mk_str type = headers_response_facts_media_type(f);
    bool is_range = mk_str_ends(c->type, MK_STR("/"));
    return mk_str_eq_nocase(is_range ? mk_str_first(type, c->type.len) : type, c->type);
}

bool headers_condition_matches(const struct condition *c, struct response_facts *f)
{
    if (c->has_path && !mk_pattern_matches(&c->path, f->path))
        return false;
    if (c->status_max && (f->status < c->status_min || f->status > c->status_max))
        return false;
    return !c->type.p || matches_type(c, f);
}

bool headers_parse_duration(mk_str word, uint64_t *seconds)
{
    static const struct {
        char unit;
        uint32_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}, {'y', 31536000}};
    uint64_t factor = 1;
    for (size_t i = 0; word.len && i < MK_LEN(units); i++)
        if (mk_char_lower(word.p[word.len - 1]) == units[i].unit)
            factor = units[i].seconds;
    if (word.len && !mk_char_is_digit(word.p[word.len - 1])) {
        if (factor == 1 && mk_char_lower(word.p[word.len - 1]) != 's')
            return false;
        word = mk_str_first(word, word.len - 1);
    }
    if (!mk_num_parse(word, seconds) || *seconds > INT32_MAX / factor) /* RFC 9111, section 1.2.2 */
        return false;
    *seconds *= factor;
    return true;
}
