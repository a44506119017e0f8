/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/vars.h"

#include "conf/suggest.h"
#include "conf/words.h"

struct mk_conf_var {
    struct mk_conf_var *next;
    mk_str name, value;
    const struct mk_conf_env_value *env_values; /* that the value contains */
};

/* A value that is being expanded. */
struct expansion {
    struct mk_conf_vars *vars;
    const struct mk_conf_source_pos *at;
    mk_str text;
    struct mk_buf out;
    bool ok;
};

bool mk_conf_vars_is_name(mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!mk_char_is_alpha(s.p[i]) && s.p[i] != '_' && (i == 0 || !mk_char_is_digit(s.p[i])))
            return false;
    return s.len > 0;
}

static struct mk_conf_var *find_var(const struct mk_conf_vars *v, mk_str name)
{
    struct mk_conf_var *var = v->first;
    while (var && !mk_str_eq(var->name, name))
        var = var->next;
    return var;
}

void mk_conf_vars_set(struct mk_conf_vars *v, mk_str name, mk_str value)
{
    struct mk_conf_var *var = find_var(v, name);
    if (!var) {
        var = mk_arena_alloc(v->arena, sizeof *var);
        if (!var)
            return;
        *var = (struct mk_conf_var){.next = v->first, .name = name};
        v->first = var;
    }
    var->value = value;
    var->env_values = v->set_values;
    v->set_values = NULL;
}

/* Returns the list for the value. An @SET keeps its own list until a key uses the variable. */
static const struct mk_conf_env_value **find_env_values(struct mk_conf_vars *v, mk_str value)
{
    size_t i = 0;
    while (mk_conf_words_is_syntax(value.p[i]))
        i++;
    return v->key.len ? &v->env_values.by_byte[(unsigned char)value.p[i] % MK_LEN(v->env_values.by_byte)]
                      : &v->set_values;
}

static void remember_env_value(struct mk_conf_vars *v, mk_str name, mk_str value)
{
    size_t n_bytes = 0;
    for (size_t i = 0; i < value.len; i++)
        n_bytes += !mk_conf_words_is_syntax(value.p[i]);
    if (!n_bytes)
        return;
    const struct mk_conf_env_value **list = find_env_values(v, value), *e = *list;
    while (e && !(mk_str_eq(e->name, name) && mk_str_eq_nocase(e->key, v->key) && mk_str_eq(e->value, value)))
        e = e->next;
    struct mk_conf_env_value *added = e ? NULL : mk_arena_alloc(v->arena, sizeof *added);
    if (!added)
        return;
    *added = (struct mk_conf_env_value){
        .next = *list, .key = v->key, .name = name, .value = value, .n_bytes = n_bytes};
    *list = added;
}

/* Returns the value of the variable; absent if it is unset. */
static mk_str var_value(struct mk_conf_vars *v, mk_str name)
{
    const struct mk_conf_var *var = find_var(v, name);
    if (var) {
        for (const struct mk_conf_env_value *e = var->env_values; e; e = e->next)
            remember_env_value(v, e->name, e->value);
        return var->value;
    }
    mk_str value = v->io->env ? v->io->env(v->io->ctx, name) : MK_STR_NULL;
    remember_env_value(v, name, value);
    return value;
}

static mk_str suggest_var(const struct mk_conf_vars *v, mk_str name)
{
    struct mk_conf_suggest near = mk_conf_suggest_for(name);
    for (const struct mk_conf_var *var = v->first; var; var = var->next)
        mk_conf_suggest_try(&near, var->name);
    return near.best;
}

static MK_PRINTF(3, 4) void report_error_at(struct expansion *x, mk_str part, const char *fmt, ...)
{
    struct mk_conf_source_pos at = *x->at;
    at.column += (unsigned)(part.p - x->text.p);
    va_list args;
    va_start(args, fmt);
    mk_conf_report_addv(x->vars->report, MK_CONF_ERROR, &at, fmt, args);
    va_end(args);
    x->ok = false;
}

static void report_unset_var(struct expansion *x, mk_str reference, mk_str name)
{
    report_error_at(x, reference, "`%.*s` is not set", MK_CONF_REPORT_ARG(name));
    if (!mk_conf_report_wants_hint(x->vars->report))
        return;
    mk_conf_report_hint(x->vars->report,
                        "set it above with @SET or in the environment, or write ${%.*s:-default}",
                        MK_CONF_REPORT_ARG(name));
    mk_conf_report_suggest(x->vars->report, suggest_var(x->vars, name));
}

