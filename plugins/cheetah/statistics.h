/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that show a table of the server's statistics. */
#ifndef CHEETAH_STATISTICS_H
#define CHEETAH_STATISTICS_H

#include "session.h"

void cheetah_packages(struct cheetah_session *s, mk_str args, bool json);
void cheetah_upstreams(struct cheetah_session *s, mk_str args, bool json);
void cheetah_routes(struct cheetah_session *s, mk_str args, bool json);

#endif
