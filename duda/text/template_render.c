/* SPDX-License-Identifier: Apache-2.0 */
/* Renders nodes with values to text. */
#include <errno.h>
#include <monkey/sized.h>
#include <monkey/text.h>

#include "text/template.h"
#include "text/template_filter.h"

/* Values in which names are looked up, from the innermost outwards. */
struct frame {
    const struct frame *up;
    struct duda_value value;
    size_t index, n; /* position in the list, and its length; n is 0 outside of lists */
};

/* The blocks with which a template replaces those of its parent: nodes [from, to) of `t`. */
struct overrides {
    const struct overrides *up; /* those of the template that extends `t`; they take precedence */
    const struct duda_template *t;
    size_t from, to;
};

/* Indentation of each line of a partial. */
struct indent {
    const struct indent *up;
    mk_str text;
};

struct rendering {
    const struct duda_template *t;
    const struct duda_render_options *options;
    const struct indent *indent;
    const struct overrides *overrides;
    struct mk_buf *out, *error_text;
    struct mk_buf *scratch; /* two buffers for the results of filters */
    size_t depth;
    bool at_line; /* the next text starts a line */
    bool escapes; /* true if any enclosing template is HTML */
};

static int render_nodes(struct rendering *r, size_t from, size_t to, const struct frame *frame);

static int report_error(const struct rendering *r, const struct duda_template_node *node, int error,
                        const char *problem)
{
    duda_template_position(r->t, node->at, r->error_text);
    mk_buf_addf(r->error_text, "`%.*s` %s", MK_STR_ARG(node->text), problem);
    return error;
}

/* ---- Names ---- */

/* A missing name is an error or, without `strict`, renders as empty text. */
static int report_missing_name(const struct rendering *r, const struct duda_template_node *node,
                               const char *problem)
{
    return r->options->strict ? report_error(r, node, -ENOENT, problem) : 0;
}

/* `@index` counts from 0, `@number` from 1. */
static bool look_up_loop_variable(const struct frame *frame, mk_str name, struct duda_value *out)
{
    while (frame && !frame->n)
        frame = frame->up;
    if (!frame)
        return false;
    if (mk_str_eq(name, MK_STR("@index")))
        *out = duda_value_unsigned(frame->index);
    else if (mk_str_eq(name, MK_STR("@number")))
        *out = duda_value_unsigned(frame->index + 1);
    else if (mk_str_eq(name, MK_STR("@first")))
        *out = duda_value_bool(frame->index == 0);
    else if (mk_str_eq(name, MK_STR("@last")))
        *out = duda_value_bool(frame->index + 1 == frame->n);
    else
        return false;
    return true;
}

static bool look_up_member(const struct frame *frame, mk_str name, struct duda_value *out)
{
    while (frame && !duda_value_member(&frame->value, name, out))
        frame = frame->up;
    return frame;
}

/* Looks up the first part of the path in all frames; each further part must be a member of the value before
 * it. */
static bool look_up_path(const struct frame *frame, mk_str path, struct duda_value *out)
{
    bool found = look_up_member(frame, mk_str_cut(&path, '.'), out);
    while (found && path.p) {
        struct duda_value inside = *out;
        found = duda_value_member(&inside, mk_str_cut(&path, '.'), out);
    }
    return found;
}

static int look_up_global(const struct rendering *r, mk_str name, struct duda_value *out)
{
    int (*find)(void *, mk_str, struct duda_value *) = r->options->find_global;
    return find ? find(r->options->ctx, mk_str_skip(name, 1), out) : -ENOENT;
}

/* Returns 0; -ENOENT: there is no such value; or the error with which find_global() has failed. */
static int look_up_name(const struct rendering *r, const struct frame *frame,
                        enum duda_template_lookup lookup, mk_str name, struct duda_value *out)
{
    bool found = false;
    switch (lookup) {
    case DUDA_LOOKUP_MEMBER:
        found = look_up_member(frame, name, out);
        break;
    case DUDA_LOOKUP_PATH:
        found = look_up_path(frame, name, out);
        break;
    case DUDA_LOOKUP_SELF:
        *out = frame->value;
        return 0;
    case DUDA_LOOKUP_LOOP:
        found = look_up_loop_variable(frame, name, out);
        break;
    case DUDA_LOOKUP_GLOBAL:
        return look_up_global(r, name, out);
    }
    return found ? 0 : -ENOENT;
}

