/* SPDX-License-Identifier: Apache-2.0 */
/* The path of a target as a file system may see it (RFC 3986, sections 2.1 and 5.2.4). */
#ifndef MK_HTTP_PATH_H
#define MK_HTTP_PATH_H

#include "base/buf.h"
#include "base/str.h"

enum { MK_PATH_ENCODED_SLASH = 1u << 0, MK_PATH_DOT_PART = 1u << 1 };

/* The path that a handler sees: percent escapes decoded once, repeated slashes merged, dot segments removed
 * (written as dots or as %2E), a slash at the end kept. It begins with '/', and no segment of it is "." or
 * "..".
 *
 * `raw` begins with '/'. `out` has room for raw.len + 1 bytes; a NUL follows the path there. *flags is set:
 *
 *   MK_PATH_ENCODED_SLASH  there was a %2F. It is no separator: it stays in the path as "%2F". A handler that
 *                          maps paths to files must refuse such a path (404)
 *   MK_PATH_DOT_PART       a segment of the result begins with a dot
 *
 * 0, or 400 for a broken escape, for a NUL, encoded or not, for '..' above the root, and for a dot segment
 * next to a %2F. */
int mk_path_decode(mk_str raw, char *out, mk_str *path, unsigned *flags) MK_MUST_USE;

/* How a byte of the decoded path was written. */
enum mk_path_mark { MK_PATH_AS_SENT, MK_PATH_WAS_ESCAPED };

/* The same, and a mark for each byte of the path; `marks` has as much room as `out`. */
int mk_path_decode_marked(mk_str raw, char *out, char *marks, mk_str *path) MK_MUST_USE;

/* Writes a part of a decoded path for a URL: what a path may hold stays as it is, unless the client escaped it,
 * since `;` and `%3B` differ (RFC 3986, section 2.2), and %2F stays that. Without marks nothing is known of
 * the client, and a `%` is one. */
void mk_path_encode(struct mk_buf *out, mk_str part, const char *marks);

/* Has it dot segments, which another program might not resolve, or a backslash, which is no part of a URL and a
 * slash to browsers? */
bool mk_path_has_dot_segments(mk_str raw);

/* Is it nearly every path: one of which mk_path_decode() would make the same bytes, and no flags? False
 * decides nothing. */
bool mk_path_is_plain(mk_str raw);

#endif
