/* SPDX-License-Identifier: Apache-2.0 */
/* Incremental UTF-8 validation (RFC 3629): the text may be split anywhere. */
#ifndef MK_HTTP_UTF8_H
#define MK_HTTP_UTF8_H

#include "base/compiler.h"
#include "base/str.h"

/* State of the validation within a character; initially zero. */
struct mk_utf8 {
    uint8_t more;     /* continuation bytes to come */
    uint8_t low, top; /* allowed range of the next continuation byte */
};

/* Continues with `s`: false as soon as the text is invalid. */
bool mk_utf8_feed(struct mk_utf8 *u, mk_str s) MK_MUST_USE;
/* Does the text end with a complete character? */
static inline bool mk_utf8_is_complete(const struct mk_utf8 *u)
{
    return u->more == 0;
}

/* Validates the complete text. */
bool mk_utf8_is_valid(mk_str s) MK_MUST_USE;

#endif
