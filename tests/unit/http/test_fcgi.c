/* SPDX-License-Identifier: Apache-2.0 */
/* Parses every response at once, split in two at every offset, and byte by byte: the result must be the
 * same. */
#include "http/fcgi.h"

#include "unit/test.h"

#define OUT(text)   "\1\6\0\1\0" text
#define END(status) "\1\3\0\1\0\10\0\0\0\0\0\0" status "\0\0\0"
#define TEXT(bytes) mk_str_of(bytes, sizeof bytes - 1)

enum { TEXT_MAX = 256 };

struct outcome {
    enum mk_fcgi_event step;
    const char *problem;
    unsigned status;
    size_t rest;
    char buffer[TEXT_MAX];
    struct mk_buf text; /* "e" before each byte of stderr */
};

static void note(struct outcome *o, enum mk_fcgi_event step, mk_str data)
{
    for (size_t i = 0; i < data.len; i++) {
        if (step == MK_FCGI_ERR)
            mk_buf_add_char(&o->text, 'e');
        mk_buf_add_char(&o->text, data.p[i]);
    }
}

/* Gives half of each output piece back to the parser once; the parser must return this half again. */
static void parse_piece(struct mk_fcgi *f, struct outcome *o, mk_str in)
{
    bool gave_back = false;
    for (;;) {
        mk_str data = MK_STR_NULL;
        o->step = mk_fcgi_parse(f, &in, &data);
        o->rest = in.len;
        if (o->step != MK_FCGI_OUT && o->step != MK_FCGI_ERR)
            return;
        assert_true(data.len > 0);
        if (o->step == MK_FCGI_OUT && !gave_back) {
            size_t n = (data.len + 1) / 2;
            mk_fcgi_unread(f, &in, n);
            data.len -= n;
        }
        gave_back = !gave_back;
        note(o, o->step, data);
    }
}

/* Parses a first piece of `first` bytes, then pieces of `size` bytes. */
static void read_in_pieces(mk_str text, size_t first, size_t size, struct outcome *o)
{
    struct mk_fcgi f;
    *o = (struct outcome){.step = MK_FCGI_MORE};
    o->text = mk_buf_fixed(o->buffer, sizeof o->buffer);
    mk_fcgi_init(&f);
    for (size_t n = first; text.len && o->step == MK_FCGI_MORE; n = size) {
        mk_str piece = mk_str_first(text, n);
        text = mk_str_skip(text, piece.len);
        parse_piece(&f, o, piece);
    }
    o->rest += text.len;
    o->problem = f.problem;
    o->status = f.status;
    mk_str nothing = mk_str_of("", 0), data;
    assert_int_equal(mk_fcgi_parse(&f, &nothing, &data), o->step);
}

static void assert_same(const struct outcome *a, const struct outcome *b)
{
    assert_int_equal(a->step, b->step);
    assert_int_equal(a->status, b->status);
    assert_true(mk_str_eq(mk_buf_str(&a->text), mk_buf_str(&b->text)));
    assert_int_equal(a->rest, b->rest);
    assert_ptr_equal(a->problem, b->problem);
}

static void read_all(mk_str text, struct outcome *all)
{
    struct outcome o;
    read_in_pieces(text, text.len, 1, all);
    for (size_t first = 1; first < text.len; first++) {
        read_in_pieces(text, first, text.len, &o);
        assert_same(&o, all);
    }
    for (size_t size = 1; size < 10; size++) {
        read_in_pieces(text, size, size, &o);
        assert_same(&o, all);
    }
}

static void expect(mk_str text, const char *out, size_t rest)
{
    struct outcome o;
    read_all(text, &o);
    assert_null(o.problem);
    assert_int_equal(o.step, MK_FCGI_OVER);
    assert_str(mk_buf_str(&o.text), out);
    assert_int_equal(o.rest, rest);
}

static void fcgi_response_is_stdout_and_end_request(void **state)
{
    (void)state;
    expect(TEXT(OUT("\5\0\0hello") OUT("\1\0\0!") OUT("\0\0\0") END("\0")), "hello!", 0);
    expect(TEXT(OUT("\5\0\0hello") END("\0")), "hello", 0);
    expect(TEXT(OUT("\0\0\0") END("\0")), "", 0);
    expect(TEXT(END("\0")), "", 0);
}

static void fcgi_padding_is_skipped(void **state)
{
    (void)state;
    expect(TEXT(OUT("\5\3\0helloxyz") "\1\6\0\1\0\0\2\0zz\1\3\0\1\0\10\4\0\0\0\0\0\0\0\0\0zzzz"), "hello", 0);
}

