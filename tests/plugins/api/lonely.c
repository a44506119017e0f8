/* SPDX-License-Identifier: Apache-2.0 */
/* Depends on a plugin that does not exist. */
#include <monkey/plugin.h>

MK_PLUGIN(lonely) = {MK_PLUGIN_HEAD, .name = "lonely",
                     .needs = (const char *const[]){"no-such-plugin", NULL}};