static int find_value(struct rendering *r, const struct duda_template_node *node, const struct frame *frame,
                      struct duda_value *out)
{
    int e = look_up_name(r, frame, node->lookup, node->text, out);
    if (e != -ENOENT)
        return e ? report_error(r, node, e, "cannot be read") : 0;
    *out = duda_value_null();
    /* Sections are often optional, so their names may be unknown unless the options forbid that. The names of
     * global values are fixed: an unknown one is misspelled. */
    bool is_section = node->kind == DUDA_NODE_SECTION || node->kind == DUDA_NODE_INVERTED;
    bool is_optional = is_section && node->lookup != DUDA_LOOKUP_GLOBAL;
    if (is_optional && (!r->options->strict || r->options->allows_unknown_sections))
        return 0;
    return report_missing_name(r, node, "does not name a value here");
}

/* ---- Text ---- */

static void write_indent(struct mk_buf *out, const struct indent *indent)
{
    if (!indent)
        return;
    write_indent(out, indent->up);
    mk_buf_add(out, indent->text);
}

static void begin_output_line(struct rendering *r)
{
    if (r->at_line)
        write_indent(r->out, r->indent);
    r->at_line = false;
}

static void write_indented_text(struct rendering *r, mk_str text)
{
    while (text.len) {
        size_t end = mk_str_find(text, '\n');
        size_t len = end == MK_STR_NONE ? text.len : end + 1;
        begin_output_line(r);
        mk_buf_add(r->out, mk_str_first(text, len));
        r->at_line = end != MK_STR_NONE;
        text = mk_str_skip(text, len);
    }
}

static inline void write_text(struct rendering *r, mk_str text)
{
    if (r->indent)
        write_indented_text(r, text);
    else
        mk_buf_add(r->out, text);
}

enum { SCALAR_MAX = 64, FILTERED_MAX = 16 << 20 };

static void write_value(struct rendering *r, const struct duda_value *v, bool is_unescaped)
{
    char buf[SCALAR_MAX];
    struct mk_buf scalar = mk_buf_fixed(buf, sizeof buf);
    begin_output_line(r);
    if (is_unescaped || !r->escapes || v->kind == DUDA_VALUE_BYTES) /* base64 needs no escapes */
        duda_value_write(r->out, v);
    else if (v->kind == DUDA_VALUE_TEXT || v->kind == DUDA_VALUE_RAW)
        mk_html_escape(r->out, v->of.text);
    else {
        duda_value_write(&scalar, v);
        mk_html_escape(r->out, mk_buf_str(&scalar));
    }
}

/* ---- Filters ---- */

static bool has_default(const struct rendering *r, const struct duda_template_node *node)
{
    for (size_t i = 0; i < node->calls.n; i++)
        if (r->t->calls[node->calls.first + i].filter == DUDA_FILTER_DEFAULT)
            return true;
    return false;
}

/* Returns the buffer that does not hold the text of the value. A filter may leave the value unchanged, so the
 * buffers do not simply alternate. */
static struct mk_buf *free_scratch(const struct rendering *r, const struct duda_value *v)
{
    bool is_in_first = v->kind == DUDA_VALUE_TEXT && v->of.text.p == r->scratch[0].p;
    return &r->scratch[is_in_first];
}

static int render_filtered(struct rendering *r, const struct duda_template_node *node,
                           const struct frame *frame)
{
    struct duda_value v = duda_value_text(node->text);
    int e = 0;
    if (!node->is_literal && has_default(r, node) &&
        look_up_name(r, frame, node->lookup, node->text, &v) == -ENOENT)
        v = duda_value_null();
    else if (!node->is_literal)
        e = find_value(r, node, frame, &v);
    for (size_t i = 0; i < node->calls.n && !e; i++) {
        const struct duda_template_call *call = &r->t->calls[node->calls.first + i];
        struct mk_buf *room = free_scratch(r, &v);
        const char *problem = duda_template_filter_apply(call, &v, r->options, room);
        if (problem)
            e = report_error(r, node, -EINVAL, problem);
        r->out->failed |= room->failed;
    }
    if (!e)
        write_value(r, &v, node->kind == DUDA_NODE_FILTERED_UNESCAPED);
    return e;
}

/* ---- URLs of routes ---- */

static int find_param(const struct rendering *r, const struct duda_template_node *node,
                      const struct duda_template_param *param, const struct frame *frame,
                      struct duda_value *out)
{
    *out = duda_value_text(param->value);
    int e = param->is_literal ? 0 : look_up_name(r, frame, param->lookup, param->value, out);
    if (e == -ENOENT) {
        *out = duda_value_null();
        return report_missing_name(r, node, "has a parameter whose value is unknown here");
    }
    return e ? report_error(r, node, e, "has a parameter that cannot be read") : 0;
}