static void fcgi_stderr_is_separate(void **state)
{
    (void)state;
    expect(TEXT(OUT("\2\0\0he") "\1\7\0\1\0\2\1\0no-\1\7\0\1\0\0\0\0" OUT("\3\0\0llo") END("\0")),
           "heeneollo", 0);
}

static void fcgi_bytes_after_end_are_left(void **state)
{
    (void)state;
    expect(TEXT(OUT("\1\0\0a") END("\0") "\1\6"), "a", 2);
}

static void fcgi_protocol_status_is_reported(void **state)
{
    struct outcome o;
    (void)state;
    read_all(TEXT(END("\2")), &o);
    assert_int_equal(o.step, MK_FCGI_OVER);
    assert_int_equal(o.status, MK_FCGI_OVERLOADED);
}

static void fcgi_rejects_invalid_records(void **state)
{
    static const struct {
        mk_str text;
        const char *problem;
    } cases[] = {
        {MK_STR_INIT("HTTP/1.1 200 OK\r\n"), "unsupported FastCGI version"},
        {MK_STR_INIT("\2\6\0\1\0\0\0\0"), "unsupported FastCGI version"},
        {MK_STR_INIT("\1\6\0\2\0\0\0\0"), "another request ID"},
        {MK_STR_INIT("\1\6\1\1\0\0\0\0"), "another request ID"},
        {MK_STR_INIT("\1\13\0\0\0\10\0\0\1\0\0\0\0\0\0\0"), "another request ID"},
        {MK_STR_INIT("\1\5\0\1\0\0\0\0"), "invalid type"},
        {MK_STR_INIT("\1\1\0\1\0\10\0\0"), "invalid type"},
        {MK_STR_INIT("\1\0\0\1\0\0\0\0"), "invalid type"},
        {MK_STR_INIT("\1\377\0\1\0\0\0\0"), "invalid type"},
        {MK_STR_INIT("\1\3\0\1\0\7\0\0\0\0\0\0\0\0\0"), "invalid length"},
        {MK_STR_INIT("\1\3\0\1\1\10\0\0"), "invalid length"},
        {MK_STR_INIT(END("\4")), "unknown status"},
        {MK_STR_INIT(OUT("\0\0\0") OUT("\1\0\0a")), "after the end"},
        {MK_STR_INIT(OUT("\0\0\0") OUT("\0\0\0")), "after the end"},
    };
    (void)state;
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        struct outcome o;
        read_all(cases[i].text, &o);
        assert_int_equal(o.step, MK_FCGI_BAD);
        assert_contains(mk_str_from_c(o.problem), cases[i].problem);
    }
}

/* ---- Writing ---- */

static void fcgi_begin_request_is_encoded(void **state)
{
    char buffer[64];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    (void)state;
    mk_fcgi_append_begin_request(&out);
    assert_true(mk_str_eq(mk_buf_str(&out), TEXT("\1\1\0\1\0\10\0\0\0\1\1\0\0\0\0\0")));
}

static void fcgi_params_are_encoded_as_pairs(void **state)
{
    static char value[200];
    struct mk_buf out = mk_buf_growing(1024);
    (void)state;
    memset(value, 'v', sizeof value);
    size_t begun = mk_fcgi_begin_params(&out);
    mk_fcgi_append_param(&out, MK_STR("A"), MK_STR("bc"));
    mk_fcgi_append_param(&out, MK_STR("EMPTY"), MK_STR(""));
    mk_fcgi_append_param(&out, MK_STR("L"), mk_str_of(value, sizeof value));
    mk_fcgi_end_params(&out, begun);
    mk_str text = mk_buf_str(&out);
    assert_int_equal(text.len, 8 + 5 + 7 + 6 + 200 + 8);
    assert_true(mk_str_starts(text, TEXT("\1\4\0\1\0\332\0\0\1\2Abc\5\0EMPTY\1\200\0\0\310Lv")));
    assert_true(mk_str_ends(text, TEXT("v\1\4\0\1\0\0\0\0")));
    mk_buf_free(&out);
}

static size_t nuls_of(size_t name, size_t value)
{
    static char text[70000];
    struct mk_buf out = mk_buf_growing(1 << 20);
    memset(text, 't', sizeof text);
    size_t written = mk_fcgi_append_param(&out, mk_str_of(text, name), mk_str_of(text, value)), there = 0;
    assert_false(out.failed);
    for (size_t i = 0; i < out.len; i++)
        there += out.p[i] == '\0';
    assert_int_equal(written, there);
    mk_buf_free(&out);
    return written;
}

