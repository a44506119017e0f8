/* SPDX-License-Identifier: Apache-2.0 */
/* Character classes, and fast scanning of HTTP text. */
#ifndef MK_HTTP_SCAN_H
#define MK_HTTP_SCAN_H

#include "base/str.h"

/* Character classes; a set of classes is a bit mask. */
enum {
    MK_SCAN_TOKEN = 1u << 0,  /* tchar (RFC 9110, section 5.6.2) */
    MK_SCAN_VALUE = 1u << 1,  /* HTAB, SP, VCHAR, obs-text (RFC 9110, section 5.5) */
    MK_SCAN_TARGET = 1u << 2, /* visible ASCII except '#' */
    MK_SCAN_LABEL = 1u << 3,  /* characters of host labels: letters, digits, '-', '_' */
    MK_SCAN_ETAG = 1u << 4,   /* etagc (RFC 9110, section 8.8.3) */
    MK_SCAN_QUOTED = 1u << 5, /* qdtext (RFC 9110, section 5.6.4) */
    MK_SCAN_CLEAR = 1u << 6,  /* unambiguous in a path: visible ASCII except '#', '$', '%', '(', '.', ';', '?'
                               * and '\\' */
};

extern const uint8_t mk_scan_classes[256];

static inline bool mk_scan_is(char c, unsigned classes)
{
    return mk_scan_classes[(unsigned char)c] & classes;
}

/* Returns the first character at or after `at` that is in none of the classes; `end`: none. */
static inline const char *mk_scan_skip(const char *at, const char *end, unsigned classes)
{
    while (at < end && mk_scan_is(*at, classes))
        at++;
    return at;
}

/* Is every character in one of the classes? True for empty text. */
static inline bool mk_scan_all(mk_str s, unsigned classes)
{
    return s.len == 0 || mk_scan_skip(s.p, s.p + s.len, classes) == s.p + s.len;
}

/* The functions below test the eight bytes of a word at once: they mark a byte by setting its high bit.
 * Counted from the lowest byte of the word, the first mark is always right; marks above it may be wrong
 * because of borrows and carries. */
#define MK_SCAN_EACH(byte) (0x0101010101010101u * (uint64_t)(byte))

static inline uint64_t mk_scan_load(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* Marks the bytes below `limit`, which is at most 0x80. */
static inline uint64_t mk_scan_below(uint64_t word, unsigned char limit)
{
    return (word - MK_SCAN_EACH(limit)) & ~word & MK_SCAN_EACH(0x80);
}

static inline uint64_t mk_scan_equal(uint64_t word, unsigned char c)
{
    return mk_scan_below(word ^ MK_SCAN_EACH(c), 1);
}

/* Returns the number of bytes before the first mark. */
static inline unsigned mk_scan_before(uint64_t marks)
{
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        return (unsigned)__builtin_ctzll(marks) / 8;
    return 0; /* the first mark in memory may be wrong: the caller continues byte by byte */
}

/* Marks control characters: everything outside MK_SCAN_VALUE, and tabs. */
static inline uint64_t mk_scan_controls(uint64_t word)
{
    uint64_t low = word - MK_SCAN_EACH(0x20), delete = (word ^ MK_SCAN_EACH(0x7f)) - MK_SCAN_EACH(1);
    return (low | delete) & ~word & MK_SCAN_EACH(0x80);
}

/* Is the string at least eight bytes long and without control characters? The last word overlaps the one
 * before it if the length is not a multiple of eight. False: unknown. */
static inline bool mk_scan_is_plain(mk_str s)
{
    if (s.len < 8)
        return false;
    for (size_t i = 0; i + 8 < s.len; i += 8)
        if (mk_scan_controls(mk_scan_load(s.p + i)))
            return false;
    return !mk_scan_controls(mk_scan_load(s.p + s.len - 8));
}

#if defined __SSE2__ && defined __x86_64__
#include "http/scan_sse2.h"
#else
#include "http/scan_swar.h"
#endif

/* Trims surrounding white space (OWS: RFC 9110, section 5.6.3). */
static inline mk_str mk_scan_trim(const char *from, const char *to)
{
    while (from < to && (*from == ' ' || *from == '\t'))
        from++;
    while (to > from && (to[-1] == ' ' || to[-1] == '\t'))
        to--;
    return mk_str_of(from, (size_t)(to - from));
}

/* Compares eight characters with a known name: case may differ only where the name has a letter. Among the
 * characters of names (letters, digits, '-'), letters are those with bit 6 set. */
static inline bool mk_scan_equal_nocase8(const char *text, const char *name)
{
    uint64_t known = mk_scan_load(name);
    uint64_t letters = (known & MK_SCAN_EACH(0x40)) >> 1;
    return ((mk_scan_load(text) ^ known) & ~letters) == 0;
}

static inline bool mk_scan_equal_nocase4(const char *text, const char *name)
{
    uint32_t a, known;
    memcpy(&a, text, sizeof a);
    memcpy(&known, name, sizeof known);
    return ((a ^ known) & ~((known & 0x40404040u) >> 1)) == 0;
}

/* Is the text equal to a known header name of the same length (case-insensitive)? The last word overlaps the
 * one before it if the length is not a multiple of eight. */
static inline bool mk_scan_is_header_name(const char *text, const char *name, size_t len)
{
    if (len < 4)
        return mk_str_eq_nocase(mk_str_of(text, len), mk_str_of(name, len));
    if (len < 8)
        return mk_scan_equal_nocase4(text, name) && mk_scan_equal_nocase4(text + len - 4, name + len - 4);
    for (size_t i = 0; i + 8 < len; i += 8)
        if (!mk_scan_equal_nocase8(text + i, name + i))
            return false;
    return mk_scan_equal_nocase8(text + len - 8, name + len - 8);
}

/* Does the text contain an ASCII capital letter? */
static inline bool mk_scan_has_capitals(mk_str s)
{
    const char *at = s.p, *end = s.p + s.len;
    for (; end - at >= 8; at += 8) {
        uint64_t word = mk_scan_load(at), low = word & MK_SCAN_EACH(0x7f);
        uint64_t from_a = low + MK_SCAN_EACH(0x80 - 'A'), beyond_z = low + MK_SCAN_EACH(0x7f - 'Z');
        if (from_a & ~beyond_z & ~word & MK_SCAN_EACH(0x80))
            return true;
    }
    for (; at < end; at++)
        if (*at >= 'A' && *at <= 'Z')
            return true;
    return false;
}

#endif
