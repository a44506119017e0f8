/* SPDX-License-Identifier: Apache-2.0 */
/* A session as a request has it, and as bytes. */
#ifndef DUDA_SERVICE_SESSION_RECORD_H
#define DUDA_SERVICE_SESSION_RECORD_H

#include <duda/visitor.h>

#include "service/duda_type.h"
#include "text/ended.h"
#include "text/mac.h"

struct duda_session_pair {
    mk_str name, value;
};

struct duda_session {
    struct duda *d;
    bool exists, writes_cookie;
    bool is_new;               /* its number was made in this request, and the store does not know it */
    bool is_renewed;           /* its visitor has logged in, as far as we know */
    char id[DUDA_SESSION_ID];  /* as the cookie has it */
    char key[DUDA_SESSION_ID]; /* as the stores have it: see duda_session_bind() */
    unsigned char number[DUDA_ENDED_NUMBER]; /* of one that is sealed in its cookie */
    int64_t began, used;
    struct duda_session_pair *pairs;
    size_t n, room;
};

/* Bytes in front of the pairs: of a pair, the lengths of its texts. */
enum {
    DUDA_SESSION_HEAD = 17, /* when it began and was last used, and whether it was renewed */
    DUDA_SESSION_PAIR = 4,
    DUDA_SESSION_PAIRS_MAX = 64
};
_Static_assert((int)DUDA_MAC == (int)DUDA_ENDED_NUMBER,
               "both are as long, so that sessions have the same limit");

/* The pairs. They live as long as the request. */
struct duda_session_pair *duda_session_pair_of(const struct duda_session *s, mk_str name);
/* 0, -E2BIG or -ENOMEM. An absent value removes it. */
int duda_session_change(struct duda_session *s, mk_str name, mk_str value);

void duda_session_encode(const struct duda_session *s, struct mk_buf *out);
bool duda_session_decode(struct duda_session *s, mk_str data);

#endif
