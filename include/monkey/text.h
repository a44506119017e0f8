/* SPDX-License-Identifier: Apache-2.0 */
/* Text as HTTP and its neighbours write it: dates, escapes, lists, patterns. From any thread. */
#ifndef MONKEY_TEXT_H
#define MONKEY_TEXT_H

#include <monkey/buf.h>
#include <monkey/http.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** At least one character, all of them such as a method or a field name is made of (RFC 9110, section 5.6.2).
 */
MK_API bool mk_is_token(mk_str s);
/** Nothing but HTAB, visible characters, spaces and obs-text (RFC 9110, section 5.5): text that cannot end
 * its line. May be empty. */
MK_API bool mk_is_header_value(mk_str s);

/**
 * The next element of a comma separated list (RFC 9110, section 5.6.1), trimmed; empty elements are passed
 * over, commas inside of quoted strings do not separate. Moves *rest behind it; false at the end. An element
 * may be anything between the commas: its syntax is the caller's business.
 */
MK_API bool mk_header_list_next(mk_str *rest, mk_str *element);

/** The party that may set a request field of that name. */
MK_API enum mk_header_role mk_header_role(mk_str name);

/** Appends "Name: value" and CRLF. Checks neither. */
static inline void mk_header_append(struct mk_buf *b, mk_str name, mk_str value)
{
    size_t len = name.len + value.len + 4;
    if ((b->failed || b->cap - b->len < len) && !mk_buf_reserve(b, len))
        return;
    char *at = b->p + b->len;
    memcpy(at, name.p, name.len);
    at += name.len;
    memcpy(at, ": ", 2);
    if (value.len)
        memcpy(at + 2, value.p, value.len);
    memcpy(at + 2 + value.len, "\r\n", 2);
    b->len += len;
}

/** The bytes of a date. */
enum { MK_DATE_LEN = 29 };
/** "Sun, 06 Nov 1994 08:49:37 GMT", without a NUL (RFC 9110, section 5.6.7); `time` in seconds since 1970,
 * outside of the years 0 to 9999 written as the nearest one inside. */
MK_API void mk_date_write(char out[MK_DATE_LEN], int64_t time);
/** Any of the three forms, to the letter, but that the day of the week need not be the right one. `now`
 * decides the century of a two-digit year: more than 50 years ahead is the past. */
MK_API bool mk_date_parse(mk_str s, int64_t now, int64_t *time) MK_API_MUST_USE;

/** Text in HTML, element content or a quoted attribute: & < > " ' become references. */
MK_API void mk_html_escape(struct mk_buf *out, mk_str s);
/** A path or a part of it for a URL: everything but unreserved characters and `/` becomes %XX. */
MK_API void mk_url_escape(struct mk_buf *out, mk_str s);
/** Decodes every %XX; false (and what came before it) at a broken escape. */
MK_API bool mk_url_unescape(struct mk_buf *out, mk_str s);
/**
 * A JSON string with its quotes. Bytes that are not valid UTF-8 are read as Latin-1, and are written as `\u`
 * and four hexadecimal digits, like all control characters up to U+009F.
 */
MK_API void mk_json_string(struct mk_buf *out, mk_str s);
/** For a terminal or a log line: quotes, backslashes and everything that is not visible ASCII become \xHH. */
MK_API void mk_log_escape(struct mk_buf *out, mk_str s);
/** As mk_log_escape(), and as mk_json_string() without its quotes, but cut between two characters before
 * `out` would be longer than `end`: for lines with a limit, whose form must not be cut. */
MK_API void mk_log_escape_to(struct mk_buf *out, mk_str s, size_t end);
MK_API void mk_json_escape_to(struct mk_buf *out, mk_str s, size_t end);

/** RFC 4648, section 4, with padding. The decoder takes missing padding, nothing else that is odd:
 * then it is false, with any part of it written. */
MK_API void mk_base64_encode(struct mk_buf *out, mk_str s);
MK_API bool mk_base64_decode(struct mk_buf *out, mk_str s);
/** Two lower-case digits a byte. */
MK_API void mk_hex_encode(struct mk_buf *out, mk_str s);

/** Compares in time that does not depend on the contents. The lengths are not secret. */
MK_API bool mk_consttime_eq(mk_str a, mk_str b);
/** HMAC with SHA-256 (RFC 2104), for instance to derive a secret from another one: `text` says what for. */
MK_API void mk_hmac_sha256(mk_str key, mk_str text, char out[32]);
/** Fills the memory with cryptographically secure random bytes. */
MK_API void mk_random(void *room, size_t size);

/** Fill it with mk_random(). */
struct mk_hash_key {
    uint64_t k0, k1;
};
/** A hash for tables with untrusted keys: without the hash key, an attacker cannot cause collisions
 * (SipHash-1-3). */
MK_API uint64_t mk_hash(const struct mk_hash_key *key, mk_str s);

/** A pattern for paths, as in [ROUTES] and other sections. */
struct mk_pattern {
    mk_str text;   /**< as written; must outlive the pattern */
    unsigned kind; /**< the server's own */
};

/**
 * "/about" (exactly), "/dir/" and below as in "/dir/" followed by a star, "*.php", or any mix of `*` (any
 * run, slashes too) and `?` (one character). False unless it begins with '/' or '*'.
 */
MK_API bool mk_pattern_set(struct mk_pattern *p, mk_str text);
/**
 * May a program read a slash at the beginning of a decoded text: "%2F", a backslash, or either encoded once more? Put
 * after a slash, such a text may be taken for the name of a host, as in "//host/path".
 */
MK_API bool mk_path_may_begin_with_slash(mk_str path);

/** Does a decoded path match it? The case of letters counts. */
MK_API bool mk_pattern_matches(const struct mk_pattern *p, mk_str path);

#ifdef __cplusplus
}
#endif

#endif
