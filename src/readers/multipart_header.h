/* SPDX-License-Identifier: Apache-2.0 */
/* The headers of one part of multipart/form-data. */
#ifndef DUDA_READERS_MULTIPART_HEADER_H
#define DUDA_READERS_MULTIPART_HEADER_H

#include <monkey/multipart.h>

/* Parses header lines that each end with CR LF. The strings of *out are slices of `head`, in which quoted
 * strings are unescaped in place. Returns 0, -EBADMSG, or -EMSGSIZE if a name exceeds `name_max` bytes. On
 * error, *error names the violated rule. */
int mk_multipart_header_parse(mk_str head, size_t name_max, struct mk_multipart_part *out,
                              const char **error);

#endif
