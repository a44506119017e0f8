/* SPDX-License-Identifier: Apache-2.0 */
/* Entity tags (RFC 9110, section 8.8.3). */
#ifndef MK_HTTP_ETAG_H
#define MK_HTTP_ETAG_H

#include "base/str.h"

enum { MK_ETAG_MAX = 35 }; /* two 16-digit hexadecimal numbers, a dash and quotes */

/* Writes a strong tag made from the modification time and the size. `out` must hold MK_ETAG_MAX bytes;
 * returns the length. */
size_t mk_etag_write(char *out, int64_t mtime_ns, uint64_t size);

/* Is the string exactly [W/]"..."? */
bool mk_etag_is_valid(mk_str etag);

/* Compares two tags: strong comparison (neither is weak) or weak comparison (W/ is ignored). */
bool mk_etag_matches(mk_str a, mk_str b, bool weak_comparison);

/* Does the value of If-Match or If-None-Match contain this tag? `*` matches any existing tag. In a malformed
 * list, only the elements before the error count. */
bool mk_etag_in_list(mk_str list, mk_str etag, bool weak_comparison);

#endif
