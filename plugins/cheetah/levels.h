/* SPDX-License-Identifier: Apache-2.0 */
/* `loglevel`: the level of the error log. */
#ifndef CHEETAH_LEVELS_H
#define CHEETAH_LEVELS_H

#include "session.h"

extern const char *const cheetah_level_names[MK_LOG_LEVELS];

void cheetah_level(struct cheetah_session *s, mk_str args, bool json);

#endif
