/* SPDX-License-Identifier: Apache-2.0 */
/* Built for a server that is not this one. */
#include <monkey/plugin.h>

MK_PLUGIN(other_size) = {.abi = MK_ABI, .size = sizeof(struct mk_plugin) - 8, .name = "other-size"};
