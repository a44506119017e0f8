/* SPDX-License-Identifier: Apache-2.0 */
/* Changes to finished responses: headers of shared blocks, and other kinds of bodies. */
#include "unit/folder.h"
#include "unit/web/response_case.h"
#include "web/filter.h"
#include "web/request_type.h"
#include "web/response.h"

static const struct mk_header_field block_fields[] = {
    {.name = MK_STR_INIT("ETag"), .value = MK_STR_INIT("\"x\"")},
    {.name = MK_STR_INIT("Vary"), .value = MK_STR_INIT("A")},
    {.name = MK_STR_INIT("Vary"), .value = MK_STR_INIT("B")}};
static const struct mk_header_block block = {.text = MK_STR_INIT("ETag: \"x\"\r\nVary: A\r\nVary: B\r\n"),
                                             .ready = MK_STR_INIT("HTTP/1.1 200 OK\r\n..."),
                                             .fields = block_fields,
                                             .n = MK_LEN(block_fields)};
static const struct mk_header_field more_fields[] = {{.name = MK_STR_INIT("Age"), .value = MK_STR_INIT("1")}};
static const struct mk_header_block more = {
    .text = MK_STR_INIT("Age: 1\r\n"), .fields = more_fields, .n = MK_LEN(more_fields)};

static int set(const char *name, const char *value)
{
    return mk_response_set_header(&r, mk_str_from_c(name), mk_str_from_c(value));
}

/* Expects these headers in order, as "Name=value Name=value". */
static void expect_fields(const char *expected)
{
    char buffer[512];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    mk_str name, value;
    size_t i = 0;
    for (; mk_response_header_at(&r, i, &name, &value); i++)
        mk_buf_addf(&out, "%s%.*s=%.*s", i ? " " : "", MK_STR_ARG(name), MK_STR_ARG(value));
    assert_false(mk_response_header_at(&r, i + 1, &name, &value));
    assert_false(mk_response_header_at(&r, SIZE_MAX, &name, &value));
    assert_str(mk_buf_str(&out), expected);
}

static void response_change_headers_are_enumerated(void **state)
{
    (void)state;
    expect_fields("");
    assert_int_equal(add("X", "1"), 0);
    expect_fields("X=1");
    mk_response_add_header_block(&r, &block);
    mk_response_add_header_block(&r, &more);
    expect_fields("ETag=\"x\" Vary=A Vary=B Age=1 X=1");
}

static void response_change_nocopy_headers_are_not_copied(void **state)
{
    (void)state;
    static const char name[] = "X-Static", value[] = "v";
    assert_int_equal(mk_response_add_header_nocopy(&r, mk_str_from_c(name), mk_str_from_c(value)), 0);
    assert_ptr_equal(mk_response_header(&r, MK_STR("x-static")).p, value);
    r.sealed = true;
    assert_int_equal(mk_response_add_header_nocopy(&r, MK_STR("A"), MK_STR("b")), -EALREADY);
}

static void response_change_remove_keeps_other_headers(void **state)
{
    (void)state;
    static const char *const names[] = {"A", "B", "a", "C", "A"};
    assert_int_equal(mk_response_remove_header(&r, MK_STR("A")), 0);
    for (size_t i = 0; i < MK_LEN(names); i++)
        assert_int_equal(add(names[i], "1"), 0);
    assert_int_equal(mk_response_remove_header(&r, MK_STR("a")), 0);
    expect_fields("B=1 C=1");
    assert_int_equal(mk_response_remove_header(&r, MK_STR("Z")), 0);
    assert_int_equal(mk_response_remove_header(&r, MK_STR("")), 0);
    expect_fields("B=1 C=1");
}

static int add_default(const char *name, const char *value)
{
    return mk_response_add_default(&r, mk_str_from_c(name), mk_str_from_c(value));
}

static void response_change_default_is_added_once(void **state)
{
    (void)state;
    mk_response_add_header_block(&r, &block);
    assert_int_equal(add_default("etag", "\"y\""), 0);
    assert_int_equal(add_default("X", "1"), 0);
    assert_int_equal(add_default("x", "2"), 0);
    expect_fields("ETag=\"x\" Vary=A Vary=B X=1");
    r.sealed = true;
    assert_int_equal(add_default("X", "2"), 0);
    assert_int_equal(add_default("Y", "1"), -EALREADY);
}

