/* SPDX-License-Identifier: Apache-2.0 */
#include "web/vhost.h"

#include <errno.h>

#include "unit/fixtures.h"
#include "unit/test.h"

enum { NAMES_MAX = 4 };

static struct mk_arena arena;
static struct mk_vhosts hosts;

struct named {
    struct mk_vhost host;
    mk_str names[NAMES_MAX];
};

static void setup(void)
{
    arena_setup(&arena);
    mk_vhosts_init(&hosts, &arena);
}

/* Adds a virtual host; spaces separate its names. */
static mk_err add(struct named *n, const char *names)
{
    mk_str rest = mk_str_from_c(names), taken = MK_STR("");
    const struct mk_vhost *holder;
    *n = (struct named){.host.names = n->names};
    for (mk_str word; (word = mk_str_word(&rest)).len;)
        n->names[n->host.n_names++] = word;
    mk_err e = mk_vhosts_add(&hosts, &n->host, &taken, &holder);
    assert_true(e == 0 || taken.len > 0);
    return e;
}

static void expect(const char *name, const struct named *n)
{
    if (mk_vhosts_find(&hosts, mk_str_from_c(name)) != (n ? &n->host : NULL))
        fail_msg("%s selects another host", name);
}

static void vhost_none_configured_finds_none(void **state)
{
    (void)state;
    expect("a", NULL);
    expect(NULL, NULL);
}

static void vhost_first_is_default(void **state)
{
    (void)state;
    struct named first, second;
    assert_int_equal(add(&first, ""), 0);
    expect("anything", &first);
    expect(NULL, &first);
    assert_int_equal(add(&second, "b.example"), 0);
    expect("anything", &first);
    expect("b.example", &second);
    mk_vhosts_set_default(&hosts, &second.host);
    expect("anything", &second);
    expect(NULL, &second);
}

static void vhost_names_ignore_case_and_trailing_dot(void **state)
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

static void vhost_exact_name_precedes_wildcards(void **state)
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
    expect("example.org", &first); /* the wildcard must match at least one label */
    expect("badexample.org", &first);
    expect("org", &first);
}

static void vhost_wildcard_excludes_bare_name(void **state)
{
    (void)state;
    struct named both, first;
    assert_int_equal(add(&first, "first.example"), 0);
    assert_int_equal(add(&both, "example.org *.example.org"), 0);
    expect("example.org", &both);
    expect("www.example.org", &both);
}

static void vhost_duplicate_name_is_rejected(void **state)
{
    (void)state;
    struct named a, b, c;
    assert_int_equal(add(&a, "a.example *.a.example"), 0);
    assert_int_equal(add(&b, "A.EXAMPLE."), -EEXIST);
    assert_int_equal(add(&c, "c.example *.A.example"), -EEXIST);
    expect("a.example", &a);
    expect("x.a.example", &a);
}

static void vhost_may_repeat_its_own_name(void **state)
{
    (void)state;
    struct named a;
    assert_int_equal(add(&a, "a.example A.example"), 0);
    expect("a.example", &a);
}

static void vhost_name_may_be_very_long(void **state)
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

static void vhost_exposes_routes(void **state)
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
    assert_str(mk_vhost_name(&n.host), "a.example");
    assert_str(mk_vhost_name_at(&n.host, 1), "*.b.example");
    assert_null(mk_vhost_name_at(&n.host, 2).p);
    assert_str(mk_vhost_root(&n.host), "");
    assert_non_null(mk_vhost_root(&n.host).p);
    n.host.root.path = "/srv/www";
    assert_str(mk_vhost_root(&n.host), "/srv/www");
    const mk_str index[] = {MK_STR_INIT("index.html")};
    n.host.index = index;
    n.host.n_index = MK_LEN(index);
    assert_str(mk_vhost_index_at(&n.host, 0), "index.html");
    assert_null(mk_vhost_index_at(&n.host, 1).p);
    assert_true(mk_vhost_route_at(&n.host, 0, &pattern, &handler));
    assert_str(pattern, "/a");
    assert_str(handler, "status 403");
    assert_true(mk_vhost_route_at(&n.host, 1, &pattern, &handler));
    assert_false(mk_vhost_route_at(&n.host, 2, &pattern, &handler));
}

static void vhost_may_have_no_name(void **state)
{
    (void)state;
    struct named n;
    assert_int_equal(add(&n, ""), 0);
    assert_str(mk_vhost_name(&n.host), "");
    assert_non_null(mk_vhost_name(&n.host).p);
    assert_null(mk_vhost_name_at(&n.host, 0).p);
}

static void vhost_first_matching_location_applies(void **state)
{
    (void)state;
    struct mk_location_path large[2] = {{.regex = NULL}}, all[1] = {{.regex = NULL}};
    bool gave_up;
    assert_true(mk_pattern_set(&large[0].pattern, MK_STR("/up/*")));
    assert_true(mk_pattern_set(&large[1].pattern, MK_STR("*.iso")));
    assert_true(mk_pattern_set(&all[0].pattern, MK_STR("/*")));
    const struct mk_location locations[] = {{.paths = large, .n_paths = 2}, {.paths = all, .n_paths = 1}};
    struct mk_vhost host = {.locations = locations, .n_locations = 1};
    assert_ptr_equal(mk_vhost_location(&host, MK_STR("/up"), &gave_up), &locations[0]);
    assert_ptr_equal(mk_vhost_location(&host, MK_STR("/a/b.iso"), &gave_up), &locations[0]);
    assert_null(mk_vhost_location(&host, MK_STR("/upper"), &gave_up));
    host.n_locations = 2;
    assert_ptr_equal(mk_vhost_location(&host, MK_STR("/up/a"), &gave_up), &locations[0]);
    assert_ptr_equal(mk_vhost_location(&host, MK_STR("/upper"), &gave_up), &locations[1]);
    assert_null(mk_vhost_location(&host, MK_STR("*"), &gave_up));
    assert_null(mk_vhost_location(&host, MK_STR_NULL, &gave_up));
}

