/* SPDX-License-Identifier: Apache-2.0 */
/* `monkey test`: compiles a service and its tests, and runs them. */
#ifndef DUDA_DEV_COMMAND_TEST_H
#define DUDA_DEV_COMMAND_TEST_H

#include <monkey/plugin.h>

extern const struct mk_command dev_command_test;

#endif
