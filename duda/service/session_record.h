/* SPDX-License-Identifier: Apache-2.0 */
/* A session, as an object of a request and as serialized bytes. */
#ifndef DUDA_SERVICE_SESSION_RECORD_H
#define DUDA_SERVICE_SESSION_RECORD_H

#include <duda/session.h>

#include "service/duda_ctx.h"
#include "service/revoked_sessions.h"
#include "service/siphash.h"

struct duda_session_pair {
    mk_str name, value;
    bool is_set; /* by this request */
};

struct duda_session {
    struct duda_ctx *d;
    const struct duda_session_store *store; /* see duda_session_store_of() */
    bool exists, writes_cookie;
    bool is_unsaved;   /* the handler was cancelled before it could write the cookie */
    bool has_replaced; /* `replaced` is revoked just before the cookie with the new number is written */
    bool replaced_was_renewed;
    bool is_new;                  /* created in this request and not in the store yet */
    bool is_renewed;              /* the ID was regenerated, so the user has presumably logged in */
    bool is_record;               /* not a session, see session_user.h: use does not extend its life */
    bool is_revocation;           /* such a record, which ends the sessions of a user */
    char id[DUDA_SESSION_ID_LEN]; /* session ID, as in the cookie */
    /* Key in the store, and the same as text: see duda_session_derive_key(). */
    unsigned char key_bytes[DUDA_SESSION_ID_LEN / 2];
    char key[DUDA_SESSION_ID_LEN];
    unsigned char number[DUDA_REVOKED_SESSION_ID]; /* ID of a session in an encrypted cookie */
    unsigned char replaced[DUDA_REVOKED_SESSION_ID];
    int64_t began, used;
    struct duda_session_pair *pairs;
    size_t n, cap;
    char *record; /* DUDA_SESSION_MAX bytes: see duda_session_record_buf() */
};

/* Sizes of the header before the pairs, and of the lengths before each pair. */
enum {
    DUDA_SESSION_HEAD = 17, /* times of creation and last use, and whether it was regenerated */
    DUDA_SESSION_PAIR = 4,
    DUDA_SESSION_PAIRS_MAX = 64
};
_Static_assert((int)DUDA_SIPHASH_TAG == (int)DUDA_REVOKED_SESSION_ID,
               "a session has the same size limit in a cookie and in a store");

/* Returns the pair with that name; NULL if there is none. Pairs live as long as the request. */
struct duda_session_pair *duda_session_find_pair(const struct duda_session *s, mk_str name);
/* Sets a pair; an absent value removes it. Returns 0, -EMSGSIZE or -ENOMEM. */
int duda_session_put_pair(struct duda_session *s, mk_str name, mk_str value);

/* Returns a buffer, allocated from the request, for a record or cookie that is read or written. Such a buffer
 * is too large for the stack of a handler. NULL if out of memory. */
char *duda_session_record_buf(struct duda_session *s);
void duda_session_encode(const struct duda_session *s, struct mk_buf *out);
bool duda_session_decode(struct duda_session *s, mk_str data);

#endif
