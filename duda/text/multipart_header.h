/* SPDX-License-Identifier: Apache-2.0 */
/* The headers of one part of multipart/form-data. */
#ifndef DUDA_TEXT_MULTIPART_HEADER_H
#define DUDA_TEXT_MULTIPART_HEADER_H

#include <duda/multipart.h>

/* Parses header lines that each end with CR LF. The strings of *out are slices of `head`, in which quoted
 * strings are unescaped in place. Returns 0, -EBADMSG, or -EMSGSIZE if a name exceeds `name_max` bytes. On
 * error, *error names the violated rule. */
int duda_multipart_header_parse(mk_str head, size_t name_max, struct duda_part *out, const char **error);

#endif
