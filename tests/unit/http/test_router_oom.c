/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <monkey/router.h>

#include "unit/oom.h"

static const char *const texts[] = {"GET /users/:id<int>", "POST /users", "/files/*path",
                                    "GET /users/:id<int>/x", "GET /a/:b/c/:d"};

static int find(const struct mk_router *router, const char *method, const char *path)
{
    struct mk_router_match match;
    return (int)mk_router_find(router, mk_str_from_c(method), mk_str_from_c(path), &match);
}

/* Rejected routes are absent, accepted ones present. */
static void check(struct mk_router *router, const bool *taken)
{
    assert_int_equal(find(router, "GET", "/users/7"), taken[0] ? 0 : 404);
    assert_int_equal(find(router, "POST", "/users"), taken[1] ? 0 : 404);
    assert_int_equal(find(router, "GET", "/files/x"), taken[2] ? 0 : 404);
    assert_int_equal(find(router, "GET", "/users/7/x"), taken[3] ? 0 : 404);
    assert_int_equal(find(router, "GET", "/a/1/c/2"), taken[4] ? 0 : 404);
}

/* Enough routes to make the tables grow. */
static bool add_more(struct mk_router *router)
{
    bool all_well = true;
    for (size_t i = 0; i < 40; i++) {
        char text[32];
        snprintf(text, sizeof text, "GET /more%zu/:x/y", i);
        all_well &= mk_router_add(router, mk_str_from_c(text), NULL, MK_STR_NULL) == 0;
    }
    return all_well;
}

static bool fill(void)
{
    struct mk_router *router = mk_router_new();
    bool taken[MK_LEN(texts)] = {false}, all_well = router && add_more(router);
    for (size_t i = 0; router && i < MK_LEN(texts); i++) {
        int err = mk_router_add(router, mk_str_from_c(texts[i]), NULL, MK_STR_NULL);
        assert_true(err == 0 || err == -ENOMEM);
        taken[i] = err == 0;
        all_well &= taken[i];
    }
    if (router)
        check(router, taken);
    mk_router_free(router);
    return all_well;
}

static void router_oom_add_fails(void **state)
{
    (void)state;
    oom_at_each_allocation(fill);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(router_oom_add_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
