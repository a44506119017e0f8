/* SPDX-License-Identifier: Apache-2.0 */
#include "hook_environment.h"

static bool is_variable_name(mk_str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!mk_char_is_alpha(name.p[i]) && name.p[i] != '_' && (i == 0 || !mk_char_is_digit(name.p[i])))
            return false;
    return name.len;
}

static bool has_control_character(mk_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (((unsigned char)text.p[i] < ' ' && text.p[i] != '\t') || text.p[i] == 0x7f)
            return true;
    return false;
}

/* Returns the problem of a line, or NULL. */
static const char *check_line(mk_str line, mk_str name)
{
    if (name.len == line.len || !is_variable_name(name))
        return "expected NAME=VALUE";
    if (has_control_character(line))
        return "the value has a control character";
    if (mk_str_starts(name, MK_STR("ACME_")))
        return "the server sets the variables ACME_...";
    return NULL;
}

static mk_str remove_quotes(mk_str value)
{
    char quote = value.len > 1 ? value.p[0] : '\0';
    bool is_quoted = (quote == '"' || quote == '\'') && value.p[value.len - 1] == quote;
    return is_quoted ? mk_str_of(value.p + 1, value.len - 2) : value;
}

bool acme_hook_environment_next(struct acme_hook_environment *e, mk_str *name, mk_str *value)
{
    while (!e->error && e->rest.len) {
        mk_str line = mk_str_trim(mk_str_cut(&e->rest, '\n'));
        e->line++;
        if (!line.len || line.p[0] == '#')
            continue;
        *value = line;
        *name = mk_str_cut(value, '=');
        e->error = check_line(line, *name);
        *value = remove_quotes(mk_str_trim(*value));
        return !e->error;
    }
    return false;
}
