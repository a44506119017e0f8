/* SPDX-License-Identifier: Apache-2.0 */
/* Readiness: tells load balancers whether they should send requests to this server. */
#ifndef DUDA_READINESS_H
#define DUDA_READINESS_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Maximum length of a component's name and of a reason, in bytes. Longer strings are truncated. */
enum { DUDA_COMPONENT_MAX = 32, DUDA_NOT_READY_REASON_MAX = 96 };

/**
 * Sets whether a component of the service, such as its cache or database, is ready in this worker. `reason`
 * says why it is not ready; NULL: it is ready. While any component of a worker is not ready, the path `Ready`
 * of the plugin metrics responds with 503 and the reason in that worker, and the shell command `components`
 * shows the component. The worker still serves all requests that it receives. Both strings are copied. Use
 * constants, because each combination of component and reason is a series in the statistics. There are at
 * most 63 such series; all further combinations share a series named `other`.
 *
 *     int e = duda_sql_query(d, db, &result, "SELECT 1");
 *     duda_set_readiness(duda_worker(d), "database", e ? "unreachable" : NULL);
 *
 * For work at startup, use DUDA_START_TASK(): its component, such as `shop.load_prices`, is not ready until
 * the work is done.
 *
 * Returns 0; -EINVAL: the name is empty; -ENOSPC: the statistics are full; -ENOMEM; or -EAGAIN: another
 * worker is creating the same series and has not finished.
 */
MK_API int duda_set_readiness(struct mk_worker *worker, const char *component, const char *reason);

#ifdef __cplusplus
}
#endif

#endif
