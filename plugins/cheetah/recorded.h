/* SPDX-License-Identifier: Apache-2.0 */
/* The commands `top` and `requests`, which show the recording of the server: the plugin top runs them. */
#ifndef CHEETAH_RECORDED_H
#define CHEETAH_RECORDED_H

#include "session.h"

void cheetah_recorded_top(struct cheetah_session *s, mk_str args, bool json);
void cheetah_recorded_requests(struct cheetah_session *s, mk_str args, bool json);

#endif
