/* SPDX-License-Identifier: Apache-2.0 */
/* Text by a format, as printf() writes it. */
#ifndef DUDA_TEXT_FORMAT_H
#define DUDA_TEXT_FORMAT_H

#include <monkey/buf.h>

/* As mk_buf_addv(), without the libc where the format is a simple one. */
void duda_format_append(struct mk_buf *out, const char *fmt, va_list args) MK_API_PRINTF(2, 0);

#endif
