/* SPDX-License-Identifier: Apache-2.0 */
/* A [REDIS] section as a store of duda/store.h. */
#ifndef DUDA_REDIS_STORE_BACKEND_H
#define DUDA_REDIS_STORE_BACKEND_H

#include <duda/redis.h>
#include <duda/store_backend.h>

struct duda_store redis_store_backend(struct duda_redis *r, mk_str name);

#endif
