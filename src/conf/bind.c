/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/bind.h"

#include "base/assert.h"
#include "conf/field.h"
#include "conf/other_keys.h"
#include "conf/other_syntax.h"
#include "conf/suggest.h"

struct binding {
    struct mk_conf_ctx ctx;
    const struct mk_conf_section *section;
    const struct mk_conf_entry **seen; /* for each key of the table, the entry that set the key first */
};

static mk_str section_name(const struct binding *b)
{
    return mk_str_from_c(b->ctx.table->section);
}

static void set_defaults(struct binding *b)
{
    const struct mk_conf_table *t = b->ctx.table;
    b->ctx.entry = NULL;
    for (size_t i = 0; i < t->n; i++) {
        b->ctx.key = &t->keys[i];
        if (!b->ctx.key->default_value || b->ctx.key->alias_of || (b->ctx.key->flags & MK_CONF_IGNORED))
            continue;
        mk_conf_field_clear(b->ctx.key, b->ctx.out);
        mk_conf_field_set(&b->ctx, mk_str_from_c(b->ctx.key->default_value));
    }
}

static mk_str suggest_key(const struct mk_conf_table *t, mk_str name)
{
    struct mk_conf_suggest near = mk_conf_suggest_for(name);
    for (size_t i = 0; i < t->n; i++)
        if (!(t->keys[i].flags & (MK_CONF_IGNORED | MK_CONF_DEPRECATED)))
            mk_conf_suggest_try(&near, mk_str_from_c(t->keys[i].name));
    const struct mk_conf_key *best = near.best.p ? mk_conf_table_find(t, near.best, true) : NULL;
    return best ? mk_str_from_c(best->name) : MK_STR_NULL;
}

static void report_unknown_key(struct binding *b, const struct mk_conf_entry *e)
{
    size_t equals = mk_str_find(e->key, '=');
    mk_conf_report_error(b->ctx.report, &e->at, "unknown key `%.*s` in [%.*s]", MK_CONF_REPORT_ARG(e->key),
                         MK_STR_ARG(section_name(b)));
    if (!mk_conf_report_wants_hint(b->ctx.report))
        return;
    const char *equivalent = mk_conf_other_keys_hint(e->key);
    if (equivalent)
        mk_conf_report_hint(b->ctx.report, "%s", equivalent);
    else if (equals != MK_STR_NONE && suggest_key(b->ctx.table, mk_str_first(e->key, equals)).p)
        mk_conf_report_hint(b->ctx.report, "key and value are separated by blanks: write `Key value`");
    else
        mk_conf_report_suggest(b->ctx.report, suggest_key(b->ctx.table, e->key));
}

static void report_duplicate_key(struct binding *b, const struct mk_conf_entry *e,
                                 const struct mk_conf_source_pos *first)
{
    if (mk_str_eq(e->at.file, first->file))
        mk_conf_report_error(b->ctx.report, &e->at, "`%.*s` is already set on line %u",
                             MK_CONF_REPORT_ARG(e->key), first->line);
    else
        mk_conf_report_error(b->ctx.report, &e->at, "`%.*s` is already set in %.*s:%u",
                             MK_CONF_REPORT_ARG(e->key), MK_STR_ARG(first->file), first->line);
}

static void warn_deprecated_key(struct binding *b, const struct mk_conf_entry *e, const struct mk_conf_key *k)
{
    struct mk_conf_report *r = b->ctx.report;
    if (k->flags & MK_CONF_IGNORED)
        mk_conf_report_warn(r, &e->at, "`%s` no longer has an effect", k->name);
    else if (k->flags & MK_CONF_DEPRECATED)
        mk_conf_report_warn(r, &e->at, "`%s` is deprecated", k->name);
    else
        return;
    if (k->alias_of)
        mk_conf_report_hint(r, "use `%s`", k->alias_of);
}

static void report_missing_value(struct binding *b, const struct mk_conf_entry *e)
{
    char buf[512];
    struct mk_buf form = mk_buf_fixed(buf, sizeof buf);
    if (b->ctx.key)
        mk_conf_table_describe(b->ctx.key, &form);
    else
        mk_buf_add(&form, mk_str_from_c(b->ctx.table->entry_syntax ? b->ctx.table->entry_syntax : "a value"));
    mk_conf_ctx_error(&b->ctx, e->value, "`%.*s` has no value: expected %.*s", MK_CONF_REPORT_ARG(e->key),
                      MK_STR_ARG(mk_buf_str(&form)));
}

