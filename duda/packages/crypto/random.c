/* SPDX-License-Identifier: Apache-2.0 */
/* Random identifiers: tokens and UUIDs. */
#include <duda/crypto.h>

void duda_random_text(struct mk_buf *out, size_t bytes)
{
    uint8_t buf[32];
    /* 30 is a multiple of 3, so the encoded pieces can be concatenated. */
    for (size_t n; bytes; bytes -= n) {
        n = bytes < 30 ? bytes : 30;
        mk_random(buf, n);
        duda_base64url_encode(out, mk_str_of((const char *)buf, n));
    }
}

static void format_uuid(char *out, uint8_t b[16], unsigned version)
{
    struct mk_buf text = mk_buf_fixed(out, DUDA_UUID_LEN);
    b[6] = (uint8_t)((b[6] & 0x0f) | version << 4);
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    for (size_t i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            mk_buf_add_char(&text, '-');
        mk_hex_encode(&text, mk_str_of((const char *)b + i, 1));
    }
}

void duda_uuid4(char out[DUDA_UUID_LEN])
{
    uint8_t b[16];
    mk_random(b, sizeof b);
    format_uuid(out, b, 4);
}

void duda_uuid7(char out[DUDA_UUID_LEN], uint64_t now_ms)
{
    uint8_t b[16];
    mk_random(b, sizeof b);
    for (unsigned i = 0; i < 6; i++)
        b[i] = (uint8_t)(now_ms >> (40 - 8 * i));
    format_uuid(out, b, 7);
}
