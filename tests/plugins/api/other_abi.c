/* SPDX-License-Identifier: Apache-2.0 */
/* Built for a different plugin ABI. */
#include <monkey/plugin.h>

MK_PLUGIN(other_abi) = {.abi = MK_ABI + 3, .size = sizeof(struct mk_plugin), .name = "other-abi"};
