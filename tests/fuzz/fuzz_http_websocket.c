/* SPDX-License-Identifier: Apache-2.0 */
/* Parses WebSocket frame heads, compression offers, and UTF-8 that is split anywhere. */
#include "base/assert.h"
#include "http/utf8.h"
#include "http/ws_extension.h"
#include "http/ws_frame_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writing a parsed head gives the same bytes except for the mask. */
static void read_head(const uint8_t *data, size_t size)
{
    struct mk_ws_frame_head f;
    uint8_t in[MK_WS_HEAD_MAX] = {0}, out[MK_WS_HEAD_MAX];
    memcpy(in, data, mk_min(size, sizeof in));
    size_t len = mk_ws_frame_head_len(in);
    MK_ASSERT(len >= MK_WS_HEAD_MIN && len <= MK_WS_HEAD_MAX);
    if (mk_ws_frame_head_parse(&f, in))
        return;
    unsigned first = f.opcode | (f.is_final ? MK_WS_FIN : 0) | (f.is_compressed ? MK_WS_COMPRESSED : 0);
    size_t n = mk_ws_frame_head_write(out, first, f.len);
    MK_ASSERT(n + (f.is_masked ? sizeof f.mask : 0) == len);
    out[1] |= f.is_masked ? 0x80 : 0;
    MK_ASSERT(memcmp(in, out, n) == 0);
}

static void read_offer(mk_str text)
{
    struct mk_ws_extension o, again;
    char buffer[MK_WS_EXTENSION_TEXT_MAX];
    struct mk_buf answer = mk_buf_fixed(buffer, sizeof buffer);
    if (!mk_ws_extension_negotiate(text, true, &o))
        return;
    MK_ASSERT(o.server_bits >= MK_WS_EXTENSION_BITS_MIN && o.server_bits <= MK_WS_EXTENSION_BITS_MAX);
    mk_ws_extension_format(&o, &answer);
    MK_ASSERT(!answer.failed && mk_ws_extension_negotiate(mk_buf_str(&answer), true, &again));
    MK_ASSERT(again.server_bits == o.server_bits && again.server_keeps == o.server_keeps &&
              again.client_keeps == o.client_keeps);
}

static void read_text(mk_str text)
{
    bool whole = mk_utf8_is_valid(text);
    for (size_t size = 1; size < 5; size++) {
        struct mk_utf8 u = {0, 0, 0};
        bool ok = true;
        for (mk_str rest = text; ok && rest.len; rest = mk_str_skip(rest, size))
            ok = mk_utf8_feed(&u, mk_str_first(rest, size));
        MK_ASSERT((ok && mk_utf8_is_complete(&u)) == whole);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_str text = mk_str_of((const char *)data, size);
    read_head(data, size);
    read_offer(text);
    read_text(text);
    return 0;
}
