/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that only look. */
#ifndef SHELL_SHOW_H
#define SHELL_SHOW_H

#include "session.h"

void shell_show_status(struct shell_session *s, mk_str args, bool json);
void shell_show_workers(struct shell_session *s, mk_str args, bool json);
void shell_show_hosts(struct shell_session *s, mk_str args, bool json);
void shell_show_plugins(struct shell_session *s, mk_str args, bool json);
void shell_show_configuration(struct shell_session *s, mk_str args, bool json);
/* `cache`, `cache clear` */
void shell_show_cache(struct shell_session *s, mk_str args, bool json);
void shell_show_version(struct shell_session *s, mk_str args, bool json);
void shell_show_uptime(struct shell_session *s, mk_str args, bool json);

#endif
