/* SPDX-License-Identifier: Apache-2.0 */
/* Is text UTF-8 (RFC 3629)? It may come in pieces, cut anywhere. */
#ifndef MK_HTTP_UTF8_H
#define MK_HTTP_UTF8_H

#include "base/compiler.h"
#include "base/str.h"

/* Where in a character the text ends so far; zero at first. */
struct mk_utf8 {
    uint8_t more;     /* bytes of the character that are to come */
    uint8_t low, top; /* what the next one of them may be */
};

/* The text goes on with `s`: false as soon as it cannot be UTF-8 any more. */
bool mk_utf8_feed(struct mk_utf8 *u, mk_str s) MK_MUST_USE;
/* Does it end with a whole character? */
static inline bool mk_utf8_is_complete(const struct mk_utf8 *u)
{
    return u->more == 0;
}

/* All of it at once. */
bool mk_utf8_is_valid(mk_str s) MK_MUST_USE;

#endif
