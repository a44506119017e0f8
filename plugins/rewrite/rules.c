/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "rules.h"

static const char *const kinds[] = {[KIND_PREFIX] = "prefix", [KIND_GLOB] = "glob", [KIND_REGEX] = "regex"};
enum {
    SUBJECTS = MK_CONDITION_PATH | MK_CONDITION_CONTAINS | MK_CONDITION_FROM | MK_CONDITION_METHOD |
               MK_CONDITION_REFERER | MK_CONDITION_HOST | MK_CONDITION_SCHEME | MK_CONDITION_QUERY |
               MK_CONDITION_HEADER | MK_CONDITION_COOKIE | MK_CONDITION_PARAMETER | MK_CONDITION_COUNTRY |
               MK_CONDITION_ASN | MK_CONDITION_FILE
};

/* Gets the next word, which is required. */
static bool expect_word(const struct mk_conf_ctx *ctx, mk_str *rest, mk_str *word, const char *what)
{
    if (!mk_conf_ctx_word(ctx, rest, word))
        return false;
    if (word->p)
        return true;
    mk_conf_ctx_error(ctx, MK_STR_NULL, "expected %s at the end", what);
    return false;
}

static unsigned word_index(mk_str word, const char *const *words, unsigned n)
{
    unsigned i = 0;
    while (i < n && !mk_str_eq_nocase(word, mk_str_from_c(words[i])))
        i++;
    return i;
}

static void parse_condition_line(const struct mk_conf_ctx *ctx, struct rules *rules)
{
    if (!rules->pending)
        rules->pending = mk_conditions_new(ctx);
    if (rules->pending)
        (void)!mk_conditions_parse(rules->pending, ctx, mk_conf_ctx_value(ctx), SUBJECTS, false);
}

/* ---- Rules ---- */

static bool parse_status(const struct mk_conf_ctx *ctx, mk_str word, unsigned *status)
{
    uint64_t n = 0;
    if (mk_num_parse(word, &n) && (n == 301 || n == 302 || n == 303 || n == 307 || n == 308)) {
        *status = (unsigned)n;
        return true;
    }
    mk_conf_ctx_error(ctx, word, "expected 301, 302, 303, 307 or 308, not `%.*s`", MK_STR_ARG(word));
    return false;
}

static bool parse_option(const struct mk_conf_ctx *ctx, mk_str word, struct rule *r)
{
    if (mk_str_eq_nocase(word, MK_STR("!query")))
        r->drop_query = true;
    else if (mk_str_eq_nocase(word, MK_STR("nocase")))
        r->nocase = true;
    else if (mk_str_eq_nocase(word, MK_STR("last")) && !r->status)
        r->last = true;
    else {
        mk_conf_ctx_error(ctx, word, "expected %s, not `%.*s`",
                          r->status ? "!query or nocase" : "!query, nocase or last", MK_STR_ARG(word));
        return false;
    }
    return true;
}

static bool parse_pattern(const struct mk_conf_ctx *ctx, mk_str *rest, struct rule *r)
{
    mk_str word;
    if (!expect_word(ctx, rest, &word, "prefix, glob or regex"))
        return false;
    r->kind = (enum kind)word_index(word, kinds, KINDS);
    if (r->kind == KINDS) {
        mk_conf_ctx_error(ctx, word, "expected prefix, glob or regex, not `%.*s`", MK_STR_ARG(word));
        return false;
    }
    if (!expect_word(ctx, rest, &r->pattern, "a pattern"))
        return false;
    char first = r->pattern.len ? r->pattern.p[0] : '\0';
    if ((r->kind == KIND_PREFIX && first != '/') || (r->kind == KIND_GLOB && first != '/' && first != '*')) {
        mk_conf_ctx_error(ctx, r->pattern, "a %s begins with `/`%s", kinds[r->kind],
                          r->kind == KIND_GLOB ? " or `*`" : "");
        return false;
    }
    return true;
}

