/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/plugin.h>
#include <signal.h>

__attribute__((constructor)) static void crash(void)
{
    raise(SIGSEGV);
}

MK_PLUGIN(crashes_on_load) = {MK_PLUGIN_HEAD, .name = "crashes-on-load"};
