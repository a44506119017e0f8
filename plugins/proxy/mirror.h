/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that are sent to a second upstream, too, whose responses are dropped. */
#ifndef PROXY_MIRROR_H
#define PROXY_MIRROR_H

#include "route.h"

/* Those of one worker, its data for the plugin. NULL: no memory. */
struct proxy_mirrors *proxy_mirrors_new(struct mk_worker *worker);
void proxy_mirrors_free(struct proxy_mirrors *m);

/* Sends a copy of the request to the mirror of its route, if its share is drawn. The copy is independent of
 * the request from then on. What cannot be copied is not: too much is under way, no memory, or content that
 * is not at hand. */
void proxy_mirrors_send(struct mk_worker *worker, const struct proxy_route *route,
                        const struct mk_upstream_request_options *ask);

#endif
