/* SPDX-License-Identifier: Apache-2.0 */
/* `reload`: asks for it, and says what became of it. */
#ifndef SHELL_RELOAD_H
#define SHELL_RELOAD_H

#include "session.h"

void shell_reload(struct shell_session *s, mk_str args, bool json);

#endif
