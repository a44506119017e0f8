/* SPDX-License-Identifier: Apache-2.0 */
/* What the master does for its workers, done by a worker here: logs that have reached their size, new keys
 * for session tickets. */
#ifndef MK_LIB_HOUSEKEEPING_H
#define MK_LIB_HOUSEKEEPING_H

#include "lib/server_type.h"

void mk_housekeeping_start(struct mk_lib_worker *r);
void mk_housekeeping_stop(struct mk_lib_worker *r);

#endif
