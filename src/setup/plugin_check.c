/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/plugin_check.h"

#include <stdarg.h>

#include "base/mem.h"
#include "conf/field.h"
#include "os/proc.h"

bool mk_plugin_check_set_error(char message[MK_PLUGIN_OBJECT_ERROR_MAX], const char *fmt, ...)
{
    struct mk_buf text = mk_buf_fixed(message, MK_PLUGIN_OBJECT_ERROR_MAX - 1);
    va_list args;
    va_start(args, fmt);
    mk_buf_addv(&text, fmt, args);
    va_end(args);
    message[text.len] = '\0';
    return false;
}

/* ---- Validation ---- */

static bool is_plugin_name(const char *name)
{
    size_t n = 0;
    while (name[n] && (mk_char_is_digit(name[n]) || (name[n] >= 'a' && name[n] <= 'z') || name[n] == '-'))
        n++;
    return n > 0 && n < 64 && !name[n];
}

/* Is the key invalid? Such a key would make the parser write outside the settings, or use a missing alias
 * target or list of choices. */
static bool is_invalid_key(const struct mk_conf_table *t, const struct mk_conf_key *k)
{
    if (!k->name)
        return true;
    if (k->flags & MK_CONF_IGNORED)
        return false;
    const struct mk_conf_key *real =
        k->alias_of ? mk_conf_table_find(t, mk_str_from_c(k->alias_of), false) : k;
    return !real || real->alias_of || !mk_conf_field_has_valid_size(real) || real->size > t->size ||
           real->offset > t->size - real->size || (real->type == MK_CONF_ENUM && !real->choices);
}

const char *mk_plugin_check_build_hint(void)
{
    return mk_proc_executable_is_replaced()
               ? "; the program on disk is not the build that runs: restart the server"
               : "";
}

static bool check_key_table(const struct mk_conf_table *t, char message[MK_PLUGIN_OBJECT_ERROR_MAX])
{
    if (!t->section)
        return mk_plugin_check_set_error(message, "one of its sections has no name");
    for (size_t i = 0; i < t->n; i++)
        if (is_invalid_key(t, &t->keys[i]))
            return mk_plugin_check_set_error(
                message,
                "the key `%s` of its section [%s] is invalid: check its type and MK_CONF_AT, and "
                "the size of the section's struct",
                t->keys[i].name ? t->keys[i].name : "", t->section);
    return true;
}

/* Validates the sections, handlers and commands of the plugin, which the rest of the server trusts. */
static bool check_plugin_contents(const struct mk_plugin *p, char message[MK_PLUGIN_OBJECT_ERROR_MAX])
{
    for (const struct mk_conf_table *const *t = p->sections; t && *t; t++)
        if (!check_key_table(*t, message))
            return false;
    for (const struct mk_handler *const *h = p->handlers; h && *h; h++)
        if (!(*h)->name || !(*h)->handle)
            return mk_plugin_check_set_error(message, "one of its handlers has no name or no handle()");
    for (const struct mk_command *const *v = p->commands; v && *v; v++)
        if (!(*v)->name || !(*v)->run)
            return mk_plugin_check_set_error(message, "one of its commands has no name or no run()");
    return true;
}

/* Minimum size of a plugin's struct: the members before `load`, which every version of the struct has. */
enum { SMALLEST = offsetof(struct mk_plugin, load) };

bool mk_plugin_check(const struct mk_plugin *p, char message[MK_PLUGIN_OBJECT_ERROR_MAX])
{
    if (p->abi < MK_ABI_OLDEST || p->abi > MK_ABI)
        return mk_plugin_check_set_error(
            message, "it was built for ABI %u, but this server supports %u to %u: rebuild it%s", p->abi,
            MK_ABI_OLDEST, MK_ABI, mk_plugin_check_build_hint());
    if (p->size > sizeof *p)
        return mk_plugin_check_set_error(
            message, "it was built for a newer server: its struct mk_plugin has %zu bytes, this server's %zu",
            p->size, sizeof *p);
    if (p->size < SMALLEST)
        return mk_plugin_check_set_error(
            message, "its struct mk_plugin has only %zu bytes: begin it with MK_PLUGIN_HEAD", p->size);
    if (!p->name || !is_plugin_name(p->name))
        return mk_plugin_check_set_error(message,
                                         "its name `%s` must consist of lower-case letters, digits and `-`",
                                         p->name ? p->name : "");
    return check_plugin_contents(p, message);
}

bool mk_plugin_check_copy_to_full_size(struct mk_plugin_object *o, char message[MK_PLUGIN_OBJECT_ERROR_MAX])
{
    if (o->plugin->size == sizeof *o->plugin)
        return true;
    o->widened = mk_mem_zalloc(1, sizeof *o->widened);
    if (!o->widened)
        return mk_plugin_check_set_error(message, "%s", mk_err_text(-ENOMEM));
    memcpy(o->widened, o->plugin, o->plugin->size);
    o->plugin = o->widened;
    return true;
}
