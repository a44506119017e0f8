/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles the text of a template into nodes. */
#include "text/template.h"

#include <monkey/mem.h>
#include <monkey/utf8.h>

#include "text/template_filter.h"
#include "text/template_name.h"
#include "text/template_url.h"

enum { MARK_MAX = 16 };

struct template_compiler {
    struct duda_template *t;
    struct mk_buf *error_text;
    size_t at;        /* current offset in the source */
    size_t text_from; /* start of the text that is not in a node yet */
    mk_str open, close;
    size_t sections[DUDA_TEMPLATE_DEPTH_MAX]; /* nodes of the open sections */
    size_t depth;
};

void duda_template_position(const struct duda_template *t, size_t at, struct mk_buf *out)
{
    mk_str before = mk_str_first(t->source, at);
    size_t line = 1, last = mk_str_find_last(before, '\n');
    for (size_t i = 0; i < before.len; i++)
        line += before.p[i] == '\n';
    size_t column = 1 + mk_utf8_count(last == MK_STR_NONE ? before : mk_str_skip(before, last + 1));
    mk_buf_addf(out, "%s, line %zu, column %zu: ", t->name, line, column);
}

static bool report_error(struct template_compiler *c, size_t at, const char *fmt, ...) MK_API_PRINTF(3, 4);

static bool report_error(struct template_compiler *c, size_t at, const char *fmt, ...)
{
    va_list args;
    duda_template_position(c->t, at, c->error_text);
    va_start(args, fmt);
    mk_buf_addv(c->error_text, fmt, args);
    va_end(args);
    return false;
}

static struct duda_template_node *add_node(struct template_compiler *c, enum duda_template_node_kind kind,
                                           mk_str text, size_t at)
{
    struct duda_template *t = c->t;
    if (t->n == t->cap) {
        size_t cap = t->cap ? t->cap * 2 : 16;
        struct duda_template_node *nodes = mk_mem_realloc(t->nodes, cap * sizeof *nodes);
        if (!nodes) {
            mk_buf_add(c->error_text, MK_STR("out of memory"));
            return NULL;
        }
        t->nodes = nodes;
        t->cap = cap;
    }
    t->nodes[t->n] = (struct duda_template_node){
        .kind = kind,
        .lookup = kind == DUDA_NODE_TEXT ? DUDA_LOOKUP_MEMBER : duda_template_lookup_of(text),
        .text = text,
        .at = at};
    return &t->nodes[t->n++];
}

static bool add_text(struct template_compiler *c, size_t end)
{
    mk_str text = mk_str_of(c->t->source.p + c->text_from, end - c->text_from);
    return text.len == 0 || add_node(c, DUDA_NODE_TEXT, text, c->text_from);
}

/* ---- Tags alone on their line ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

/* Returns whether only white space precedes the tag on its line, and then sets *line to the start of this
 * line. */
static bool tag_begins_line(const struct template_compiler *c, size_t tag, size_t *line)
{
    mk_str s = c->t->source;
    size_t begin = tag;
    while (begin > c->text_from && is_space(s.p[begin - 1]))
        begin--;
    if (begin > 0 && s.p[begin - 1] != '\n')
        return false;
    *line = begin;
    return true;
}

/* Returns whether only white space follows the tag on its line, and then sets *next to the start of the next
 * line. */
static bool tag_ends_line(const struct template_compiler *c, size_t *next)
{
    mk_str s = c->t->source;
    size_t end = c->at;
    while (end < s.len && is_space(s.p[end]))
        end++;
    end += end + 1 < s.len && s.p[end] == '\r' && s.p[end + 1] == '\n';
    if (end < s.len && s.p[end] != '\n')
        return false;
    *next = end + (end < s.len);
    return true;
}

/* ---- Tags ---- */

static bool open_section(struct template_compiler *c, enum duda_template_node_kind kind, mk_str name,
                         size_t tag)
{
    if (c->depth == DUDA_TEMPLATE_DEPTH_MAX)
        return report_error(c, tag, "sections are nested more than %d deep", DUDA_TEMPLATE_DEPTH_MAX);
    c->sections[c->depth++] = c->t->n;
    return add_node(c, kind, name, tag);
}

