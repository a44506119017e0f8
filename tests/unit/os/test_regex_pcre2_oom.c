/* SPDX-License-Identifier: Apache-2.0 */
/* Memory runs out while compiling a pattern and while matching the first text. */
#include <pthread.h>

#include "unit/oom.h"
#include "unit/os/regex_case.h"

static const mk_str pattern = MK_STR_INIT("^/(?<a>a+)(?:b|(c))+$");

static void regex_oom_compile_fails(void **state)
{
    (void)state;
    for (size_t n = 1;; n++) {
        struct mk_regex_error why = {0};
        size_t live = oom.n_live;
        oom.n_allocs = oom.n_failed = 0;
        oom.fail_at = n;
        struct mk_regex *r = mk_regex_pcre2_compile(pattern, false, &why);
        oom.fail_at = 0;
        if (r) { /* the regex needed no allocation, or none failed */
            assert_int_equal(mk_regex_match(r, MK_STR("/aab"), NULL), MK_REGEX_MATCH);
            mk_regex_free(r);
            if (!oom.n_failed)
                return;
            continue;
        }
        assert_int_equal(why.code, -ENOMEM);
        assert_true(why.text[0]);
        assert_int_equal(oom.n_live, live);
    }
}

/* The first match in a thread allocates memory that later matches use. */
static void regex_oom_match_fails(void **state)
{
    (void)state;
    struct mk_regex *r = make("^(?:a|(b))+$", false);
    enum mk_regex_result result = MK_REGEX_LIMIT;
    for (size_t n = 1; result == MK_REGEX_LIMIT; n++) {
        oom.n_allocs = oom.n_failed = 0;
        oom.fail_at = n;
        result = mk_regex_match(r, MK_STR("ab"), NULL);
        oom.fail_at = 0;
        assert_true(n > 3 || result == MK_REGEX_LIMIT);
    }
    assert_int_equal(result, MK_REGEX_MATCH);
    oom.n_allocs = 0;
    for (int i = 0; i < 100; i++)
        assert_int_equal(mk_regex_match(r, MK_STR("abab"), NULL), MK_REGEX_MATCH);
    assert_int_equal(oom.n_allocs, 0);
    mk_regex_free(r);
}

static void *match_once(void *regex)
{
    return (void *)(uintptr_t)(mk_regex_match(regex, MK_STR("ab"), NULL) == MK_REGEX_MATCH);
}

static void regex_match_data_is_freed_with_the_thread(void **state)
{
    (void)state;
    struct mk_regex *r = make("^ab$", false);
    size_t live = oom.n_live;
    pthread_t thread;
    void *matched = NULL;
    assert_int_equal(pthread_create(&thread, NULL, match_once, r), 0);
    assert_int_equal(pthread_join(thread, &matched), 0);
    assert_non_null(matched);
    assert_int_equal(oom.n_live, live);
    mk_regex_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(regex_oom_match_fails),
                                       cmocka_unit_test(regex_oom_compile_fails),
                                       cmocka_unit_test(regex_match_data_is_freed_with_the_thread)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
