/* SPDX-License-Identifier: Apache-2.0 */
/* Built for a newer server, whose struct mk_plugin has one more hook. */
#include <monkey/plugin.h>

MK_PLUGIN(newer) = {
    .abi = MK_ABI, .size = sizeof(struct mk_plugin) + sizeof(void (*)(void)), .name = "newer"};
