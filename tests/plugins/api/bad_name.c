/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/plugin.h>

MK_PLUGIN(bad_name) = {MK_PLUGIN_HEAD, .name = "Bad Name"};
