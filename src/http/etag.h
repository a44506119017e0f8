/* SPDX-License-Identifier: Apache-2.0 */
/* Entity tags (RFC 9110, section 8.8.3). */
#ifndef MK_HTTP_ETAG_H
#define MK_HTTP_ETAG_H

#include "base/str.h"

enum { MK_ETAG_MAX = 35 }; /* two numbers of 16 hexadecimal digits, a dash and the quotes */

/* A strong tag made of what changes when a file does. `out` has room for MK_ETAG_MAX bytes; answers how many
 * were written. */
size_t mk_etag_write(char *out, int64_t mtime_ns, uint64_t size);

/* [W/]"..." and nothing else. */
bool mk_etag_is_valid(mk_str etag);

/* Are the two the same by strong comparison (neither is weak), or by the weak one (W/ does not count)? */
bool mk_etag_matches(mk_str a, mk_str b, bool weak_comparison);

/* Does the value of If-Match or If-None-Match name this tag? `*` names any tag that is present. A list that
 * is not well-formed names those before the fault. */
bool mk_etag_in_list(mk_str list, mk_str etag, bool weak_comparison);

#endif
