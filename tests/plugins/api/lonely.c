/* SPDX-License-Identifier: Apache-2.0 */
/* Needs a plugin that is not there. */
#include <monkey/plugin.h>

MK_PLUGIN(lonely) = {MK_PLUGIN_HEAD, .name = "lonely",
                     .needs = (const char *const[]){"no-such-plugin", NULL}};