/* Compiles the expression to validate it. It is compiled again for use when a host gets the rules. */
static bool check_regex(const struct mk_conf_ctx *ctx, struct rule *r, mk_str target)
{
    struct mk_regex_error error;
    struct mk_regex *regex = r->kind == KIND_REGEX ? mk_regex_new(r->pattern, r->nocase, &error) : NULL;
    if (r->kind == KIND_REGEX && !regex) {
        mk_conf_ctx_error(ctx, mk_str_skip(r->pattern, error.offset), "%s", error.text);
        if (error.code == -ENOENT)
            mk_conf_ctx_hint(ctx, "build Monkey with PCRE2 (libpcre2-dev)");
        return false;
    }
    bool ok = rewrite_target_parse(ctx, target, r, regex);
    mk_regex_free(regex);
    return ok;
}

static bool parse_rule(const struct mk_conf_ctx *ctx, struct rule *r, bool is_redirect)
{
    mk_str rest = mk_conf_ctx_value(ctx), word, target;
    r->key = mk_conf_ctx_key(ctx);
    r->value = rest;
    if (is_redirect && (!expect_word(ctx, &rest, &word, "a status") || !parse_status(ctx, word, &r->status)))
        return false;
    if (!parse_pattern(ctx, &rest, r) || !expect_word(ctx, &rest, &target, "a target"))
        return false;
    while (true) {
        if (!mk_conf_ctx_word(ctx, &rest, &word))
            return false;
        if (!word.p)
            return check_regex(ctx, r, target);
        if (!parse_option(ctx, word, r))
            return false;
    }
}

static void parse_rule_line(const struct mk_conf_ctx *ctx, struct rules *rules, bool is_redirect)
{
    struct rule *r = mk_conf_ctx_alloc(ctx, sizeof *r);
    if (!r)
        return;
    r->conditions = rules->pending;
    rules->pending = NULL;
    if (!parse_rule(ctx, r, is_redirect))
        return;
    if (!rules->first)
        rules->end = &rules->first;
    r->index = rules->n++;
    *rules->end = r;
    rules->end = &r->next;
}

/* ---- The section ---- */

static void save_config_line(const struct mk_conf_ctx *ctx, struct rules *rules)
{
    struct line *l = mk_conf_ctx_alloc(ctx, sizeof *l);
    if (!l)
        return;
    *l = (struct line){.key = mk_conf_ctx_key(ctx), .value = mk_conf_ctx_value(ctx)};
    if (!rules->lines)
        rules->lines_end = &rules->lines;
    *rules->lines_end = l;
    rules->lines_end = &l->next;
}

static void parse_rewrite_key(const struct mk_conf_ctx *ctx)
{
    struct rules *rules = mk_conf_ctx_out(ctx);
    mk_str key = mk_conf_ctx_key(ctx);
    if (mk_str_eq_nocase(key, MK_STR("Redirect")))
        parse_rule_line(ctx, rules, true);
    else if (mk_str_eq_nocase(key, MK_STR("Rewrite")))
        parse_rule_line(ctx, rules, false);
    else if (mk_str_eq_nocase(key, MK_STR("When")))
        parse_condition_line(ctx, rules);
    else
        mk_conf_ctx_error(ctx, key, "expected Redirect, Rewrite or When, not `%.*s`", MK_STR_ARG(key));
    save_config_line(ctx, rules);
}

static bool show_config_line(const void *in, size_t i, struct mk_buf *key, struct mk_buf *value)
{
    const struct line *l = ((const struct rules *)in)->lines;
    while (l && i--)
        l = l->next;
    if (!l)
        return false;
    mk_buf_add(key, l->key);
    mk_buf_add(value, l->value);
    return true;
}

const struct mk_conf_table rewrite_rules_table = {
    .section = "REWRITE",
    .help = MK_HELP("Redirects and rewrites; the first rule that matches decides."),
    .entry = parse_rewrite_key,
    .show_entry = show_config_line,
    .entry_syntax =
        "Redirect STATUS KIND PATTERN TARGET [!query] [nocase], Rewrite KIND PATTERN TARGET [!query] "
        "[nocase] [last], or When [not] SUBJECT VALUES...; KIND is prefix, glob or regex",
    .entry_help = MK_HELP("Rules, and conditions (`When`) for the next rule."),
    .size = sizeof(struct rules),
    .scope = MK_CONF_VHOST,
};
