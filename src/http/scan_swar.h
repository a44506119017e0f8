/* SPDX-License-Identifier: Apache-2.0 */
/* Part of http/scan.h for processors without SSE2: scans eight bytes at a time. */
#ifndef MK_HTTP_SCAN_SWAR_H
#define MK_HTTP_SCAN_SWAR_H

/* Returns the end of the run of MK_SCAN_VALUE characters that starts at `at`. */
static inline const char *mk_scan_value(const char *at, const char *end)
{
    for (; end - at >= 8; at += 8) {
        uint64_t marks = mk_scan_controls(mk_scan_load(at));
        if (!marks)
            continue;
        at += mk_scan_before(marks);
        if (!mk_scan_is(*at, MK_SCAN_VALUE))
            return at;
        break; /* a tab */
    }
    return mk_scan_skip(at, end, MK_SCAN_VALUE);
}

/* Returns the end of the run of MK_SCAN_TARGET characters that starts at `at`. If it starts with a plain path
 * (see mk_path_is_plain()), *path is the end of that path: the first '?', or the end of the run. NULL:
 * unknown. */
static inline const char *mk_scan_target(const char *at, const char *end, const char **path)
{
    *path = NULL;
    for (; end - at >= 8; at += 8) {
        uint64_t word = mk_scan_load(at);
        uint64_t high = (word | (word + MK_SCAN_EACH(1))) & MK_SCAN_EACH(0x80);
        uint64_t marks = mk_scan_below(word, 0x21) | mk_scan_equal(word, '#') | high;
        if (marks)
            return mk_scan_skip(at + mk_scan_before(marks), end, MK_SCAN_TARGET);
    }
    return mk_scan_skip(at, end, MK_SCAN_TARGET);
}

/* The counterpart of the SSE2 function: always false (unknown), so that the caller tests each character. */
static inline bool mk_scan_is_clear(mk_str s, size_t *dot)
{
    (void)s;
    *dot = 0;
    return false;
}

/* The counterpart of the SSE2 function: always false (unknown), so that the caller tests each character. */
static inline bool mk_scan_is_name(mk_str s)
{
    (void)s;
    return false;
}

/* Returns the first `c` at or after `at`; `end`: none. */
static inline const char *mk_scan_find(const char *at, const char *end, char c)
{
    for (; end - at >= 8; at += 8) {
        uint64_t marks = mk_scan_equal(mk_scan_load(at), (unsigned char)c);
        if (marks) {
            at += mk_scan_before(marks);
            break;
        }
    }
    while (at < end && *at != c)
        at++;
    return at;
}

#endif
