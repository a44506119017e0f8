/* SPDX-License-Identifier: Apache-2.0 */
#include "web/host.h"

#include "unit/test.h"

enum { NAMES_MAX = 4 };

static struct mk_arena arena;
static struct mk_hosts hosts;

struct named {
    struct mk_host host;
    mk_str names[NAMES_MAX];
};

static int start(void **state)
{
    (void)state;
    mk_arena_init(&arena, NULL);
    mk_hosts_init(&hosts, &arena);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    mk_arena_fini(&arena);
    return 0;
}

/* Names are separated by blanks. */
static mk_err add(struct named *n, const char *names)
{
    mk_str rest = mk_str_from_c(names), taken = MK_STR("");
    *n = (struct named){.host.names = n->names};
    for (mk_str word; (word = mk_str_word(&rest)).len;)
        n->names[n->host.n_names++] = word;
    mk_err e = mk_hosts_add(&hosts, &n->host, &taken);
    assert_true(e == 0 || taken.len > 0);
    return e;
}

static void expect(const char *name, const struct named *n)
{
    if (mk_hosts_find(&hosts, mk_str_from_c(name)) != (n ? &n->host : NULL))
        fail_msg("%s leads to another host", name);
}

static void without_hosts_there_is_none(void **state)
{
    (void)state;
    expect("a", NULL);
    expect(NULL, NULL);
}

static void the_first_host_is_the_default(void **state)
{
    (void)state;
    struct named first, second;
    assert_int_equal(add(&first, ""), 0);
    expect("anything", &first);
    expect(NULL, &first);
    assert_int_equal(add(&second, "b.example"), 0);
    expect("anything", &first);
    expect("b.example", &second);
    mk_hosts_set_default(&hosts, &second.host);
    expect("anything", &second);
    expect(NULL, &second);
}

static void names_have_no_case_and_may_end_with_a_dot(void **state)
{
    (void)state;
    struct named first, h;
    assert_int_equal(add(&first, "first.example"), 0);
    assert_int_equal(add(&h, "Example.ORG www.example.org."), 0);
    expect("example.org", &h);
    expect("EXAMPLE.org", &h);
    expect("example.org.", &h);
    expect("www.example.org", &h);
    expect("example.org..", &first);
    expect("xexample.org", &first);
    expect("example.or", &first);
    expect("", &first);
    expect(".", &first);
}

static void exact_names_come_before_longer_stars_before_shorter_ones(void **state)
{
    (void)state;
    struct named first, exact, deep, wide;
    assert_int_equal(add(&first, "first.example"), 0);
    assert_int_equal(add(&wide, "*.example.org"), 0);
    assert_int_equal(add(&deep, "*.deep.example.org"), 0);
    assert_int_equal(add(&exact, "x.deep.example.org"), 0);
    expect("x.deep.example.org", &exact);
    expect("y.deep.example.org", &deep);
    expect("y.x.deep.example.org", &deep);
    expect("deep.example.org", &wide);
    expect("a.b.c.example.org", &wide);
    expect("A.Example.Org.", &wide);
    expect("example.org", &first); /* the star stands for something */
    expect("badexample.org", &first);
    expect("org", &first);
}

static void a_star_and_its_name_are_two_names(void **state)
{
    (void)state;
    struct named both, first;
    assert_int_equal(add(&first, "first.example"), 0);
    assert_int_equal(add(&both, "example.org *.example.org"), 0);
    expect("example.org", &both);
    expect("www.example.org", &both);
}

static void a_name_belongs_to_one_host(void **state)
{
    (void)state;
    struct named a, b, c;
    assert_int_equal(add(&a, "a.example *.a.example"), 0);
    assert_int_equal(add(&b, "A.EXAMPLE."), -EEXIST);
    assert_int_equal(add(&c, "c.example *.A.example"), -EEXIST);
    expect("a.example", &a);
    expect("x.a.example", &a);
}

static void a_host_may_say_its_name_twice(void **state)
{
    (void)state;
    struct named a;
    assert_int_equal(add(&a, "a.example A.example"), 0);
    expect("a.example", &a);
}

static void a_name_may_be_very_long(void **state)
{
    (void)state;
    static char name[1000];
    struct named first, h;
    memset(name, 'x', sizeof name - 1);
    assert_int_equal(add(&first, "first.example"), 0);
    expect(name, &first);
    name[255] = '\0';
    assert_int_equal(add(&h, name), 0);
    expect(name, &h);
    name[254] = '\0';
    expect(name, &first);
}

static void what_everybody_may_know(void **state)
{
    (void)state;
    static const struct mk_route routes[] = {
        {.pattern = {.text = MK_STR_INIT("/a"), .kind = MK_PATTERN_EXACT},
         .written = MK_STR_INIT("status 403")},
        {.pattern = {.text = MK_STR_INIT("/*"), .kind = MK_PATTERN_ALL}, .written = MK_STR_INIT("static")},
    };
    struct named n;
    mk_str pattern, handler;
    assert_int_equal(add(&n, "a.example *.b.example"), 0);
    n.host.routes = routes;
    n.host.n_routes = MK_LEN(routes);
    assert_str(mk_host_name(&n.host), "a.example");
    assert_str(mk_host_name_at(&n.host, 1), "*.b.example");
    assert_null(mk_host_name_at(&n.host, 2).p);
    assert_str(mk_host_root(&n.host), "");
    assert_non_null(mk_host_root(&n.host).p);
    n.host.root.path = "/srv/www";
    assert_str(mk_host_root(&n.host), "/srv/www");
    assert_true(mk_host_route_at(&n.host, 0, &pattern, &handler));
    assert_str(pattern, "/a");
    assert_str(handler, "status 403");
    assert_true(mk_host_route_at(&n.host, 1, &pattern, &handler));
    assert_false(mk_host_route_at(&n.host, 2, &pattern, &handler));
}

static void a_host_may_have_no_name(void **state)
{
    (void)state;
    struct named n;
    assert_int_equal(add(&n, ""), 0);
    assert_str(mk_host_name(&n.host), "");
    assert_non_null(mk_host_name(&n.host).p);
    assert_null(mk_host_name_at(&n.host, 0).p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_hosts_there_is_none, start, stop),
        cmocka_unit_test_setup_teardown(the_first_host_is_the_default, start, stop),
        cmocka_unit_test_setup_teardown(names_have_no_case_and_may_end_with_a_dot, start, stop),
        cmocka_unit_test_setup_teardown(exact_names_come_before_longer_stars_before_shorter_ones, start,
                                        stop),
        cmocka_unit_test_setup_teardown(a_star_and_its_name_are_two_names, start, stop),
        cmocka_unit_test_setup_teardown(a_name_belongs_to_one_host, start, stop),
        cmocka_unit_test_setup_teardown(a_host_may_say_its_name_twice, start, stop),
        cmocka_unit_test_setup_teardown(a_name_may_be_very_long, start, stop),
        cmocka_unit_test_setup_teardown(what_everybody_may_know, start, stop),
        cmocka_unit_test_setup_teardown(a_host_may_have_no_name, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
