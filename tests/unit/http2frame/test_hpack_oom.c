/* SPDX-License-Identifier: Apache-2.0 */
/* The HPACK library allocates with our functions: any allocation may fail, and all memory is freed. */
#include "unit/http2frame/hpack_case.h"
#include "unit/oom.h"

/* Literals of both kinds, with and without Huffman coding, indexed and evicted. */
static const char *const blocks[] = {
    "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
    "8287 85be 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    "be bf 1001 6101 62 0001 6301 64",
    "3f09 4001 6101 62 be",
};

static bool decode_them(void)
{
    struct mk_hpack_decoder *h = mk_hpack_decoder_new();
    if (!h)
        return false;
    mk_err e = 0;
    for (size_t i = 0; !e && i < MK_LEN(blocks); i++) {
        char bytes[HPACK_CASE_BYTES];
        struct hpack_lines lines;
        e = hpack_decode(h, hpack_bytes(blocks[i], bytes), &lines);
        assert_true(e == 0 || e == -ENOMEM);
    }
    mk_hpack_decoder_free(h);
    return e == 0;
}

static void hpack_oom_decoding_fails_cleanly(void **state)
{
    (void)state;
    oom_at_each_allocation(decode_them);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hpack_oom_decoding_fails_cleanly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
