/* SPDX-License-Identifier: Apache-2.0 */
/* QR codes as SVG, by libqrencode. In monkey-duda-qr.so. */
#ifndef DUDA_QR_H
#define DUDA_QR_H

#include <monkey/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How much of a code may be lost, and it can still be read. */
enum duda_qr_level {
    DUDA_QR_LOW,      /**< 7 % */
    DUDA_QR_MEDIUM,   /**< 15 % */
    DUDA_QR_QUARTILE, /**< 25 % */
    DUDA_QR_HIGH      /**< 30 % */
};

/**
 * Writes the code of `text` (any bytes; UTF-8 for readers in telephones) as one `<svg>` element, black on
 * white with the margin that readers need, `size` pixels wide. 0; -EINVAL: the text is empty or the size is
 * 0 or above 10,000; -EMSGSIZE: it is too long (2,953 bytes at most, 1,273 at DUDA_QR_HIGH); -ENOMEM. From
 * any thread.
 *
 *     int e = duda_qr_svg(&out, MK_STR("https://example.org/"), DUDA_QR_MEDIUM, 200);
 */
MK_API int duda_qr_svg(struct mk_buf *out, mk_str text, enum duda_qr_level level,
                       unsigned size) MK_API_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
