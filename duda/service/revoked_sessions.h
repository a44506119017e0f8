/* SPDX-License-Identifier: Apache-2.0 */
/* IDs of encrypted sessions that ended before they expired, in memory shared by all workers. The table has a
 * fixed size. When a bucket is full, one entry is dropped, possibly the new one: first a session of an
 * unauthenticated user, then one of the client with the most entries in the bucket, then the one that expires
 * first. A client that ends sessions in a loop thus drops its own. There are no locks: an entry is one word,
 * so a dying worker leaves nothing inconsistent. */
#ifndef DUDA_SERVICE_REVOKED_SESSIONS_H
#define DUDA_SERVICE_REVOKED_SESSIONS_H

#include <monkey/addr.h>
#include <monkey/text.h>
#include <stdatomic.h>

enum { DUDA_REVOKED_SESSION_ID = 16, DUDA_REVOKED_SESSIONS_SLOTS = 8, DUDA_REVOKED_SESSIONS_LINES = 8192 };

struct duda_revoked_sessions {
    _Atomic uint32_t is_ready;
    struct mk_hash_key key; /* secret, so that clients cannot choose their bucket */
    struct {
        _Atomic uint64_t slots[DUDA_REVOKED_SESSIONS_SLOTS];
    } lines[DUDA_REVOKED_SESSIONS_LINES];
};

/* Initializes zeroed memory; memory that is already in use stays unchanged. Called in the master, before
 * workers start. */
void duda_revoked_sessions_init(struct duda_revoked_sessions *e);
/* The client that owned the session. */
struct duda_revoked_session_client {
    const struct mk_addr *client; /* see mk_addr_client_prefix() */
    bool is_known;                /* the session was regenerated: the user had logged in */
};
/* Times are seconds since 1970. The ID stays revoked until `until`, at most a year ahead. Returns false if it was
 * revoked already: of several calls for an ID, at most one returns true, in whichever workers. An ID that the full
 * table drops counts as newly revoked. */
bool duda_revoked_sessions_add(struct duda_revoked_sessions *e,
                               const unsigned char number[DUDA_REVOKED_SESSION_ID],
                               const struct duda_revoked_session_client *client, int64_t now, int64_t until);
bool duda_revoked_sessions_contain(const struct duda_revoked_sessions *e,
                                   const unsigned char number[DUDA_REVOKED_SESSION_ID], int64_t now);

#endif
