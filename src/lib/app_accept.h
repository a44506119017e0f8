/* SPDX-License-Identifier: Apache-2.0 */
/* The program's decision on each client, as a plugin. Programs without one do not load it. */
#ifndef MK_LIB_APP_ACCEPT_H
#define MK_LIB_APP_ACCEPT_H

#include <monkey/plugin.h>

extern const struct mk_plugin mk_app_accept_plugin;

#endif
