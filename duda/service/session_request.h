/* SPDX-License-Identifier: Apache-2.0 */
/* The session of a request, for the parts of Duda that keep their own values in it. */
#ifndef DUDA_SERVICE_SESSION_REQUEST_H
#define DUDA_SERVICE_SESSION_REQUEST_H

#include "service/session_record.h"

/* Loads the session of the request, which may not exist. Returns 0, or the error of the store, after which
 * the client gets 503 whatever the handler returns. */
int duda_session_open(struct duda_ctx *d, struct duda_session **out);
/* Creates the session unless it exists. Returns 0, -EDQUOT, or an error of duda_session_set(). */
int duda_session_ensure(struct duda_session *s);
/* Stores the session. -ESTALE: another request has destroyed it. */
int duda_session_store_changes(struct duda_session *s);

#endif
