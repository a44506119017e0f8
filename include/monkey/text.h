/* SPDX-License-Identifier: Apache-2.0 */
/* Text formats of HTTP and related standards: dates, escapes, lists, patterns. Thread-safe. */
#ifndef MONKEY_TEXT_H
#define MONKEY_TEXT_H

#include <monkey/buf.h>
#include <monkey/http.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Is the string a token, such as a method or header name (RFC 9110, section 5.6.2)? A token is not empty. */
MK_API bool mk_is_token(mk_str text);
/** Is the string a valid header value: only HTAB, visible characters, spaces and obs-text (RFC 9110,
 * section 5.5)? Such text contains no line break, so it cannot inject another header. May be empty. */
MK_API bool mk_is_header_value(mk_str text);

/**
 * Returns the next element of a comma-separated list (RFC 9110, section 5.6.1), trimmed. Empty elements are
 * skipped, and commas inside quoted strings do not separate elements. Moves *rest past the element. Returns
 * false at the end. The syntax of elements is not checked.
 */
MK_API bool mk_header_list_next(mk_str *rest, mk_str *element);

/** Returns which party may set a request header of that name. */
MK_API enum mk_header_role mk_header_role(mk_str name);

/** Appends "Name: value" and CRLF, without validation. */
static inline void mk_header_append(struct mk_buf *buf, mk_str name, mk_str value)
{
    size_t len = name.len + value.len + 4;
    if ((buf->failed || buf->cap - buf->len < len) && !mk_buf_reserve(buf, len))
        return;
    char *at = buf->p + buf->len;
    memcpy(at, name.p, name.len);
    at += name.len;
    memcpy(at, ": ", 2);
    if (value.len)
        memcpy(at + 2, value.p, value.len);
    memcpy(at + 2 + value.len, "\r\n", 2);
    buf->len += len;
}

/** The length of a date in bytes. */
enum { MK_DATE_LEN = 29 };
/** Writes a date such as "Sun, 06 Nov 1994 08:49:37 GMT", without a NUL (RFC 9110, section 5.6.7).
 * `time` is in seconds since the Unix epoch, and is clamped to the years 0 to 9999. */
MK_API void mk_date_write(char out[MK_DATE_LEN], int64_t time);
/** Parses any of the three date formats strictly, except that the day of the week may be wrong. `now`
 * determines the century of a two-digit year: a date that would be more than 50 years in the future is taken
 * to be in the past. *time is in seconds since the Unix epoch. Returns false if the text is not a valid
 * date. */
MK_API bool mk_date_parse(mk_str text, int64_t now, int64_t *time) MK_API_MUST_USE;

/** A date of the proleptic Gregorian calendar: the calendar also applies to the years before its
 * introduction. The year 0 precedes the year 1. */
struct mk_date {
    int64_t year;
    unsigned month, day; /**< from 1 */
};
/** Does the date exist: is the month from 1 to 12, and the day one of that month? */
MK_API bool mk_date_is_valid(struct mk_date date);
/** The number of days since 1970-01-01; negative before. A day past the end of the month continues into
 * the next month: February 30 is March 1 or 2. The month must be valid. */
MK_API int64_t mk_date_to_days(struct mk_date date);
/** The date that is `days` days after 1970-01-01. */
MK_API struct mk_date mk_date_from_days(int64_t days);

/**
 * Escapes text for HTML element content and quoted attributes: & < > " ' become character references.
 *
 *     mk_html_escape(&out, name); // "a<b" becomes "a&lt;b"
 */
MK_API void mk_html_escape(struct mk_buf *out, mk_str text);
/** Escapes a path, or a part of it, for a URL: all bytes except unreserved characters and `/` become %XX. */
MK_API void mk_url_escape(struct mk_buf *out, mk_str text);
/**
 * Escapes one component of a URL, such as a path segment or a value in a query: like mk_url_escape(), but
 * `/` becomes %2F.
 *
 *     mk_buf_add(&out, MK_STR("/search?q="));
 *     mk_url_escape_component(&out, name); // "a b&c" becomes "a%20b%26c"
 */
MK_API void mk_url_escape_component(struct mk_buf *out, mk_str text);
/** Decodes all %XX escapes. At a malformed escape, returns false; `out` then holds the text before the
 * escape. */
MK_API bool mk_url_unescape(struct mk_buf *out, mk_str text);
/** Escapes text for a terminal or a log line: quotes, backslashes and all characters except visible
 * ASCII become \xHH. */
