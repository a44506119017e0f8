/* SPDX-License-Identifier: Apache-2.0 */
/* The file of the running program. */
#ifndef MK_OS_EXECUTABLE_H
#define MK_OS_EXECUTABLE_H

#include <stdbool.h>

/* Has the file at the path of this program become another one since it was started, as an installation or a
 * build does? Its plugins may then be those of the other program. False where that is unknown. */
bool mk_executable_is_replaced(void);

#endif
