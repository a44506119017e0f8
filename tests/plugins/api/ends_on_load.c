/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/plugin.h>
#include <stdlib.h>

__attribute__((constructor)) static void end(void)
{
    exit(0);
}

MK_PLUGIN(ends_on_load) = {MK_PLUGIN_HEAD, .name = "ends-on-load"};
