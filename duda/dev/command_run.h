/* SPDX-License-Identifier: Apache-2.0 */
/* `monkey run`: serves the services of sources, and reloads them when the sources change. */
#ifndef DUDA_DEV_COMMAND_RUN_H
#define DUDA_DEV_COMMAND_RUN_H

#include <monkey/plugin.h>

extern const struct mk_command dev_command_run;

#endif
