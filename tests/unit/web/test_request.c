/* SPDX-License-Identifier: Apache-2.0 */
#include "web/request.h"

#include "unit/site.h"
#include "unit/test.h"

static struct site site;

static int start(void **state)
{
    (void)state;
    site_init(&site);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    site_fini(&site);
    return 0;
}

static void what_the_head_says_is_known(void **state)
{
    (void)state;
    struct mk_exchange *x = site_ask(&site, "POST /a%20b/../c/d?x=%20&y HTTP/1.1\r\n"
                                            "Host: Example.org:8080\r\n"
                                            "Content-Length: 3\r\n"
                                            "X-One: 1\r\n"
                                            "x-one: 2\r\n\r\n");
    const struct mk_request *r = &x->request;
    assert_int_equal(mk_request_method(r), MK_METHOD_POST);
    assert_str(mk_request_method_text(r), "POST");
    assert_int_equal(mk_request_version(r), 11);
    assert_str(mk_request_target(r), "/a%20b/../c/d?x=%20&y");
    assert_str(mk_request_path(r), "/c/d");
    assert_int_equal(mk_request_path(r).p[4], '\0');
    assert_str(mk_request_query(r), "x=%20&y");
    assert_str(mk_request_host(r), "Example.org");
    assert_str(mk_request_field(r, MK_STR("X-ONE")), "1");
    assert_str(mk_request_field(r, MK_STR("content-length")), "3");
    assert_null(mk_request_field(r, MK_STR("x-two")).p);
    assert_null(mk_request_field(r, MK_STR("")).p);
    mk_exchange_free(x);
}

static void all_fields_are_walked_in_order(void **state)
{
    (void)state;
    static const char *const expected[][2] = {{"Host", "a"}, {"B", "1"}, {"A", ""}, {"B", "2"}};
    struct mk_exchange *x = site_get(&site, "/", "B: 1\r\nA:\r\nB: 2\r\n");
    mk_str name, value;
    size_t i = 0;
    for (; mk_request_field_at(&x->request, i, &name, &value); i++) {
        assert_true(i < MK_LEN(expected));
        assert_str(name, expected[i][0]);
        assert_str(value, expected[i][1]);
        assert_non_null(value.p);
    }
    assert_int_equal(i, MK_LEN(expected));
    assert_int_equal(mk_request_field_at(&x->request, SIZE_MAX, &name, &value), 0);
    mk_exchange_free(x);
}

static void what_is_not_said_is_absent(void **state)
{
    (void)state;
    struct mk_exchange *x = site_ask(&site, "BREW / HTTP/1.0\r\n\r\n");
    const struct mk_request *r = &x->request;
    assert_int_equal(mk_request_method(r), MK_METHOD_UNKNOWN);
    assert_str(mk_request_method_text(r), "BREW");
    assert_int_equal(mk_request_version(r), 10);
    assert_null(mk_request_host(r).p);
    assert_null(mk_request_query(r).p);
    assert_int_equal(mk_request_length(r), 0);
    assert_null(mk_request_data(r));
    mk_exchange_free(x);
    x = site_get(&site, "/?", "");
    assert_non_null(mk_request_query(&x->request).p);
    assert_int_equal(mk_request_query(&x->request).len, 0);
    mk_exchange_free(x);
}

static void an_absolute_target_names_the_host(void **state)
{
    (void)state;
    struct mk_exchange *x = site_get(&site, "http://other.example:81/p?q", "");
    assert_str(mk_request_host(&x->request), "other.example");
    assert_str(mk_request_path(&x->request), "/p");
    assert_str(mk_request_query(&x->request), "q");
    assert_str(mk_request_target(&x->request), "http://other.example:81/p?q");
    mk_exchange_free(x);
    x = site_get(&site, "http://other.example", "");
    assert_str(mk_request_path(&x->request), "/");
    mk_exchange_free(x);
}

