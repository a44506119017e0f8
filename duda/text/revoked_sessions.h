/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of sealed sessions that have ended before their time, in memory that all workers share. Its size is
 * fixed: when a line is full, a session of a visitor who was not known gives way first, the new one included; then one of
 * the client that has most of this line; then the one that would be over first. So a client that ends sessions in a
 * loop makes the server forget its own. There are no locks: an entry is one word, so a worker that dies leaves nothing
 * inconsistent. */
#ifndef DUDA_TEXT_REVOKED_SESSIONS_H
#define DUDA_TEXT_REVOKED_SESSIONS_H

#include <monkey/addr.h>
#include <monkey/text.h>
#include <stdatomic.h>

enum { DUDA_REVOKED_SESSION_ID = 16, DUDA_REVOKED_SESSIONS_SLOTS = 8, DUDA_REVOKED_SESSIONS_LINES = 8192 };

struct duda_revoked_sessions {
    _Atomic uint32_t is_ready;
    struct mk_hash_key key; /* secret, so that clients cannot choose their line */
    struct {
        _Atomic uint64_t slots[DUDA_REVOKED_SESSIONS_SLOTS];
    } lines[DUDA_REVOKED_SESSIONS_LINES];
};

/* Uses zeroed memory, or such that is in use already. In the master, before workers start. */
void duda_revoked_sessions_init(struct duda_revoked_sessions *e);
/* Whose session it was. */
struct duda_revoked_session_client {
    const struct mk_addr *client; /* see mk_addr_client() */
    bool is_known;                /* it was renewed: the visitor had logged in */
};
/* Times are seconds since 1970. The number is among the ended ones until `until`, at most a year ahead. */
void duda_revoked_sessions_add(struct duda_revoked_sessions *e,
                               const unsigned char number[DUDA_REVOKED_SESSION_ID],
                               const struct duda_revoked_session_client *visitor, int64_t now, int64_t until);
bool duda_revoked_sessions_contain(const struct duda_revoked_sessions *e,
                                   const unsigned char number[DUDA_REVOKED_SESSION_ID], int64_t now);

#endif
