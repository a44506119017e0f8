/* SPDX-License-Identifier: Apache-2.0 */
/* Validates plugins before any of their code runs. */
#ifndef MK_SETUP_PLUGIN_CHECK_H
#define MK_SETUP_PLUGIN_CHECK_H

#include <limits.h>
#include <monkey/plugin.h>

#include "base/err.h"

struct mk_plugin_object {
    const struct mk_plugin *plugin;
    struct mk_plugin *widened; /* copy of a plugin that was built with an older, smaller struct mk_plugin */
    void *handle;              /* NULL: built in */
    char path[PATH_MAX];       /* path of its file; empty: built in */
};

enum { MK_PLUGIN_OBJECT_ERROR_MAX = 512 };

/* False: it is invalid; `message` holds the reason. */
bool mk_plugin_check(const struct mk_plugin *p, char message[MK_PLUGIN_OBJECT_ERROR_MAX]) MK_MUST_USE;
/* Zero-fills missing members: the rest of the server reads every member. */
bool mk_plugin_check_copy_to_full_size(struct mk_plugin_object *o,
                                       char message[MK_PLUGIN_OBJECT_ERROR_MAX]) MK_MUST_USE;
/* Writes the message; returns false. */
bool mk_plugin_check_set_error(char message[MK_PLUGIN_OBJECT_ERROR_MAX], const char *fmt, ...)
    MK_PRINTF(2, 3);
/* Appended to errors about an incompatible object. */
const char *mk_plugin_check_build_hint(void);

#endif
