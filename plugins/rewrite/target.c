/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and expands targets. Text from clients is always escaped, and never becomes part of a host name. */
#include "rules.h"

enum { PIECES_MAX = 32 };

struct reader {
    const struct mk_conf_ctx *ctx;
    struct rule *rule;
    const struct mk_regex *regex;
    mk_str text; /* the complete text of the target */
    size_t at;
};

static bool is_name_char(char c)
{
    return mk_char_is_alpha(c) || mk_char_is_digit(c) || c == '_';
}

static char char_at(const struct reader *r, size_t at)
{
    return at < r->text.len ? r->text.p[at] : '\0';
}

static bool report_target_error(const struct reader *r, mk_str part, const char *what)
{
    mk_conf_ctx_error(r->ctx, part, "%s", what);
    return false;
}

/* ---- Pieces ---- */

static struct piece *add_piece(struct reader *r)
{
    struct target *t = &r->rule->target;
    if (t->n == PIECES_MAX) {
        report_target_error(r, r->text, "the target has too many parts");
        return NULL;
    }
    return &t->pieces[t->n++];
}

static bool add_text_piece(struct reader *r, mk_str text)
{
    struct piece *p = text.len ? add_piece(r) : NULL;
    if (p)
        p->text = text;
    return p || !text.len;
}

static char last_text_char(const struct target *t)
{
    mk_str last = t->n ? t->pieces[t->n - 1].text : MK_STR_NULL;
    return last.len ? last.p[last.len - 1] : '\0';
}

static bool add_capture(struct reader *r, unsigned number, bool is_host)
{
    const struct target *t = &r->rule->target;
    bool follows_slash = last_text_char(t) == '/' && t->query == PIECES_MAX && t->fragment == PIECES_MAX;
    struct piece *p = add_piece(r);
    if (!p)
        return false;
    *p = (struct piece){.capture = number, .is_host = is_host, .follows_slash = follows_slash};
    return true;
}

/* ---- References ---- */

static unsigned count_stars(mk_str glob)
{
    unsigned n = 0;
    for (size_t i = 0; i < glob.len; i++)
        n += glob.p[i] == '*';
    return n;
}

static unsigned count_captures(const struct reader *r)
{
    switch (r->rule->kind) {
    case KIND_PREFIX:
        return 1;
    case KIND_GLOB:
        return count_stars(r->rule->pattern);
    case KIND_REGEX:
        return mk_regex_groups(r->regex);
    case KINDS:
    default:
        return 0;
    }
}

static bool add_numbered_capture(struct reader *r, mk_str reference, unsigned number)
{
    unsigned n = count_captures(r);
    if (number <= n && number < MK_REGEX_CAPTURES_MAX)
        return add_capture(r, number, false);
    mk_conf_ctx_error(r->ctx, reference, "unknown capture `%.*s`: the pattern has %u captures",
                      MK_STR_ARG(reference), n);
    return false;
}

static bool add_named_capture(struct reader *r, mk_str reference, mk_str name)
{
    unsigned number = r->regex ? mk_regex_group(r->regex, name) : 0;
    if (number && number < MK_REGEX_CAPTURES_MAX)
        return add_capture(r, number, false);
    if (mk_str_eq(name, MK_STR("host")))
        return add_capture(r, 0, true);
    mk_conf_ctx_error(r->ctx, reference, "unknown capture `%.*s`", MK_STR_ARG(name));
    return false;
}

/* Parses the text after `$`: a digit, a name, or a name in braces. */
static bool parse_reference(struct reader *r)
{
    size_t from = r->at, name = from + 1;
    bool is_braced = char_at(r, name) == '{';
    name += is_braced;
    size_t end = name;
    if (!is_braced && mk_char_is_digit(char_at(r, name)))
        end++;
    else
        while (is_name_char(char_at(r, end)))
            end++;
    if (end == name || (is_braced && char_at(r, end) != '}'))
        return report_target_error(r, mk_str_skip(r->text, from),
                                   "expected a digit or a name after `$` (for a literal `$`, use `$$`)");
    r->at = end + is_braced;
    mk_str reference = mk_str_skip(mk_str_first(r->text, r->at), from);
    mk_str word = mk_str_skip(mk_str_first(r->text, end), name);
    uint64_t number;
    return mk_num_parse(word, &number)
               ? add_numbered_capture(r, reference, number < 1000 ? (unsigned)number : 1000)
               : add_named_capture(r, reference, word);
}

/* ---- Text ---- */

static bool is_percent_escape(const struct reader *r, size_t at)
{
    return mk_char_hex(char_at(r, at + 1)) >= 0 && mk_char_hex(char_at(r, at + 2)) >= 0;
}