static int render_url(struct rendering *r, const struct duda_template_node *node, const struct frame *frame)
{
    struct duda_entry params[DUDA_TEMPLATE_PARAMS_MAX];
    struct mk_buf url = mk_buf_growing(FILTERED_MAX);
    int e = r->options->url_for ? 0 : report_error(r, node, -EINVAL, "names a route, but there are none");
    for (size_t i = 0; i < node->params.n && !e; i++) {
        const struct duda_template_param *param = &r->t->params[node->params.first + i];
        params[i].name = param->name;
        e = find_param(r, node, param, frame, &params[i].value);
    }
    if (!e && r->options->url_for(r->options->ctx, node->text, params, node->params.n, &url))
        e = report_missing_name(r, node, "has no URL with these parameters");
    struct duda_value v = duda_value_text(url.len ? mk_buf_str(&url) : MK_STR(""));
    if (!e)
        write_value(r, &v, node->kind == DUDA_NODE_URL_UNESCAPED);
    r->out->failed |= url.failed;
    mk_buf_free(&url);
    return e;
}

/* ---- Sections and partials ---- */

static int render_with_value(struct rendering *r, size_t from, size_t to, const struct frame *frame,
                             struct duda_value value)
{
    const struct frame inner = {.up = frame, .value = value};
    return render_nodes(r, from, to, &inner);
}

static int render_list(struct rendering *r, size_t from, size_t to, const struct frame *frame,
                       const struct duda_value *list)
{
    struct frame inner = {.up = frame, .n = list->n};
    int e = 0;
    for (size_t i = 0; i < list->n && !e && !r->out->failed; i++) {
        inner.value = duda_value_item(list, i);
        inner.index = i;
        e = render_nodes(r, from, to, &inner);
    }
    return e;
}

static int render_section(struct rendering *r, const struct duda_template_node *node, size_t at,
                          const struct frame *frame)
{
    struct duda_value v;
    int e = find_value(r, node, frame, &v);
    if (e)
        return e;
    bool is_true = duda_value_is_true(&v), is_first = is_true == (node->kind == DUDA_NODE_SECTION);
    if (!is_first && !node->else_at)
        return 0;
    size_t from = is_first ? at + 1 : node->else_at + 1,
           to = is_first && node->else_at ? node->else_at : node->end;
    if (!is_true || node->kind == DUDA_NODE_INVERTED)
        return render_nodes(r, from, to, frame);
    return duda_value_is_list(&v) ? render_list(r, from, to, frame, &v)
                                  : render_with_value(r, from, to, frame, v);
}

static const struct duda_template *find_template(const struct rendering *r, mk_str name)
{
    return r->options->find_partial ? r->options->find_partial(r->options->ctx, name) : NULL;
}

/* `overrides`: the blocks that replace those of the template. */
static int render_partial(struct rendering *r, const struct duda_template_node *node,
                          const struct overrides *overrides, const struct frame *frame)
{
    const struct duda_template *t = find_template(r, node->text);
    if (!t)
        return report_missing_name(r, node, "does not name a template");
    if (r->depth == DUDA_TEMPLATE_DEPTH_MAX)
        return report_error(r, node, -ELOOP, "is nested in too many templates");
    const struct indent indent = {.up = r->indent, .text = node->indent};
    struct rendering inner = *r;
    inner.t = t;
    inner.escapes |= t->escapes;
    inner.overrides = overrides;
    inner.depth++;
    inner.indent = node->alone && (node->indent.len || r->indent) ? &indent : NULL;
    inner.at_line = true;
    if (!node->alone) {
        write_text(r, node->indent); /* before a parent whose closing tag does not end its line */
        begin_output_line(r);
    }
    int e = render_nodes(&inner, 0, t->n, frame);
    r->at_line = node->alone;
    return e;
}

/* ---- Parents and blocks ---- */

/* Returns the index of the block with that name, at the top level of the nodes [from, to); `to`: none. */
static size_t find_block(const struct duda_template *t, size_t from, size_t to, mk_str name)
{
    for (size_t i = from; i < to; i++) {
        const struct duda_template_node *node = &t->nodes[i];
        if (node->kind == DUDA_NODE_BLOCK && mk_str_eq(node->text, name))
            return i;
        if (node->end)
            i = node->end - 1;
    }
    return to;
}

/* Returns whether the template, or one that it includes, has a block of that name. */
static bool has_block(const struct rendering *r, const struct duda_template *t, mk_str name, size_t depth)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct duda_template_node *node = &t->nodes[i];
        bool includes = node->kind == DUDA_NODE_PARTIAL || node->kind == DUDA_NODE_PARENT;
        const struct duda_template *other = includes && depth ? find_template(r, node->text) : NULL;
        if ((node->kind == DUDA_NODE_BLOCK && mk_str_eq(node->text, name)) ||
            (other && has_block(r, other, name, depth - 1)))
            return true;
    }
    return false;
}

