/* SPDX-License-Identifier: Apache-2.0 */
/* Declares a struct mk_plugin that is smaller than in any version. */
#include <monkey/plugin.h>

MK_PLUGIN(other_size) = {.abi = MK_ABI, .size = sizeof(unsigned), .name = "other-size"};