/* Replaces PCRE2: matches names that begin with a letter; "long..." exceeds the match limit. */
struct initial {
    struct mk_regex regex;
    char c;
};

static enum mk_regex_result match_initial(const struct mk_regex *r, mk_str text,
                                          struct mk_regex_captures *out)
{
    (void)out;
    if (mk_str_starts(text, MK_STR("long")))
        return MK_REGEX_LIMIT;
    return text.p[0] == ((const struct initial *)(const void *)r)->c ? MK_REGEX_MATCH : MK_REGEX_NO_MATCH;
}

static const struct mk_regex_ops ops = {.match = match_initial};

static enum mk_regex_result exceed_limit(const struct mk_regex *r, mk_str text, struct mk_regex_captures *out)
{
    (void)r, (void)text, (void)out;
    return MK_REGEX_LIMIT;
}

static const struct mk_regex_ops ops_giving_up = {.match = exceed_limit};

static void vhost_location_regex_limit_counts_as_match(void **state)
{
    (void)state;
    struct initial slash = {.regex.ops = &ops, .c = '/'}, tilde = {.regex.ops = &ops_giving_up, .c = '~'};
    struct mk_location_path first[2] = {{.regex = &tilde.regex}, {.regex = &slash.regex}};
    const struct mk_location locations[] = {{.paths = first, .n_paths = 2}, {.paths = first, .n_paths = 1}};
    struct mk_vhost host = {.locations = locations, .n_locations = 1};
    bool gave_up;
    assert_ptr_equal(mk_vhost_location(&host, MK_STR("/a"), &gave_up), &locations[0]);
    assert_false(gave_up); /* another path of the location matches */
    host.locations++;
    assert_ptr_equal(mk_vhost_location(&host, MK_STR("/a"), &gave_up), &locations[1]);
    assert_true(gave_up);
}

static mk_err add_initial(struct named *n, struct mk_regex **slot, struct initial *initial, const char *name,
                          const struct mk_vhost **holder)
{
    mk_str taken;
    initial->regex.ops = &ops;
    *slot = &initial->regex;
    *n = (struct named){.host = {.names = n->names, .n_names = 1, .regexes = slot}};
    n->names[0] = mk_str_from_c(name);
    return mk_vhosts_add(&hosts, &n->host, &taken, holder);
}

static void vhost_regex_names_are_tried_last_in_order(void **state)
{
    (void)state;
    struct named other, wild, exact, a, again, b;
    struct initial of_a = {.c = 'a'}, of_b = {.c = 'b'};
    struct mk_regex *slot_a, *slot_again, *slot_b;
    const struct mk_vhost *holder = NULL;
    assert_int_equal(add(&other, "other"), 0);
    assert_int_equal(add_initial(&a, &slot_a, &of_a, "~^a", &holder), 0);
    assert_int_equal(add_initial(&again, &slot_again, &of_a, "~^(a)", &holder), 0);
    assert_int_equal(add_initial(&b, &slot_b, &of_b, "~^b", &holder), 0);
    assert_int_equal(add(&wild, "*.example"), 0);
    assert_int_equal(add(&exact, "ab"), 0);
    expect("a1", &a);
    expect("A1.", &a);
    expect("b", &b);
    expect("ab", &exact);
    expect("a.example", &wild);
    expect("c", &other);
    expect("", &other);
    expect(NULL, &other);
    expect("longer", &other);
    assert_str(mk_vhost_matching_regex(&b.host, MK_STR("Bx")), "~^b");
    assert_null(mk_vhost_matching_regex(&b.host, MK_STR("ab")).p);
    assert_null(mk_vhost_matching_regex(&other.host, MK_STR("b")).p);
    struct named twin;
    assert_int_equal(add_initial(&twin, &slot_again, &of_b, "~^b", &holder), -EEXIST);
    assert_ptr_equal(holder, &b.host);
}

static void vhost_plain_name_excludes_patterns(void **state)
{
    (void)state;
    struct named n;
    assert_int_equal(add(&n, "*.example a b"), 0);
    assert_str(mk_vhost_first_plain_name(&n.host), "a");
    n.host.n_names = 1;
    assert_str(mk_vhost_first_plain_name(&n.host), "");
    n.names[0] = MK_STR("~^a$");
    assert_str(mk_vhost_first_plain_name(&n.host), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(vhost_none_configured_finds_none, setup),
        fixture_test(vhost_first_is_default, setup),
        fixture_test(vhost_names_ignore_case_and_trailing_dot, setup),
        fixture_test(vhost_exact_name_precedes_wildcards, setup),
        fixture_test(vhost_wildcard_excludes_bare_name, setup),
        fixture_test(vhost_duplicate_name_is_rejected, setup),
        fixture_test(vhost_may_repeat_its_own_name, setup),
        fixture_test(vhost_name_may_be_very_long, setup),
        fixture_test(vhost_exposes_routes, setup),
        fixture_test(vhost_may_have_no_name, setup),
        fixture_test(vhost_first_matching_location_applies, setup),
        fixture_test(vhost_regex_names_are_tried_last_in_order, setup),
        fixture_test(vhost_location_regex_limit_counts_as_match, setup),
        fixture_test(vhost_plain_name_excludes_patterns, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
