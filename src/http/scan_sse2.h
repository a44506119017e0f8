/* SPDX-License-Identifier: Apache-2.0 */
/* Part of http/scan.h: scans 16 bytes at a time. */
#ifndef MK_HTTP_SCAN_SSE2_H
#define MK_HTTP_SCAN_SSE2_H

#include <emmintrin.h>

enum { MK_SCAN_LANES = 16 };

static inline __m128i mk_scan_load_lanes(const char *at)
{
    __m128i lanes;
    memcpy(&lanes, at, sizeof lanes);
    return lanes;
}

static inline __m128i mk_scan_lanes_equal(__m128i lanes, char c)
{
    return _mm_cmpeq_epi8(lanes, _mm_set1_epi8(c));
}

/* Returns a bitmap with one bit for each lane: 1 if the lane is marked. */
static inline unsigned mk_scan_bits(__m128i marks)
{
    return (unsigned)_mm_movemask_epi8(marks);
}

/* Marks characters outside MK_SCAN_VALUE. */
static inline unsigned mk_scan_no_value(__m128i lanes)
{
    __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(lanes, _mm_set1_epi8(0x1f)), lanes);
    return mk_scan_bits(_mm_or_si128(_mm_andnot_si128(mk_scan_lanes_equal(lanes, '\t'), low),
                                     mk_scan_lanes_equal(lanes, 0x7f)));
}

/* Returns the end of the run of MK_SCAN_VALUE characters that starts at `at`. */
static inline const char *mk_scan_value(const char *at, const char *end)
{
    for (; end - at >= MK_SCAN_LANES; at += MK_SCAN_LANES) {
        unsigned stops = mk_scan_no_value(mk_scan_load_lanes(at));
        if (stops)
            return at + __builtin_ctz(stops);
    }
    if (end - at >= MK_SCAN_LANES / 2) { /* fewer than 16 bytes left: a short value in the last line */
        unsigned stops = mk_scan_no_value(_mm_cvtsi64_si128((long long)mk_scan_load(at))) & 0xff;
        if (stops)
            return at + __builtin_ctz(stops);
        at += MK_SCAN_LANES / 2;
    }
    return mk_scan_skip(at, end, MK_SCAN_VALUE);
}

/* Marks the lanes at which a sequence begins that a plain path may not contain. */
static inline unsigned mk_scan_odd(const char *at, __m128i lanes)
{
    __m128i next = mk_scan_load_lanes(at + 1);
    __m128i after = _mm_or_si128(mk_scan_lanes_equal(next, '/'), mk_scan_lanes_equal(next, '.'));
    __m128i pairs = _mm_and_si128(after, mk_scan_lanes_equal(lanes, '/'));
    return mk_scan_bits(_mm_or_si128(pairs, mk_scan_lanes_equal(lanes, '%')));
}

/* Marks characters outside MK_SCAN_TARGET. */
static inline unsigned mk_scan_no_target(__m128i lanes)
{
    /* Compared as signed numbers, bytes above 0x7f are less than all others. */
    __m128i visible = _mm_cmpgt_epi8(lanes, _mm_set1_epi8(0x20));
    __m128i excepted = _mm_or_si128(mk_scan_lanes_equal(lanes, '#'), mk_scan_lanes_equal(lanes, 0x7f));
    return mk_scan_bits(_mm_andnot_si128(excepted, visible)) ^ 0xffff;
}

/* Returns the bits below the lowest set bit; all bits if none is set. */
static inline unsigned mk_scan_bits_before(unsigned bits)
{
    return (bits - 1) & ~bits;
}

/* Returns the end of the run of MK_SCAN_TARGET characters that starts at `at`. If it starts with a plain path
 * (see mk_path_is_plain()), *path is the end of that path: the first '?', or the end of the run. NULL:
 * unknown. */
static inline const char *mk_scan_target(const char *at, const char *end, const char **path)
{
    const char *query = NULL;
    bool odd = at == end || *at != '/';
    *path = NULL;
    for (; end - at > MK_SCAN_LANES; at += MK_SCAN_LANES) {
        __m128i lanes = mk_scan_load_lanes(at);
        unsigned stops = mk_scan_no_target(lanes);
        if (!query) {
            unsigned marks = mk_scan_bits(mk_scan_lanes_equal(lanes, '?')) & mk_scan_bits_before(stops);
            odd |= (mk_scan_odd(at, lanes) & mk_scan_bits_before(marks | stops)) != 0;
            query = marks ? at + __builtin_ctz(marks) : NULL;
        }
        if (stops) {
            at += __builtin_ctz(stops);
            *path = odd ? NULL : query ? query : at;
            return at;
        }
    }
    return mk_scan_skip(at, end, MK_SCAN_TARGET);
}