static bool check_target_char(const struct reader *r)
{
    char c = char_at(r, r->at);
    mk_str here = mk_str_first(mk_str_skip(r->text, r->at), 1);
    if (c <= ' ' || c == 0x7f || strchr("\"<>\\^`{|}", c))
        return report_target_error(r, here, "this character is not allowed in a URL: write it as %XX");
    if (c == '%' && !is_percent_escape(r, r->at))
        return report_target_error(r, here, "expected two hexadecimal digits after `%`");
    if (c == '#' && r->rule->target.fragment != PIECES_MAX)
        return report_target_error(r, here, "there is a fragment (`#`) already");
    if (c == '#' && !r->rule->status)
        return report_target_error(r, here, "fragment (`#`) in a rewrite: only redirects can have one");
    return true;
}

/* The query and the fragment start with a separate piece. */
static bool begin_query_or_fragment(struct reader *r, char c)
{
    struct target *t = &r->rule->target;
    *(c == '?' ? &t->query : &t->fragment) = t->n;
    r->at++;
    return add_text_piece(r, c == '?' ? MK_STR("?") : MK_STR("#"));
}

static bool begins_query_or_fragment(const struct reader *r, char c)
{
    const struct target *t = &r->rule->target;
    return (c == '?' && t->query == PIECES_MAX && t->fragment == PIECES_MAX) ||
           (c == '#' && t->fragment == PIECES_MAX);
}

/* Parses text up to the next reference or component. */
static bool parse_literal_text(struct reader *r)
{
    size_t from = r->at;
    while (r->at < r->text.len && char_at(r, r->at) != '$' &&
           !begins_query_or_fragment(r, char_at(r, r->at))) {
        if (!check_target_char(r))
            return false;
        r->at++;
    }
    return add_text_piece(r, mk_str_skip(mk_str_first(r->text, r->at), from));
}

static bool uses_first_capture(mk_str target)
{
    for (size_t i = 0; i + 1 < target.len; i++) {
        mk_str here = mk_str_skip(target, i);
        if (mk_str_starts(here, MK_STR("$$")))
            i++;
        else if (mk_str_starts(here, MK_STR("$1")) || mk_str_starts(here, MK_STR("${1}")))
            return true;
    }
    return false;
}

/* Appends the rest of the request's path, after the prefix, to the target's path, unless the target contains
 * it as a capture. */
static bool add_implicit_capture(struct reader *r)
{
    const struct target *t = &r->rule->target;
    bool is_due = r->rule->kind == KIND_PREFIX && t->query == PIECES_MAX && t->fragment == PIECES_MAX &&
                  !uses_first_capture(r->text);
    return !is_due || add_capture(r, 1, false);
}

static bool parse_next_piece(struct reader *r)
{
    char c = char_at(r, r->at);
    if (c == '$' && char_at(r, r->at + 1) == '$') {
        r->at += 2;
        return add_text_piece(r, MK_STR("$"));
    }
    if (c == '$')
        return parse_reference(r);
    if (!begins_query_or_fragment(r, c))
        return parse_literal_text(r);
    return check_target_char(r) && add_implicit_capture(r) && begin_query_or_fragment(r, c);
}

/* ---- Scheme and authority ---- */

static bool parse_authority(struct reader *r)
{
    size_t from = r->at;
    if (mk_str_starts(mk_str_skip(r->text, r->at), MK_STR("$host"))) {
        r->at += 5;
        if (is_name_char(char_at(r, r->at)) || !add_capture(r, 0, true))
            return report_target_error(r, r->text, "expected `$host` or the name of a host");
        from = r->at;
    }
    while (r->at < r->text.len && !strchr("/?#$", char_at(r, r->at))) {
        char c = char_at(r, r->at);
        if (!mk_char_is_alpha(c) && !mk_char_is_digit(c) && !strchr(".-:[]", c))
            return report_target_error(r, mk_str_skip(r->text, r->at),
                                       "expected the name of a host, perhaps with a port");
        r->at++;
    }
    if (!add_text_piece(r, mk_str_skip(mk_str_first(r->text, r->at), from)))
        return false;
    if (r->rule->target.n < 2)
        return report_target_error(
            r, r->text, "expected the name of a host, or `$host`: no capture may become a part of it");
    /* Ensures that a path follows, so that a capture cannot extend the host name. */
    return char_at(r, r->at) == '/' || add_text_piece(r, MK_STR("/"));
}

