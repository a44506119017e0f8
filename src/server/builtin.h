/* SPDX-License-Identifier: Apache-2.0 */
/* The plugins that were built into this program. Whoever links it says which; see cmake/plugin.cmake. */
#ifndef MK_SERVER_BUILTIN_H
#define MK_SERVER_BUILTIN_H

#include <monkey/plugin.h>

extern const struct mk_plugin *const mk_builtin_plugins[]; /* ended by NULL */

#endif
