/* SPDX-License-Identifier: Apache-2.0 */
/* Counts server failures and logs each change of a server's state once, by the first worker that sees it. */
#ifndef MK_UPSTREAM_FAILURE_H
#define MK_UPSTREAM_FAILURE_H

#include "upstream/server.h"

/* Records a failure of the server. `why`: static text, or NULL for the text of `error`. True: the server is
 * now down. */
bool mk_upstream_failure_report(struct mk_worker *w, const struct mk_upstream_server *s, int error,
                                const char *why);
/* The server responded. */
void mk_upstream_failure_clear(struct mk_worker *w, const struct mk_upstream_server *s);
/* Records the result of a health check. True: the server is now down. */
bool mk_upstream_failure_report_check(struct mk_worker *w, const struct mk_upstream_server *s, bool ok,
                                      const char *why);
/* Records the result of a name lookup. `why`: the resolver's message; NULL: success. */
void mk_upstream_failure_report_dns(struct mk_worker *w, const struct mk_upstream_server *s, const char *why);

#endif
