/* SPDX-License-Identifier: Apache-2.0 */
/* Parses conditions on requests. */
#include <errno.h>

#include "conf/suggest.h"
#include "http/method.h"
#include "os/network_set.h"
#include "setup/condition_file.h"
#include "setup/condition_parser.h"
#include "setup/regex_texts.h"
#include "web/vhost.h"

enum { FEW_NETWORKS = 8 };

/* A parser of the values of one subject. */
typedef bool add_value_fn(struct mk_condition_parser *p, mk_str word, bool is_quoted);

struct subject {
    mk_str word;
    enum mk_condition_subject subject;
    add_value_fn *add;
    bool has_name; /* a name comes before the values */
};

static bool append(const struct mk_condition_parser *p, void *vector, size_t *n, const void *item,
                   size_t size)
{
    return mk_conf_ctx_append(p->ctx, vector, n, item, size);
}

static mk_str lowercase_copy(const struct mk_condition_parser *p, mk_str text)
{
    char *buf = mk_conf_ctx_alloc(p->ctx, text.len + 1);
    for (size_t i = 0; buf && i < text.len; i++)
        buf[i] = mk_char_lower(text.p[i]);
    return mk_str_of(buf, buf ? text.len : 0);
}

/* ---- Values ---- */

static bool add_regex_texts(struct mk_condition_parser *p, mk_str pattern)
{
    struct mk_condition *c = p->condition;
    mk_str texts[MK_REGEX_TEXTS_MAX];
    size_t n = mk_regex_texts_find(p->ctx->arena, pattern, mk_condition_ignores_case(c->subject), texts);
    c->has_regex_without_texts |= n == 0;
    for (size_t i = 0; i < n; i++) {
        struct mk_glob glob = {.text = texts[i], .is_substring = true};
        if (!append(p, &c->own_globs, &c->n_own_globs, &glob, sizeof glob))
            return false;
    }
    return true;
}

static bool add_regex(struct mk_condition_parser *p, mk_str pattern)
{
    struct mk_condition *c = p->condition;
    struct mk_regex_error error = {0};
    if (pattern.len == 0)
        return mk_condition_parser_error(p, MK_STR("~"), "empty", "a regular expression after `~`");
    struct mk_regex *regex = mk_regex_new(pattern, mk_condition_ignores_case(c->subject), &error);
    if (regex && !mk_arena_add_cleanup(p->ctx->arena, mk_regex_free, regex)) {
        mk_regex_free(regex);
        return false;
    }
    if (!regex) {
        mk_conf_ctx_error(p->ctx, mk_str_skip(pattern, error.offset), "%s", error.text);
        if (error.code == -ENOENT)
            mk_conf_ctx_hint(p->ctx, "build Monkey with PCRE2 (libpcre2-dev)");
        return false;
    }
    return (c->subject != MK_CONDITION_PATH || append(p, &c->words, &c->n_words, &pattern, sizeof pattern)) &&
           add_regex_texts(p, pattern) &&
           append(p, &c->regexes, &c->n_regexes, &regex, sizeof(struct mk_regex *));
}

static bool add_path(struct mk_condition_parser *p, mk_str word, bool is_quoted)
{
    struct mk_pattern pattern;
    if (!is_quoted && mk_str_starts(word, MK_STR("~")))
        return add_regex(p, mk_str_skip(word, 1));
    if (!mk_pattern_set(&pattern, word))
        return mk_condition_parser_error(p, word, "not a path", "/name, /folder/*, *.suffix or the like");
    return append(p, &p->condition->paths, &p->condition->n_paths, &pattern, sizeof pattern);
}

static bool add_text(struct mk_condition_parser *p, mk_str word, bool is_quoted)
{
    struct mk_glob glob = {.text = word, .is_substring = p->is_substring};
    if (!is_quoted && !glob.is_substring && mk_str_starts(word, MK_STR("~")))
        return add_regex(p, mk_str_skip(word, 1));
    if (word.len == 0 && glob.is_substring)
        return mk_condition_parser_error(p, word, "empty", "a part of the value");
    if (word.len == 0) {
        p->condition->matches_empty = true;
        return true;
    }
    if (p->condition->subject == MK_CONDITION_HOST && !glob.is_substring) /* requests have none either */
        glob.text = mk_vhost_trim_dot(word);
    return append(p, &p->globs, &p->n_globs, &glob, sizeof glob);
}