static void response_change_headers_of_file_are_defaults(void **state)
{
    (void)state;
    static const struct mk_header_field fields[] = {
        {.name = MK_STR_INIT("Vary"), .value = MK_STR_INIT("A")},
        {.name = MK_STR_INIT("Cache-Control"), .value = MK_STR_INIT("no-cache")},
        {.name = MK_STR_INIT("Content-Type"), .value = MK_STR_INIT("text/plain")}};
    static const struct mk_header_block file = {.text = MK_STR_INIT("..."), .fields = fields, .n = 3};
    assert_int_equal(add("Vary", "B"), 0);
    assert_true(mk_response_add_default_block(&r, &file));
    expect_fields("Vary=A Cache-Control=no-cache Content-Type=text/plain Vary=B");
    mk_response_reset(&r);
    assert_int_equal(add("content-type", "text/x"), 0);
    assert_true(mk_response_add_default_block(&r, &file));
    expect_fields("content-type=text/x Vary=A Cache-Control=no-cache");
}

static void response_change_shared_block_is_never_modified(void **state)
{
    (void)state;
    mk_response_add_header_block(&r, &block);
    mk_response_add_header_block(&r, &more);
    for (int i = 0; i < MK_RESPONSE_FIRST_FIELDS + 2; i++)
        assert_int_equal(add("X", "1"), 0);
    assert_int_equal(mk_response_remove_header(&r, MK_STR("X")), 0);
    assert_int_equal(r.n_blocks, 2); /* the blocks stay, because none of their headers was changed */
    assert_int_equal(add("Y", "2"), 0);
    assert_int_equal(mk_response_remove_header(&r, MK_STR("vary")), 0);
    expect_fields("ETag=\"x\" Age=1 Y=2");
    assert_int_equal(r.n_blocks, 0);
    assert_int_equal(set("age", "7"), 0);
    expect_fields("ETag=\"x\" age=7 Y=2");
    for (int i = 0; i < 20; i++)
        assert_int_equal(add("Z", "3"), 0);
    assert_str(block_fields[1].value, "A");
    assert_str(more_fields[0].value, "1");
}

static void response_change_set_replaces_all_values(void **state)
{
    (void)state;
    char value[] = "new";
    assert_int_equal(set("A", "first"), 0);
    expect_fields("A=first");
    assert_int_equal(add("B", "1"), 0);
    assert_int_equal(add("a", "second"), 0);
    assert_int_equal(set("A", value), 0);
    memset(value, '?', sizeof value - 1);
    expect_fields("A=new B=1");
    mk_response_add_header_block(&r, &block);
    assert_int_equal(set("VARY", "C"), 0);
    expect_fields("ETag=\"x\" VARY=C A=new B=1");
    assert_int_equal(mk_response_set_header(&r, MK_STR("B"), mk_response_header(&r, MK_STR("A"))), 0);
    expect_fields("ETag=\"x\" VARY=C A=new B=new");
}

static void response_change_set_rejects_framing_headers(void **state)
{
    (void)state;
    static const char *const ours[] = {"Content-Length", "transfer-encoding", "Connection", "Upgrade",
                                       "Keep-Alive"};
    assert_int_equal(add("A", "1"), 0);
    for (size_t i = 0; i < MK_LEN(ours); i++)
        assert_int_equal(set(ours[i], "x"), -EINVAL);
    assert_int_equal(set("A", "x\r\nB: y"), -EINVAL);
    assert_int_equal(set("A b", "x"), -EINVAL);
    assert_int_equal(set("", "x"), -EINVAL);
    expect_fields("A=1");
    r.sealed = true;
    assert_int_equal(set("A", "2"), -EALREADY);
    assert_int_equal(mk_response_remove_header(&r, MK_STR("A")), -EALREADY);
    expect_fields("A=1");
}

/* ---- Body ---- */

