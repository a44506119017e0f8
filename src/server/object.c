/* SPDX-License-Identifier: Apache-2.0 */
#include "server/object.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/field.h"
#include "os/place.h"
#include "os/trial.h"
#include "server/builtin.h"

/* Whoever links the program says what is built in; tests of layers link nobody who does. */
#pragma weak mk_builtin_plugins

static const struct mk_plugin *const *builtins(void)
{
    static const struct mk_plugin *const none[] = {NULL};
    const struct mk_plugin *const *all = mk_builtin_plugins;
    return all ? all : none;
}

static bool fail(char why[MK_OBJECT_WHY], const char *fmt, ...) MK_PRINTF(2, 3);

static bool fail(char why[MK_OBJECT_WHY], const char *fmt, ...)
{
    struct mk_buf text = mk_buf_fixed(why, MK_OBJECT_WHY - 1);
    va_list args;
    va_start(args, fmt);
    mk_buf_addv(&text, fmt, args);
    va_end(args);
    why[text.len] = '\0';
    return false;
}

/* ---- Is it one of ours? ---- */

static bool is_name(const char *name)
{
    size_t n = 0;
    while (name[n] && (mk_char_is_digit(name[n]) || (name[n] >= 'a' && name[n] <= 'z') || name[n] == '-'))
        n++;
    return n > 0 && n < 64 && !name[n];
}

/* What reads it would write elsewhere, or ask somebody who is not there. */
static bool is_odd(const struct mk_conf_table *t, const struct mk_conf_key *k)
{
    if (!k->name)
        return true;
    if (k->flags & MK_CONF_IGNORED)
        return false;
    const struct mk_conf_key *real =
        k->alias_of ? mk_conf_table_find(t, mk_str_from_c(k->alias_of), false) : k;
    return !real || real->alias_of || !mk_conf_field_fits(real) || real->size > t->size ||
           real->offset > t->size - real->size || (real->type == MK_CONF_ENUM && !real->choices);
}

static bool check_table(const struct mk_conf_table *t, char why[MK_OBJECT_WHY])
{
    if (!t->section)
        return fail(why, "one of its sections has no name");
    for (size_t i = 0; i < t->n; i++)
        if (is_odd(t, &t->keys[i]))
            return fail(why,
                        "the key `%s` of its section [%s] is not right: look at its type and MK_CONF_AT, and "
                        "at the size of the section's struct",
                        t->keys[i].name ? t->keys[i].name : "", t->section);
    return true;
}

/* What it brings is used without another look. */
static bool check_contents(const struct mk_plugin *p, char why[MK_OBJECT_WHY])
{
    for (const struct mk_conf_table *const *t = p->sections; t && *t; t++)
        if (!check_table(*t, why))
            return false;
    for (const struct mk_handler *const *h = p->handlers; h && *h; h++)
        if (!(*h)->name || !(*h)->handle)
            return fail(why, "one of its handlers lacks its name or its handle()");
    for (const struct mk_verb *const *v = p->verbs; v && *v; v++)
        if (!(*v)->name || !(*v)->run)
            return fail(why, "one of its verbs lacks its name or its run()");
    return true;
}

static bool check(const struct mk_plugin *p, char why[MK_OBJECT_WHY])
{
    if (p->abi != MK_ABI)
        return fail(why, "it was built for ABI %u, this server speaks %u: build it anew", p->abi, MK_ABI);
    if (p->size != sizeof *p)
        return fail(why, "its struct mk_plugin has %zu bytes, this server's %zu: build it anew", p->size,
                    sizeof *p);
    if (!p->name || !is_name(p->name))
        return fail(why, "its name is not made of lower-case letters, digits and `-`");
    return check_contents(p, why);
}

/* ---- Files ---- */

static bool fill(char path[PATH_MAX], const char *fmt, ...) MK_PRINTF(2, 3);

static bool fill(char path[PATH_MAX], const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(path, PATH_MAX, fmt, args);
    va_end(args);
    return len > 0 && len < PATH_MAX;
}

static const struct mk_plugin *find_symbol(void *handle)
{
    return dlsym(handle, "mk_plugin");
}

enum { TRIAL_S = 10 };