static bool add_substring(struct mk_condition_parser *p, mk_str word, bool is_quoted)
{
    (void)is_quoted;
    p->is_substring = true;
    return add_text(p, word, true);
}

static bool report_no_subject(const struct mk_condition_parser *p, mk_str word);

/* Names such as `User-Agent` are no attempt to write an address. */
static bool is_plain_name(mk_str word)
{
    return word.len && mk_char_is_alpha(word.p[0]) && mk_str_find(word, '.') == MK_STR_NONE &&
           mk_str_find(word, ':') == MK_STR_NONE;
}

static bool add_network(struct mk_condition_parser *p, mk_str word, bool is_quoted)
{
    struct mk_network network;
    (void)is_quoted;
    if (mk_network_parse(word, &network))
        return append(p, &p->condition->networks, &p->condition->n_networks, &network, sizeof network);
    if (p->is_bare && is_plain_name(word))
        return report_no_subject(p, word);
    return mk_condition_parser_error(p, word, "not an address or a network", MK_CONDITION_NETWORK_FORMS);
}

static bool is_upper_case(mk_str word)
{
    for (size_t i = 0; i < word.len; i++)
        if (word.p[i] >= 'a' && word.p[i] <= 'z')
            return false;
    return true;
}

static bool add_method(struct mk_condition_parser *p, mk_str word, bool is_quoted)
{
    struct mk_condition *c = p->condition;
    (void)is_quoted;
    if (!mk_is_token(word) || !is_upper_case(word))
        return mk_condition_parser_error(p, word, "not a method",
                                         "GET, PUT, PROPFIND or the like, in capitals");
    enum mk_method method = mk_method_find(word);
    if (method == MK_METHOD_UNKNOWN)
        return append(p, &c->words, &c->n_words, &word, sizeof word);
    c->methods |= MK_METHOD_BIT(method);
    return true;
}

static bool add_scheme(struct mk_condition_parser *p, mk_str word, bool is_quoted)
{
    (void)is_quoted;
    if (!mk_str_eq(word, MK_STR("http")) && !mk_str_eq(word, MK_STR("https")))
        return mk_condition_parser_error(p, word, "not a scheme", "http or https");
    return append(p, &p->condition->words, &p->condition->n_words, &word, sizeof word);
}

static bool is_host_pattern(mk_str word)
{
    for (size_t i = 0; i < word.len; i++)
        if (!mk_char_is_alpha(word.p[i]) && !mk_char_is_digit(word.p[i]) && !strchr("-._*[:]", word.p[i]))
            return false;
    return word.len > 0;
}

static bool add_referer(struct mk_condition_parser *p, mk_str word, bool is_quoted)
{
    struct mk_condition *c = p->condition;
    (void)is_quoted;
    unsigned kind = mk_str_eq(word, MK_STR("none"))       ? MK_REFERER_NONE
                    : mk_str_eq(word, MK_STR("self"))     ? MK_REFERER_SELF
                    : mk_str_eq(word, MK_STR("siblings")) ? MK_REFERER_SIBLINGS
                                                          : 0;
    c->kinds |= kind;
    if (kind)
        return true;
    if (!is_host_pattern(word))
        return mk_condition_parser_error(
            p, word, "not a host", "a name such as example.org or *.example.org, self, siblings or none");
    mk_str host = lowercase_copy(p, mk_vhost_trim_dot(word));
    return host.p && append(p, &c->words, &c->n_words, &host, sizeof host);
}

static bool add_nothing(struct mk_condition_parser *p, mk_str word, bool is_quoted)
{
    (void)is_quoted;
    return mk_condition_parser_error(p, word, "one word too many",
                                     "no value after `file`, which tests the path");
}

