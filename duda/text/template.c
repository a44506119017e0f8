/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles the text of a template into nodes. */
#include "text/template.h"

#include <errno.h>
#include <monkey/mem.h>
#include <monkey/utf8.h>

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
    t->nodes[t->n] = (struct duda_template_node){.kind = kind, .text = text, .at = at};
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

/* Returns whether the tag is alone on its line, apart from white space. If so, sets *line to the start of
 * this line and *next to the start of the next line. */
static bool tag_is_alone(const struct template_compiler *c, size_t tag, size_t *line, size_t *next)
{
    mk_str s = c->t->source;
    size_t begin = tag, end = c->at;
    while (begin > c->text_from && is_space(s.p[begin - 1]))
        begin--;
    while (end < s.len && is_space(s.p[end]))
        end++;
    if (begin > 0 && s.p[begin - 1] != '\n')
        return false;
    end += end + 1 < s.len && s.p[end] == '\r' && s.p[end + 1] == '\n';
    if (end < s.len && s.p[end] != '\n')
        return false;
    *line = begin;
    *next = end + (end < s.len);
    return true;
}

/* ---- Tags ---- */

static bool is_tag_name(mk_str s)
{
    if (mk_str_eq(s, MK_STR(".")))
        return true;
    for (size_t i = 0; i < s.len; i++) {
        bool dot = s.p[i] == '.';
        if ((unsigned char)s.p[i] <= ' ' || (dot && (i == 0 || i + 1 == s.len || s.p[i + 1] == '.')))
            return false;
    }
    return s.len > 0;
}

static bool open_section(struct template_compiler *c, enum duda_template_node_kind kind, mk_str name,
                         size_t tag)
{
    if (c->depth == DUDA_TEMPLATE_DEPTH_MAX)
        return report_error(c, tag, "sections are nested more than %d deep", DUDA_TEMPLATE_DEPTH_MAX);
    c->sections[c->depth++] = c->t->n;
    return add_node(c, kind, name, tag);
}

static bool close_section(struct template_compiler *c, mk_str name, size_t tag)
{
    if (c->depth == 0)
        return report_error(c, tag, "the section `%.*s` is not open", MK_STR_ARG(name));
    struct duda_template_node *section = &c->t->nodes[c->sections[c->depth - 1]];
    if (!mk_str_eq(section->text, name))
        return report_error(c, tag, "the section `%.*s` must be closed before `%.*s`",
                            MK_STR_ARG(section->text), MK_STR_ARG(name));
    c->depth--;
    section->end = c->t->n;
    return true;
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
    char sign; /* one of "#^/!>=&{", or 0 */
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
    out->sign = at < s.len && s.p[at] && strchr("#^/!>=&{", s.p[at]) ? s.p[at] : '\0';
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

static bool add_partial(struct template_compiler *c, mk_str name, size_t tag, bool alone, size_t line)
{
    struct duda_template_node *node = add_node(c, DUDA_NODE_PARTIAL, name, tag);
    if (!node)
        return false;
    node->alone = alone;
    if (alone)
        node->indent = mk_str_of(c->t->source.p + line, tag - line);
    return true;
}

static bool add_tag(struct template_compiler *c, const struct tag *tag)
{
    size_t line = tag->begin, next = tag->end;
    bool takes_line = tag->sign && strchr("#^/!>=", tag->sign);
    c->at = tag->end;
    bool alone = takes_line && tag_is_alone(c, tag->begin, &line, &next);
    if (!add_text(c, alone ? line : tag->begin))
        return false;
    c->at = c->text_from = alone ? next : tag->end;
    if (tag->sign == '!')
        return true;
    if (tag->sign == '=')
        return set_delimiters(c, tag->inner, tag->begin);
    mk_str name = trim_spaces(tag->inner);
    if (!is_tag_name(name))
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
        return add_partial(c, name, tag->begin, alone, line);
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
        return report_error(c, section->at, "the section `%.*s` is not closed", MK_STR_ARG(section->text));
    }
    return add_text(c, c->t->source.len);
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
    mk_mem_free(t->name);
    mk_mem_free(t);
}
