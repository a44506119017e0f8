/* SPDX-License-Identifier: Apache-2.0 */
/* Where sessions are that are not in cookies: the vault, a store of a package, or one of the service itself. A record
 * begins with a proof that this server wrote it for this session, service and host. Stores know a session by a hash of
 * its number, so a reader of the store cannot make a cookie from its entries. */
#ifndef DUDA_SERVICE_SESSION_STORE_H
#define DUDA_SERVICE_SESSION_STORE_H

#include "service/session_record.h"

struct duda_session_config;

/* Seconds for which a session may be older than its last request, because it is not written with each of them. */
int64_t duda_session_write_interval_s(const struct duda_session_config *v);
/* How long it is to be kept: 0, it is over. */
uint32_t duda_session_ttl_s(const struct duda_session *s);
bool duda_session_is_in_cookie(const struct duda_ctx *d);
/* Nobody has brought the store of that name, though the configuration has one. */
bool duda_session_has_no_store(const struct duda_ctx *d);
/* The store knows of each request by itself. */
bool duda_session_is_in_memory(const struct duda_ctx *d);

/* s->id is known: finds its key. 0 or -ENOMEM. */
int duda_session_derive_key(struct duda_session *s);
/* The session of s->key: 0, -ENOENT, or what the store answers. */
int duda_session_store_load(struct duda_session *s);
/* Also -ENOENT: a session that another request has ended or renewed does not come back. */
int duda_session_store_save(struct duda_session *s);
int duda_session_store_delete(struct duda_session *s);

/* The store that a service has said is its own. */
struct duda_service_session_store {
    struct duda_service_session_store *next;
    const struct duda_service_ref *owner;
    const struct duda_session_store *store;
};
/* Of a worker that ends. */
void duda_session_store_free_all(struct duda_worker_ctx *worker_ctx);

#endif
