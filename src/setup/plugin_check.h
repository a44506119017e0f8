/* SPDX-License-Identifier: Apache-2.0 */
/* Validates plugins before any of their code runs. */
#ifndef MK_SETUP_PLUGIN_CHECK_H
#define MK_SETUP_PLUGIN_CHECK_H

#include <limits.h>
#include <monkey/plugin.h>

#include "base/err.h"

struct mk_plugin_object {
    const struct mk_plugin *plugin;
    struct mk_plugin *widened; /* full-size copy of a smaller struct mk_plugin of an older version; NULL: not
                                * needed */
    void *handle;              /* NULL: built in */
    char path[PATH_MAX];       /* path of the plugin's file; empty: built in */
};

enum { MK_PLUGIN_OBJECT_ERROR_MAX = 512 };

/* Validates a plugin. False: it is invalid; `message` holds the reason. */
bool mk_plugin_check(const struct mk_plugin *p, char message[MK_PLUGIN_OBJECT_ERROR_MAX]) MK_MUST_USE;
/* Replaces a smaller struct mk_plugin with a full-size copy in which missing members are zero: the rest of
 * the server reads every member. False: out of memory. */
bool mk_plugin_check_copy_to_full_size(struct mk_plugin_object *o,
                                       char message[MK_PLUGIN_OBJECT_ERROR_MAX]) MK_MUST_USE;
/* Writes the message; returns false. */
bool mk_plugin_check_set_error(char message[MK_PLUGIN_OBJECT_ERROR_MAX], const char *fmt, ...)
    MK_PRINTF(2, 3);
/* Returns text to append to an error about an incompatible object; empty if no hint applies. */
const char *mk_plugin_check_build_hint(void);

#endif
