/* SPDX-License-Identifier: Apache-2.0 */
/* The accept filter of the program, as a plugin, which is loaded only if the program has set a filter. */
#ifndef MK_LIB_APP_ACCEPT_H
#define MK_LIB_APP_ACCEPT_H

#include <monkey/plugin.h>

extern const struct mk_plugin mk_app_accept_plugin;

#endif
