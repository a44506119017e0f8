/* SPDX-License-Identifier: Apache-2.0 */
#include "websocket/ws_deflate.h"

#include <errno.h>
#include <monkey/mem.h>

#include "unit/test.h"

enum { MAX = 1 << 20 };

static struct mk_ws_deflate *ours, *theirs;

static void setup(void)
{
    ours = mk_ws_deflate_new(15);
    theirs = mk_ws_deflate_new(15);
}

static void teardown(void)
{
    mk_ws_deflate_free(ours);
    mk_ws_deflate_free(theirs);
}

/* Compresses a message and returns the compressed length; asserts that it decompresses to the same text. */
static size_t transmit(mk_str text, bool keeps)
{
    struct mk_buf code = mk_buf_growing(MAX), back = mk_buf_growing(MAX);
    uint64_t cost = 0;
    assert_int_equal(mk_ws_deflate_compress(ours, text, keeps, &code), 0);
    assert_int_equal(mk_ws_deflate_decompress(theirs, mk_buf_str(&code), keeps, &back, &cost), 0);
    assert_true(cost >= code.len + back.len);
    assert_true(mk_str_eq(mk_buf_str(&back), text));
    size_t n = code.len;
    mk_buf_free(&code);
    mk_buf_free(&back);
    return n;
}

static void ws_deflate_messages_without_context(void **state)
{
    char large[20000];
    (void)state;
    memset(large, 'x', sizeof large);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(transmit(MK_STR(""), false), 1);
        assert_int_equal(transmit(MK_STR("Hello"), false), 7);
        assert_in_range(transmit(mk_str_of(large, sizeof large), false), 1, 100);
    }
}

static void ws_deflate_context_shrinks_second_message(void **state)
{
    const mk_str text = MK_STR("There is nothing in this that was there before, at first.");
    (void)state;
    size_t first = transmit(text, true), second = transmit(text, true);
    assert_true(second < first / 3);
    mk_ws_deflate_reset_compression(ours);
    assert_int_equal(transmit(text, true), first);
    mk_ws_deflate_release_memory(ours, true);
    mk_ws_deflate_release_memory(theirs, true);
    assert_int_equal(transmit(text, true), first);
    /* the decompressor keeps the window that the peer may refer to */
    mk_ws_deflate_release_memory(theirs, true);
    assert_in_range(transmit(text, true), 1, second);
    mk_ws_deflate_release_memory(theirs, true);
    mk_ws_deflate_release_memory(theirs, true);
    assert_in_range(transmit(text, true), 1, second);
}

static uint64_t last_cost;

static int inflate(mk_str code, size_t max, size_t *len)
{
    struct mk_buf out = mk_buf_growing(max);
    last_cost = 0;
    int e = mk_ws_deflate_decompress(theirs, code, false, &out, &last_cost);
    *len = out.len;
    mk_buf_free(&out);
    return e;
}

static void ws_deflate_size_limits_are_exact(void **state)
{
    char large[50000];
    size_t len;
    struct mk_buf code = mk_buf_growing(MAX);
    (void)state;
    memset(large, 'x', sizeof large);
    assert_int_equal(mk_ws_deflate_compress(ours, mk_str_of(large, sizeof large), false, &code), 0);
    assert_int_equal(inflate(mk_buf_str(&code), sizeof large, &len), 0);
    assert_int_equal(len, sizeof large);
    assert_int_equal(inflate(mk_buf_str(&code), sizeof large - 1, &len), -EMSGSIZE);
    assert_int_equal(inflate(mk_buf_str(&code), 1, &len), -EMSGSIZE);
    mk_buf_free(&code);
    code = mk_buf_growing(10);
    assert_int_equal(mk_ws_deflate_compress(ours, MK_STR("what cannot be made so short"), false, &code),
                     -EMSGSIZE);
    mk_buf_free(&code);
    assert_int_equal(transmit(MK_STR("and it continues"), false),
                     transmit(MK_STR("and it continues"), false));
}

static void ws_deflate_all_block_types_are_inflated(void **state)
{
    size_t len;
    (void)state;
    assert_int_equal(inflate(mk_str_of("\xf3\x48\xcd\xc9\xc9\x07\x00\x00", 8), 100, &len),
                     0); /* the block is marked as final */
    assert_int_equal(len, 5);
    /* the block is stored, not compressed */
    assert_int_equal(inflate(mk_str_of("\x00\x05\x00\xfa\xffHello\x00", 11), 100, &len), 0);
    assert_int_equal(len, 5);
    assert_int_equal(
        inflate(mk_str_of("\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00", 13), 100, &len), 0);
    assert_int_equal(len, 5);
}

