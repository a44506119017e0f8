/* SPDX-License-Identifier: Apache-2.0 */
/* Built for a server whose plugins have one more hook. */
#include <monkey/plugin.h>

MK_PLUGIN(newer) = {
    .abi = MK_ABI, .size = sizeof(struct mk_plugin) + sizeof(void (*)(void)), .name = "newer"};
