/* SPDX-License-Identifier: Apache-2.0 */
#include "web/trailers.h"

#include "unit/fixtures.h"
#include "unit/headers.h"
#include "unit/test.h"
#include "web/request_type.h"
#include "web/response.h"

static struct mk_arena arena;

static void setup(void)
{
    arena_setup(&arena);
}

static void trailers_of_request_are_found(void **state)
{
    (void)state;
    struct mk_request r = {.arena = &arena};
    mk_str name, value;
    assert_null(mk_request_trailer(&r, MK_STR("A")).p);
    assert_false(mk_request_trailer_at(&r, 0, &name, &value));
    for (unsigned i = 0; i < 100; i++) {
        mk_str n = mk_arena_printf(&arena, "Name-%u", i % 50), v = mk_arena_printf(&arena, "%u", i);
        assert_true(mk_trailers_add(&r.trailers, &arena, n, v));
    }
    assert_str(mk_request_trailer(&r, MK_STR("name-7")), "7");
    assert_null(mk_request_trailer(&r, MK_STR("name-")).p);
    assert_true(mk_request_trailer_at(&r, 99, &name, &value));
    assert_str(name, "Name-49");
    assert_str(value, "99");
    assert_false(mk_request_trailer_at(&r, 100, &name, &value));
}

static void trailers_accepted_with_te_header(void **state)
{
    (void)state;
    struct mk_header_field buffer[2];
    struct mk_request r = {.version = 11};
    mk_headers_init(&r.fields, buffer);
    assert_false(mk_request_accepts_trailers(&r));
    assert_true(headers_add(&r.fields, 2, MK_STR("TE"), MK_STR("gzip;q=1, Trailers")));
    assert_true(mk_request_accepts_trailers(&r));
    r.version = 10;
    assert_false(mk_request_accepts_trailers(&r));
}

static void trailers_of_response_are_validated(void **state)
{
    (void)state;
    struct mk_response r;
    char long_value[16 * 1024];
    memset(long_value, 'x', sizeof long_value);
    mk_response_init(&r, &arena);
    r.sealed = true;
    assert_int_equal(mk_response_add_trailer(&r, MK_STR("A"), MK_STR("1")), 0);
    assert_int_equal(mk_response_add_trailer(&r, MK_STR("A b"), MK_STR("1")), -EINVAL);
    assert_int_equal(mk_response_add_trailer(&r, MK_STR("A"), MK_STR("1\r\n")), -EINVAL);
    assert_int_equal(mk_response_add_trailer(&r, MK_STR("Set-Cookie"), MK_STR("1")), -EINVAL);
    assert_int_equal(r.trailers->n, 1);
    mk_str most = mk_str_of(long_value, sizeof long_value - r.trailers->bytes - 5);
    assert_int_equal(mk_response_add_trailer(&r, MK_STR("Bc"), most), -EMSGSIZE);
    assert_int_equal(mk_response_add_trailer(&r, MK_STR("B"), most), 0);
    assert_int_equal(mk_response_add_trailer(&r, MK_STR("C"), MK_STR("")), -EMSGSIZE);
    assert_int_equal(r.trailers->bytes, sizeof long_value);
    r.sealed = false;
    mk_response_reset(&r);
    assert_null(r.trailers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {fixture_test(trailers_of_request_are_found, setup),
                                       fixture_test(trailers_accepted_with_te_header, setup),
                                       fixture_test(trailers_of_response_are_validated, setup)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