static const char *section_kind_name(const struct duda_template_node *node)
{
    return node->kind == DUDA_NODE_BLOCK ? "block" : node->kind == DUDA_NODE_PARENT ? "parent" : "section";
}

static bool close_section(struct template_compiler *c, mk_str name, size_t tag)
{
    if (c->depth == 0)
        return report_error(c, tag, "the section `%.*s` is not open", MK_STR_ARG(name));
    struct duda_template_node *section = &c->t->nodes[c->sections[c->depth - 1]];
    if (!mk_str_eq(section->text, name))
        return report_error(c, tag, "the %s `%.*s` must be closed before `%.*s`", section_kind_name(section),
                            MK_STR_ARG(section->text), MK_STR_ARG(name));
    c->depth--;
    section->end = c->t->n;
    return true;
}

/* Handles `{{else}}`, which begins the opposite branch of the innermost section. */
static bool add_else(struct template_compiler *c, size_t tag)
{
    struct duda_template_node *section = c->depth ? &c->t->nodes[c->sections[c->depth - 1]] : NULL;
    if (!section || (section->kind != DUDA_NODE_SECTION && section->kind != DUDA_NODE_INVERTED))
        return report_error(c, tag, "`else` is not in a section");
    if (section->else_at)
        return report_error(c, tag, "the section `%.*s` has a second `else`", MK_STR_ARG(section->text));
    section->else_at = c->t->n;
    return add_node(c, DUDA_NODE_ELSE, MK_STR("else"), tag);
}

/* Handles `=<% %>=`: `inner` is the text between the signs. */
static bool set_delimiters(struct template_compiler *c, mk_str inner, size_t tag)
{
    mk_str open = mk_str_word(&inner), close = mk_str_word(&inner);
    bool good = open.len && close.len && !mk_str_trim(inner).len && open.len <= MARK_MAX &&
                close.len <= MARK_MAX && mk_str_find(open, '=') == MK_STR_NONE &&
                mk_str_find(close, '=') == MK_STR_NONE;
    if (!good)
        return report_error(c, tag, "the tag must contain two delimiters between `=` signs: {{=<%% %%>=}}");
    c->open = open;
    c->close = close;
    return true;
}

/* A tag: its sign, the text inside, and where the following text starts. */
struct tag {
    size_t begin, end;
    char sign; /* one of "#^/!>=&{<$", or 0 */
    mk_str inner;
};

static size_t find_text(mk_str s, size_t from, mk_str expected)
{
    mk_str rest = mk_str_skip(s, from);
    const char *found = rest.len ? memmem(rest.p, rest.len, expected.p, expected.len) : NULL;
    return found ? (size_t)(found - s.p) : MK_STR_NONE;
}

static bool parse_tag(struct template_compiler *c, size_t begin, struct tag *out)
{
    mk_str s = c->t->source;
    size_t at = begin + c->open.len;
    char buf[MARK_MAX + 1];
    mk_str close = c->close;
    out->begin = begin;
    out->sign = at < s.len && s.p[at] && strchr("#^/!>=&{<$", s.p[at]) ? s.p[at] : '\0';
    at += out->sign != '\0';
    if (out->sign == '{' || out->sign == '=') { /* closed by the matching sign, then the delimiter */
        buf[0] = out->sign == '{' ? '}' : '=';
        memcpy(buf + 1, close.p, close.len);
        close = mk_str_of(buf, close.len + 1);
    }
    size_t end = find_text(s, at, close);
    if (end == MK_STR_NONE)
        return report_error(c, begin, "the tag is not closed: `%.*s` is missing", MK_STR_ARG(close));
    out->inner = mk_str_of(s.p + at, end - at);
    out->end = end + close.len;
    return true;
}

static mk_str trim_spaces(mk_str s)
{
    while (s.len && (unsigned char)s.p[0] <= ' ')
        s = mk_str_skip(s, 1);
    while (s.len && (unsigned char)s.p[s.len - 1] <= ' ')
        s.len--;
    return s;
}

/* Stores the indentation of the last node, a partial or a parent. */
static bool set_indent(struct template_compiler *c, size_t tag, bool alone, size_t line)
{
    struct duda_template_node *node = &c->t->nodes[c->t->n - 1];
    node->alone = alone;
    if (alone)
        node->indent = mk_str_of(c->t->source.p + line, tag - line);
    return true;
}

