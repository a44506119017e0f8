/* SPDX-License-Identifier: Apache-2.0 */
/* Depends on a plugin that does not exist. */
#include <monkey/plugin.h>

MK_PLUGIN(missing_dependency) = {MK_PLUGIN_HEAD, .name = "missing-dependency",
                                 .needs = (const char *const[]){"no-such-plugin", NULL}};
