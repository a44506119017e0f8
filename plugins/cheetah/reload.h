/* SPDX-License-Identifier: Apache-2.0 */
/* The commands `reload`, `confirm` and `rollback`: order them from the master, and report the result. */
#ifndef CHEETAH_RELOAD_H
#define CHEETAH_RELOAD_H

#include "session.h"

void cheetah_reload_command(struct cheetah_session *s, mk_str args, bool json);
void cheetah_confirm_command(struct cheetah_session *s, mk_str args, bool json);
void cheetah_rollback_command(struct cheetah_session *s, mk_str args, bool json);

/* Parses a time such as `90`, `60s`, `10m` or `2h`, of 1 s to one day. */
bool cheetah_reload_parse_time(mk_str text, uint32_t *seconds);

#endif
