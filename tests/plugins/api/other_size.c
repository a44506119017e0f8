/* SPDX-License-Identifier: Apache-2.0 */
/* Declares a size that no plugin can have. */
#include <monkey/plugin.h>

MK_PLUGIN(other_size) = {.abi = MK_ABI, .size = sizeof(unsigned), .name = "other-size"};
