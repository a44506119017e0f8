/* SPDX-License-Identifier: Apache-2.0 */
/* tests/wire/chunked.txt tests the syntax; these tests cover the interface of the decoder. */
#include "http/chunked.h"

#include "base/buf.h"

#include "unit/test.h"

static void chunked_data_points_into_input(void **state)
{
    (void)state;
    const char *text = "5\r\nhello\r\n1;x\r\n!\r\n0\r\n\r\nGET";
    mk_str in = mk_str_from_c(text), data;
    struct mk_chunked c;
    mk_chunked_init(&c, 100);
    assert_int_equal(mk_chunked_decode(&c, &in, &data), MK_CHUNKED_DATA);
    assert_str(data, "hello");
    assert_ptr_equal(data.p, text + 3);
    assert_int_equal(c.total, 5);
    assert_int_equal(mk_chunked_decode(&c, &in, &data), MK_CHUNKED_DATA);
    assert_str(data, "!");
    assert_int_equal(mk_chunked_decode(&c, &in, &data), MK_CHUNKED_END);
    assert_str(in, "GET");
    assert_int_equal(mk_chunked_decode(&c, &in, &data), MK_CHUNKED_END);
    assert_str(in, "GET");
    assert_int_equal(c.total, 6);
}

static void chunked_chunk_may_arrive_in_pieces(void **state)
{
    (void)state;
    struct mk_chunked c;
    mk_chunked_init(&c, 100);
    mk_str in = MK_STR("a\r\n0123"), data;
    assert_int_equal(mk_chunked_decode(&c, &in, &data), MK_CHUNKED_DATA);
    assert_str(data, "0123");
    assert_int_equal(c.total, 10);
    assert_int_equal(mk_chunked_decode(&c, &in, &data), MK_CHUNKED_MORE);
    assert_int_equal(in.len, 0);
    in = MK_STR("456789\r");
    assert_int_equal(mk_chunked_decode(&c, &in, &data), MK_CHUNKED_DATA);
    assert_str(data, "456789");
    assert_int_equal(mk_chunked_decode(&c, &in, &data), MK_CHUNKED_MORE);
    in = MK_STR_NULL;
    assert_int_equal(mk_chunked_decode(&c, &in, &data), MK_CHUNKED_MORE);
    in = MK_STR("\n0\r\n\r\n");
    assert_int_equal(mk_chunked_decode(&c, &in, &data), MK_CHUNKED_END);
}

static void chunked_error_is_permanent(void **state)
{
    (void)state;
    struct mk_chunked c;
    mk_chunked_init(&c, 100);
    mk_str in = MK_STR("x"), data;
    assert_int_equal(mk_chunked_decode(&c, &in, &data), -400);
    in = MK_STR("0\r\n\r\n");
    assert_int_equal(mk_chunked_decode(&c, &in, &data), -400);
}

/* However the trailer section is split, its pieces add up to the whole, without the final empty line. */
static void chunked_trailers_point_into_input(void **state)
{
    (void)state;
    const char *text = "0;x\r\nA: b\r\nc:\r\n\r\nrest";
    for (size_t step = 1; step < 30; step++) {
        struct mk_chunked c;
        char buffer[64];
        struct mk_buf section = mk_buf_fixed(buffer, sizeof buffer);
        mk_str all = mk_str_from_c(text), in = {NULL, 0}, data;
        mk_chunked_init(&c, 100);
        for (;;) {
            int r = mk_chunked_decode(&c, &in, &data);
            if (r == MK_CHUNKED_END)
                break;
            if (r == MK_CHUNKED_TRAILERS) {
                assert_true(data.len > 0);
                mk_buf_add(&section, data);
                continue;
            }
            assert_int_equal(r, MK_CHUNKED_MORE);
            assert_true(all.len > 0);
            in = mk_str_first(all, step);
            all = mk_str_skip(all, step);
        }
        assert_str(mk_buf_str(&section), "A: b\r\nc:\r\n");
        assert_int_equal(in.len + all.len, 4);
    }
}

static int decode(const char *text, size_t trailers_max)
{
    struct mk_chunked c;
    mk_chunked_init(&c, trailers_max);
    mk_str in = mk_str_from_c(text), data;
    int r;
    while ((r = mk_chunked_decode(&c, &in, &data)) == MK_CHUNKED_DATA || r == MK_CHUNKED_TRAILERS)
        ;
    return r;
}

