/* SPDX-License-Identifier: Apache-2.0 */
/* A session as a request has it, and as bytes. */
#ifndef DUDA_SERVICE_SESSION_RECORD_H
#define DUDA_SERVICE_SESSION_RECORD_H

#include <duda/session.h>

#include "service/duda_ctx.h"
#include "text/revoked_sessions.h"
#include "text/siphash.h"

struct duda_session_pair {
    mk_str name, value;
};

struct duda_session {
    struct duda_ctx *d;
    bool exists, writes_cookie;
    bool is_new;               /* its number was made in this request, and the store does not know it */
    bool is_renewed;           /* its visitor has logged in, as far as we know */
    char id[DUDA_SESSION_ID];  /* as the cookie has it */
    char key[DUDA_SESSION_ID]; /* as the stores have it: see duda_session_derive_key() */
    unsigned char number[DUDA_REVOKED_SESSION_ID]; /* of one that is sealed in its cookie */
    int64_t began, used;
    struct duda_session_pair *pairs;
    size_t n, cap;
};

/* Bytes in front of the pairs: of a pair, the lengths of its texts. */
enum {
    DUDA_SESSION_HEAD = 17, /* when it began and was last used, and whether it was renewed */
    DUDA_SESSION_PAIR = 4,
    DUDA_SESSION_PAIRS_MAX = 64
};
_Static_assert((int)DUDA_SIPHASH_TAG == (int)DUDA_REVOKED_SESSION_ID,
               "both are as long, so that sessions have the same limit");

/* The pairs. They live as long as the request. */
struct duda_session_pair *duda_session_find_pair(const struct duda_session *s, mk_str name);
/* 0, -E2BIG or -ENOMEM. An absent value removes it. */
int duda_session_put_pair(struct duda_session *s, mk_str name, mk_str value);

void duda_session_encode(const struct duda_session *s, struct mk_buf *out);
bool duda_session_decode(struct duda_session *s, mk_str data);

#endif