static void try_out(void *ctx)
{
    char why[MK_OBJECT_WHY];
    void *handle = dlopen(ctx, RTLD_NOW | RTLD_LOCAL);
    const struct mk_plugin *p = handle ? find_symbol(handle) : NULL;
    if (p)
        (void)!check(p, why); /* what is wrong the caller finds, too, if it only lives */
}

/* What is broken deeply enough crashes whoever opens it. */
static bool survives(char *path, char why[MK_OBJECT_WHY])
{
    int e = mk_trial_run(try_out, path, TRIAL_S);
    if (e > 0)
        return fail(why, "it is broken: loading it ends in signal %d", e);
    if (e == -ECANCELED)
        return fail(why, "it is broken: loading it ends the program");
    return e ? fail(why, "no process to try it out: %s", mk_err_text(e)) : true;
}

static bool open_file(struct mk_object *o, char why[MK_OBJECT_WHY])
{
    struct stat st;
    if (stat(o->path, &st) < 0)
        return fail(why, "%s", mk_err_text(mk_err_last()));
    if (!S_ISREG(st.st_mode))
        return fail(why, "it is not a file");
    if (!survives(o->path, why))
        return false;
    o->handle = dlopen(o->path, RTLD_NOW | RTLD_LOCAL);
    if (!o->handle) {
        const char *text = dlerror();
        return fail(why, "%s", text ? text : "it cannot be loaded");
    }
    o->plugin = find_symbol(o->handle);
    bool ok = o->plugin ? check(o->plugin, why)
                        : fail(why, "it has no symbol `mk_plugin`: not a plugin of Monkey 2");
    if (!ok)
        mk_object_close(o);
    return ok;
}

bool mk_object_open(struct mk_object *o, mk_str name, char why[MK_OBJECT_WHY])
{
    *o = (struct mk_object){0};
    if (mk_str_find(name, '/') != MK_STR_NONE) {
        if (!fill(o->path, "%.*s", MK_STR_ARG(name)))
            return fail(why, "its name is too long");
        return open_file(o, why);
    }
    for (const struct mk_plugin *const *p = builtins(); *p; p++)
        if (mk_str_eq(mk_str_from_c((*p)->name), name)) {
            o->plugin = *p;
            return true;
        }
    if (mk_place_find(name, o->path))
        return open_file(o, why);
    return fail(why,
                "it is not built in, and there is no " MK_PLACE_PREFIX "%.*s" MK_PLACE_SUFFIX
                " in " MK_PLUGIN_DIR,
                MK_STR_ARG(name));
}

void mk_object_close(struct mk_object *o)
{
    if (o->handle)
        dlclose(o->handle);
    *o = (struct mk_object){0};
}

/* ---- All of them ---- */

/* What is built in goes before a file of that name. */
static bool is_built_in(const char *name)
{
    const struct mk_plugin *const *p = builtins();
    while (*p && strcmp((*p)->name, name) != 0)
        p++;
    return *p;
}

static bool each_in(const char *folder, bool (*each)(const struct mk_object *o, void *ctx), void *ctx)
{
    char pattern[PATH_MAX], why[MK_OBJECT_WHY];
    glob_t found;
    bool goes_on = true;
    if (!fill(pattern, "%s/" MK_PLACE_PREFIX "*" MK_PLACE_SUFFIX, folder) ||
        glob(pattern, 0, NULL, &found) != 0)
        return true;
    for (size_t i = 0; goes_on && i < found.gl_pathc; i++) {
        struct mk_object o;
        if (mk_object_open(&o, mk_str_from_c(found.gl_pathv[i]), why)) {
            goes_on = is_built_in(o.plugin->name) || each(&o, ctx);
            mk_object_close(&o);
        }
    }
    globfree(&found);
    return goes_on;
}

void mk_object_each(bool (*each)(const struct mk_object *o, void *ctx), void *ctx)
{
    char folder[PATH_MAX];
    for (const struct mk_plugin *const *p = builtins(); *p; p++)
        if (!each(&(struct mk_object){.plugin = *p}, ctx))
            return;
    /* The first folder that has any: an installed program does not look beside itself. */
    for (unsigned i = 0; i < MK_PLACE_FOLDERS; i++)
        if (mk_place_folder(i, folder) && access(folder, R_OK) == 0) {
            each_in(folder, each, ctx);
            return;
        }
}
