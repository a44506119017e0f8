/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that show a table of the server's statistics. */
#ifndef CHEETAH_STATISTICS_H
#define CHEETAH_STATISTICS_H

#include "session.h"

void cheetah_statistics_show_packages(struct cheetah_session *s, mk_str args, bool json);
void cheetah_statistics_show_upstreams(struct cheetah_session *s, mk_str args, bool json);
void cheetah_statistics_show_components(struct cheetah_session *s, mk_str args, bool json);
void cheetah_statistics_show_metrics(struct cheetah_session *s, mk_str args, bool json);
void cheetah_statistics_show_routes(struct cheetah_session *s, mk_str args, bool json);

#endif
