/* SPDX-License-Identifier: Apache-2.0 */
/* The plugins built into this program. The build generates the list; see cmake/plugin.cmake. */
#ifndef MK_SETUP_BUILTIN_H
#define MK_SETUP_BUILTIN_H

#include <monkey/plugin.h>

extern const struct mk_plugin *const mk_builtin_plugins[]; /* NULL-terminated */

#endif
