/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PACK_GZIP_H
#define PACK_GZIP_H

#include <monkey/buf.h>

/* Compresses the content into `out`, with the same bytes each time. False: the program was built without zlib,
 * or the result is not at least a tenth smaller. If memory ran out, out->failed is set as well. */
bool pack_gzip(mk_str content, struct mk_buf *out);

#endif
