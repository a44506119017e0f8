/* SPDX-License-Identifier: Apache-2.0 */
/* Parses multipart/form-data, split in any way, and with adversarial boundaries. */
#include <errno.h>
#include <monkey/multipart.h>
#include <stdlib.h>

#include "unit/test.h"

static char buffer[65536];
static struct mk_buf seen;
static int answer;

static int on_part(void *ctx, const struct mk_multipart_part *p)
{
    (void)ctx;
    mk_buf_addf(&seen, "<%.*s", MK_STR_ARG(p->name));
    if (p->file_name.p)
        mk_buf_addf(&seen, " file %.*s", MK_STR_ARG(p->file_name));
    if (p->content_type.p)
        mk_buf_addf(&seen, " type %.*s", MK_STR_ARG(p->content_type));
    mk_buf_add_char(&seen, '>');
    return 0;
}

static int on_data(void *ctx, mk_str bytes)
{
    (void)ctx;
    mk_buf_add(&seen, bytes);
    return answer;
}

static int on_end(void *ctx)
{
    (void)ctx;
    mk_buf_add(&seen, MK_STR("</>"));
    return 0;
}

static const struct mk_multipart_ops ops = {.part = on_part, .data = on_data, .end = on_end};

/* Feeds the text in pieces of this size. */
static int parse_in_pieces(mk_str text, mk_str boundary, size_t piece,
                           const struct mk_multipart_limits *limits)
{
    seen = mk_buf_fixed(buffer, sizeof buffer);
    struct mk_multipart *m = mk_multipart_new(boundary, limits, &ops, NULL);
    int e = 0;
    while (text.len && !e) {
        e = mk_multipart_feed(m, mk_str_first(text, piece));
        text = mk_str_skip(text, piece);
    }
    if (!e)
        e = mk_multipart_end(m);
    else
        assert_int_equal(mk_multipart_feed(m, MK_STR("x")), e);
    mk_multipart_free(m);
    return e;
}

#define HEAD(name) "Content-Disposition: form-data; name=\"" name "\"\r\n\r\n"

static void expect(const char *text, const char *expected)
{
    for (size_t piece = 1; piece < 300; piece += piece < 20 ? 1 : 50) {
        assert_int_equal(parse_in_pieces(mk_str_from_c(text), MK_STR("xyz"), piece, NULL), 0);
        assert_str(mk_buf_str(&seen), expected);
    }
}

static void multipart_parts_are_parsed(void **state)
{
    (void)state;
    expect("--xyz\r\n" HEAD("a") "1\r\n--xyz\r\n" HEAD("b") "\r\n--xyz--\r\n", "<a>1</><b></>");
    expect(
        "preamble\r\n--xyz \t\r\ncontent-disposition:form-data;filename=\"C:\\dir\\q.txt\";name=f\r\n"
        "Content-Type: text/plain; a=b\r\nContent-Transfer-Encoding: binary\r\n\r\nline\r\n\r\n--xy\r\n-\r\n"
        "\r\n--xyz--epilogue\r\n--xyz\r\n",
        "<f file C:\\dir\\q.txt type text/plain; a=b>line\r\n\r\n--xy\r\n-\r\n</>");
    expect("--xyz\r\n" HEAD("say \\\"hi\\\\") "x\r\n--xyz--", "<say \"hi\\\\>x</>");
    expect("--xyz--", "");
    /* Browsers send backslashes unescaped; other clients escape quotes with them. */
    expect("--xyz\r\n" HEAD("dir\\") "x\r\n--xyz--", "<dir\\>x</>");
    expect("--xyz\r\n" HEAD("C:\\\\share") "x\r\n--xyz--", "<C:\\\\share>x</>");
    expect("--xyz\r\n" HEAD("a\\\"; b") "x\r\n--xyz--", "<a\"; b>x</>");
    expect("--xyz\r\nContent-Disposition: form-data; name=\"a\\\" ; filename=\"b\\\";\r\n\r\nx\r\n--xyz--",
           "<a\\ file b\\>x</>");
    expect("--xyz\r\nContent-Disposition: form-data; filename=\"\\\"b\\\"\"; name=a\r\n\r\nx\r\n--xyz--",
           "<a file \"b\">x</>");
    /* An extended name may stand alone or next to a plain one. */
    expect("--xyz\r\nContent-Disposition: form-data; name=a; "
           "filename*=utf-8''%C3%A9t%c3%a9%20%22.txt\r\n\r\nx\r\n--xyz--",
           "<a file \xc3\xa9t\xc3\xa9 \".txt>x</>");
    expect("--xyz\r\nContent-Disposition: form-data; name*=UTF-8'fr'%C3%A9; "
           "filename*=iso-8859-1''%E9t%E9\r\n\r\nx\r\n--xyz--",
           "<\xc3\xa9 file \xc3\xa9t\xc3\xa9>x</>");
    expect("--xyz\r\nContent-Disposition: form-data; name=a; filename=\"=?utf-8?B?w6k=?=\"; "
           "filename*=utf-8''%C3%A9\r\n\r\nx\r\n--xyz--",
           "<a file \xc3\xa9>x</>");
    expect("--xyz\r\nContent-Disposition: form-data; name=a; filename=b; "
           "filename*=koi8-r''%C1\r\n\r\nx\r\n--xyz--",
           "<a file b>x</>");
    /* A boundary followed by other characters is body data. */
    expect("--xyz\r\n" HEAD("a") "1\r\n--xyzw\r\n--xyz-\r\n--xyz--", "<a>1\r\n--xyzw\r\n--xyz-</>");
    expect("--xyz\r\n" HEAD("a") "\r\n\r\n--xyz \r\r\n--xyz--", "<a>\r\n\r\n--xyz \r</>");
}

