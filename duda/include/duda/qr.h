/* SPDX-License-Identifier: Apache-2.0 */
/* QR codes as SVG, based on libqrencode. In monkey-duda-qr.so. */
#ifndef DUDA_QR_H
#define DUDA_QR_H

#include <monkey/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Error correction level: the share of a code that may be damaged. */
enum duda_qr_level {
    DUDA_QR_LOW,      /**< 7 % */
    DUDA_QR_MEDIUM,   /**< 15 % */
    DUDA_QR_QUARTILE, /**< 25 % */
    DUDA_QR_HIGH      /**< 30 % */
};

/**
 * Writes the QR code of `text` (any bytes; phones expect UTF-8) as one `<svg>` element, black on white with
 * the required quiet zone, `size` pixels wide. Returns 0; -EINVAL: the text is empty, or the size is 0 or
 * above 10,000; -EMSGSIZE: the text is too long (at most 2,953 bytes, 1,273 at DUDA_QR_HIGH); -ENOMEM.
 * Thread-safe.
 *
 *     int e = duda_qr_svg(&out, MK_STR("https://example.org/"), DUDA_QR_MEDIUM, 200);
 */
MK_API int duda_qr_svg(struct mk_buf *out, mk_str text, enum duda_qr_level level,
                       unsigned size) MK_API_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
