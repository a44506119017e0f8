/* SPDX-License-Identifier: Apache-2.0 */
/* Text by value: a pointer and a length. */
#ifndef MONKEY_STR_H
#define MONKEY_STR_H

#include <monkey/api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A piece of text: where it begins and how many bytes it has.
 *
 * Passed by value, never NUL-terminated by promise, never owner of its bytes: it is valid as long as what it
 * points into, which the function that hands it out names. An absent text has `p == NULL`; an empty one has
 * `len == 0` and `p != NULL`.
 *
 * Print one with `printf("%.*s", MK_STR_ARG(s))`. Nothing in this file allocates, writes, or looks for a NUL;
 * all of it may be called from any thread.
 */
typedef struct mk_str {
    const char *p;
    size_t len;
} mk_str;

/* clang-format off */
/** A literal as a mk_str: `MK_STR("text/html")`. In C, also usable in static initialisers through
 * MK_STR_INIT. */
#define MK_STR_INIT(literal) {("" literal), sizeof(literal) - 1}
/* clang-format on */
#ifdef __cplusplus
#define MK_STR(literal) (mk_str MK_STR_INIT(literal))
#else
#define MK_STR(literal) ((mk_str)MK_STR_INIT(literal))
#endif

/** An absent text. */
#define MK_STR_NULL (mk_str_of(NULL, 0))

/** The two arguments of a "%.*s". */
#define MK_STR_ARG(s) ((int)(s).len), ((s).p ? (s).p : "")

/** The bytes from `p` on, `len` of them. */
static inline mk_str mk_str_of(const char *p, size_t len)
{
    mk_str s = {p, len};
    return s;
}

/** A string of C as text; absent for NULL. */
static inline mk_str mk_str_from_c(const char *c)
{
    mk_str s = {c, c ? strlen(c) : 0};
    return s;
}

/** The same bytes? */
static inline bool mk_str_eq(mk_str a, mk_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

/** A letter of ASCII in lower case; any other byte as it is. */
static inline char mk_char_lower(char c)
{
    return MK_API_CAST(char, c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

/** One of 0 to 9? */
static inline bool mk_char_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/** A letter of ASCII? */
static inline bool mk_char_is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/** The value of a hexadecimal digit, -1 for any other character. */
MK_API int mk_char_hex(char c);

/** Equal but for the case of ASCII letters. */
MK_API bool mk_str_eq_nocase(mk_str a, mk_str b);
/** Does it begin, or end, with these bytes? */
MK_API bool mk_str_starts(mk_str s, mk_str prefix);
MK_API bool mk_str_ends(mk_str s, mk_str suffix);
/** Byte order, the shorter first: <0, 0, >0. */
MK_API int mk_str_cmp(mk_str a, mk_str b);

/** No place in a text. */
#define MK_STR_NONE SIZE_MAX
/** The position of a byte's first or last occurrence, MK_STR_NONE if nowhere. */
MK_API size_t mk_str_find(mk_str s, char c);
MK_API size_t mk_str_find_last(mk_str s, char c);

/** What is left without the first n bytes; empty if there are fewer. */
MK_API mk_str mk_str_skip(mk_str s, size_t n);
/** The first n bytes, or all if there are fewer. */
MK_API mk_str mk_str_first(mk_str s, size_t n);
/** Without spaces and tabs at both ends. */
MK_API mk_str mk_str_trim(mk_str s);

/**
 * Cuts at the first `sep`: returns the part before it and moves *s behind it. Without `sep` all of *s is
 * the answer and *s becomes absent (p == NULL), so that `while (s.p) { part = mk_str_cut(&s, ','); ... }`
 * ends.
 */
MK_API mk_str mk_str_cut(mk_str *s, char sep);
/** The next word of *s between spaces and tabs; empty when there is none left. */
MK_API mk_str mk_str_word(mk_str *s);

/** Does the text match the pattern? `*` stands for any run of characters, `/` included, `?` for one. */
MK_API bool mk_str_match(mk_str text, mk_str pattern);

/** A decimal number with nothing around it; false when it is none, or does not fit. */
MK_API bool mk_num_parse(mk_str s, uint64_t *out);

#ifdef __cplusplus
}
#endif

#endif
