/* SPDX-License-Identifier: Apache-2.0 */
#include "format.h"

#include <monkey/text.h>

enum { STEP_SLACK = 8 }; /* space for an escape that begins just before the limit */

/* The formats that have a name. */
static const struct {
    const char *name, *text;
} named[] = {
    {"combined", "%h - %u %t \"%r\" %s %b \"%{Referer}i\" \"%{User-Agent}i\"%{column}L"},
    {"common", "%h - %u %t \"%r\" %s %b%{column}L"},
    {"json",
     "{\"time\":\"%{iso}t\",\"client\":\"%a\"%{member}u,\"host\":\"%V\",\"method\":\"%m\",\"target\":"
     "\"%{raw}U\","
     "\"protocol\":\"%H\",\"status\":%s,\"bytes\":%B,\"ms\":%{ms}T,\"outcome\":\"%X\",\"referer\":\"%{"
     "Referer}i\","
     "\"agent\":\"%{User-Agent}i\"%{member}L}"},
    {"detailed",
     "{\"time\":\"%{iso}t\",\"client\":\"%a\"%{member}u,\"host\":\"%V\",\"method\":\"%m\",\"target\":"
     "\"%{raw}U\",\"protocol\":\"%H\",\"route\":\"%R\",\"status\":%s,\"received\":%{received}x,\"bytes\":%B,"
     "\"us\":%{us}T,\"reason\":\"%{reason}x\",\"tls_version\":\"%{tls_version}x\",\"tls_cipher\":"
     "\"%{tls_cipher}x\",\"upstream_addr\":\"%{upstream_addr}x\",\"upstream_status\":\"%{upstream_status}x\","
     "\"upstream_connect_time\":\"%{upstream_connect_time}x\",\"upstream_header_time\":"
     "\"%{upstream_header_time}x\",\"upstream_response_time\":\"%{upstream_response_time}x\",\"referer\":"
     "\"%{Referer}i\",\"agent\":\"%{User-Agent}i\"%{member}L}"},
};

struct format_compiler {
    const struct mk_conf_ctx *ctx;
    mk_str text, rest;
    bool json, has_tabs, uses_attempts;
    bool quoted, escaped; /* whether the text so far ends inside quotes, and with a backslash */
    struct step *steps;
    size_t n, longest;
};

static bool report_bad_directive(const struct format_compiler *c, mk_str verb, const char *what)
{
    mk_conf_ctx_error(c->ctx, verb, "`%.*s` %s", MK_STR_ARG(verb), what);
    return false;
}

static void track_json_quotes(struct format_compiler *c, mk_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.p[i] == '"' && !c->escaped)
            c->quoted = !c->quoted;
        c->escaped = c->json && text.p[i] == '\\' && !c->escaped;
    }
}

static void add_text(struct format_compiler *c, mk_str text)
{
    if (text.len == 0)
        return;
    track_json_quotes(c, text);
    c->steps[c->n++] = (struct step){.text = text};
    c->longest += text.len;
}

/* ---- A verb: %s, %>s, %{Referer}i ---- */

struct parsed_directive {
    mk_str whole, braces; /* `braces` is absent if there are none */
    char letter;
};

static bool parse_braced_argument(struct format_compiler *c, struct parsed_directive *w)
{
    size_t close = mk_str_find(c->rest, '}');
    if (close == MK_STR_NONE)
        return report_bad_directive(c, mk_str_first(c->rest, 16), "has no `}`");
    w->braces = mk_str_first(mk_str_skip(c->rest, 2), close - 2);
    c->rest = mk_str_skip(c->rest, close - 1); /* the letter is now at the same index as without braces */
    return true;
}

/* Parses a directive. c->rest begins with its percent sign. */
static bool parse_directive(struct format_compiler *c, struct parsed_directive *w)
{
    const char *from = c->rest.p, *end = c->rest.p + c->rest.len;
    bool braces = c->rest.len > 1 && c->rest.p[1] == '{';
    *w = (struct parsed_directive){.letter = 0};
    if (braces && !parse_braced_argument(c, w))
        return false;
    size_t at = !braces && c->rest.len > 2 && c->rest.p[1] == '>' && c->rest.p[2] == 's' ? 2 : braces ? 2 : 1;
    if (c->rest.len <= at) {
        mk_str what = mk_str_of(from, (size_t)(end - from));
        mk_conf_ctx_error(c->ctx, what, "a verb is not complete: `%.*s` has no letter", MK_STR_ARG(what));
        mk_conf_ctx_hint(c->ctx, "write %%%% for a percent sign");
        return false;
    }
    w->letter = c->rest.p[at];
    c->rest = mk_str_skip(c->rest, at + 1);
    w->whole = mk_str_of(from, (size_t)(c->rest.p - from));
    return true;
}

static bool directive_matches(const struct directive *v, const struct parsed_directive *w)
{
    if (v->letter != w->letter || !v->word != !w->braces.p)
        return false;
    return !v->word || v->word[0] == '\0' || mk_str_eq(mk_str_from_c(v->word), w->braces);
}

static void list_directive_letters(struct mk_buf *out)
{
    for (size_t i = 0; i < logger_n_directives; i++)
        if (!i || logger_directives[i].letter != logger_directives[i - 1].letter)
            mk_buf_addf(out, " %%%c", logger_directives[i].letter);
}

