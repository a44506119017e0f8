/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions in memory that all workers share. No request here. A worker may die at any instruction. */
#ifndef DUDA_TEXT_SESSION_SHM_H
#define DUDA_TEXT_SESSION_SHM_H

#include <duda/session.h>
#include <monkey/addr.h>

enum { DUDA_SESSION_SHM_ID = DUDA_SESSION_ID / 2 };

struct duda_session_shm_memory;

/* A vault as one process sees it: what others write cannot make it larger. */
struct duda_session_shm {
    struct duda_session_shm_memory *memory;
    size_t n_sets;
};

/* The bytes for so many sessions, rounded up. */
size_t duda_session_shm_size(size_t n);
/* Uses zeroed memory of that size, or such that is in use already. In the master, before workers start. */
void duda_session_shm_init(struct duda_session_shm *v, void *memory, size_t n);

/* All take times in seconds. What load() finds lives on until `idle` seconds from now. */
bool duda_session_shm_load(const struct duda_session_shm *v, const unsigned char id[DUDA_SESSION_SHM_ID],
                           int64_t now, uint32_t idle, struct mk_buf *out);
/* Whose session it is: who gives way when there are too many. */
struct duda_session_shm_client {
    uint64_t address; /* a hash of the client's, see duda_session_shm_hash_client() */
    bool is_known;    /* the session was renewed: its visitor has logged in */
};

/* Of what is one client: see mk_addr_client(). */
uint64_t duda_session_shm_hash_client(const struct duda_session_shm *v, const struct mk_addr *client);
/* A session that is not there yet: no other worker knows its number. When its places are full, one goes: a session of a
 * visitor who is not known before those of known ones; then one of the address that has most of these places, the new
 * session included; then one whose client never came back; then the one that would end first. False: it does not fit, or
 * its place is in use. */
bool duda_session_shm_insert(const struct duda_session_shm *v, const unsigned char id[DUDA_SESSION_SHM_ID],
                             mk_str data, const struct duda_session_shm_client *visitor, int64_t now,
                             uint32_t seconds);
/* One that is there: what another request has dropped does not come back. False: it is not, or it does not
 * fit. */
bool duda_session_shm_replace(const struct duda_session_shm *v, const unsigned char id[DUDA_SESSION_SHM_ID],
                              mk_str data, const struct duda_session_shm_client *visitor, int64_t now,
                              uint32_t seconds);
/* False: it was not there. */
bool duda_session_shm_delete(const struct duda_session_shm *v, const unsigned char id[DUDA_SESSION_SHM_ID]);

#endif