static bool append_calls(struct duda_template *t, const struct duda_template_call *calls, size_t n)
{
    struct duda_template_call *all = mk_mem_realloc(t->calls, (t->n_calls + n) * sizeof *all);
    if (!all)
        return false;
    memcpy(all + t->n_calls, calls, n * sizeof *calls);
    t->calls = all;
    t->n_calls += n;
    return true;
}

/* Handles `name | filter argument | ...`, and `filter "text" | ...`. */
static bool add_filtered_value(struct template_compiler *c, mk_str inner, bool unescaped, size_t tag)
{
    struct duda_template_call calls[DUDA_TEMPLATE_CALLS_MAX];
    size_t n = 0, first = c->t->n_calls;
    mk_str text = inner;
    bool is_literal = duda_template_filter_parse_function(&inner, &text, &calls[0]);
    n += is_literal;
    if (!is_literal) {
        size_t bar = mk_str_find(inner, '|');
        text = trim_spaces(mk_str_first(inner, bar == MK_STR_NONE ? inner.len : bar));
        inner = mk_str_skip(inner, bar == MK_STR_NONE ? inner.len : bar);
    }
    if (!is_literal && (!duda_template_is_name(text) || !inner.len))
        return report_error(c, tag, "expected a name in the tag, not `%.*s`",
                            MK_STR_ARG(mk_str_first(text, 64)));
    const char *error = duda_template_filter_parse(inner, calls, &n);
    if (!error && trim_spaces(inner).len && trim_spaces(inner).p[0] != '|')
        error = "expected `|` and a filter";
    if (error)
        return report_error(c, tag, "%s", error);
    struct duda_template_node *node =
        add_node(c, unescaped ? DUDA_NODE_FILTERED_UNESCAPED : DUDA_NODE_FILTERED, text, tag);
    if (!node || !append_calls(c->t, calls, n))
        return false;
    node->is_literal = is_literal;
    node->calls.first = first;
    node->calls.n = n;
    return true;
}

static bool append_params(struct duda_template *t, const struct duda_template_param *params, size_t n)
{
    if (!n)
        return true;
    struct duda_template_param *all = mk_mem_realloc(t->params, (t->n_params + n) * sizeof *all);
    if (!all)
        return false;
    memcpy(all + t->n_params, params, n * sizeof *params);
    t->params = all;
    t->n_params += n;
    return true;
}

/* Handles `url_for "route" name=value ...`. */
static bool add_url(struct template_compiler *c, mk_str inner, bool unescaped, size_t tag)
{
    struct duda_template_param params[DUDA_TEMPLATE_PARAMS_MAX];
    size_t n = 0, first = c->t->n_params;
    mk_str route;
    /* The copy of the source is writable through `name`, which precedes it in the same allocation. */
    const char *error = duda_template_url_parse(c->t->name, inner, &route, params, &n);
    if (error)
        return report_error(c, tag, "%s", error);
    struct duda_template_node *node =
        add_node(c, unescaped ? DUDA_NODE_URL_UNESCAPED : DUDA_NODE_URL, route, tag);
    if (!node || !append_params(c->t, params, n))
        return false;
    node->params.first = first;
    node->params.n = n;
    return true;
}

static bool is_else_tag(const struct tag *tag)
{
    return !tag->sign && mk_str_eq(trim_spaces(tag->inner), MK_STR("else"));
}

static bool is_value_tag(const struct tag *tag)
{
    return !tag->sign || tag->sign == '{' || tag->sign == '&';
}

/* Returns whether the tag is removed together with its line, from *line to *next. Nothing is rendered between
 * the two tags of a parent, so the pair counts as one tag. */
static bool tag_is_alone(struct template_compiler *c, const struct tag *tag, size_t *line, size_t *next)
{
    struct duda_template_node *open = c->depth ? &c->t->nodes[c->sections[c->depth - 1]] : NULL;
    if (!is_else_tag(tag) && !(tag->sign && strchr("#^/!>=<$", tag->sign)))
        return false;
    if (tag->sign == '<')
        return tag_begins_line(c, tag->begin, line);
    if (tag->sign != '/' || !open || open->kind != DUDA_NODE_PARENT)
        return tag_begins_line(c, tag->begin, line) && tag_ends_line(c, next);
    open->alone = open->alone && tag_ends_line(c, next);
    return open->alone;
}

