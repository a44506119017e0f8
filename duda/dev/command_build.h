/* SPDX-License-Identifier: Apache-2.0 */
/* `monkey build`: builds a shared object to deploy. */
#ifndef DUDA_DEV_COMMAND_BUILD_H
#define DUDA_DEV_COMMAND_BUILD_H

#include <monkey/plugin.h>

extern const struct mk_command dev_command_build;

#endif
