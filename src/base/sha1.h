/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-1 (RFC 3174), for protocols that require it, such as the WebSocket handshake. Not for security. */
#ifndef MK_BASE_SHA1_H
#define MK_BASE_SHA1_H

#include "base/str.h"

enum { MK_SHA1_LEN = 20 };

void mk_sha1(mk_str text, unsigned char out[MK_SHA1_LEN]);

/* Incremental hashing. */
struct mk_sha1 {
    uint32_t h[5];
    uint64_t len;
    unsigned char rest[64]; /* bytes that do not fill a block yet */
};

void mk_sha1_init(struct mk_sha1 *s);
void mk_sha1_update(struct mk_sha1 *s, mk_str piece);
void mk_sha1_final(struct mk_sha1 *s, unsigned char out[MK_SHA1_LEN]);

#endif
