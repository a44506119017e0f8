/* SPDX-License-Identifier: Apache-2.0 */
/* The servers behind this one, as the plugin upstream shows them in shared memory. */
#ifndef CHEETAH_UPSTREAMS_H
#define CHEETAH_UPSTREAMS_H

#include "session.h"

/* The command. */
void cheetah_upstreams(struct cheetah_session *s, mk_str args, bool json);

#endif