static void multipart_rejects_malformed(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",
        "xyz",
        "--xyz",
        "--xyz\r\n",
        "--xyz\r\n" HEAD("a") "1",
        "--xyz\r\n" HEAD("a") "1\r\n--xyz\r\n",
        "--xyz\r\n\r\n1\r\n--xyz--",
        "--xyz\r\nContent-Disposition: form-data\r\n\r\n1\r\n--xyz--",
        "--xyz\r\nContent-Disposition: attachment; name=a\r\n\r\n1\r\n--xyz--",
        "--xyz\r\nContent-Disposition: form-data; name=\"a\r\n\r\n1\r\n--xyz--",
        "--xyz\r\nContent-Disposition: form-data; name=a; name=b\r\n\r\n1\r\n--xyz--",
        "--xyz\r\nContent-Disposition: form-data; name=\"a\"b\r\n\r\n1\r\n--xyz--",
        "--xyz\r\nContent-Disposition: form-data; name=\"a\x01\"\r\n\r\n1\r\n--xyz--",
        "--xyz\r\nContent-Disposition: form-data; name=\"\xff\"\r\n\r\n1\r\n--xyz--",
        "--xyz\r\nContent-Disposition: form-data; name=a\r\nContent-Disposition: form-data; "
        "name=b\r\n\r\n1\r\n--xyz--",
        "--xyz\r\n"
        "Content-Disposition: form-data; name=a\nb: c\r\n\r\n1\r\n--xyz--",
        "--xyz\r\n folded\r\n" HEAD("a") "1\r\n--xyz--",
        "--xyz\r\nno colon\r\n" HEAD("a") "1\r\n--xyz--",
        "--xyz\r\nContent-Disposition: form-data; name=a; filename*=koi8-r''%C1\r\n\r\n1\r\n--xyz--",
        "--xyz\r\nContent-Disposition: form-data; name=a; filename*=utf-8''%FF\r\n\r\n1\r\n--xyz--",
        "--xyz\r\nContent-Disposition: form-data; name=a; filename*=utf-8''%00\r\n\r\n1\r\n--xyz--",
        "--xyz\r\nContent-Disposition: form-data; name=a; filename*=utf-8''%C\r\n\r\n1\r\n--xyz--",
        "--xyz\r\nContent-Disposition: form-data; name=a; filename*=utf-8''%4\r\n\r\n1\r\n--xyz--",
        "--xyz\r\nContent-Disposition: form-data; name=a; filename*=x\r\n\r\n1\r\n--xyz--",
        "--xyz\r\nContent-Disposition: form-data; name=a; filename*=utf-8''a; "
        "filename*=utf-8''b\r\n\r\n1\r\n--xyz--",
        "--xyz\r\nContent-Transfer-Encoding: base64\r\n" HEAD("a") "1\r\n--xyz--",
    };
    for (size_t i = 0; i < MK_LEN(cases); i++)
        for (size_t piece = 1; piece < 100; piece += 7)
            if (parse_in_pieces(mk_str_from_c(cases[i]), MK_STR("xyz"), piece, NULL) != -EBADMSG)
                fail_msg("%s", cases[i]);
}

static void multipart_limits_are_enforced(void **state)
{
    (void)state;
    static const char two[] =
        "--b\r\n" HEAD("aa") "1234\r\n--b\r\nContent-Disposition: form-data; name=f; filename=n"
                             "\r\n\r\n123456\r\n--b--\r\n";
    static const struct {
        struct mk_multipart_limits limits;
        int result;
    } cases[] = {
        {{.size = sizeof two - 1, .file = 6, .value = 4, .parts = 2, .head = 70, .name = 2}, 0},
        {{.size = sizeof two - 2}, -EMSGSIZE},
        {{.file = 5}, -EMSGSIZE},
        {{.value = 3}, -EMSGSIZE},
        {{.parts = 1}, -EMSGSIZE},
        {{.head = 30}, -EMSGSIZE},
        {{.name = 1}, -EMSGSIZE},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++)
        for (size_t piece = 1; piece < 200; piece += 13)
            assert_int_equal(parse_in_pieces(mk_str_from_c(two), MK_STR("b"), piece, &cases[i].limits),
                             cases[i].result);
    answer = -ENOSPC;
    assert_int_equal(parse_in_pieces(mk_str_from_c(two), MK_STR("b"), 100, NULL), -ENOSPC);
    answer = 0;
    mk_str endless = mk_str_of(memset(calloc(1, 100000), '-', 100000), 100000);
    assert_int_equal(parse_in_pieces(endless, MK_STR("b"), 4096, NULL), -EBADMSG);
    free((void *)(uintptr_t)endless.p);
}

