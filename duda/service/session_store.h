/* SPDX-License-Identifier: Apache-2.0 */
/* Stores for sessions outside cookies: shared memory, a package's store, or the service's own store. A record
 * begins with a MAC, which proves that this server wrote it for this session, service and host. Stores know a
 * session only by a hash of its ID, so a reader of the store cannot forge a cookie from its entries. */
#ifndef DUDA_SERVICE_SESSION_STORE_H
#define DUDA_SERVICE_SESSION_STORE_H

#include "service/session_record.h"

struct duda_session_config;

/* Seconds by which the stored time of last use may lag behind: not every request writes the session. */
int64_t duda_session_write_interval_s(const struct duda_session_config *v);
/* Returns the number of seconds to keep the session; 0 if it has expired. */
uint32_t duda_session_ttl_s(const struct duda_session *s);
/* Returns the store of the service, or the store of a package; NULL: memory or cookies. */
const struct duda_session_store *duda_session_store_of(struct duda_ctx *d);
bool duda_session_is_in_cookie(struct duda_ctx *d);
/* Returns whether the configuration names a store that no package provides. */
bool duda_session_has_no_store(struct duda_ctx *d);
/* Returns whether the store is in memory. Such a store records each use of a session, so no write is needed
 * to extend it. */
bool duda_session_is_in_memory(struct duda_ctx *d);

/* Derives the store key from s->id. Returns 0 or -ENOMEM. */
int duda_session_derive_key(struct duda_session *s);
/* Sets the store key. */
void duda_session_set_key(struct duda_session *s, const unsigned char key[DUDA_SESSION_ID_LEN / 2]);
/* Loads the session with s->key: 0, -ENOENT, or the error of the store. */
int duda_session_store_load(struct duda_session *s);
/* Returns -ENOENT if another request has destroyed or regenerated the session, which is then not
 * recreated. */
int duda_session_store_save(struct duda_session *s);
int duda_session_store_delete(struct duda_session *s);
/* Creates or replaces a record that other requests may write at the same time, and keeps it for `seconds`. */
int duda_session_store_put(struct duda_session *s, uint32_t seconds);
/* Returns 0 if the store has the session with s->key, or -ENOENT, or the error of the store. Does not extend
 * the session. Raises *used if the store knows of a later use. */
int duda_session_store_check(struct duda_session *s, int64_t *used);

/* The store that a service has set for itself. */
struct duda_service_session_store {
    struct duda_service_session_store *next;
    const struct duda_service_ref *owner;
    const struct duda_session_store *store;
};
/* Called when a worker exits. */
void duda_session_store_free_all(struct duda_worker_ctx *worker_ctx);

#endif
