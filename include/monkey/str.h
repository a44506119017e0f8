/* SPDX-License-Identifier: Apache-2.0 */
/* Strings by value: a pointer and a length. */
#ifndef MONKEY_STR_H
#define MONKEY_STR_H

#include <limits.h>
#include <monkey/api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A string slice: a pointer to its first byte, and its length in bytes.
 *
 * Slices are passed by value. They are not necessarily NUL-terminated, and never own their bytes: a slice is
 * valid as long as the memory that it points to. Each function that returns a slice documents this lifetime.
 * An absent string has `p == NULL`; an empty one has `len == 0` and `p != NULL`.
 *
 * Print a slice with `printf("%.*s", MK_STR_ARG(s))`. No function in this file allocates, writes, or looks
 * for a NUL, and all of them are thread-safe.
 */
typedef struct mk_str {
    const char *p;
    size_t len;
} mk_str;

/* clang-format off */
/** A literal as a mk_str: `MK_STR("text/html")`. For static initializers in C, use MK_STR_INIT. */
#define MK_STR_INIT(literal) {("" literal), sizeof(literal) - 1}
/* clang-format on */
#ifdef __cplusplus
#define MK_STR(literal) (mk_str MK_STR_INIT(literal))
#else
#define MK_STR(literal) ((mk_str)MK_STR_INIT(literal))
#endif

/** An absent string. */
#define MK_STR_NULL (mk_str_of(MK_API_NULL, 0))

/** The two arguments for "%.*s". Evaluates `s` several times. */
#define MK_STR_ARG(s)                                                                                        \
    (MK_API_CAST(int, (s).len < MK_STR_ARG_MAX ? (s).len : MK_STR_ARG_MAX)), ((s).p ? (s).p : "")
/** The maximum length that MK_STR_ARG() passes. printf() takes an int, and ignores a negative precision. */
#define MK_STR_ARG_MAX MK_API_CAST(size_t, INT_MAX)

/** Creates a slice of `len` bytes at `p`. */
static inline mk_str mk_str_of(const char *p, size_t len)
{
    mk_str s = {p, len};
    return s;
}

/** Creates a slice from a C string; absent for NULL. */
static inline mk_str mk_str_from_c(const char *c)
{
    mk_str s = {c, c ? strlen(c) : 0};
    return s;
}

/** Are the strings equal? */
static inline bool mk_str_eq(mk_str a, mk_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

/** Converts an ASCII letter to lower case; other bytes are unchanged. */
static inline char mk_char_lower(char c)
{
    return MK_API_CAST(char, c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

/** Is this a decimal digit? */
static inline bool mk_char_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/** Is this an ASCII letter? */
static inline bool mk_char_is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/** The value of a hexadecimal digit; -1 for any other character. */
MK_API int mk_char_hex(char c);

/** Are the strings equal, ignoring the case of ASCII letters? */
MK_API bool mk_str_eq_nocase(mk_str a, mk_str b);
/**
 * Does the string start, or end, with these bytes?
 *
 *     if (mk_str_starts(path, MK_STR("/api/")) && mk_str_ends(path, MK_STR(".json"))) ...
 */
MK_API bool mk_str_starts(mk_str text, mk_str prefix);
MK_API bool mk_str_ends(mk_str text, mk_str suffix);
/** Compares in byte order; a prefix sorts first. Returns a number below, equal to or above 0. */
MK_API int mk_str_cmp(mk_str a, mk_str b);

/** The result of a search that finds nothing. */
#define MK_STR_NONE SIZE_MAX
/**
 * The position of the first or last occurrence of a byte; MK_STR_NONE if there is none.
 *
 *     size_t at = mk_str_find(path, '.');
 *     mk_str base = mk_str_first(path, at == MK_STR_NONE ? path.len : at);
 */
MK_API size_t mk_str_find(mk_str text, char c);
MK_API size_t mk_str_find_last(mk_str text, char c);

/**
 * Removes the first n bytes; empty if there are fewer.
 *
 *     mk_str rest = mk_str_skip(path, 4); // without its first 4 bytes
 */
MK_API mk_str mk_str_skip(mk_str text, size_t n);
/** The first n bytes, or all if there are fewer. */
MK_API mk_str mk_str_first(mk_str text, size_t n);
/** Removes spaces and tabs from both ends. */
MK_API mk_str mk_str_trim(mk_str text);

/**
 * Splits at the first `sep`: returns the part before it, and moves *text past it. If there is no `sep`,
 * returns all of *text and makes *text absent (p == NULL), which ends a loop.
 *
 *     mk_str rest = MK_STR("a,b,c");
 *     while (rest.p) {
 *         mk_str part = mk_str_cut(&rest, ',');
 *         printf("%.*s\n", MK_STR_ARG(part));
 *     }
 */
MK_API mk_str mk_str_cut(mk_str *text, char sep);
/** Returns the next word of *text, separated by spaces and tabs; empty if none is left. */
MK_API mk_str mk_str_word(mk_str *text);

/** Does the string match the pattern? `*` matches any sequence of characters, including `/`; `?`
 * matches one character. */
MK_API bool mk_str_match(mk_str text, mk_str pattern);
/** Like mk_str_match(), but ignores the case of ASCII letters. */
MK_API bool mk_str_match_nocase(mk_str text, mk_str pattern);

/* Functions that parse text, here and in other headers, return true on success. Functions whose input can be
 * invalid for several reasons return 0 or a negative errno value instead. */

/**
 * Parses a decimal number without surrounding characters. Returns false, and leaves *out unchanged, if it is
 * malformed or out of range.
 *
 *     uint64_t n;
 *     if (!mk_num_parse(text, &n) || n > 1000)
 *         return -EINVAL;
 */
MK_API bool mk_num_parse(mk_str text, uint64_t *out);
/** Like mk_num_parse(), but accepts a leading `-`. */
MK_API bool mk_num_parse_int(mk_str text, int64_t *out);
/**
 * Parses a number in the syntax of JSON (RFC 8259, section 6): `-1.5e3`. Returns false, and leaves *out
 * unchanged, if it is malformed, longer than 256 bytes, or too large for a finite number. Independent of the
 * locale.
 *
 *     double degrees;
 *     if (!mk_num_parse_double(text, &degrees))
 *         return -EINVAL;
 */
MK_API bool mk_num_parse_double(mk_str text, double *out);

#ifdef __cplusplus
}
#endif

#endif
