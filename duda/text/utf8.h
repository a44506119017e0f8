/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 (RFC 3629): validating, counting and encoding characters. */
#ifndef DUDA_TEXT_UTF8_H
#define DUDA_TEXT_UTF8_H

#include <monkey/buf.h>

/* The length in bytes of the character at the start of `s`, which is not empty; 0 if it is malformed. */
size_t duda_utf8_char_len(mk_str s);
/* The offset of the first malformed character; MK_STR_NONE if there is none. */
size_t duda_utf8_find_invalid(mk_str s);
/* The number of characters in well-formed text. */
size_t duda_utf8_count(mk_str s);
/* Encodes a character up to U+10FFFF that is not a surrogate; returns its length. */
size_t duda_utf8_encode(char out[4], uint32_t c);

#endif
