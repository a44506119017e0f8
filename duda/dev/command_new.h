/* SPDX-License-Identifier: Apache-2.0 */
/* `monkey new`: a folder with a service to begin with. */
#ifndef DUDA_DEV_COMMAND_NEW_H
#define DUDA_DEV_COMMAND_NEW_H

#include <monkey/plugin.h>

extern const struct mk_command dev_command_new;

#endif
