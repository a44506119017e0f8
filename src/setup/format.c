/* SPDX-License-Identifier: Apache-2.0 */
/* Format strings with variables: parsed with the configuration, expanded for each request. */
#include <monkey/format.h>

#include "base/compiler.h"
#include "conf/suggest.h"
#include "conf/table.h"

enum { PRINTED_MAX = 16 * 1024 };

/* Literal text or a variable. */
struct format_piece {
    struct format_piece *next;
    mk_str text;
    bool is_name;
};

struct mk_format {
    struct format_piece *first;
};

struct format_parser {
    const struct mk_conf_ctx *ctx;
    struct format_piece **end;
};

static bool append_piece(struct format_parser *r, mk_str text, bool is_name)
{
    if (text.len == 0)
        return true;
    struct format_piece *p = mk_conf_ctx_alloc(r->ctx, sizeof *p);
    if (!p)
        return false;
    *p = (struct format_piece){.text = text, .is_name = is_name};
    *r->end = p;
    r->end = &p->next;
    return true;
}

static bool is_name_char(char c)
{
    return mk_char_is_alpha(c) || mk_char_is_digit(c) || c == '_';
}

static bool check_variable_name(struct format_parser *r, mk_str name)
{
    struct mk_conf_suggest near = mk_conf_suggest_for(name);
    for (size_t i = 0; mk_variable_name(i); i++) {
        if (mk_str_eq(name, mk_str_from_c(mk_variable_name(i))))
            return true;
        mk_conf_suggest_try(&near, mk_str_from_c(mk_variable_name(i)));
    }
    mk_conf_ctx_error(r->ctx, name, "there is no variable `$%.*s`", MK_STR_ARG(mk_str_first(name, 64)));
    if (near.best.p)
        mk_conf_ctx_hint(r->ctx, "did you mean `$%.*s`?", MK_STR_ARG(near.best));
    else
        mk_conf_ctx_hint(r->ctx, "write `$$` for a dollar");
    return false;
}

/* Parses the text after a `$`: NAME, {NAME} or another `$`. */
static bool parse_variable(struct format_parser *r, mk_str *rest)
{
    if (mk_str_starts(*rest, MK_STR("$"))) {
        bool ok = append_piece(r, mk_str_first(*rest, 1), false);
        *rest = mk_str_skip(*rest, 1);
        return ok;
    }
    bool is_braced = mk_str_starts(*rest, MK_STR("{"));
    mk_str name = mk_str_skip(*rest, is_braced);
    size_t len = 0;
    while (len < name.len && is_name_char(name.p[len]))
        len++;
    *rest = mk_str_skip(name, len + is_braced);
    if (len == 0 || (is_braced && (len == name.len || name.p[len] != '}'))) {
        mk_conf_ctx_error(r->ctx, mk_str_first(name, 1), "expected the name of a variable after `$`");
        mk_conf_ctx_hint(r->ctx, "write `$$` for a dollar");
        return false;
    }
    name = mk_str_first(name, len);
    return check_variable_name(r, name) && append_piece(r, name, true);
}

const struct mk_format *mk_format_parse(const struct mk_conf_ctx *ctx, mk_str text)
{
    struct mk_format *t = mk_conf_ctx_alloc(ctx, sizeof *t);
    if (!t)
        return NULL;
    struct format_parser r = {.ctx = ctx, .end = &t->first};
    while (text.len) {
        size_t dollar = mk_str_find(text, '$');
        if (!append_piece(&r, mk_str_first(text, dollar), false))
            return NULL;
        if (dollar == MK_STR_NONE)
            break;
        text = mk_str_skip(text, dollar + 1);
        if (!parse_variable(&r, &text))
            return NULL;
    }
    return t;
}

static void expand_pieces(const struct mk_format *t, const struct mk_request *r, struct mk_buf *out)
{
    for (const struct format_piece *p = t->first; p; p = p->next)
        if (!p->is_name || !mk_variable_print(p->text, r, out))
            mk_buf_add(out, p->text);
}

/* Tries buffers of growing size. Measuring the length first would double the cost, and typical text fits into
 * the first buffer. */
mk_str mk_format_expand(const struct mk_format *t, struct mk_request *r)
{
    for (size_t cap = 256; cap <= PRINTED_MAX; cap *= 8) {
        char *buf = mk_request_alloc(r, cap);
        if (!buf)
            break;
        struct mk_buf out = mk_buf_fixed(buf, cap);
        expand_pieces(t, r, &out);
        if (!out.failed)
            return mk_buf_str(&out);
    }
    return (mk_str){NULL, 0};
}