static bool add_country(struct mk_condition_parser *p, mk_str word, bool is_quoted)
{
    struct mk_condition *c = p->condition;
    (void)is_quoted;
    if (word.len == 0) {
        c->matches_empty = true;
        return true;
    }
    if (word.len != 2 || !mk_char_is_alpha(word.p[0]) || !mk_char_is_alpha(word.p[1]))
        return mk_condition_parser_error(
            p, word, "not a country",
            "two letters (ISO 3166-1) such as DE, or \"\" for addresses without a country");
    char *code = mk_conf_ctx_alloc(p->ctx, 2);
    for (size_t i = 0; code && i < 2; i++)
        code[i] = (char)(mk_char_lower(word.p[i]) - 'a' + 'A');
    mk_str country = mk_str_of(code, 2);
    return code && append(p, &c->words, &c->n_words, &country, sizeof country);
}

static bool add_asn(struct mk_condition_parser *p, mk_str word, bool is_quoted)
{
    struct mk_condition *c = p->condition;
    uint64_t n = 0;
    (void)is_quoted;
    bool has_letters = mk_str_eq_nocase(mk_str_first(word, 2), MK_STR("AS"));
    if (!mk_num_parse(mk_str_skip(word, has_letters ? 2 : 0), &n) || n == 0 || n > UINT32_MAX)
        return mk_condition_parser_error(p, word, "not the number of an autonomous system",
                                         "a number such as 64500");
    uint32_t number = (uint32_t)n;
    return append(p, &c->numbers, &c->n_numbers, &number, sizeof number);
}

/* ---- Subjects ---- */

static const struct subject subjects[] = {
    {MK_STR_INIT("path"), MK_CONDITION_PATH, add_path, false},
    {MK_STR_INIT("contains"), MK_CONDITION_CONTAINS, add_substring, false},
    {MK_STR_INIT("from"), MK_CONDITION_FROM, add_network, false},
    {MK_STR_INIT("method"), MK_CONDITION_METHOD, add_method, false},
    {MK_STR_INIT("referer"), MK_CONDITION_REFERER, add_referer, false},
    {MK_STR_INIT("host"), MK_CONDITION_HOST, add_text, false},
    {MK_STR_INIT("scheme"), MK_CONDITION_SCHEME, add_scheme, false},
    {MK_STR_INIT("query"), MK_CONDITION_QUERY, add_text, false},
    {MK_STR_INIT("header"), MK_CONDITION_HEADER, add_text, true},
    {MK_STR_INIT("cookie"), MK_CONDITION_COOKIE, add_text, true},
    {MK_STR_INIT("parameter"), MK_CONDITION_PARAMETER, add_text, true},
    {MK_STR_INIT("file"), MK_CONDITION_FILE, add_nothing, false},
    {MK_STR_INIT("country"), MK_CONDITION_COUNTRY, add_country, false},
    {MK_STR_INIT("asn"), MK_CONDITION_ASN, add_asn, false},
};

static const struct subject *find_subject(const struct mk_condition_parser *p, mk_str word)
{
    for (size_t i = 0; i < MK_LEN(subjects); i++)
        if (subjects[i].subject & p->allowed && mk_str_eq(word, subjects[i].word))
            return &subjects[i];
    return NULL;
}

static const struct subject *subject_of(enum mk_condition_subject subject)
{
    for (size_t i = 0; i < MK_LEN(subjects); i++)
        if (subjects[i].subject == subject)
            return &subjects[i];
    return NULL;
}

static bool is_text_subject(enum mk_condition_subject subject)
{
    return subject_of(subject)->add == add_text || subject == MK_CONDITION_CONTAINS;
}

