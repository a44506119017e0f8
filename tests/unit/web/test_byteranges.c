/* SPDX-License-Identifier: Apache-2.0 */
#include "web/byteranges.h"

#include "unit/site.h"
#include "unit/test.h"

static struct site site;

static void setup(void)
{
    site_setup(&site);
    site_add(&site, "ten.txt", MK_STR("0123456789"));
    site_add(&site, "empty.txt", MK_STR(""));
}

static struct mk_exchange *request_range(const char *target, const char *range, const char *more)
{
    char fields[1024];
    snprintf(fields, sizeof fields, "Range: %s\r\n%s", range, more);
    return site_run_get(&site, target, fields);
}

static void expect_part(const char *range, const char *content, const char *content_range)
{
    struct mk_exchange *x = request_range("/ten.txt", range, "");
    assert_int_equal(x->response.status, 206);
    assert_str(site_field(x, "Content-Range"), content_range);
    assert_str(site_field(x, "Content-Type"), "text/plain; charset=utf-8");
    assert_str(site_field(x, "Accept-Ranges"), "bytes");
    assert_true(site_field(x, "ETag").len > 0 && site_field(x, "Last-Modified").len > 0);
    assert_int_equal(x->response.content.length, strlen(content));
    assert_str(site_content(x), content);
    mk_exchange_free(x);
}

static void expect_whole(const char *target, const char *range, const char *more)
{
    struct mk_exchange *x = request_range(target, range, more);
    if (x->response.status != 200)
        fail_msg("%s %s: %u", range, more, x->response.status);
    assert_null(site_field(x, "Content-Range").p);
    assert_str(site_content(x), strstr(target, "ten") ? "0123456789" : "");
    mk_exchange_free(x);
}

static void byteranges_single_range_is_sent_plain(void **state)
{
    (void)state;
    expect_part("bytes=0-0", "0", "bytes 0-0/10");
    expect_part("bytes=2-4", "234", "bytes 2-4/10");
    expect_part("bytes=7-", "789", "bytes 7-9/10");
    expect_part("bytes=-3", "789", "bytes 7-9/10");
    expect_part("bytes=-100", "0123456789", "bytes 0-9/10");
    expect_part("bytes=5-100", "56789", "bytes 5-9/10");
    expect_part("bytes=0-2, 3-5", "012345", "bytes 0-5/10"); /* adjacent ranges are merged */
    expect_part("bytes=8-9, 20-30", "89", "bytes 8-9/10");
}

static void byteranges_malformed_range_is_ignored(void **state)
{
    (void)state;
    static const char *const bad[] = {"lines=0-1", "bytes 0-1",   "bytes=", "bytes=4-2",
                                      "bytes=a-b", "bytes=1-2-3", "bytes=-"};
    for (size_t i = 0; i < MK_LEN(bad); i++)
        expect_whole("/ten.txt", bad[i], "");
    expect_whole("/ten.txt", "bytes=0-0,2-2,4-4,6-6,8-8,0-0,2-2,4-4,6-6,8-8,0-0,2-2,4-4,6-6,8-8,0-0,2-2", "");
    expect_whole("/empty.txt", "bytes=-5", "");
    site.host.ranges = false;
    site_add(&site, "other-ten.txt", MK_STR("0123456789"));
    expect_whole("/other-ten.txt", "bytes=0-0", "");
}

static void byteranges_unsatisfiable_range_gets_416(void **state)
{
    (void)state;
    static const char *const beyond[] = {"bytes=10-", "bytes=10-20", "bytes=100-, 200-300", "bytes=-0"};
    for (size_t i = 0; i < MK_LEN(beyond); i++) {
        struct mk_exchange *x = request_range("/ten.txt", beyond[i], "");
        assert_int_equal(x->response.status, 416);
        assert_str(site_field(x, "Content-Range"), "bytes */10");
        assert_null(site_field(x, "ETag").p);
        assert_str(site_field(x, "Content-Type"), "text/html; charset=utf-8");
        mk_exchange_free(x);
    }
}

static void byteranges_of_empty_file_get_416(void **state)
{
    (void)state;
    struct mk_exchange *x = request_range("/empty.txt", "bytes=0-", "");
    assert_int_equal(x->response.status, 416);
    assert_str(site_field(x, "Content-Range"), "bytes */0");
    mk_exchange_free(x);
}