static bool add_tag(struct template_compiler *c, const struct tag *tag)
{
    size_t line = tag->begin, next = tag->end;
    c->at = tag->end;
    bool alone = tag_is_alone(c, tag, &line, &next);
    if (!alone) {
        line = tag->begin;
        next = tag->end;
    }
    if (!add_text(c, line))
        return false;
    c->at = c->text_from = next;
    if (tag->sign == '!')
        return true;
    if (tag->sign == '=')
        return set_delimiters(c, tag->inner, tag->begin);
    mk_str name = trim_spaces(tag->inner);
    if (is_else_tag(tag))
        return add_else(c, tag->begin);
    if (is_value_tag(tag) && duda_template_is_url(name))
        return add_url(c, name, tag->sign, tag->begin);
    if (is_value_tag(tag) && (!duda_template_is_name(name) || mk_str_find(name, '|') != MK_STR_NONE))
        return add_filtered_value(c, name, tag->sign, tag->begin);
    if (!duda_template_is_name(name))
        return report_error(c, tag->begin, "expected a name in the tag, not `%.*s`",
                            MK_STR_ARG(mk_str_first(name, 64)));
    switch (tag->sign) {
    case '#':
        return open_section(c, DUDA_NODE_SECTION, name, tag->begin);
    case '^':
        return open_section(c, DUDA_NODE_INVERTED, name, tag->begin);
    case '/':
        return close_section(c, name, tag->begin);
    case '>':
        return add_node(c, DUDA_NODE_PARTIAL, name, tag->begin) && set_indent(c, tag->begin, alone, line);
    case '<':
        return open_section(c, DUDA_NODE_PARENT, name, tag->begin) && set_indent(c, tag->begin, alone, line);
    case '$':
        return open_section(c, DUDA_NODE_BLOCK, name, tag->begin);
    default:
        return add_node(c, tag->sign ? DUDA_NODE_UNESCAPED : DUDA_NODE_VALUE, name, tag->begin);
    }
}

static bool compile_template(struct template_compiler *c)
{
    size_t begin;
    while ((begin = find_text(c->t->source, c->at, c->open)) != MK_STR_NONE) {
        struct tag tag;
        if (!parse_tag(c, begin, &tag) || !add_tag(c, &tag))
            return false;
    }
    if (c->depth > 0) {
        const struct duda_template_node *section = &c->t->nodes[c->sections[c->depth - 1]];
        return report_error(c, section->at, "the %s `%.*s` is not closed", section_kind_name(section),
                            MK_STR_ARG(section->text));
    }
    return add_text(c, c->t->source.len);
}

bool duda_template_is_plain_text(mk_str name)
{
    return mk_str_ends(name, MK_STR(".txt")) || mk_str_ends(name, MK_STR(".md")) ||
           mk_str_ends(name, MK_STR(".csv"));
}

struct duda_template *duda_template_new(mk_str text, const char *name, struct mk_buf *error)
{
    size_t name_len = strlen(name);
    struct duda_template *t = mk_mem_zalloc(1, sizeof *t);
    char *copy = t ? mk_mem_alloc(text.len + name_len + 2) : NULL;
    if (!copy) {
        mk_mem_free(t);
        mk_buf_add(error, MK_STR("out of memory"));
        return NULL;
    }
    t->name = copy;
    t->escapes = !duda_template_is_plain_text(mk_str_from_c(name));
    memcpy(copy, name, name_len + 1);
    if (text.len)
        memcpy(copy + name_len + 1, text.p, text.len);
    t->source = mk_str_of(copy + name_len + 1, text.len);
    struct template_compiler c = {.t = t, .error_text = error, .open = MK_STR("{{"), .close = MK_STR("}}")};
    if (compile_template(&c))
        return t;
    duda_template_free(t);
    return NULL;
}

void duda_template_free(struct duda_template *t)
{
    if (!t)
        return;
    mk_mem_free(t->nodes);
    mk_mem_free(t->calls);
    mk_mem_free(t->params);
    mk_mem_free(t->name);
    mk_mem_free(t);
}