static void ws_deflate_rejects_malformed(void **state)
{
    size_t len;
    (void)state;
    assert_int_equal(inflate(MK_STR("\xff\xff\xff"), 100, &len), -EBADMSG);
    assert_int_equal(inflate(MK_STR("\x06"), 100, &len), -EBADMSG);
    assert_int_equal(inflate(mk_str_of("\xf2\x48\xcd\xc9\xc9\x07\x00", 7), 100, &len),
                     0); /* the message continues after the final block */
}

/* Packs a string of bits, lowest first, as deflate does. */
static mk_str bits(struct mk_buf *out, mk_str text)
{
    unsigned byte = 0, n = 0;
    for (size_t i = 0; i < text.len; i++) {
        byte |= (unsigned)(text.p[i] == '1') << n % 8;
        if (++n % 8)
            continue;
        mk_buf_add_char(out, (char)byte);
        byte = 0;
    }
    if (n % 8)
        mk_buf_add_char(out, (char)byte);
    return mk_buf_str(out);
}

static void ws_deflate_second_final_block_is_rejected(void **state)
{
    (void)state;
    size_t len;
    const mk_str once = mk_str_of("\x03\x00\x00", 3), twice = mk_str_of("\x03\x00\x03\x00\x00", 5);
    assert_int_equal(inflate(once, MAX, &len), 0);
    assert_true(last_cost > 32 * 1024);
    assert_int_equal(inflate(twice, MAX, &len), -EBADMSG);
    assert_int_equal(inflate(once, MAX, &len), 0); /* one such block in each message is allowed */
}

/* Building the Huffman tables of a block costs a hundred times as much as the size of the block suggests. */
static void ws_deflate_flood_of_tables_is_rejected(void **state)
{
    (void)state;
    enum { BLOCKS = 1600 };
    struct mk_buf text = mk_buf_growing(MAX), code = mk_buf_growing(MAX);
    size_t len;
    for (unsigned i = 0; i < BLOCKS; i++) {
        mk_buf_add(&text, MK_STR("001"
                                 "00000"
                                 "00000"
                                 "0111"));
        for (unsigned k = 0; k < 18; k++) /* the lengths of the codes for 18 and 1 */
            mk_buf_add(&text, k == 2 || k == 17 ? MK_STR("100") : MK_STR("000"));
        /* Lengths of zero for 138 and 118 codes, a code for the end of the block, a code for distances; then
         * the end. */
        mk_buf_add(&text, MK_STR("11111111"
                                 "11101011"
                                 "000"));
    }
    mk_str all = bits(&code, mk_buf_str(&text));
    assert_int_equal(inflate(mk_str_first(all, 90), MAX, &len), 0);
    assert_true(last_cost > 8 * 1024);
    assert_int_equal(inflate(all, MAX, &len), -EBADMSG);
    mk_buf_free(&text);
    mk_buf_free(&code);
}

/* Peers that flush after each byte send such blocks. */
static void ws_deflate_many_small_blocks_are_inflated(void **state)
{
    (void)state;
    struct mk_buf code = mk_buf_growing(MAX);
    size_t len;
    /* a stored block of one byte, then an empty one */
    for (unsigned i = 0; i < 50000; i++)
        mk_buf_add(&code, mk_str_of("\0\1\0\376\377x\0\0\0\377\377", 11));
    mk_buf_add_char(&code, 0);
    assert_int_equal(inflate(mk_buf_str(&code), MAX, &len), 0);
    assert_int_equal(len, 50000);
    mk_buf_free(&code);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(ws_deflate_messages_without_context, setup, teardown),
        fixture_test(ws_deflate_context_shrinks_second_message, setup, teardown),
        fixture_test(ws_deflate_size_limits_are_exact, setup, teardown),
        fixture_test(ws_deflate_all_block_types_are_inflated, setup, teardown),
        fixture_test(ws_deflate_rejects_malformed, setup, teardown),
        fixture_test(ws_deflate_second_final_block_is_rejected, setup, teardown),
        fixture_test(ws_deflate_flood_of_tables_is_rejected, setup, teardown),
        fixture_test(ws_deflate_many_small_blocks_are_inflated, setup, teardown),
    };
    return mk_ws_deflate_is_supported() ? cmocka_run_group_tests(tests, NULL, NULL) : 0;
}