static void byteranges_several_ranges_are_multipart(void **state)
{
    (void)state;
    char expected[1024];
    struct mk_exchange *x = request_range("/ten.txt", "bytes=8-9, 0-1, -1, 4-4", "");
    assert_int_equal(x->response.status, 206);
    mk_str type = site_field(x, "Content-Type"), mark = MK_STR("multipart/byteranges; boundary=");
    assert_true(mk_str_starts(type, mark));
    mk_str b = mk_str_skip(type, mark.len);
    assert_int_equal(b.len, 16);
    assert_null(site_field(x, "Content-Range").p);
    assert_true(site_field(x, "ETag").len > 0);
    assert_str(site_field(x, "Accept-Ranges"), "bytes");
    snprintf(expected, sizeof expected,
             "\r\n--%.*s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes 8-9/10\r\n\r\n89"
             "\r\n--%.*s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes 0-1/10\r\n\r\n01"
             "\r\n--%.*s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes 4-4/10\r\n\r\n4"
             "\r\n--%.*s--\r\n",
             MK_STR_ARG(b), MK_STR_ARG(b), MK_STR_ARG(b), MK_STR_ARG(b));
    assert_int_equal(x->response.content.length, strlen(expected));
    assert_str(site_content(x), expected);
    mk_exchange_free(x);
}

static void byteranges_boundaries_are_unique(void **state)
{
    (void)state;
    struct mk_exchange *x = request_range("/ten.txt", "bytes=0-0,2-2", ""),
                       *y = request_range("/ten.txt", "bytes=0-0,2-2", "");
    assert_false(mk_str_eq(site_field(x, "Content-Type"), site_field(y, "Content-Type")));
    mk_exchange_free(x);
    mk_exchange_free(y);
}

static void byteranges_of_precompressed_file(void **state)
{
    (void)state;
    site_add(&site, "ten.txt.gz", MK_STR("gzip!"));
    struct mk_exchange *x = request_range("/ten.txt", "bytes=1-2", "Accept-Encoding: gzip\r\n");
    assert_int_equal(x->response.status, 206);
    assert_str(site_field(x, "Content-Range"), "bytes 1-2/5");
    assert_str(site_field(x, "Content-Encoding"), "gzip");
    assert_str(site_field(x, "Vary"), "Accept-Encoding");
    assert_str(site_content(x), "zi");
    mk_exchange_free(x);
    x = request_range("/ten.txt", "bytes=0-0,2-2", "Accept-Encoding: gzip\r\n");
    assert_str(site_field(x, "Content-Encoding"), "gzip");
    mk_exchange_free(x);
}

static void byteranges_if_range_mismatch_sends_whole_file(void **state)
{
    (void)state;
    char fields[256];
    struct mk_exchange *x = site_run_get(&site, "/ten.txt", "");
    mk_str etag = site_field(x, "ETag");
    snprintf(fields, sizeof fields, "If-Range: %.*s\r\n", MK_STR_ARG(etag));
    struct mk_exchange *y = request_range("/ten.txt", "bytes=1-1", fields);
    assert_int_equal(y->response.status, 206);
    mk_exchange_free(y);
    mk_exchange_free(x);
    /* A date cannot distinguish two versions from the same second, so If-Range must contain the entity tag. */
    expect_whole("/ten.txt", "bytes=1-1", "If-Range: Tue, 14 Nov 2023 22:13:20 GMT\r\n");
    expect_whole("/ten.txt", "bytes=1-1", "If-Range: \"other\"\r\n");
    expect_whole("/ten.txt", "bytes=1-1", "If-Range: Tue, 14 Nov 2023 22:13:19 GMT\r\n");
    expect_whole("/ten.txt", "bytes=100-", "If-Range: \"other\"\r\n");
}

static void byteranges_are_ignored_for_head(void **state)
{
    (void)state;
    struct mk_exchange *x =
        site_request(&site, "HEAD /ten.txt HTTP/1.1\r\nHost: a\r\nRange: bytes=0-0\r\n\r\n");
    assert_true(mk_dispatch_run(x));
    assert_int_equal(x->response.status, 200);
    assert_int_equal(x->response.content.length, 10);
    mk_exchange_free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(byteranges_single_range_is_sent_plain, setup),
        fixture_test(byteranges_malformed_range_is_ignored, setup),
        fixture_test(byteranges_unsatisfiable_range_gets_416, setup),
        fixture_test(byteranges_of_empty_file_get_416, setup),
        fixture_test(byteranges_several_ranges_are_multipart, setup),
        fixture_test(byteranges_boundaries_are_unique, setup),
        fixture_test(byteranges_of_precompressed_file, setup),
        fixture_test(byteranges_if_range_mismatch_sends_whole_file, setup),
        fixture_test(byteranges_are_ignored_for_head, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
