/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 (RFC 3629): decoding, validating, counting and encoding characters. Thread-safe. */
#ifndef MONKEY_UTF8_H
#define MONKEY_UTF8_H

#include <monkey/str.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Decodes the character at the start of `s`, which must not be empty. Returns its length in bytes and stores
 * its code point. If the character is malformed (overlong, a surrogate, truncated), returns 0 and stores the
 * first byte.
 */
MK_API size_t mk_utf8_decode(mk_str s, uint32_t *c);
/** The length in bytes of the character at the start of `s`; 0 if that character is malformed. `s` must not
 * be empty. */
MK_API size_t mk_utf8_char_len(mk_str s);
/** The offset in bytes of the first malformed character; MK_STR_NONE if there is none. */
MK_API size_t mk_utf8_find_invalid(mk_str s);
/** The number of characters in well-formed text. */
MK_API size_t mk_utf8_count(mk_str s);
/** Encodes a character up to U+10FFFF that is not a surrogate; returns the number of bytes written. */
MK_API size_t mk_utf8_encode(char out[4], uint32_t c);

#ifdef __cplusplus
}
#endif

#endif