static bool parse_scheme_or_path_start(struct reader *r)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (unsigned i = 0; i < 2; i++) {
        mk_str scheme = mk_str_from_c(schemes[i]);
        if (!mk_str_starts(r->text, scheme))
            continue;
        if (!r->rule->status)
            return report_target_error(
                r, r->text, "invalid target of a rewrite: expected a path (use Redirect for another server)");
        r->rule->target.is_url = true;
        r->at = scheme.len;
        return add_text_piece(r, scheme) && parse_authority(r);
    }
    if (char_at(r, 0) != '/' || char_at(r, 1) == '/')
        return report_target_error(r, r->text,
                                   r->rule->status ? "expected a path or a URL (http:// or https://)"
                                                   : "expected a path");
    return true;
}

bool rewrite_target_parse(const struct mk_conf_ctx *ctx, mk_str text, struct rule *rule,
                          const struct mk_regex *regex)
{
    struct reader r = {.ctx = ctx, .rule = rule, .regex = regex, .text = text};
    struct target *t = &rule->target;
    *t = (struct target){.pieces = mk_conf_ctx_alloc(ctx, PIECES_MAX * sizeof *t->pieces),
                         .query = PIECES_MAX,
                         .fragment = PIECES_MAX};
    if (!t->pieces || !parse_scheme_or_path_start(&r))
        return false;
    while (r.at < text.len)
        if (!parse_next_piece(&r))
            return false;
    if (!add_implicit_capture(&r))
        return false;
    t->query = t->query < t->n ? t->query : t->n;
    t->fragment = t->fragment < t->n ? t->fragment : t->n;
    return true;
}

/* ---- Writing ---- */

void rewrite_target_print_current(const struct mk_request *request, struct mk_buf *out)
{
    mk_str query = mk_request_query(request);
    mk_request_encode_path(request, mk_request_path(request), out);
    if (query.p)
        mk_buf_add_char(out, '?');
    mk_buf_add(out, query);
}

/* Appends the host only if it is a valid name or address, because it may come from the client. */
static bool append_host(struct mk_buf *out, const struct mk_request *request)
{
    size_t before = out->len;
    mk_variable_print(MK_STR("host"), request, out);
    for (size_t i = before; i < out->len; i++)
        if (!mk_char_is_alpha(out->p[i]) && !mk_char_is_digit(out->p[i]) && !strchr(".-_:[]", out->p[i]))
            return false;
    return out->len > before;
}

/* Escapes characters that are special in a query: `&`, `=`, `+`. */
static void append_query_escaped(struct mk_buf *out, mk_str found, bool has_slashes)
{
    while (has_slashes && found.len) { /* a %2F from the client is already escaped */
        size_t i = 0;
        while (i < found.len && !mk_str_starts(mk_str_skip(found, i), MK_STR("%2F")))
            i++;
        mk_url_escape(out, mk_str_first(found, i));
        mk_buf_add(out, i < found.len ? MK_STR("%2F") : MK_STR(""));
        found = mk_str_skip(found, i + 3);
    }
    mk_url_escape(out, found);
}

static void append_capture(struct mk_buf *out, const struct piece *p, const struct mk_request *request,
                           mk_str found, bool is_path)
{
    while (p->follows_slash && found.len && found.p[0] == '/')
        found = mk_str_skip(found, 1);
    if (is_path)
        mk_request_encode_path(request, found, out);
    else
        append_query_escaped(out, found, mk_request_has_encoded_slash(request));
}

static void append_request_query(const struct rule *rule, const struct mk_request *request,
                                 struct mk_buf *out)
{
    mk_str query = mk_request_query(request);
    if (rule->drop_query || !query.p)
        return;
    if (rule->target.query == rule->target.n)
        mk_buf_add_char(out, '?');
    else if (query.len && out->len && out->p[out->len - 1] != '?')
        mk_buf_add_char(out, '&');
    mk_buf_add(out, query);
}

/* Removes a second leading slash, which would turn the rest into a host. */
static void drop_double_slash(struct mk_buf *out)
{
    size_t n = 0;
    while (n + 1 < out->len && out->p[n] == '/' && out->p[n + 1] == '/')
        n++;
    mk_buf_consume(out, n);
}

bool rewrite_target_expand(const struct rule *rule, const struct mk_request *request,
                           const struct mk_regex_captures *found, struct mk_buf *out)
{
    const struct target *t = &rule->target;
    for (size_t i = 0; i < t->n; i++) {
        const struct piece *p = &t->pieces[i];
        if (i == t->fragment)
            append_request_query(rule, request, out);
        if (p->text.p)
            mk_buf_add(out, p->text);
        else if (!p->is_host)
            append_capture(out, p, request, found->at[p->capture], i < t->query && i < t->fragment);
        else if (!append_host(out, request))
            return false;
    }
    if (t->fragment == t->n)
        append_request_query(rule, request, out);
    if (!t->is_url)
        drop_double_slash(out);
    return !out->failed;
}
