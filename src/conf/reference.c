/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/reference.h"

#include "conf/value.h"

/* Escapes `|`, which would end the table cell. */
static void append_cell(mk_str text, struct mk_buf *out)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.p[i] == '|')
            mk_buf_add_char(out, '\\');
        mk_buf_add_char(out, text.p[i]);
    }
}

static void append_code(const char *text, struct mk_buf *out)
{
    mk_buf_add_char(out, '`');
    append_cell(mk_str_from_c(text), out);
    mk_buf_add_char(out, '`');
}

static void append_value_form(const struct mk_conf_key *k, struct mk_buf *out)
{
    char buf[512];
    struct mk_buf form = mk_buf_fixed(buf, sizeof buf);
    if (k->alias_of || (k->flags & MK_CONF_IGNORED)) {
        mk_buf_add(out, MK_STR("-"));
        return;
    }
    mk_conf_table_describe(k, &form);
    append_cell(mk_buf_str(&form), out);
    if (k->type == MK_CONF_SIZE && k->unit > 1) {
        mk_buf_add(out, MK_STR("; a bare number counts "));
        mk_conf_value_write_size(out, k->unit, 0);
    } else if (k->type == MK_CONF_TIME && k->unit && k->unit != 1000) {
        mk_buf_add(out, MK_STR("; a bare number counts "));
        mk_conf_value_write_time(out, k->unit);
    }
    if (k->flags & MK_CONF_MAY_BE_EMPTY)
        mk_buf_add(out, MK_STR("; may be empty"));
    if ((k->flags & MK_CONF_REPEATABLE) || k->type == MK_CONF_WORDS)
        mk_buf_add(out, MK_STR("; may repeat"));
}

static void append_default(const struct mk_conf_key *k, struct mk_buf *out)
{
    if (k->flags & MK_CONF_REQUIRED)
        mk_buf_add(out, MK_STR("required"));
    else if (k->default_value && *k->default_value && !k->alias_of)
        append_code(k->default_value, out);
    else
        mk_buf_add(out, MK_STR("-"));
}

static void append_meaning(const struct mk_conf_key *k, struct mk_buf *out)
{
    if (k->flags & MK_CONF_IGNORED)
        mk_buf_add(out, MK_STR("No longer has an effect. "));
    else if (k->flags & MK_CONF_DEPRECATED)
        mk_buf_add(out, MK_STR("Deprecated. "));
    if (k->alias_of) {
        mk_buf_add(out, k->flags & MK_CONF_IGNORED ? MK_STR("Use ") : MK_STR("Another name of "));
        append_code(k->alias_of, out);
        mk_buf_add(out, k->help ? MK_STR(". ") : MK_STR("."));
    }
    append_cell(mk_str_from_c(k->help), out);
}

static void append_row(const struct mk_conf_key *k, struct mk_buf *out)
{
    mk_buf_add(out, MK_STR("| "));
    append_code(k->name, out);
    mk_buf_add(out, MK_STR(" | "));
    append_value_form(k, out);
    mk_buf_add(out, MK_STR(" | "));
    append_default(k, out);
    mk_buf_add(out, MK_STR(" | "));
    append_meaning(k, out);
    mk_buf_add(out, MK_STR(" |\n"));
}

void mk_conf_reference_print(const struct mk_conf_table *table, struct mk_buf *out)
{
    mk_buf_addf(out, "## [%s]\n\n", table->section);
    if (table->help)
        mk_buf_addf(out, "%s\n\n", table->help);
    if (table->repeatable)
        mk_buf_add(out, MK_STR("The section may repeat.\n\n"));
    if (table->entry_syntax) {
        mk_buf_addf(out, "Entries: `%s`\n\n", table->entry_syntax);
        if (table->entry_help)
            mk_buf_addf(out, "%s\n\n", table->entry_help);
    }
    if (table->n)
        mk_buf_add(out, MK_STR("| Key | Value | Default | Meaning |\n|---|---|---|---|\n"));
    for (size_t i = 0; i < table->n; i++)
        append_row(&table->keys[i], out);
    if (table->n)
        mk_buf_add_char(out, '\n');
}
