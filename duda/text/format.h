/* SPDX-License-Identifier: Apache-2.0 */
/* printf-style formatting. */
#ifndef DUDA_TEXT_FORMAT_H
#define DUDA_TEXT_FORMAT_H

#include <monkey/buf.h>

/* Like mk_buf_addv(), but handles simple formats without libc. */
void duda_format_append(struct mk_buf *out, const char *fmt, va_list args) MK_API_PRINTF(2, 0);

#endif