static void bind_free_entry(struct binding *b, const struct mk_conf_entry *e)
{
    b->ctx.key = NULL;
    if (!b->ctx.table->entry)
        report_unknown_key(b, e);
    else if (e->broken)
        return;
    else if (e->value.len == 0)
        report_missing_value(b, e);
    else
        b->ctx.table->entry(&b->ctx);
}

/* Keys for text accept any value, so a trailing comment or `;` causes only a warning. */
static void warn_trailing_comment(struct binding *b, const struct mk_conf_entry *e)
{
    mk_str tail = mk_conf_other_syntax_tail(e->value);
    if (tail.p)
        mk_conf_ctx_warn(&b->ctx, tail, "`%.*s` is part of the value", MK_CONF_REPORT_ARG(tail));
}

static void bind_key(struct binding *b, const struct mk_conf_entry *e, const struct mk_conf_key *k)
{
    const struct mk_conf_entry **first = &b->seen[k - b->ctx.table->keys];
    b->ctx.key = k;
    if (!*first)
        mk_conf_field_clear(k, b->ctx.out);
    else if (k->type != MK_CONF_WORDS && !(k->flags & MK_CONF_REPEATABLE)) {
        report_duplicate_key(b, e, &(*first)->at);
        return;
    }
    if (!*first)
        *first = e;
    if (e->broken)
        return;
    if (e->value.len == 0 && !(k->flags & MK_CONF_MAY_BE_EMPTY)) {
        report_missing_value(b, e);
        return;
    }
    size_t n_errors = b->ctx.report->n_errors;
    mk_conf_field_set(&b->ctx, e->value);
    if (b->ctx.report->n_errors == n_errors && (k->type == MK_CONF_TEXT || k->type == MK_CONF_WORDS))
        warn_trailing_comment(b, e);
}

static void bind_entry(struct binding *b, const struct mk_conf_entry *e)
{
    const struct mk_conf_table *t = b->ctx.table;
    const struct mk_conf_key *k = mk_conf_table_find(t, e->key, false);
    b->ctx.entry = e;
    if (!k) {
        bind_free_entry(b, e);
        return;
    }
    warn_deprecated_key(b, e, k);
    if (!(k->flags & MK_CONF_IGNORED))
        bind_key(b, e, mk_conf_table_find(t, e->key, true));
}

static void check_required(struct binding *b)
{
    const struct mk_conf_table *t = b->ctx.table;
    struct mk_conf_source_pos nowhere = {.file = MK_STR("")};
    for (size_t i = 0; i < t->n; i++)
        if ((t->keys[i].flags & MK_CONF_REQUIRED) && !b->seen[i])
            mk_conf_report_error(b->ctx.report, b->section ? &b->section->at : &nowhere,
                                 "[%s] must have `%s`", t->section, t->keys[i].name);
}

static mk_err bind_section(struct binding *b, bool complete)
{
    struct mk_conf_report *report = b->ctx.report;
    size_t n_errors = report->n_errors;
    b->seen = mk_arena_zalloc(b->ctx.arena, b->ctx.table->n, sizeof(struct mk_conf_entry *));
    if (complete)
        set_defaults(b);
    if (!b->seen)
        return -ENOMEM;
    for (const struct mk_conf_entry *e = b->section ? b->section->first : NULL;
         e && !mk_conf_report_out_of_memory(report); e = e->next)
        bind_entry(b, e);
    if (mk_conf_report_out_of_memory(report))
        return -ENOMEM;
    if (complete)
        check_required(b);
    return report->n_errors > n_errors ? -EINVAL : 0;
}

mk_err mk_conf_bind(const struct mk_conf_table *table, const struct mk_conf_section *section, void *out,
                    struct mk_arena *arena, struct mk_conf_report *report)
{
    struct binding b = {.ctx = {.arena = arena, .report = report, .table = table, .out = out},
                        .section = section};
    return bind_section(&b, true);
}

mk_err mk_conf_bind_without_defaults(const struct mk_conf_table *table, const struct mk_conf_section *section,
                                     void *out, struct mk_arena *arena, struct mk_conf_report *report)
{
    struct binding b = {.ctx = {.arena = arena, .report = report, .table = table, .out = out},
                        .section = section};
    return bind_section(&b, false);
}
