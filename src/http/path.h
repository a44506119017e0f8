/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of request paths for the file system (RFC 3986, sections 2.1 and 5.2.4). */
#ifndef MK_HTTP_PATH_H
#define MK_HTTP_PATH_H

#include "base/buf.h"
#include "base/str.h"

enum { MK_PATH_ENCODED_SLASH = 1u << 0, MK_PATH_DOT_PART = 1u << 1 };

/* Decodes a path for handlers: percent-decoded once, repeated slashes merged, dot segments removed (whether
 * written as dots or as %2E), a trailing slash kept. The result begins with '/', and none of its segments is
 * "." or "..".
 *
 * `raw` begins with '/'. `out` must hold raw.len + 1 bytes; the path is NUL-terminated there. *flags is set:
 *
 *   MK_PATH_ENCODED_SLASH  `raw` contains a %2F. It is no separator: it stays in the path as "%2F". A handler
 *                          that maps paths to files must reject such a path (404)
 *   MK_PATH_DOT_PART       a segment of the result begins with a dot
 *
 * Returns 0, or 400 for a malformed escape, for a NUL, encoded or not, for '..' above the root, and for a dot
 * segment next to a %2F. */
int mk_path_decode(mk_str raw, char *out, mk_str *path, unsigned *flags) MK_MUST_USE;

/* Was a byte of the decoded path percent-encoded? */
enum mk_path_mark { MK_PATH_AS_SENT, MK_PATH_WAS_ESCAPED };

/* Like mk_path_decode(), but without flags. Writes an enum mk_path_mark for each byte of the path to `marks`,
 * which must be as large as `out`. */
int mk_path_decode_marked(mk_str raw, char *out, char *marks, mk_str *path) MK_MUST_USE;

/* Encodes a part of a decoded path for a URL: characters allowed in a path stay unencoded unless the client
 * encoded them, because `;` and `%3B` differ (RFC 3986, section 2.2); %2F stays encoded. Without marks, a `%`
 * is an ordinary character, and becomes %25. */
void mk_path_encode(struct mk_buf *out, mk_str part, const char *marks);

/* Does the path contain dot segments, which another program might not resolve, or a backslash, which is
 * invalid in a URL, but which browsers treat as a slash? */
bool mk_path_has_dot_segments(mk_str raw);

/* Fast check for nearly all paths: would mk_path_decode() return the same bytes and no flags? False:
 * unknown. */
bool mk_path_is_plain(mk_str raw);

#endif