/* Marks characters that are neither in MK_SCAN_CLEAR nor dots. */
static inline unsigned mk_scan_no_clear(__m128i lanes)
{
    __m128i from_hash = _mm_sub_epi8(lanes, _mm_set1_epi8('#')); /* '#', '$' and '%' are consecutive */
    __m128i odd = _mm_cmpeq_epi8(_mm_min_epu8(from_hash, _mm_set1_epi8(2)), from_hash);
    __m128i marks = mk_scan_lanes_equal(_mm_or_si128(lanes, _mm_set1_epi8(4)), '?'); /* and ';' */
    odd = _mm_or_si128(odd, _mm_or_si128(marks, mk_scan_lanes_equal(lanes, '(')));
    odd = _mm_or_si128(odd, _mm_or_si128(mk_scan_lanes_equal(lanes, '\\'), mk_scan_lanes_equal(lanes, 0x7f)));
    return mk_scan_bits(_mm_andnot_si128(odd, _mm_cmpgt_epi8(lanes, _mm_set1_epi8(0x20)))) ^ 0xffff;
}

/* Does the string consist of MK_SCAN_CLEAR characters and dots? Sets *dot to an offset before which there is
 * no dot. False: unknown. If the length is not a multiple of the number of lanes, the last load overlaps the
 * one before it. */
static inline bool mk_scan_is_clear(mk_str s, size_t *dot)
{
    if (s.len < MK_SCAN_LANES / 2)
        return false;
    if (s.len < MK_SCAN_LANES) {
        size_t last = s.len - MK_SCAN_LANES / 2;
        __m128i lanes = _mm_set_epi64x((long long)mk_scan_load(s.p + last), (long long)mk_scan_load(s.p));
        unsigned dots = mk_scan_bits(mk_scan_lanes_equal(lanes, '.'));
        *dot = !dots ? s.len : dots & 0xff ? (size_t)__builtin_ctz(dots) : last;
        return !mk_scan_no_clear(lanes);
    }
    *dot = s.len;
    for (size_t i = 0;; i += MK_SCAN_LANES) {
        bool is_last = s.len - i <= MK_SCAN_LANES;
        size_t at = is_last ? s.len - MK_SCAN_LANES : i;
        __m128i lanes = mk_scan_load_lanes(s.p + at);
        if (mk_scan_no_clear(lanes))
            return false;
        if (*dot == s.len && mk_scan_bits(mk_scan_lanes_equal(lanes, '.')))
            *dot = at;
        if (is_last)
            return true;
    }
}

/* Marks characters other than letters, digits and '-'. */
static inline unsigned mk_scan_no_name(__m128i lanes)
{
    __m128i from_a = _mm_sub_epi8(_mm_or_si128(lanes, _mm_set1_epi8(0x20)), _mm_set1_epi8('a'));
    __m128i from_0 = _mm_sub_epi8(lanes, _mm_set1_epi8('0'));
    __m128i letters = _mm_cmpeq_epi8(_mm_min_epu8(from_a, _mm_set1_epi8(25)), from_a);
    __m128i digits = _mm_cmpeq_epi8(_mm_min_epu8(from_0, _mm_set1_epi8(9)), from_0);
    __m128i names = _mm_or_si128(_mm_or_si128(letters, digits), mk_scan_lanes_equal(lanes, '-'));
    return mk_scan_bits(names) ^ 0xffff;
}

/* Does the string consist of letters, digits and '-', as nearly all header names do? False: unknown. Loads overlap as in
 * mk_scan_is_clear(). */
static inline bool mk_scan_is_name(mk_str s)
{
    if (s.len < MK_SCAN_LANES / 2)
        return false;
    const char *at = s.p, *last = at + s.len - MK_SCAN_LANES / 2;
    for (; last - at > MK_SCAN_LANES / 2; at += MK_SCAN_LANES)
        if (mk_scan_no_name(mk_scan_load_lanes(at)))
            return false;
    at = last < at ? last : at;
    return !mk_scan_no_name(_mm_set_epi64x((long long)mk_scan_load(last), (long long)mk_scan_load(at)));
}

/* Returns the first `c` at or after `at`; `end`: none. */
static inline const char *mk_scan_find(const char *at, const char *end, char c)
{
    for (; end - at >= MK_SCAN_LANES; at += MK_SCAN_LANES) {
        unsigned found = mk_scan_bits(mk_scan_lanes_equal(mk_scan_load_lanes(at), c));
        if (found)
            return at + __builtin_ctz(found);
    }
    while (at < end && *at != c)
        at++;
    return at;
}

#endif