/* Is the text free of control characters? The lexer has not checked values from the environment. */
static bool has_no_controls(mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (((unsigned char)s.p[i] < 0x20 && s.p[i] != '\t') || s.p[i] == 0x7f)
            return false;
    return true;
}

/* `inner` is the text between ${ and }. */
static void expand_reference(struct expansion *x, mk_str reference, mk_str inner)
{
    size_t colon = mk_str_find(inner, ':');
    bool has_default = colon != MK_STR_NONE && colon + 1 < inner.len && inner.p[colon + 1] == '-';
    mk_str name = has_default ? mk_str_first(inner, colon) : inner;
    mk_str otherwise = has_default ? mk_str_skip(inner, colon + 2) : MK_STR_NULL;
    if (!mk_conf_vars_is_name(name)) {
        report_error_at(x, reference, "`%.*s` is not a name: expected letters, digits and `_`",
                        MK_CONF_REPORT_ARG(name));
        mk_conf_report_hint(x->vars->report, "write $${ for a plain ${");
        return;
    }
    for (size_t i = 0; i + 1 < otherwise.len; i++)
        if (otherwise.p[i] == '$' && otherwise.p[i + 1] == '{')
            report_error_at(x, mk_str_skip(otherwise, i), "a default must not contain another ${");
    mk_str value = var_value(x->vars, name);
    if (has_default && value.len == 0)
        value = otherwise;
    if (!value.p)
        report_unset_var(x, reference, name);
    else if (!has_no_controls(value))
        report_error_at(x, reference, "the value of `%.*s` contains a control byte",
                        MK_CONF_REPORT_ARG(name));
    else
        mk_buf_add(&x->out, value);
}

static bool starts_at(mk_str s, size_t i, mk_str what)
{
    return mk_str_starts(mk_str_skip(s, i), what);
}

/* Handles one byte or one reference at i; returns the position after it. */
static size_t expand_at(struct expansion *x, size_t i)
{
    if (starts_at(x->text, i, MK_STR("$${"))) {
        mk_buf_add(&x->out, MK_STR("${"));
        return i + 3;
    }
    if (!starts_at(x->text, i, MK_STR("${"))) {
        mk_buf_add_char(&x->out, x->text.p[i]);
        return i + 1;
    }
    mk_str reference = mk_str_skip(x->text, i), inner = mk_str_skip(reference, 2);
    size_t close = mk_str_find(inner, '}');
    if (close == MK_STR_NONE) {
        report_error_at(x, reference, "`${` must be closed by `}`");
        mk_conf_report_hint(x->vars->report, "write $${ for a plain ${");
        return x->text.len;
    }
    expand_reference(x, reference, mk_str_first(inner, close));
    return i + 2 + close + 1;
}

static bool has_reference(mk_str s)
{
    for (size_t i = 0; i + 1 < s.len; i++)
        if (s.p[i] == '$' && s.p[i + 1] == '{')
            return true;
    return false;
}

/* Not inlined: most values have no reference, and do not need the large stack frame. */
static MK_NOINLINE bool expand_references(struct mk_conf_vars *v, mk_str text,
                                          const struct mk_conf_source_pos *at, mk_str *out)
{
    char buf[MK_CONF_LINE_MAX];
    struct expansion x = {
        .vars = v, .at = at, .text = text, .out = mk_buf_fixed(buf, sizeof buf), .ok = true};
    for (size_t i = 0; i < text.len;)
        i = expand_at(&x, i);
    if (x.out.failed)
        report_error_at(&x, text, "the value has more than %d bytes once its references are replaced",
                        MK_CONF_LINE_MAX);
    mk_str done = mk_arena_copy(v->arena, mk_str_trim(mk_buf_str(&x.out)));
    if (done.p)
        *out = done;
    return x.ok && done.p;
}

bool mk_conf_vars_expand(struct mk_conf_vars *v, mk_str text, const struct mk_conf_source_pos *at,
                         mk_str *out)
{
    *out = text;
    return !has_reference(text) || expand_references(v, text, at, out);
}

void mk_conf_vars_escape(mk_str text, struct mk_buf *out)
{
    for (size_t i = 0; i < text.len; i++) {
        if (starts_at(text, i, MK_STR("${")))
            mk_buf_add_char(out, '$');
        mk_buf_add_char(out, text.p[i]);
    }
}