static void targets_that_are_no_paths(void **state)
{
    (void)state;
    struct mk_exchange *x = site_ask(&site, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_str(mk_request_path(&x->request), "*");
    mk_exchange_free(x);
    x = site_ask(&site, "CONNECT a.example:443 HTTP/1.1\r\nHost: b\r\n\r\n");
    assert_str(mk_request_path(&x->request), "");
    assert_str(mk_request_host(&x->request), "a.example");
    mk_exchange_free(x);
}

static void who_asks_is_known(void **state)
{
    (void)state;
    struct mk_addr a;
    struct mk_exchange *x = site_get(&site, "/", "");
    assert_str(mk_request_peer(&x->request), "unix:");
    assert_int_equal(mk_addr_parse(MK_STR("192.0.2.7:1"), MK_STR(""), &a), 0);
    mk_peer_set(&site.peer, &a);
    assert_str(mk_request_peer(&x->request), "192.0.2.7");
    mk_exchange_free(x);
}

/* ---- What the protocol does for it ---- */

struct protocol {
    unsigned n_reads, n_resumes;
};

static ssize_t on_read(void *ctx, char *room, size_t cap)
{
    ((struct protocol *)ctx)->n_reads++;
    assert_true(cap >= 2);
    memcpy(room, "ok", 2);
    return 2;
}

static void on_resume(void *ctx)
{
    ((struct protocol *)ctx)->n_resumes++;
}

static const struct mk_request_ops protocol_ops = {.read = on_read, .resume = on_resume};

static void content_comes_from_the_protocol(void **state)
{
    (void)state;
    struct protocol p = {0};
    char room[8];
    struct mk_exchange *x = site_get(&site, "/", "");
    struct mk_request *r = &x->request;
    assert_int_equal(mk_request_read(r, room, sizeof room), 0);
    mk_request_resume(r);
    r->ops = &protocol_ops;
    r->ops_ctx = &p;
    assert_int_equal(mk_request_read(r, room, sizeof room), 0); /* its length is 0: nobody is asked */
    assert_int_equal(p.n_reads, 0);
    r->length = 5;
    assert_int_equal(mk_request_length(r), 5);
    assert_int_equal(mk_request_read(r, room, sizeof room), 2);
    r->length = MK_REQUEST_LENGTH_UNKNOWN;
    assert_int_equal(mk_request_length(r), -1);
    assert_int_equal(mk_request_read(r, room, sizeof room), 2);
    assert_int_equal(p.n_reads, 2);
    mk_request_resume(r);
    assert_int_equal(p.n_resumes, 1);
    mk_exchange_free(x);
}

static void nobody_reads_into_no_room(void **state)
{
    (void)state;
    struct protocol p = {0};
    char room[1];
    struct mk_exchange *x = site_get(&site, "/", "");
    x->request.ops = &protocol_ops;
    x->request.ops_ctx = &p;
    x->request.length = 5;
    assert_int_equal(mk_request_read(&x->request, room, 0), -EINVAL);
    assert_int_equal(p.n_reads, 0);
    mk_exchange_free(x);
}

/* ---- Its memory ---- */

static char ended[8];

static void on_end(void *data)
{
    size_t len = strlen(ended);
    ended[len] = *(const char *)data;
}

static void memory_lives_as_long_as_the_request(void **state)
{
    (void)state;
    struct mk_exchange *x = site_get(&site, "/", "");
    static const char names[] = "abc";
    char *large = mk_request_alloc(&x->request, 100000);
    assert_non_null(large);
    memset(large, 1, 100000);
    memset(ended, 0, sizeof ended);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(mk_request_on_end(&x->request, on_end, (void *)(uintptr_t)&names[i]), 0);
    mk_request_set_data(&x->request, large);
    assert_ptr_equal(mk_request_data(&x->request), large);
    assert_string_equal(ended, "");
    mk_exchange_free(x);
    assert_string_equal(ended, "cba");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_the_head_says_is_known, start, stop),
        cmocka_unit_test_setup_teardown(all_fields_are_walked_in_order, start, stop),
        cmocka_unit_test_setup_teardown(what_is_not_said_is_absent, start, stop),
        cmocka_unit_test_setup_teardown(an_absolute_target_names_the_host, start, stop),
        cmocka_unit_test_setup_teardown(targets_that_are_no_paths, start, stop),
        cmocka_unit_test_setup_teardown(who_asks_is_known, start, stop),
        cmocka_unit_test_setup_teardown(content_comes_from_the_protocol, start, stop),
        cmocka_unit_test_setup_teardown(nobody_reads_into_no_room, start, stop),
        cmocka_unit_test_setup_teardown(memory_lives_as_long_as_the_request, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
