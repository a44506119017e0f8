/* SPDX-License-Identifier: Apache-2.0 */
/* Failures of servers: counted, and in the error log once for each change of a server's state, whichever worker
 * sees it first. */
#ifndef MK_UPSTREAM_FAILURE_H
#define MK_UPSTREAM_FAILURE_H

#include "upstream/server.h"

/* The server failed: `why` in words, static; NULL: what `error` means. True: it is down now. */
bool mk_upstream_failure_report(struct mk_worker *w, const struct mk_upstream_server *s, int error,
                                const char *why);
/* It answers. */
void mk_upstream_failure_clear(struct mk_worker *w, const struct mk_upstream_server *s);
/* A health check has ended. True: the server is down now. */
bool mk_upstream_failure_report_check(struct mk_worker *w, const struct mk_upstream_server *s, bool ok,
                                      const char *why);
/* Its name was looked up; `why` is what the resolver says, NULL: it resolves. */
void mk_upstream_failure_report_dns(struct mk_worker *w, const struct mk_upstream_server *s, const char *why);

#endif
