/* SPDX-License-Identifier: Apache-2.0 */
/* Restricts what a statement may do to its session, which all handlers share. */
#ifndef DUDA_SQLITE_AUTHORIZER_H
#define DUDA_SQLITE_AUTHORIZER_H

#include "session_type.h"

/* Call it before preparing the statement `text`. */
void sqlite_authorizer_begin(struct sqlite_session *s, mk_str text);
/* The authorizer callback; ctx is the session. */
int sqlite_authorizer_check(void *ctx, int action, const char *a, const char *b, const char *schema,
                            const char *trigger);

#endif
