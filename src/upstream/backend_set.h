/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes the backends of a worker's pool. */
#ifndef MK_UPSTREAM_BACKEND_SET_H
#define MK_UPSTREAM_BACKEND_SET_H

#include "upstream/pool_type.h"

/* Opens a set whose backends are zeroed, except for their `total`. False: out of memory. */
bool mk_backend_set_open(struct mk_pool *p, struct mk_backend_set *g, const struct mk_upstream *u,
                         struct mk_backend *backends);
/* Opens a backend whose server has a name; the backend of a server without a name is only initialized. */
bool mk_backend_open(struct mk_pool *p, struct mk_backend *o, const struct mk_upstream_server *s);
/* Closes the connections of a backend that no request uses. */
void mk_backend_close(struct mk_pool *p, struct mk_backend *o);
/* Publishes the health of the server, unless the worker is draining. True: the server is up, and its slow start is
 * over, or the worker is draining. */
bool mk_backend_publish_health(const struct mk_backend *o);

#endif