/* Reports a word where a subject is expected. */
static bool report_no_subject(const struct mk_condition_parser *p, mk_str word)
{
    char buf[256];
    struct mk_buf list = mk_buf_fixed(buf, sizeof buf);
    struct mk_conf_suggest near = mk_conf_suggest_for(word);
    for (size_t i = 0; i < MK_LEN(subjects); i++) {
        if (!(subjects[i].subject & p->allowed))
            continue;
        mk_conf_suggest_try(&near, subjects[i].word);
        mk_buf_add(&list, list.len ? MK_STR(", ") : MK_STR(""));
        mk_buf_add(&list, subjects[i].word);
    }
    mk_conf_ctx_error(p->ctx, word, "`%.*s` is not a condition: expected one of %.*s",
                      MK_STR_ARG(mk_str_first(word, 80)), MK_STR_ARG(mk_buf_str(&list)));
    if (!near.best.p && mk_header_find_id(word))
        near.best = MK_STR("header NAME VALUE");
    if (near.best.p)
        mk_conf_ctx_hint(p->ctx, "did you mean `%.*s`?", MK_STR_ARG(near.best));
    return false;
}

static bool append_condition(struct mk_condition_parser *p, enum mk_condition_subject subject)
{
    struct mk_condition *c = mk_conf_ctx_alloc(p->ctx, sizeof *c);
    if (!c)
        return false;
    c->subject = subject;
    *p->list->end = c;
    p->list->end = &c->next;
    p->list->subjects |= subject;
    p->condition = c;
    p->is_substring = false;
    p->globs = NULL;
    p->n_globs = 0;
    return true;
}

/* ---- Ends of conditions ---- */

static bool build_globs(struct mk_condition_parser *p)
{
    struct mk_condition *c = p->condition;
    const struct mk_glob_set *set;
    if (!p->n_globs)
        return true;
    mk_err e =
        mk_glob_set_build(p->ctx->arena, p->globs, p->n_globs, mk_condition_ignores_case(c->subject), &set);
    if (e == -EFBIG)
        mk_conf_ctx_error(p->ctx, MK_STR_NULL, "the values have more than %d characters together",
                          MK_GLOB_SET_MAX);
    c->has_own_set = true;
    for (size_t i = 0; e == 0 && i < p->n_globs; i++)
        if (!append(p, &c->own_globs, &c->n_own_globs, &p->globs[i], sizeof *p->globs))
            return false;
    return e == 0 && append(p, &c->globs, &c->n_globs, &set, sizeof(const struct mk_glob_set *));
}

static bool build_networks(struct mk_condition_parser *p)
{
    struct mk_condition *c = p->condition;
    if (c->n_networks <= FEW_NETWORKS)
        return true;
    void *memory = mk_conf_ctx_alloc(p->ctx, mk_network_set_size(c->n_networks));
    c->own_set = memory ? mk_network_set_build(memory, c->networks, NULL, c->n_networks) : NULL;
    return memory;
}

static bool find_databases(struct mk_condition_parser *p)
{
    struct mk_condition *c = p->condition;
    if (!(c->subject & (MK_CONDITION_COUNTRY | MK_CONDITION_ASN)))
        return true;
    c->geo = p->ctx->report->geo;
    if (c->geo || p->ctx->report->n_errors) /* perhaps the database could not be opened */
        return true;
    mk_conf_ctx_error(p->ctx, MK_STR_NULL, "`%s` without a database: expected `GeoDatabase FILE` in [SERVER]",
                      c->subject == MK_CONDITION_ASN ? "asn" : "country");
    return false;
}

static bool end_condition(struct mk_condition_parser *p)
{
    struct mk_condition *c = p->condition;
    if (!c)
        return true;
    if (p->named.p && c->subject != MK_CONDITION_FILE)
        return mk_condition_parser_error(p, p->named, "without a value", "a value after it");
    return find_databases(p) && build_globs(p) && build_networks(p);
}

/* ---- Words ---- */

/* Returns whether a word was written in quotes: a quoted word, or one that was copied to remove a backslash. */
static bool is_quoted_word(mk_str text, mk_str word)
{
    uintptr_t at = (uintptr_t)word.p, begin = (uintptr_t)text.p;
    return at < begin || at > begin + text.len || (at > begin && word.p[-1] == '"');
}

