/* SPDX-License-Identifier: Apache-2.0 */
/* `monkey new`: creates a folder with a starter service. */
#ifndef DUDA_DEV_COMMAND_NEW_H
#define DUDA_DEV_COMMAND_NEW_H

#include <monkey/plugin.h>

extern const struct mk_command dev_command_new;

#endif
