/* SPDX-License-Identifier: Apache-2.0 */
/* Readiness: tells load balancers that a worker should not get requests. */
#ifndef DUDA_READINESS_H
#define DUDA_READINESS_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Limits of readiness. Longer texts are truncated; further components or reasons share one entry. */
enum { DUDA_COMPONENT_MAX = 32, DUDA_NOT_READY_REASON_MAX = 96 };

/**
 * Marks a component of the service, such as its cache or database, as not ready in this worker. While any
 * component is not ready, the path `Ready` of the plugin metrics responds with 503 and the reason, in this
 * worker, and the shell command `components` shows it. The worker still serves the requests that it gets.
 * NULL as the reason marks the component as ready. Both texts are constants: each combination is a series of
 * the statistics.
 *
 *     static int start(struct mk_worker *worker)
 *     {
 *         return duda_set_not_ready(worker, "prices", "loading");
 *     }
 *     ...
 *     duda_set_not_ready(duda_worker(d), "prices", NULL);
 *
 * Returns 0; -EINVAL: the component has no name; -ENOSPC: the statistics are full; -ENOMEM; or -EAGAIN: another
 * worker is creating the same entry: try again.
 */
MK_API int duda_set_not_ready(struct mk_worker *worker, const char *component, const char *reason);

#ifdef __cplusplus
}
#endif

#endif