static void fcgi_nuls_in_lengths_are_counted(void **state)
{
    static const size_t lengths[] = {0, 1, 127, 128, 255, 256, 257, 511, 512, 65535, 65536, 65537, 65792};
    (void)state;
    for (size_t i = 0; i < MK_LEN(lengths); i++)
        for (size_t j = 0; j < MK_LEN(lengths); j++)
            (void)nuls_of(lengths[i], lengths[j]);
    assert_int_equal(nuls_of(1, 1), 0);
    assert_int_equal(nuls_of(4, 0), 1);
    assert_int_equal(nuls_of(1, 256), 2);
}

static void fcgi_empty_params_are_one_record(void **state)
{
    char buffer[64];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    (void)state;
    mk_fcgi_end_params(&out, mk_fcgi_begin_params(&out));
    assert_true(mk_str_eq(mk_buf_str(&out), TEXT("\1\4\0\1\0\0\0\0")));
}

/* Reassembles the content of a record stream. */
static struct mk_buf join(mk_str text)
{
    struct mk_buf joined = mk_buf_growing(1 << 20);
    while (text.len) {
        size_t len = (size_t)(unsigned char)text.p[4] << 8 | (unsigned char)text.p[5];
        assert_true(mk_str_starts(text, TEXT("\1\4\0\1")));
        mk_buf_add(&joined, mk_str_first(mk_str_skip(text, 8), len));
        text = mk_str_skip(text, 8 + len);
        assert_int_equal(len == 0, text.len == 0);
    }
    return joined;
}

static void fcgi_many_params_are_split_into_records(void **state)
{
    static char value[MK_FCGI_CONTENT_MAX * 3];
    (void)state;
    for (size_t i = 0; i < sizeof value; i++)
        value[i] = (char)('a' + i % 23);
    static const size_t lengths[] = {MK_FCGI_CONTENT_MAX - 6, MK_FCGI_CONTENT_MAX - 5,
                                     2 * MK_FCGI_CONTENT_MAX - 6, 2 * MK_FCGI_CONTENT_MAX - 5, sizeof value};
    for (size_t i = 0; i < MK_LEN(lengths); i++) {
        struct mk_buf out = mk_buf_growing(1 << 20), plain = mk_buf_growing(1 << 20);
        size_t begun = (mk_buf_add(&out, MK_STR("before")), mk_fcgi_begin_params(&out));
        mk_fcgi_append_param(&out, MK_STR("N"), mk_str_of(value, lengths[i]));
        mk_fcgi_end_params(&out, begun);
        mk_fcgi_append_param(&plain, MK_STR("N"), mk_str_of(value, lengths[i]));
        assert_false(out.failed);
        struct mk_buf joined = join(mk_str_skip(mk_buf_str(&out), 6));
        assert_true(mk_str_eq(mk_buf_str(&joined), mk_buf_str(&plain)));
        mk_buf_free(&joined);
        mk_buf_free(&plain);
        mk_buf_free(&out);
    }
}

static void fcgi_params_overflow_is_permanent(void **state)
{
    char buffer[40];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    (void)state;
    size_t begun = mk_fcgi_begin_params(&out);
    mk_fcgi_append_param(&out, MK_STR("A"), MK_STR("a value of more than that buffer"));
    mk_fcgi_append_param(&out, MK_STR("A"), MK_STR("a value of more than that buffer"));
    mk_fcgi_end_params(&out, begun);
    assert_true(out.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fcgi_response_is_stdout_and_end_request),
        cmocka_unit_test(fcgi_padding_is_skipped),
        cmocka_unit_test(fcgi_stderr_is_separate),
        cmocka_unit_test(fcgi_bytes_after_end_are_left),
        cmocka_unit_test(fcgi_protocol_status_is_reported),
        cmocka_unit_test(fcgi_rejects_invalid_records),
        cmocka_unit_test(fcgi_begin_request_is_encoded),
        cmocka_unit_test(fcgi_params_are_encoded_as_pairs),
        cmocka_unit_test(fcgi_nuls_in_lengths_are_counted),
        cmocka_unit_test(fcgi_empty_params_are_one_record),
        cmocka_unit_test(fcgi_many_params_are_split_into_records),
        cmocka_unit_test(fcgi_params_overflow_is_permanent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