enum { SEARCH_DEPTH = 4 };

/* Reports a block that its parent lacks: it would never be rendered, so its name is probably misspelled. */
static int check_blocks(const struct rendering *r, const struct overrides *o, mk_str parent)
{
    const struct duda_template *t = find_template(r, parent);
    int e = 0;
    for (size_t i = o->from; i < o->to && t && !e; i++) {
        const struct duda_template_node *node = &o->t->nodes[i];
        if (node->kind == DUDA_NODE_BLOCK && !has_block(r, t, node->text, SEARCH_DEPTH))
            e = report_missing_name(r, node, "does not name a block of the parent");
        if (node->end)
            i = node->end - 1;
    }
    return e;
}

static int render_parent(struct rendering *r, const struct duda_template_node *node, size_t at,
                         const struct frame *frame)
{
    const struct overrides blocks = {.up = r->overrides, .t = r->t, .from = at + 1, .to = node->end};
    int e = r->options->strict ? check_blocks(r, &blocks, node->text) : 0;
    return e ? e : render_partial(r, node, &blocks, frame);
}

/* The block of the most derived template applies. Blocks inside it can be replaced only by templates that
 * extend that one, so blocks cannot contain themselves. */
static int render_block(struct rendering *r, const struct duda_template_node *node, size_t at,
                        const struct frame *frame)
{
    const struct overrides *from = NULL;
    size_t found = 0;
    for (const struct overrides *o = r->overrides; o; o = o->up) {
        size_t i = find_block(o->t, o->from, o->to, node->text);
        if (i < o->to) {
            from = o;
            found = i;
        }
    }
    if (!from)
        return render_nodes(r, at + 1, node->end, frame);
    struct rendering inner = *r;
    inner.t = from->t;
    inner.escapes |= from->t->escapes;
    inner.overrides = from->up;
    if (++inner.depth > DUDA_TEMPLATE_DEPTH_MAX)
        return report_error(r, node, -ELOOP, "is nested in too many templates");
    int e = render_nodes(&inner, found + 1, inner.t->nodes[found].end, frame);
    r->at_line = inner.at_line;
    return e;
}

static int render_nodes(struct rendering *r, size_t from, size_t to, const struct frame *frame)
{
    int e = 0;
    for (size_t i = from; i < to && !e; i++) {
        const struct duda_template_node *node = &r->t->nodes[i];
        struct duda_value v;
        switch (node->kind) {
        case DUDA_NODE_TEXT:
            write_text(r, node->text);
            break;
        case DUDA_NODE_VALUE:
        case DUDA_NODE_UNESCAPED:
            e = find_value(r, node, frame, &v);
            if (!e)
                write_value(r, &v, node->kind == DUDA_NODE_UNESCAPED);
            break;
        case DUDA_NODE_SECTION:
        case DUDA_NODE_INVERTED:
            e = render_section(r, node, i, frame);
            i = node->end - 1;
            break;
        case DUDA_NODE_PARTIAL:
            e = render_partial(r, node, r->overrides, frame);
            break;
        case DUDA_NODE_FILTERED:
        case DUDA_NODE_FILTERED_UNESCAPED:
            e = render_filtered(r, node, frame);
            break;
        case DUDA_NODE_URL:
        case DUDA_NODE_URL_UNESCAPED:
            e = render_url(r, node, frame);
            break;
        case DUDA_NODE_PARENT:
            e = render_parent(r, node, i, frame);
            i = node->end - 1;
            break;
        case DUDA_NODE_BLOCK:
            e = render_block(r, node, i, frame);
            i = node->end - 1;
            break;
        case DUDA_NODE_ELSE:
            break;
        }
    }
    return e;
}

int duda_template_render_sized(const struct duda_template *t, const struct duda_value *value,
                               const struct duda_render_options *options, size_t options_size,
                               struct mk_buf *out, struct mk_buf *message)
{
    struct duda_render_options full;
    options = mk_sized_in(&full, sizeof full, options, options_size);
    static const struct duda_render_options lenient;
    const struct frame frame = {.up = NULL, .value = *value};
    struct mk_buf scratch[2] = {mk_buf_growing(FILTERED_MAX), mk_buf_growing(FILTERED_MAX)};
    struct rendering r = {.t = t,
                          .options = options ? options : &lenient,
                          .out = out,
                          .error_text = message,
                          .scratch = scratch,
                          .at_line = true,
                          .escapes = t->escapes};
    int e = render_nodes(&r, 0, t->n, &frame);
    mk_buf_free(&scratch[0]);
    mk_buf_free(&scratch[1]);
    return !e && out->failed ? -ENOMEM : e;
}