static void response_change_new_body_drops_prepared_head(void **state)
{
    (void)state;
    mk_response_add_header_block(&r, &block);
    assert_int_equal(mk_response_set_body_nocopy(&r, MK_STR("text")), 0);
    assert_true(r.n_blocks != 1); /* h1_output uses a prepared block only if it is the only block */
    expect_fields("ETag=\"x\" Vary=A Vary=B");
    assert_int_equal(mk_response_set_body_nocopy(&r, MK_STR("text")), 0);
    assert_int_equal(mk_response_set_body_nocopy(&r, MK_STR("text")), 0);
    assert_int_equal(mk_response_remove_header(&r, MK_STR("ETag")), 0);
    expect_fields("Vary=A Vary=B");
}

static unsigned n_closed;

static ssize_t pull(void *ctx, char *buffer, size_t cap)
{
    (void)ctx, (void)buffer, (void)cap;
    return 0;
}

static void close_source(void *ctx)
{
    (void)ctx;
    n_closed++;
}

static const struct mk_body_source_ops source = {.read = pull, .close = close_source};

static void response_change_length_of_each_body(void **state)
{
    (void)state;
    assert_int_equal(mk_response_length(&r), 0);
    assert_int_equal(mk_response_set_body_nocopy(&r, MK_STR("text")), 0);
    assert_int_equal(mk_response_length(&r), 4);
    assert_int_equal(mk_response_set_body_source(&r, &source, NULL, 100), 0);
    assert_int_equal(mk_response_length(&r), 100);
    assert_int_equal(mk_response_set_body_source(&r, &source, NULL, MK_LENGTH_UNKNOWN), 0);
    assert_int_equal(mk_response_length(&r), MK_LENGTH_UNKNOWN);
}

static void response_change_raw_source_replaces_body(void **state)
{
    (void)state;
    n_closed = 0;
    assert_int_equal(mk_response_set_raw_source(&r, &source, NULL), 0);
    assert_true(mk_response_body_is_raw(&r.content));
    assert_int_equal(mk_response_length(&r), MK_LENGTH_UNKNOWN);
    assert_int_equal(mk_response_set_body_source(&r, &source, NULL, 5), 0);
    assert_int_equal(n_closed, 1);
    assert_false(mk_response_body_is_raw(&r.content));
    assert_int_equal(mk_response_set_raw_source(&r, &source, NULL), 0);
    assert_int_equal(mk_response_set_body_nocopy(&r, MK_STR("text")), 0);
    assert_int_equal(n_closed, 3);
    assert_false(mk_response_body_is_raw(&r.content));
    r.no_raw = true;
    mk_response_reset(&r);
    assert_int_equal(mk_response_set_raw_source(&r, &source, NULL), -EOPNOTSUPP);
    assert_int_equal(n_closed, 4);
    r.no_raw = false;
    r.sealed = true;
    assert_int_equal(mk_response_set_raw_source(&r, &source, NULL), -EALREADY);
    assert_int_equal(n_closed, 5);
    assert_null(r.content.source);
}

static void response_change_body_depends_on_method_and_status(void **state)
{
    (void)state;
    static const struct {
        enum mk_method method;
        unsigned status;
        bool sent;
    } cases[] = {{MK_METHOD_GET, 200, true},   {MK_METHOD_GET, 0, true},    {MK_METHOD_GET, 404, true},
                 {MK_METHOD_HEAD, 200, false}, {MK_METHOD_GET, 204, false}, {MK_METHOD_GET, 304, false},
                 {MK_METHOD_POST, 206, true}};
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        struct mk_request request = {.received.method = cases[i].method, .target = &request.received};
        r.status = cases[i].status;
        assert_int_equal(mk_response_set_body_nocopy(&r, MK_STR("")), 0);
        assert_false(mk_response_will_send_body(&request, &r));
        assert_int_equal(mk_response_set_body_nocopy(&r, MK_STR("x")), 0);
        assert_int_equal(mk_response_will_send_body(&request, &r), cases[i].sent);
        assert_int_equal(mk_response_set_body_source(&r, &source, NULL, MK_LENGTH_UNKNOWN), 0);
        assert_int_equal(mk_response_will_send_body(&request, &r), cases[i].sent);
        assert_int_equal(mk_response_set_raw_source(&r, &source, NULL), 0);
        assert_false(mk_response_will_send_body(&request, &r));
    }
}

