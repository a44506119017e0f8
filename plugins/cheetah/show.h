/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that display server state. */
#ifndef CHEETAH_SHOW_H
#define CHEETAH_SHOW_H

#include "session.h"

enum { CHEETAH_TEXT_MAX = 4 << 20 };

/* Prints the text, or an error if memory ran out; frees the text, and finishes the response. */
void cheetah_show_text(struct cheetah_session *s, struct mk_buf *text);

void cheetah_show_status(struct cheetah_session *s, mk_str args, bool json);
void cheetah_show_workers(struct cheetah_session *s, mk_str args, bool json);
void cheetah_show_hosts(struct cheetah_session *s, mk_str args, bool json);
void cheetah_show_plugins(struct cheetah_session *s, mk_str args, bool json);
void cheetah_show_configuration(struct cheetah_session *s, mk_str args, bool json);
/* The commands `cache` and `cache clear`. */
void cheetah_show_cache(struct cheetah_session *s, mk_str args, bool json);
void cheetah_show_version(struct cheetah_session *s, mk_str args, bool json);
void cheetah_show_uptime(struct cheetah_session *s, mk_str args, bool json);

#endif