/* Data that repeatedly begins like a boundary costs no more than other data. */
static void multipart_boundary_like_data_is_cheap(void **state)
{
    (void)state;
    struct mk_buf text = mk_buf_growing(1 << 20);
    mk_buf_add(&text, MK_STR("--aaaaaaaaaaaaaaaaaaaaaaaab\r\n" HEAD("x")));
    size_t begin = text.len;
    for (int i = 0; i < 500; i++)
        mk_buf_add(&text, MK_STR("\r\n--aaaaaaaaaaaaaaaaaaaaaaaa\r\n--aaaaaaaaaaaaaaaaaaaaaaa"));
    size_t len = text.len - begin;
    mk_buf_add(&text, MK_STR("\r\n--aaaaaaaaaaaaaaaaaaaaaaaab--"));
    assert_int_equal(parse_in_pieces(mk_buf_str(&text), MK_STR("aaaaaaaaaaaaaaaaaaaaaaaab"), 777, NULL), 0);
    assert_int_equal(seen.len, len + sizeof "<x></>" - 1);
    mk_buf_free(&text);
}

static void multipart_boundary_is_taken_from_content_type(void **state)
{
    (void)state;
    static const struct {
        const char *type, *boundary;
    } cases[] = {
        {"multipart/form-data; boundary=abc", "abc"},
        {"Multipart/Form-Data;charset=utf-8; BOUNDARY=\"a b:c\"", "a b:c"},
        {"multipart/form-data", NULL},
        {"multipart/form-data; boundary=", NULL},
        {"multipart/form-data; boundary=\"a \"", NULL},
        {"multipart/form-data; boundary=a\tb", NULL},
        {"multipart/mixed; boundary=abc", NULL},
        {"multipart/form-data; boundary="
         "0123456789012345678901234567890123456789012345678901234567890123456789x",
         NULL},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        mk_str boundary = MK_STR_NULL;
        assert_int_equal(mk_multipart_boundary(mk_str_from_c(cases[i].type), &boundary),
                         cases[i].boundary != NULL);
        if (cases[i].boundary)
            assert_str(boundary, cases[i].boundary);
    }
}

static void multipart_file_names_are_sanitized(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"photo.jpg", "photo.jpg"},
        {"../../etc/passwd", "passwd"},
        {"C:\\x\\y z.txt", "y_z.txt"},
        {"..", "file"},
        {".bashrc", "bashrc"},
        {"a..b...c", "a.b.c"},
        {"\xc3\xa4\xf0\x9f\x98\x80.png", "\xc3\xa4\xf0\x9f\x98\x80.png"},
        {"Pl\xc3\xa4ne %22x%22.txt", "Pl\xc3\xa4ne__x_.txt"},
        {"a%0d%0Ab%2e%2F%", "a__b_2e_2F_"},
        {"\xe6\x96\x87\xe4\xbb\xb6\xef\xbc\x8epng", "\xe6\x96\x87\xe4\xbb\xb6_png"},
        {"a\xe2\x80\xaegnp.exe", "a_gnp.exe"},
        {"\xff\xc3.\xe4x", "__._x"},
        {"a\xc2\xa0\xe2\x80\x8b\xef\xbb\xbf\xe2\x81\x84z", "a____z"},
        {"\xcc\x81\xd0\xb9\xd7\x90", "\xcc\x81\xd0\xb9\xd7\x90"},
        {"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456"
         "\xe6\x96\x87\xe6\x96\x87",
         "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456"
         "\xe6\x96\x87"},
        {"a/", "file"},
        {"", "file"},
        {"x;rm -rf $(y)\n", "x_rm_-rf___y__"},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        seen = mk_buf_fixed(buffer, sizeof buffer);
        mk_file_name_clean(&seen, mk_str_from_c(cases[i][0]));
        assert_str(mk_buf_str(&seen), cases[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(multipart_parts_are_parsed),
        cmocka_unit_test(multipart_rejects_malformed),
        cmocka_unit_test(multipart_limits_are_enforced),
        cmocka_unit_test(multipart_boundary_like_data_is_cheap),
        cmocka_unit_test(multipart_boundary_is_taken_from_content_type),
        cmocka_unit_test(multipart_file_names_are_sanitized),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