/* ---- Files ---- */

static struct folder folder;

static int open_file(const char *text)
{
    char buffer[PATH_MAX];
    folder_add(&folder, "f", mk_str_from_c(text));
    int fd = open(folder_path(&folder, "f", buffer), O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static void response_change_file_is_owned_by_response(void **state)
{
    (void)state;
    char piece[16];
    folder_init(&folder);
    int fd = open_file("0123456789");
    assert_int_equal(mk_response_set_body_file(&r, fd, 2, 5), 0);
    assert_int_equal(mk_response_length(&r), 5);
    assert_int_equal(mk_response_body_read(&r.content, piece, 3), 3);
    assert_memory_equal(piece, "234", 3);
    assert_int_equal(mk_response_body_read(&r.content, piece, sizeof piece), 2);
    assert_int_equal(mk_response_body_read(&r.content, piece, sizeof piece), 0);
    assert_true(is_open(fd));
    mk_arena_fini(&arena);
    assert_false(is_open(fd));
    mk_response_init(&r, &arena);
    folder_fini(&folder);
}

static void response_change_recognizes_file_bodies(void **state)
{
    (void)state;
    static const struct mk_filter_ops nothing = {0};
    struct mk_file_id id;
    folder_init(&folder);
    assert_int_equal(mk_response_set_body_nocopy(&r, MK_STR("text")), 0);
    assert_false(mk_response_is_file(&r));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(mk_response_set_body_file(&r, open_file("0123456789"), 0, 10), 0);
        assert_true(mk_response_is_file(&r));
        /* the file has no ID, because the response has only its descriptor */
        assert_false(mk_response_file_id(&r, &id));
        if (i == 0)
            assert_int_equal(mk_response_set_body_nocopy(&r, MK_STR("text")), 0);
        else
            assert_int_equal(mk_response_add_filter(&r, &nothing, NULL, 10), 0);
        assert_false(mk_response_is_file(&r));
    }
    folder_fini(&folder);
}

static void response_change_rejected_file_is_closed(void **state)
{
    (void)state;
    folder_init(&folder);
    int fd = open_file("0123456789");
    assert_int_equal(mk_response_set_body_file(&r, fd, UINT64_MAX, 1), -EINVAL);
    assert_false(is_open(fd));
    fd = open_file("0123456789");
    assert_int_equal(mk_response_set_body_file(&r, fd, 1, INT64_MAX), -EINVAL);
    assert_false(is_open(fd));
    assert_int_equal(mk_response_set_body_file(&r, -1, 0, 1), -EINVAL);
    fd = open_file("0123456789");
    r.sealed = true;
    assert_int_equal(mk_response_set_body_file(&r, fd, 0, 1), -EALREADY);
    assert_false(is_open(fd));
    assert_null(mk_response_body_current_part(&r.content));
    folder_fini(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(response_change_headers_are_enumerated, setup, teardown),
        fixture_test(response_change_nocopy_headers_are_not_copied, setup, teardown),
        fixture_test(response_change_remove_keeps_other_headers, setup, teardown),
        fixture_test(response_change_default_is_added_once, setup, teardown),
        fixture_test(response_change_headers_of_file_are_defaults, setup, teardown),
        fixture_test(response_change_shared_block_is_never_modified, setup, teardown),
        fixture_test(response_change_set_replaces_all_values, setup, teardown),
        fixture_test(response_change_set_rejects_framing_headers, setup, teardown),
        fixture_test(response_change_new_body_drops_prepared_head, setup, teardown),
        fixture_test(response_change_length_of_each_body, setup, teardown),
        fixture_test(response_change_raw_source_replaces_body, setup, teardown),
        fixture_test(response_change_body_depends_on_method_and_status, setup, teardown),
        fixture_test(response_change_file_is_owned_by_response, setup, teardown),
        fixture_test(response_change_recognizes_file_bodies, setup, teardown),
        fixture_test(response_change_rejected_file_is_closed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
