/* SPDX-License-Identifier: Apache-2.0 */
/* Finds plugins, built into the program or in object files, and validates them before any of their code is
 * called. Knows no configuration. */
#ifndef MK_SETUP_PLUGIN_OBJECT_H
#define MK_SETUP_PLUGIN_OBJECT_H

#include <limits.h>
#include <monkey/plugin.h>

#include "base/err.h"

struct mk_plugin_object {
    const struct mk_plugin *plugin;
    struct mk_plugin *widened; /* its copy, if it was built when struct mk_plugin had fewer members */
    void *handle;              /* NULL: built in */
    char path[PATH_MAX];       /* of its file; empty: built in */
};

enum { MK_PLUGIN_OBJECT_ERROR_MAX = 512 };

/* `name` is a word ("security": built in, or monkey-security.so beside the program or where plugins are
 * installed) or, with a slash in it, a file. False, and why. A child process tries each file first, because a
 * broken one could crash the process that loads it. */
bool mk_plugin_object_open(struct mk_plugin_object *o, mk_str name,
                           char why[MK_PLUGIN_OBJECT_ERROR_MAX]) MK_MUST_USE;
/* The same for a plugin, by its word, that `by` needs: the file beside that of `by` comes before others, as
 * it does for the dynamic linker. */
bool mk_plugin_object_open_needed(struct mk_plugin_object *o, const struct mk_plugin_object *by, mk_str name,
                                  char why[MK_PLUGIN_OBJECT_ERROR_MAX]) MK_MUST_USE;
/* A plugin of the program itself. False, and why. */
bool mk_plugin_object_from_program(struct mk_plugin_object *o, const struct mk_plugin *plugin,
                                   char why[MK_PLUGIN_OBJECT_ERROR_MAX]) MK_MUST_USE;
void mk_plugin_object_close(struct mk_plugin_object *o);

/* Calls each() for every plugin that can be opened by a word, until it returns false; closes each object
 * afterwards. */
void mk_plugin_object_for_each(bool (*each)(const struct mk_plugin_object *o, void *ctx), void *ctx);

#endif
