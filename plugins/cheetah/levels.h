/* SPDX-License-Identifier: Apache-2.0 */
/* `loglevel`: what the error log holds. */
#ifndef SHELL_LEVELS_H
#define SHELL_LEVELS_H

#include "session.h"

extern const char *const shell_level_names[MK_LOG_LEVELS];

void shell_level(struct shell_session *s, mk_str args, bool json);

#endif
