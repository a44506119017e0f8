/* SPDX-License-Identifier: Apache-2.0 */
/* Renders nodes with values to text. */
#include <errno.h>
#include <monkey/sized.h>
#include <monkey/text.h>

#include "text/template.h"

/* Values in which names are looked up, from the innermost outwards. */
struct frame {
    const struct frame *up;
    struct duda_value value;
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
    struct mk_buf *out, *error_text;
    size_t depth;
    bool at_line; /* the next text starts a line */
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

/* A missing name is an error or, without `strict`, renders as empty text and is passed to on_missing(). */
static int report_missing_name(const struct rendering *r, const struct duda_template_node *node,
                               const char *problem)
{
    char buf[512];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    struct rendering telling = *r;
    if (r->options->strict)
        return report_error(r, node, -ENOENT, problem);
    if (!r->options->on_missing)
        return 0;
    telling.error_text = &text;
    (void)report_error(&telling, node, 0, problem);
    r->options->on_missing(r->options->ctx, mk_buf_str(&text));
    return 0;
}

static bool look_up_name(const struct frame *frame, mk_str name, struct duda_value *out)
{
    if (mk_str_eq(name, MK_STR("."))) {
        *out = frame->value;
        return true;
    }
    mk_str part = mk_str_cut(&name, '.');
    while (frame && !duda_value_member(&frame->value, part, out))
        frame = frame->up;
    if (!frame)
        return false;
    while (name.p) { /* that value must contain the rest of the name */
        struct duda_value inside = *out;
        if (!duda_value_member(&inside, mk_str_cut(&name, '.'), out))
            return false;
    }
    return true;
}

static int find_value(struct rendering *r, const struct duda_template_node *node, const struct frame *frame,
                      struct duda_value *out)
{
    if (look_up_name(frame, node->text, out))
        return 0;
    *out = duda_value_null();
    /* The name of a section may be unknown. */
    bool is_section = node->kind == DUDA_NODE_SECTION || node->kind == DUDA_NODE_INVERTED;
    return is_section && !r->options->strict ? 0 : report_missing_name(r, node, "does not name a value here");
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

static void write_text(struct rendering *r, mk_str text)
{
    if (!r->indent) {
        mk_buf_add(r->out, text);
        return;
    }
    while (text.len) {
        size_t end = mk_str_find(text, '\n');
        size_t len = end == MK_STR_NONE ? text.len : end + 1;
        begin_output_line(r);
        mk_buf_add(r->out, mk_str_first(text, len));
        r->at_line = end != MK_STR_NONE;
        text = mk_str_skip(text, len);
    }
}

enum { SCALAR_MAX = 64 };

static void write_value(struct rendering *r, const struct duda_value *v, bool plain)
{
    char buf[SCALAR_MAX];
    struct mk_buf scalar = mk_buf_fixed(buf, sizeof buf);
    begin_output_line(r);
    if (plain)
        duda_value_write(r->out, v);
    else if (v->kind == DUDA_VALUE_TEXT || v->kind == DUDA_VALUE_RAW)
        mk_html_escape(r->out, v->of.text);
    else {
        duda_value_write(&scalar, v);
        mk_html_escape(r->out, mk_buf_str(&scalar));
    }
}

/* ---- Sections and partials ---- */

static int render_with_value(struct rendering *r, const struct duda_template_node *node, size_t at,
                             const struct frame *frame, struct duda_value value)
{
    const struct frame inner = {.up = frame, .value = value};
    return render_nodes(r, at + 1, node->end, &inner);
}

static int render_section(struct rendering *r, const struct duda_template_node *node, size_t at,
                          const struct frame *frame)
{
    struct duda_value v;
    int e = find_value(r, node, frame, &v);
    if (e)
        return e;
    bool is_true = duda_value_is_true(&v);
    if (node->kind == DUDA_NODE_INVERTED)
        return is_true ? 0 : render_nodes(r, at + 1, node->end, frame);
    if (!is_true)
        return 0;
    if (!duda_value_is_list(&v))
        return render_with_value(r, node, at, frame, v);
    for (size_t i = 0; i < v.n && !e && !r->out->failed; i++)
        e = render_with_value(r, node, at, frame, duda_value_item(&v, i));
    return e;
}

static int render_partial(struct rendering *r, const struct duda_template_node *node,
                          const struct frame *frame)
{
    const struct duda_template *t =
        r->options->find_partial ? r->options->find_partial(r->options->ctx, node->text) : NULL;
    if (!t)
        return report_missing_name(r, node, "does not name a template");
    if (r->depth == DUDA_TEMPLATE_DEPTH_MAX)
        return report_error(r, node, -ELOOP, "is nested in too many templates");
    const struct indent indent = {.up = r->indent, .text = node->indent};
    struct rendering inner = *r;
    inner.t = t;
    inner.depth++;
    inner.indent = node->alone && (node->indent.len || r->indent) ? &indent : NULL;
    inner.at_line = true;
    if (!node->alone)
        begin_output_line(r);
    int e = render_nodes(&inner, 0, t->n, frame);
    r->at_line = node->alone;
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
            e = render_partial(r, node, frame);
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
    struct rendering r = {
        .t = t, .options = options ? options : &lenient, .out = out, .error_text = message, .at_line = true};
    int e = render_nodes(&r, 0, t->n, &frame);
    return !e && out->failed ? -ENOMEM : e;
}
