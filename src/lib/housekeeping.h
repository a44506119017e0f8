/* SPDX-License-Identifier: Apache-2.0 */
/* Housekeeping: rotation of logs and ticket keys. In the server program, this is a task of the master; in the
 * library, of a worker. */
#ifndef MK_LIB_HOUSEKEEPING_H
#define MK_LIB_HOUSEKEEPING_H

#include "lib/server_type.h"

void mk_housekeeping_start(struct mk_lib_worker *r);
void mk_housekeeping_stop(struct mk_lib_worker *r);

#endif