static bool begin_condition(struct mk_condition_parser *p, const struct subject *subject, mk_str word,
                            bool is_negated)
{
    if (!end_condition(p))
        return false;
    if (p->seen[is_negated] & subject->subject && !subject->has_name)
        return mk_condition_parser_error(p, word, "already set", "each condition once");
    if (!append_condition(p, subject->subject))
        return false;
    p->seen[is_negated] |= subject->subject;
    p->condition->is_negated = is_negated;
    p->named = word;
    p->negation = MK_STR_NULL;
    p->needs_name = subject->has_name;
    p->is_bare = false;
    return true;
}

static bool set_name(struct mk_condition_parser *p, mk_str word)
{
    struct mk_condition *c = p->condition;
    bool is_token = c->subject == MK_CONDITION_PARAMETER ? word.len > 0 : mk_is_token(word);
    p->needs_name = false;
    if (!is_token)
        return mk_condition_parser_error(p, word, "not a name",
                                         c->subject == MK_CONDITION_HEADER   ? "the name of a header"
                                         : c->subject == MK_CONDITION_COOKIE ? "the name of a cookie"
                                                                             : "the name of a parameter");
    c->name = word;
    c->header_id = c->subject == MK_CONDITION_HEADER ? (uint8_t)mk_header_find_id(word) : 0;
    return true;
}

/* `contains` after a subject: the values are parts of its value. */
static bool begin_substrings(struct mk_condition_parser *p, mk_str word)
{
    struct mk_condition *c = p->condition;
    p->is_substring = true;
    p->named = word;
    if (c->subject == MK_CONDITION_PATH) {
        p->list->subjects |= MK_CONDITION_CONTAINS;
        c->subject = MK_CONDITION_CONTAINS;
    }
    return true;
}

static bool add_line(struct mk_condition_parser *p, mk_str line)
{
    return subject_of(p->condition->subject)->add(p, line, true);
}

static bool add_value(struct mk_condition_parser *p, mk_str word, bool is_quoted)
{
    const mk_str file = MK_STR("file:");
    p->named = MK_STR_NULL;
    if (is_quoted || !mk_str_starts(word, file))
        return subject_of(p->condition->subject)->add(p, word, is_quoted);
    mk_str name = mk_str_skip(word, file.len);
    if (name.len == 0 || p->condition->subject == MK_CONDITION_FILE)
        return mk_condition_parser_error(p, word, "not a list", "the name of a file after `file:`");
    if (p->condition->subject == MK_CONDITION_FROM)
        return mk_condition_file_add_networks(p, name);
    if (is_text_subject(p->condition->subject))
        return mk_condition_file_add_texts(p, name, mk_condition_ignores_case(p->condition->subject));
    p->add_line = add_line;
    return mk_condition_file_add_values(p, name);
}

/* The form of a value before the first condition decides its subject. */
static bool begin_bare_condition(struct mk_condition_parser *p, mk_str word)
{
    bool is_path = word.len && (word.p[0] == '/' || word.p[0] == '*');
    if (!append_condition(p, is_path ? MK_CONDITION_PATH : MK_CONDITION_FROM))
        return false;
    p->seen[0] |= p->condition->subject;
    return true;
}

static bool parse_unquoted_word(struct mk_condition_parser *p, mk_str word)
{
    bool has_mark = mk_str_starts(word, MK_STR("!"));
    const struct subject *subject = p->needs_name ? NULL : find_subject(p, mk_str_skip(word, has_mark));
    bool is_after_subject = p->named.p && p->condition && !p->is_substring;
    if (subject && subject->subject == MK_CONDITION_CONTAINS && !has_mark && !p->negation.p &&
        is_after_subject &&
        p->condition->subject & (MK_CONDITION_PATH | MK_CONDITION_HOST | MK_CONDITION_QUERY |
                                 MK_CONDITION_HEADER | MK_CONDITION_COOKIE | MK_CONDITION_PARAMETER))
        return begin_substrings(p, word);
    if (subject)
        return begin_condition(p, subject, word, has_mark != (p->negation.p != NULL));
    if (p->negation.p)
        return report_no_subject(p, word);
    if (mk_str_eq(word, MK_STR("not")) && !p->needs_name) {
        p->negation = word;
        return true;
    }
    return false;
}

