/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions in memory shared by all workers. Independent of requests. A worker may die at any instruction. */
#ifndef DUDA_SERVICE_SESSION_SHM_H
#define DUDA_SERVICE_SESSION_SHM_H

#include <duda/session.h>
#include <monkey/addr.h>

enum { DUDA_SESSION_SHM_ID = DUDA_SESSION_ID_LEN / 2 };

struct duda_session_shm_memory;

/* One process's view of the shared memory: writes of other processes cannot enlarge it. */
struct duda_session_shm {
    struct duda_session_shm_memory *memory;
    size_t n_sets;
};

/* Returns the size in bytes for `n` sessions, rounded up. */
size_t duda_session_shm_size(size_t n);
/* Initializes zeroed memory of duda_session_shm_size() bytes; memory that is already in use stays unchanged.
 * Called in the master, before workers start. */
void duda_session_shm_init(struct duda_session_shm *v, void *memory, size_t n);

/* All times are in seconds. load() sets the life of the session that it finds to `idle` seconds from now. If
 * `idle` is 0, load() leaves the expiry unchanged, which may be much later: a revocation must outlive the
 * sessions that it ends. */
bool duda_session_shm_load(const struct duda_session_shm *v, const unsigned char id[DUDA_SESSION_SHM_ID],
                           int64_t now, uint32_t idle, struct mk_buf *out);
/* The client that owns a session: decides which session is evicted when there are too many. */
struct duda_session_shm_client {
    uint64_t address; /* hash of the client address: see duda_session_shm_hash_client() */
    bool is_known;    /* the session was regenerated: the user has logged in */
    /* The entry ends other sessions (see session_user.h), which would become valid again without it. Sessions
     * are evicted first. */
    bool is_revocation;
};

/* Hashes the address prefix that counts as one client: see mk_addr_client_prefix(). */
uint64_t duda_session_shm_hash_client(const struct duda_session_shm *v, const struct mk_addr *client);
/* Adds a new session, whose ID no other worker knows. If its bucket is full, one session is evicted: those of
 * unauthenticated users before authenticated ones; then one of the address with the most sessions in this
 * bucket, including the new one; then one whose client never returned; then the one that expires first.
 * Returns false if the data does not fit, or the slot for it is locked. */
bool duda_session_shm_insert(const struct duda_session_shm *v, const unsigned char id[DUDA_SESSION_SHM_ID],
                             mk_str data, const struct duda_session_shm_client *client, int64_t now,
                             uint32_t seconds);
/* Updates an existing session; does not recreate a session that another request has deleted. Returns false if
 * there is no such session, or the data does not fit. */
bool duda_session_shm_replace(const struct duda_session_shm *v, const unsigned char id[DUDA_SESSION_SHM_ID],
                              mk_str data, const struct duda_session_shm_client *client, int64_t now,
                              uint32_t seconds);
/* Returns the time at which the session expires, without extending it; 0: no such session. */
int64_t duda_session_shm_expiry(const struct duda_session_shm *v, const unsigned char id[DUDA_SESSION_SHM_ID],
                                int64_t now);
/* Deletes the session. Returns false if there is no such session. */
bool duda_session_shm_delete(const struct duda_session_shm *v, const unsigned char id[DUDA_SESSION_SHM_ID]);

#endif
