/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of services, as these count them in shared memory. */
#ifndef CHEETAH_ROUTES_H
#define CHEETAH_ROUTES_H

#include "session.h"

/* The command. */
void cheetah_routes(struct cheetah_session *s, mk_str args, bool json);

#endif