static bool parse_word(struct mk_condition_parser *p, mk_str word, bool is_quoted)
{
    size_t n_errors = p->ctx->report->n_errors;
    if (!is_quoted && parse_unquoted_word(p, word))
        return true;
    if (p->ctx->report->n_errors != n_errors || mk_conf_report_out_of_memory(p->ctx->report))
        return false;
    if (p->negation.p)
        return report_no_subject(p, word);
    if (p->needs_name)
        return set_name(p, word);
    if (!p->condition && !p->is_bare)
        return report_no_subject(p, word);
    bool is_network = p->condition && p->is_bare && p->condition->subject == MK_CONDITION_PATH && word.len &&
                      word.p[0] != '/' && word.p[0] != '*';
    if (!p->condition || is_network)
        if (!end_condition(p) || !begin_bare_condition(p, word))
            return false;
    return add_value(p, word, is_quoted);
}

struct mk_conditions *mk_conditions_new(const struct mk_conf_ctx *ctx)
{
    struct mk_conditions *list = mk_conf_ctx_alloc(ctx, sizeof *list);
    if (list)
        list->end = &list->first;
    return list;
}

bool mk_conditions_parse(struct mk_conditions *conditions, const struct mk_conf_ctx *ctx, mk_str text,
                         unsigned allowed, bool is_bare)
{
    struct mk_condition_parser p = {.ctx = ctx, .list = conditions, .allowed = allowed, .is_bare = is_bare};
    mk_str rest = text, word;
    while (mk_conf_ctx_word(ctx, &rest, &word)) {
        if (word.p && !parse_word(&p, word, is_quoted_word(text, word)))
            return false;
        if (word.p)
            continue;
        if (p.negation.p)
            return mk_condition_parser_error(&p, p.negation, "the last word", "a condition after it");
        return end_condition(&p);
    }
    return false;
}

bool mk_conditions_add(struct mk_conditions *conditions, const struct mk_conf_ctx *ctx,
                       enum mk_condition_subject subject, bool is_negated, const mk_str *values, size_t n)
{
    struct mk_condition_parser p = {.ctx = ctx, .list = conditions};
    if (!subject_of(subject) || !append_condition(&p, subject))
        return false;
    p.condition->is_negated = is_negated;
    for (size_t i = 0; i < n; i++)
        if (!subject_of(subject)->add(&p, values[i], true))
            return false;
    return end_condition(&p);
}

/* ---- Paths in lower case ---- */

static bool lower_pattern(struct mk_config *config, struct mk_pattern *pattern)
{
    char *buf = mk_config_alloc(config, pattern->text.len + 1);
    for (size_t i = 0; buf && i < pattern->text.len; i++)
        buf[i] = mk_char_lower(pattern->text.p[i]);
    return buf && mk_pattern_set(pattern, mk_str_of(buf, pattern->text.len));
}

/* The paths are in lower case, so that the case of the expression must not matter. */
static bool fold_regex(struct mk_config *config, struct mk_condition *c, size_t i)
{
    struct mk_regex_error error;
    struct mk_regex *regex = mk_regex_new(c->words[i], true, &error);
    if (!regex)
        return false;
    c->regexes[i] = regex;
    if (mk_config_add_cleanup(config, mk_regex_free, regex))
        return true;
    mk_regex_free(regex);
    return false;
}

bool mk_conditions_fold_paths(struct mk_conditions *conditions, struct mk_config *config)
{
    for (struct mk_condition *c = conditions->first; c; c = c->next) {
        if (c->subject != MK_CONDITION_PATH)
            continue;
        for (size_t i = 0; i < c->n_paths; i++)
            if (!lower_pattern(config, &c->paths[i]))
                return false;
        for (size_t i = 0; i < c->n_regexes; i++)
            if (!fold_regex(config, c, i))
                return false;
    }
    return true;
}
