/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/h2.h"

#include "http2frame/hpack.h"
#include "unit/site.h"
#include "unit/test.h"
#include "web/response.h"

static char decoded_text[1024];
static struct mk_buf lines;

static int on_field(void *ctx, mk_str name, mk_str value)
{
    (void)ctx;
    mk_buf_addf(&lines, "%.*s: %.*s\n", MK_STR_ARG(name), MK_STR_ARG(value));
    return 0;
}

/* Decodes the block as a client would. */
static mk_str decoded(mk_str block)
{
    struct mk_hpack_decoder *h = mk_hpack_decoder_new();
    lines = mk_buf_fixed(decoded_text, sizeof decoded_text);
    assert_non_null(h);
    assert_int_equal(mk_hpack_decode(h, block, on_field, NULL), 0);
    mk_hpack_decoder_free(h);
    return mk_buf_str(&lines);
}

static void cached_head_has_all_fields_and_length(void **state)
{
    (void)state;
    char buffer[256];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    struct mk_header_field fields[] = {{.name = MK_STR("ETag"), .value = MK_STR("\"x\"")},
                                       {.name = MK_STR("Content-Type"), .value = MK_STR("text/html")}};
    struct mk_header_block whole = {.fields = fields, .n = MK_LEN(fields)};
    mk_h2_module.pack_head(&out, &whole, 12345);
    assert_str(decoded(mk_buf_str(&out)),
               ":status: 200\netag: \"x\"\ncontent-type: text/html\ncontent-length: 12345\n");
}

static void cached_head_too_large_fails(void **state)
{
    (void)state;
    char buffer[8];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    struct mk_header_field field = {.name = MK_STR("ETag"), .value = MK_STR("\"0123456789\"")};
    mk_h2_module.pack_head(&out, &(struct mk_header_block){.fields = &field, .n = 1}, 1);
    assert_true(out.failed);
}

static void cached_date_changes_each_second(void **state)
{
    (void)state;
    struct mk_common_headers s;
    mk_common_headers_init(&s, MK_STR("Monkey/2.0"));
    assert_int_equal(s.packed_len, 0);
    mk_h2_module.encode_common_headers(&s);
    assert_str(decoded(mk_common_headers_hpack_at(&s, 784111777)),
               "server: Monkey/2.0\ndate: Sun, 06 Nov 1994 08:49:37 GMT\n");
    assert_str(decoded(mk_common_headers_hpack_at(&s, 784111778)),
               "server: Monkey/2.0\ndate: Sun, 06 Nov 1994 08:49:38 GMT\n");
    assert_str(mk_common_headers_at(&s, 784111778),
               "Server: Monkey/2.0\r\nDate: Sun, 06 Nov 1994 08:49:38 GMT\r\n");
}

static void cached_server_and_date_can_each_be_left_out(void **state)
{
    (void)state;
    struct mk_common_headers s;
    mk_common_headers_init(&s, MK_STR("Monkey"));
    mk_h2_module.encode_common_headers(&s);
    mk_str both = mk_common_headers_hpack_at(&s, 784111777);
    assert_str(decoded(mk_common_headers_without_own(both, s.packed_server_len, MK_RESPONSE_OWN_DATE)),
               "server: Monkey\n");
    assert_str(decoded(mk_common_headers_without_own(both, s.packed_server_len, MK_RESPONSE_OWN_SERVER)),
               "date: Sun, 06 Nov 1994 08:49:37 GMT\n");
    assert_str(decoded(mk_common_headers_without_own(both, s.packed_server_len,
                                                     MK_RESPONSE_OWN_SERVER | MK_RESPONSE_OWN_DATE)),
               "");
}

static void cached_server_name_may_have_any_length(void **state)
{
    (void)state;
    static char name[MK_COMMON_HEADERS_MAX * 2];
    memset(name, 'n', sizeof name);
    for (size_t len = 0; len <= sizeof name; len++) {
        struct mk_common_headers s;
        mk_common_headers_init(&s, mk_str_of(name, len));
        mk_h2_module.encode_common_headers(&s);
        mk_str text = decoded(mk_common_headers_hpack_at(&s, 784111777));
        assert_true(mk_str_starts(text, MK_STR("server: ")));
        assert_true(mk_str_ends(text, MK_STR("\ndate: Sun, 06 Nov 1994 08:49:37 GMT\n")));
        assert_int_equal(text.len, sizeof "server: \ndate: Sun, 06 Nov 1994 08:49:37 GMT\n" - 1 +
                                       mk_common_headers_server_name(&s).len);
    }
}

/* A file caches its HTTP/2 head if the virtual host can encode one. */
static void cached_head_of_file_is_encoded_once(void **state)
{
    (void)state;
    struct site site;
    site_init(&site);
    site.host.pack_head = mk_h2_module.pack_head;
    site_add(&site, "a.txt", MK_STR("hello"));
    struct mk_exchange *x = site_run_get(&site, "/a.txt", "");
    assert_int_equal(x->response.n_blocks, 1);
    mk_str text = decoded(x->response.blocks[0]->cached_head_h2);
    assert_true(mk_str_starts(text, MK_STR(":status: 200\n")));
    assert_true(mk_str_ends(text, MK_STR("content-length: 5\n")));
    mk_exchange_free(x);
    site_fini(&site);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cached_head_has_all_fields_and_length),
        cmocka_unit_test(cached_head_too_large_fails),
        cmocka_unit_test(cached_date_changes_each_second),
        cmocka_unit_test(cached_server_and_date_can_each_be_left_out),
        cmocka_unit_test(cached_server_name_may_have_any_length),
        cmocka_unit_test(cached_head_of_file_is_encoded_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
