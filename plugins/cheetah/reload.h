/* SPDX-License-Identifier: Apache-2.0 */
/* The command `reload`: requests a reload and reports its result. */
#ifndef CHEETAH_RELOAD_H
#define CHEETAH_RELOAD_H

#include "session.h"

void cheetah_reload_command(struct cheetah_session *s, mk_str args, bool json);

#endif
