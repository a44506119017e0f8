/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins as they lie around: built into the program, or objects in files. Finds them, and makes sure of them
 * before anybody calls into them. Knows no configuration. */
#ifndef MK_SERVER_OBJECT_H
#define MK_SERVER_OBJECT_H

#include <limits.h>
#include <monkey/plugin.h>

#include "base/err.h"

struct mk_object {
    const struct mk_plugin *plugin;
    void *handle;        /* NULL: built in */
    char path[PATH_MAX]; /* of its file; empty: built in */
};

enum { MK_OBJECT_WHY = 512 };

/* `name` is a word ("security": built in, or monkey-security.so beside the program or where plugins are
 * installed) or, with a slash in it, a file. False, and why. A file that would crash whoever loads it is
 * tried out by somebody else first. */
bool mk_object_open(struct mk_object *o, mk_str name, char why[MK_OBJECT_WHY]) MK_MUST_USE;
void mk_object_close(struct mk_object *o);

/* Everything that could be opened by a word: each() until it answers false. The object is closed behind it.
 */
void mk_object_each(bool (*each)(const struct mk_object *o, void *ctx), void *ctx);

#endif
