/* SPDX-License-Identifier: Apache-2.0 */
/* The file of the running program. */
#ifndef MK_OS_EXECUTABLE_H
#define MK_OS_EXECUTABLE_H

#include <stdbool.h>

/* Was this program's file replaced since it started, for example by an installation or a build? Its plugins may then
 * belong to the new program. False if unknown. */
bool mk_executable_is_replaced(void);

#endif