static void list_directive_words(char letter, struct mk_buf *out)
{
    for (size_t i = 0; i < logger_n_directives; i++) {
        const struct directive *v = &logger_directives[i];
        if (v->letter != letter)
            continue;
        if (v->word)
            mk_buf_addf(out, " %%{%s}%c", v->word[0] ? v->word : "Name", letter);
        else
            mk_buf_addf(out, " %%%c", letter);
    }
}

static bool report_unknown_directive(const struct format_compiler *c, const struct parsed_directive *w)
{
    char buf[512];
    struct mk_buf words = mk_buf_fixed(buf, sizeof buf);
    list_directive_words(w->letter, &words);
    report_bad_directive(c, w->whole, words.len ? "is not a form of this verb" : "is not a verb");
    if (words.len == 0)
        list_directive_letters(&words);
    mk_conf_ctx_hint(c->ctx, "expected one of%.*s", MK_STR_ARG(mk_buf_str(&words)));
    return false;
}

static bool check_directive(const struct format_compiler *c, const struct directive *v,
                            const struct parsed_directive *w)
{
    if (v->word && v->word[0] == '\0' && !mk_is_token(w->braces))
        return report_bad_directive(c, w->whole, "does not name a header");
    if (c->json && !c->quoted && !v->is_bare)
        return report_bad_directive(c, w->whole, "is text: in JSON it needs quotes");
    return true;
}

static bool append_directive_step(struct format_compiler *c)
{
    struct parsed_directive w;
    if (!parse_directive(c, &w))
        return false;
    const struct directive *v = logger_directives, *end = logger_directives + logger_n_directives;
    while (v < end && !directive_matches(v, &w))
        v++;
    if (v == end)
        return report_unknown_directive(c, &w);
    if (!check_directive(c, v, &w))
        return false;
    if (!v->write) {
        add_text(c, MK_STR("%"));
        return true;
    }
    c->uses_attempts |= v->letter == 'x' && mk_str_starts(w.braces, MK_STR("upstream_"));
    c->steps[c->n++] = (struct step){
        .write = v->write, .text = w.braces, .how = v->how, .keeps_blanks = c->quoted || c->has_tabs};
    c->longest += v->max + STEP_SLACK;
    return true;
}

/* ---- Whole formats ---- */

static bool check_whole_format(const struct format_compiler *c, mk_str value)
{
    if (c->quoted)
        mk_conf_ctx_error(c->ctx, value, "a quote of the format is not closed");
    else if (c->json && !mk_str_ends(c->text, MK_STR("}")))
        mk_conf_ctx_error(c->ctx, value, "a format that begins with `{` is JSON, and ends with `}`");
    else if (c->longest > LOGGER_LINE_MAX)
        mk_conf_ctx_error(c->ctx, value, "its lines could have %zu bytes: at most %d are allowed", c->longest,
                          LOGGER_LINE_MAX);
    else
        return true;
    return false;
}

static bool compile_format(struct format_compiler *c)
{
    while (c->rest.len) {
        size_t percent = mk_str_find(c->rest, '%');
        add_text(c, mk_str_first(c->rest, percent));
        c->rest = mk_str_skip(c->rest, percent);
        if (c->rest.len && !append_directive_step(c))
            return false;
    }
    return true;
}

static mk_str resolve_named_format(mk_str value)
{
    for (size_t i = 0; i < MK_LEN(named); i++)
        if (mk_str_eq_nocase(value, mk_str_from_c(named[i].name)))
            return mk_str_from_c(named[i].text);
    return value;
}

bool logger_format_parse(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    struct format *f = field;
    mk_str text = resolve_named_format(value);
    if (text.p == value.p && mk_str_find(value, '%') == MK_STR_NONE)
        return false;
    if (text.p == value.p && mk_str_starts(value, MK_STR("\"")) && mk_str_find(value, '\\') != MK_STR_NONE) {
        mk_conf_ctx_error(ctx, value,
                          "do not put quotes around a format, or backslashes before the quotes in it");
        return false;
    }
    size_t most = 1;
    for (size_t i = 0; i < text.len; i++)
        most += text.p[i] == '%' ? 2 : 0;
    struct format_compiler c = {.ctx = ctx,
                                .text = text,
                                .rest = text,
                                .json = mk_str_starts(text, MK_STR("{")),
                                .has_tabs = mk_str_find(text, '\t') != MK_STR_NONE,
                                .steps = mk_conf_ctx_alloc(ctx, most * sizeof(struct step))};
    if (!c.steps || !compile_format(&c) || !check_whole_format(&c, value))
        return false;
    *f = (struct format){
        .written = value, .json = c.json, .uses_attempts = c.uses_attempts, .steps = c.steps, .n = c.n};
    return true;
}

bool logger_format_show(const void *field, size_t i, struct mk_buf *out)
{
    const struct format *f = field;
    if (i == 0)
        mk_buf_add(out, f->written);
    return i == 0;
}

void logger_format_write(const struct format *f, struct line *line)
{
    line->json = f->json;
    for (const struct step *s = f->steps; s < f->steps + f->n; s++) {
        if (s->write)
            s->write(line, s);
        else
            logger_line_append(line, s->text);
    }
}
