/* SPDX-License-Identifier: Apache-2.0 */
/* The command `loglevel`: shows or sets the level of the error log. */
#ifndef CHEETAH_LOGLEVEL_H
#define CHEETAH_LOGLEVEL_H

#include "session.h"

extern const char *const cheetah_level_names[MK_LOG_DEBUG + 1];

void cheetah_loglevel_command(struct cheetah_session *s, mk_str args, bool json);

#endif
