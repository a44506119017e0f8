/* SPDX-License-Identifier: Apache-2.0 */
/* What the master does for its workers, done by a worker here: logs that have reached their size, new keys
 * for session tickets. */
#ifndef MK_LIB_CARE_H
#define MK_LIB_CARE_H

#include "lib/server_type.h"

void mk_care_begin(struct mk_runner *r);
void mk_care_end(struct mk_runner *r);

#endif
