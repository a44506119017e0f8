/* SPDX-License-Identifier: Apache-2.0 */
/* Data survives a round trip with any split of the input; damaged or oversized input is rejected. */
#include <duda/gzip.h>
#include <errno.h>
#include <stdlib.h>

#include "unit/test.h"

enum { LEN = 200 * 1000 };
static char plain[LEN];

static void fill(void)
{
    for (size_t i = 0; i < LEN; i++) /* this data compresses to about half its size */
        plain[i] = (char)(i % 1000 < 400 ? 'a' : rand());
}

static struct mk_buf packed(mk_str text, int level)
{
    struct mk_buf out = mk_buf_growing(1 << 20);
    assert_int_equal(duda_gzip(&out, text, level), 0);
    return out;
}

static int unpack(mk_str data, size_t max, mk_str expected)
{
    struct mk_buf out = mk_buf_growing(max);
    int e = duda_gunzip(&out, data);
    assert_true(out.len <= max);
    if (!e)
        assert_memory_equal(mk_buf_str(&out).p, expected.p, expected.len);
    if (!e)
        assert_int_equal(out.len, expected.len);
    mk_buf_free(&out);
    return e;
}

static void gzip_round_trips(void **state)
{
    static const size_t lens[] = {0, 1, 100, 65535, 65536, LEN};
    (void)state;
    for (size_t i = 0; i < MK_LEN(lens); i++) {
        mk_str text = mk_str_of(plain, lens[i]);
        struct mk_buf out = packed(text, (int)i + 1);
        assert_int_equal(unpack(mk_buf_str(&out), LEN, text), 0);
        mk_buf_free(&out);
    }
    struct mk_buf out = mk_buf_growing(100);
    assert_int_equal(duda_gzip(&out, MK_STR("x"), 10), -EINVAL);
    assert_int_equal(duda_gzip(&out, MK_STR("x"), -1), -EINVAL);
    assert_int_equal(duda_gzip(&out, mk_str_of(plain, LEN), 0), -ENOMEM);
    mk_buf_free(&out);
}

static void gzip_unpack_enforces_size_limit(void **state)
{
    static char zeroes[1 << 20];
    struct mk_buf out = packed(mk_str_of(zeroes, sizeof zeroes), 9);
    char fixed[3000];
    (void)state;
    assert_true(out.len < 2000);
    assert_int_equal(unpack(mk_buf_str(&out), sizeof zeroes, mk_str_of(zeroes, sizeof zeroes)), 0);
    assert_int_equal(unpack(mk_buf_str(&out), sizeof zeroes - 1, MK_STR("")), -EMSGSIZE);
    assert_int_equal(unpack(mk_buf_str(&out), 1, MK_STR("")), -EMSGSIZE);
    struct mk_buf buffer = mk_buf_fixed(fixed, sizeof fixed);
    assert_int_equal(duda_gunzip(&buffer, mk_buf_str(&out)), -EMSGSIZE);
    assert_int_equal(buffer.len, sizeof fixed);
    mk_buf_free(&out);
}

static void gzip_concatenated_members_are_unpacked(void **state)
{
    struct mk_buf out = packed(MK_STR("one "), 0);
    (void)state;
    assert_int_equal(duda_gzip(&out, MK_STR(""), 0), 0);
    assert_int_equal(duda_gzip(&out, MK_STR("two"), 0), 0);
    assert_int_equal(unpack(mk_buf_str(&out), 7, MK_STR("one two")), 0);
    mk_buf_free(&out);
}

static void gzip_rejects_damaged_input(void **state)
{
    mk_str text = mk_str_of(plain, 5000);
    struct mk_buf out = packed(text, 6);
    (void)state;
    for (size_t n = 0; n < out.len; n++)
        assert_int_equal(unpack(mk_str_of(out.p, n), LEN, text), -EBADMSG);
    out.p[out.len - 6] ^= 1; /* the checksum */
    assert_int_equal(unpack(mk_buf_str(&out), LEN, text), -EBADMSG);
    out.p[out.len - 6] ^= 1;
    mk_buf_add(&out, MK_STR("garbage"));
    assert_int_equal(unpack(mk_buf_str(&out), LEN, text), -EBADMSG);
    assert_int_equal(unpack(MK_STR("no gzip at all"), LEN, text), -EBADMSG);
    mk_buf_free(&out);
}

/* Processes input in pieces of `size` bytes, with at most `most` bytes of output at a time. */
static struct mk_buf in_steps(struct duda_gzip_stream *z, mk_str in, size_t size, size_t most)
{
    struct mk_buf out = mk_buf_growing(1 << 20);
    int more = 0;
    assert_non_null(z);
    do {
        mk_str piece = mk_str_first(in, size < in.len ? size : in.len);
        in = mk_str_skip(in, piece.len);
        do {
            size_t had = out.len;
            more = duda_gzip_step(z, &piece, !in.len, &out, most);
            assert_true(more >= 0 && out.len - had <= most);
        } while (more);
        assert_int_equal(piece.len, 0);
    } while (in.len);
    duda_gzip_free(z);
    return out;
}

static void gzip_stream_accepts_pieces(void **state)
{
    static const size_t sizes[] = {1, 7, 1000, LEN};
    (void)state;
    for (size_t i = 0; i < MK_LEN(sizes); i++) {
        mk_str text = mk_str_of(plain, i ? LEN : 3000);
        struct mk_buf small = in_steps(duda_gzip_new(1), text, sizes[i], 100);
        struct mk_buf back = in_steps(duda_gunzip_new(), mk_buf_str(&small), sizes[i], 333);
        assert_int_equal(back.len, text.len);
        assert_memory_equal(back.p, text.p, text.len);
        mk_buf_free(&small);
        mk_buf_free(&back);
    }
    assert_null(duda_gzip_new(10));
    duda_gzip_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gzip_round_trips),
        cmocka_unit_test(gzip_unpack_enforces_size_limit),
        cmocka_unit_test(gzip_concatenated_members_are_unpacked),
        cmocka_unit_test(gzip_rejects_damaged_input),
        cmocka_unit_test(gzip_stream_accepts_pieces),
    };
    fill();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