static void chunked_limits_are_exact(void **state)
{
    (void)state;
    assert_int_equal(decode("1\r\nx\r\n0\r\n\r\n", 0), MK_CHUNKED_END);
    assert_int_equal(decode("0\r\na: bc\r\n\r\n", 7), MK_CHUNKED_END);
    assert_int_equal(decode("0\r\na: bc\r\n\r\n", 6), -431);
    assert_int_equal(decode("0\r\na: b\r\nc: d\r\n\r\n", 12), MK_CHUNKED_END);
    assert_int_equal(decode("0\r\na: b\r\nc: d\r\n\r\n", 11), -431);
    assert_int_equal(decode("1;abcdefgh\r\nx\r\n0\r\n\r\n", 7), -431);
    assert_int_equal(decode("1;abcdefgh\r\nx\r\n0\r\n\r\n", 8), MK_CHUNKED_END);
}

static void chunked_long_extensions_of_long_chunks_are_allowed(void **state)
{
    (void)state;
    struct mk_chunked c;
    mk_chunked_init(&c, 100);
    char body[200];
    memset(body, 'b', sizeof body);
    for (int i = 0; i < 50; i++) {
        mk_str in = MK_STR("c8;signature=0123456789012345678901234567890123456789\r\n"), data;
        assert_int_equal(mk_chunked_decode(&c, &in, &data), MK_CHUNKED_MORE);
        in = mk_str_of(body, sizeof body);
        assert_int_equal(mk_chunked_decode(&c, &in, &data), MK_CHUNKED_DATA);
        in = MK_STR("\r\n");
        assert_int_equal(mk_chunked_decode(&c, &in, &data), MK_CHUNKED_MORE);
    }
    assert_int_equal(c.total, 10000);
}

static void chunked_sizes_are_bounded(void **state)
{
    (void)state;
    assert_int_equal(decode("ffffffffffffffff\r\n", 100), MK_CHUNKED_MORE);
    assert_int_equal(decode("0000000000000001\r\nx\r\n0\r\n\r\n", 100), MK_CHUNKED_END);
    assert_int_equal(decode("00000000000000001\r\nx\r\n0\r\n\r\n", 100), -413);
    assert_int_equal(decode("1\r\nx\r\nFFFFFFFFFFFFFFFF\r\n", 100), -413);
}

/* Returns the final result: MK_CHUNKED_END, or an error. */
static int decode_all(const char *text, bool pads)
{
    struct mk_chunked c;
    mk_str in = mk_str_from_c(text), data;
    int r = MK_CHUNKED_DATA;
    if (pads)
        mk_chunked_init_allow_padding(&c, 100);
    else
        mk_chunked_init(&c, 100);
    while (r == MK_CHUNKED_DATA || r == MK_CHUNKED_TRAILERS)
        r = mk_chunked_decode(&c, &in, &data);
    return r;
}

static void chunked_padding_after_size_only_in_responses(void **state)
{
    (void)state;
    static const char *const padded[] = {"5  \r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0 \r\n\r\n",
                                         "5\t\r\nhello\r\n0    \r\n\r\n", "5;x \r\nhello\r\n0\r\n\r\n",
                                         "5;x=y \r\nhello\r\n0\r\n\r\n"};
    static const char *const broken[] = {" 5\r\nhello\r\n0\r\n\r\n",   "5 \nhello\r\n0\r\n\r\n",
                                         "5 x\r\nhello\r\n0\r\n\r\n",  "5 5\r\nhello\r\n0\r\n\r\n",
                                         "5; \r\nhello\r\n0\r\n\r\n",  "5 \r \nhello\r\n0\r\n\r\n",
                                         "5;x= \r\nhello\r\n0\r\n\r\n"};
    for (size_t i = 0; i < MK_LEN(padded); i++) {
        assert_int_equal(decode_all(padded[i], true), MK_CHUNKED_END);
        assert_int_equal(decode_all(padded[i], false), -400);
    }
    for (size_t i = 0; i < MK_LEN(broken); i++)
        assert_int_equal(decode_all(broken[i], true), -400);
    char many[300] = "5";
    memset(many + 1, ' ', 250);
    memcpy(many + 251, "\r\n", 2);
    assert_int_equal(decode_all(many, true), -431);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunked_data_points_into_input),
        cmocka_unit_test(chunked_chunk_may_arrive_in_pieces),
        cmocka_unit_test(chunked_error_is_permanent),
        cmocka_unit_test(chunked_trailers_point_into_input),
        cmocka_unit_test(chunked_limits_are_exact),
        cmocka_unit_test(chunked_long_extensions_of_long_chunks_are_allowed),
        cmocka_unit_test(chunked_sizes_are_bounded),
        cmocka_unit_test(chunked_padding_after_size_only_in_responses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
