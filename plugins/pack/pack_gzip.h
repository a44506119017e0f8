/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PACK_GZIP_H
#define PACK_GZIP_H

#include <monkey/buf.h>

/* Compresses the content into `out`, reproducibly. Returns false if the program was built without zlib, if
 * the result is not at least a tenth smaller, or if memory ran out; out->failed is set only in the last
 * case. */
bool pack_gzip(mk_str content, struct mk_buf *out);

#endif
