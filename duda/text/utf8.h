/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 (RFC 3629): is it well-formed, how many characters has it, how is one written? */
#ifndef DUDA_TEXT_UTF8_H
#define DUDA_TEXT_UTF8_H

#include <monkey/buf.h>

/* The bytes of the character at the start of `s`, which is not empty; 0 if it is not well-formed. */
size_t duda_utf8_char_len(mk_str s);
/* Where the first character that is not well-formed begins; MK_STR_NONE if there is none. */
size_t duda_utf8_find_invalid(mk_str s);
/* Characters of well-formed text. */
size_t duda_utf8_count(mk_str s);
/* Writes a character, up to U+10FFFF and no surrogate: its length. */
size_t duda_utf8_encode(char out[4], uint32_t c);

#endif
