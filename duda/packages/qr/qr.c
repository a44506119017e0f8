/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the output of libqrencode as a single path, with a rectangle for each run of dark modules. */
#include <duda/qr.h>

#include <errno.h>
#include <qrencode.h>

enum { MARGIN = 4, BYTES_MAX = 2953, SIZE_MAX_PX = 10000 }; /* ISO 18004: a quiet zone of four modules */

static bool is_dark_module(const QRcode *code, int x, int y)
{
    return code->data[y * code->width + x] & 1;
}

static void add_row(struct mk_buf *out, const QRcode *code, int y)
{
    for (int x = 0, end; x < code->width; x = end) {
        for (end = x; end < code->width && is_dark_module(code, end, y) == is_dark_module(code, x, y);)
            end++;
        if (is_dark_module(code, x, y))
            mk_buf_addf(out, "M%d %dh%dv1h-%dz", x + MARGIN, y + MARGIN, end - x, end - x);
    }
}

int duda_qr_svg(struct mk_buf *out, mk_str text, enum duda_qr_level level, unsigned size)
{
    static const QRecLevel levels[] = {QR_ECLEVEL_L, QR_ECLEVEL_M, QR_ECLEVEL_Q, QR_ECLEVEL_H};
    if (!text.len || !size || size > SIZE_MAX_PX || (unsigned)level > DUDA_QR_HIGH)
        return -EINVAL;
    if (text.len > BYTES_MAX)
        return -EMSGSIZE;
    QRcode *code = QRcode_encodeData((int)text.len, (const unsigned char *)text.p, 0, levels[level]);
    if (!code)
        return errno == ERANGE ? -EMSGSIZE : -ENOMEM;
    int edge = code->width + 2 * MARGIN;
    mk_buf_addf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%u\" height=\"%u\" "
                "viewBox=\"0 0 %d %d\" shape-rendering=\"crispEdges\"><title>QR code</title>"
                "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/><path fill=\"#000\" d=\"",
                size, size, edge, edge, edge, edge);
    for (int y = 0; y < code->width; y++)
        add_row(out, code, y);
    mk_buf_add(out, MK_STR("\"/></svg>\n"));
    QRcode_free(code);
    return 0;
}
