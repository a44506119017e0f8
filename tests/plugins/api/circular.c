/* SPDX-License-Identifier: Apache-2.0 */
/* Depends on itself. */
#include <monkey/plugin.h>

MK_PLUGIN(circular) = {MK_PLUGIN_HEAD, .name = "circular", .needs = (const char *const[]){"circular", NULL}};