MK_API void mk_log_escape(struct mk_buf *out, mk_str text);
/** Escapes text like mk_log_escape(), but truncates it between two characters so that `out` does not exceed
 * `end` bytes. For size-limited lines whose syntax must stay intact. */
MK_API void mk_log_escape_to(struct mk_buf *out, mk_str text, size_t end);
/** Escapes text like mk_json_string() of <monkey/json.h>, but without the quotes. Truncates the text like
 * mk_log_escape_to(). */
MK_API void mk_json_escape_to(struct mk_buf *out, mk_str text, size_t end);

/**
 * Base64 with padding (RFC 4648, section 4). The decoder accepts missing padding. For any other deviation it
 * returns false, and may have written a part of the result.
 *
 *     mk_base64_encode(&out, name);
 */
MK_API void mk_base64_encode(struct mk_buf *out, mk_str text);
MK_API bool mk_base64_decode(struct mk_buf *out, mk_str text);
/** Encodes as lower-case hexadecimal digits, two per byte. */
MK_API void mk_hex_encode(struct mk_buf *out, mk_str text);

/** Are the strings equal? The comparison takes constant time, independent of the contents; the lengths are
 * not secret. */
MK_API bool mk_consttime_eq(mk_str a, mk_str b);
/**
 * SHA-256 (FIPS 180-4).
 *
 *     char digest[32];
 *     mk_sha256(text, digest);
 *     mk_hex_encode(&out, mk_str_of(digest, sizeof digest));
 */
MK_API void mk_sha256(mk_str text, char out[32]);
/** HMAC-SHA-256 (RFC 2104). To derive one secret from another, pass the purpose of the new secret as
 * `text`. */
MK_API void mk_hmac_sha256(mk_str key, mk_str text, char out[32]);
/**
 * Fills the memory with cryptographically secure random bytes.
 *
 *     unsigned char key[32];
 *     mk_random(key, sizeof key);
 */
MK_API void mk_random(void *buf, size_t size);

/** A hash key; fill it with mk_random(). */
struct mk_hash_key {
    uint64_t k0, k1;
};
/** A hash for tables with untrusted keys (SipHash-1-3): without the hash key, an attacker cannot cause
 * collisions. */
MK_API uint64_t mk_hash(const struct mk_hash_key *key, mk_str text);
/** The initial value for mk_fnv1a(). */
#define MK_FNV1A_INIT UINT64_C(0xcbf29ce484222325)
/** Adds a byte to a hash: see mk_fnv1a(). */
static inline uint64_t mk_fnv1a_byte(uint64_t hash, char c)
{
    return (hash ^ MK_API_CAST(unsigned char, c)) * UINT64_C(0x100000001b3);
}
/**
 * Adds a text to a hash (FNV-1a, 64 bits), whose initial value is MK_FNV1A_INIT. The hash is the same on
 * every machine, and anyone can create collisions: for untrusted keys, use mk_hash(). The low bits of the
 * hash depend only on the low bits of the characters, so fold the hash for a small table:
 * `hash ^ hash >> 32`.
 */
static inline uint64_t mk_fnv1a(uint64_t hash, mk_str text)
{
    for (size_t i = 0; i < text.len; i++)
        hash = mk_fnv1a_byte(hash, text.p[i]);
    return hash;
}

/** A path pattern, as in [ROUTES] and other sections. */
struct mk_pattern {
    mk_str text;   /**< as written; must outlive the pattern */
    unsigned kind; /**< private */
};

/**
 * Parses a pattern: "/about" (an exact path), "/dir/" followed by a star (a folder and everything below it),
 * "*.php", or any mix of `*` (any sequence, including slashes) and `?` (one character). Returns false unless
 * it starts with '/' or '*'.
 */
MK_API bool mk_pattern_set(struct mk_pattern *pattern, mk_str text);
/**
 * Could another program read a leading slash in this decoded string: "%2F", a backslash, or an escaped form
 * of either? If such a string follows a slash, it may be mistaken for a host name, as in "//host/path".
 */
MK_API bool mk_path_may_begin_with_slash(mk_str path);

/** Returns the token of an ACME challenge (RFC 8555, section 8.3) from `/.well-known/acme-challenge/TOKEN`;
 * absent for any other path. */
MK_API mk_str mk_acme_token(mk_str path);

/** Does a decoded path match the pattern? Matching is case-sensitive. */
MK_API bool mk_pattern_matches(const struct mk_pattern *pattern, mk_str path);

#ifdef __cplusplus
}
#endif

#endif
