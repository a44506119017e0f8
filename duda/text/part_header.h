/* SPDX-License-Identifier: Apache-2.0 */
/* The head of one part of multipart/form-data. */
#ifndef DUDA_TEXT_PART_HEADER_H
#define DUDA_TEXT_PART_HEADER_H

#include <duda/multipart.h>

/* Lines that each end with CR LF. The texts of *out are slices of `head`, whose quoted texts are unescaped in
 * place. 0, -EBADMSG, or -EFBIG: a name has more than `name_max` bytes; then *why says which rule it breaks. */
int duda_part_header_parse(mk_str head, size_t name_max, struct duda_part *out, const char **why);

#endif
