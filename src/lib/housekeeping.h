/* SPDX-License-Identifier: Apache-2.0 */
/* Housekeeping: log rotation and ticket key rotation, which the master does in the server, and a worker in
 * the library. */
#ifndef MK_LIB_HOUSEKEEPING_H
#define MK_LIB_HOUSEKEEPING_H

#include "lib/server_type.h"

void mk_housekeeping_start(struct mk_lib_worker *r);
void mk_housekeeping_stop(struct mk_lib_worker *r);

#endif
