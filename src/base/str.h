/* SPDX-License-Identifier: Apache-2.0 */
/* Text as pointer and length. Nothing here allocates, writes, or looks for a NUL. */
#ifndef MK_BASE_STR_H
#define MK_BASE_STR_H

#include <monkey/str.h>
#include <string.h>

#include "base/def.h"

static inline mk_str mk_str_of(const char *p, size_t len)
{
    return (mk_str){p, len};
}

static inline mk_str mk_str_from_c(const char *c)
{
    return (mk_str){c, c ? strlen(c) : 0};
}

static inline bool mk_str_eq(mk_str a, mk_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

static inline char mk_char_lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

static inline bool mk_char_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool mk_char_is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The value of a hexadecimal digit, -1 for any other character. */
int mk_char_hex(char c);

/* Equal but for the case of ASCII letters. */
bool mk_str_eq_nocase(mk_str a, mk_str b);
bool mk_str_starts(mk_str s, mk_str prefix);
bool mk_str_ends(mk_str s, mk_str suffix);
/* Byte order, the shorter first: <0, 0, >0. */
int mk_str_cmp(mk_str a, mk_str b);

#define MK_STR_NONE ((size_t)-1)
/* Where a byte stands first or last, MK_STR_NONE if nowhere. */
size_t mk_str_find(mk_str s, char c);
size_t mk_str_find_last(mk_str s, char c);

/* The bytes from `from` on, and those before `to`; positions beyond the end are the end. */
mk_str mk_str_skip(mk_str s, size_t from);
mk_str mk_str_take(mk_str s, size_t to);
/* Without spaces and tabs at both ends. */
mk_str mk_str_trim(mk_str s);

/* Cuts at the first `sep`: answers what stands before it and moves *s behind it. Without `sep` all of *s is
 * the answer and *s becomes absent (p == NULL), so that `while (s.p) { part = mk_str_cut(&s, ','); ... }`
 * ends. */
mk_str mk_str_cut(mk_str *s, char sep);
/* The next word of *s between spaces and tabs; empty when there is none left. */
mk_str mk_str_word(mk_str *s);

/* Does the text match the pattern? `*` stands for any run of characters, `/` included, `?` for one. */
bool mk_str_match(mk_str text, mk_str pattern);

#endif
