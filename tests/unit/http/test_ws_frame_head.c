/* SPDX-License-Identifier: Apache-2.0 */
#include "http/ws_frame_head.h"

#include "unit/test.h"

#define HEAD(...) ((const uint8_t[MK_WS_HEAD_MAX]){__VA_ARGS__})

static struct mk_ws_frame_head read(const uint8_t *p)
{
    struct mk_ws_frame_head f;
    assert_null(mk_ws_frame_head_parse(&f, p));
    return f;
}

static void ws_frame_head_lengths(void **state)
{
    (void)state;
    assert_int_equal(mk_ws_frame_head_len(HEAD(0x81, 5)), 2);
    assert_int_equal(mk_ws_frame_head_len(HEAD(0x81, 0x85)), 6);
    assert_int_equal(mk_ws_frame_head_len(HEAD(0x81, 0xfe)), 8);
    assert_int_equal(mk_ws_frame_head_len(HEAD(0x81, 0xff)), 14);
    assert_int_equal(mk_ws_frame_head_len(HEAD(0x81, 127)), 10);
    assert_int_equal(read(HEAD(0x81, 125)).len, 125);
    assert_int_equal(read(HEAD(0x82, 126, 0, 126)).len, 126);
    assert_int_equal(read(HEAD(0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0)).len, 65536);
}

static void ws_frame_head_is_parsed(void **state)
{
    (void)state;
    struct mk_ws_frame_head f = read(HEAD(0x41, 0xfe, 0x01, 0x00, 1, 2, 3, 4));
    assert_true(!f.is_final && f.is_compressed && f.is_masked && f.opcode == MK_WS_TEXT && f.len == 256);
    assert_memory_equal(f.mask, "\1\2\3\4", 4);
    f = read(HEAD(0x8a, 0));
    assert_true(f.is_final && !f.is_compressed && !f.is_masked && f.opcode == MK_WS_PONG);
}

static void ws_frame_head_rejects_invalid(void **state)
{
    struct mk_ws_frame_head f;
    (void)state;
    static const uint8_t wrong[][MK_WS_HEAD_MAX] = {
        {0xa1, 0},         {0x91, 0}, {0x83, 0},           {0x87, 0},
        {0x8b, 0},         {0x8f, 0}, {0x81, 126, 0, 125}, {0x81, 127, 0, 0, 0, 0, 0, 0, 0xff, 0xff},
        {0x81, 127, 0x80}, {0x09, 0}, {0x89, 126, 0, 126},
    };
    for (size_t i = 0; i < MK_LEN(wrong); i++)
        assert_non_null(mk_ws_frame_head_parse(&f, wrong[i]));
}

static void ws_frame_head_round_trips(void **state)
{
    (void)state;
    static const uint64_t lens[] = {0, 1, 125, 126, 127, 65535, 65536, 1 << 20, INT64_MAX};
    for (size_t i = 0; i < MK_LEN(lens); i++) {
        uint8_t out[MK_WS_HEAD_MAX];
        size_t n = mk_ws_frame_head_write(out, MK_WS_FIN | MK_WS_COMPRESSED | MK_WS_BINARY, lens[i]);
        assert_int_equal(n, mk_ws_frame_head_len(out));
        struct mk_ws_frame_head f = read(out);
        assert_true(f.is_final && f.is_compressed && !f.is_masked && f.opcode == MK_WS_BINARY);
        assert_int_equal(f.len, lens[i]);
    }
}

static void ws_frame_mask_works_in_pieces(void **state)
{
    (void)state;
    const uint8_t mask[4] = {1, 2, 4, 8};
    char whole[40], pieces[40];
    for (size_t len = 0; len <= sizeof whole; len++) {
        memset(whole, 'a', len);
        memset(pieces, 'a', len);
        mk_ws_frame_mask(whole, len, mask, 0);
        for (size_t i = 0; i < len; i++)
            assert_int_equal(whole[i], 'a' ^ mask[i % 4]);
        for (size_t at = 0, n = 1; at < len; at += n, n = n % 11 + 1)
            mk_ws_frame_mask(pieces + at, mk_min(n, len - at), mask, at);
        assert_memory_equal(whole, pieces, len);
    }
}

static void ws_frame_close_codes_are_validated(void **state)
{
    (void)state;
    static const unsigned good[] = {1000, 1003, 1007, 1014, 3000, 4999};
    static const unsigned bad[] = {0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535};
    for (size_t i = 0; i < MK_LEN(good); i++)
        assert_true(mk_ws_frame_is_close_code(good[i]));
    for (size_t i = 0; i < MK_LEN(bad); i++)
        assert_false(mk_ws_frame_is_close_code(bad[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ws_frame_head_lengths),         cmocka_unit_test(ws_frame_head_is_parsed),
        cmocka_unit_test(ws_frame_head_rejects_invalid), cmocka_unit_test(ws_frame_head_round_trips),
        cmocka_unit_test(ws_frame_mask_works_in_pieces), cmocka_unit_test(ws_frame_close_codes_are_validated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
