/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the migrations that a database has applied with the migration files of the service. */
#include <duda/sql_backend.h>
#include <errno.h>

#include "unit/test.h"

enum { FILES_MAX = 8 };

static struct duda_sql_migration files[FILES_MAX];
static struct duda_sql_applied rows[FILES_MAX];
static struct duda_sql_history history;

/* `text` is "1:a 2:b": numbers and names; each checksum is derived from the name. The applied rows follow
 * "|"; "-" precedes a name without a checksum, "!" a name with a different checksum. */
static int check(const char *text, const char *service, const char *of)
{
    static char names[2 * FILES_MAX][8];
    size_t n[2] = {0, 0}, list = 0, at = 0;
    mk_str rest = mk_str_from_c(text), word;
    memset(files, 0, sizeof files);
    memset(rows, 0, sizeof rows);
    while ((word = mk_str_word(&rest)).len) {
        if (mk_str_eq(word, MK_STR("|"))) {
            list = 1;
            continue;
        }
        uint64_t number;
        assert_true(mk_num_parse(mk_str_cut(&word, ':'), &number));
        char mark = word.p[0] == '-' || word.p[0] == '!' ? word.p[0] : 0;
        mk_str name = mk_str_skip(word, mark != 0);
        size_t i = n[list]++;
        memcpy(names[at], name.p, name.len);
        names[at][name.len] = 0;
        if (list) {
            rows[i] = (struct duda_sql_applied){number, mk_str_from_c(of), mk_str_from_c(names[at]),
                                                mark == '-'   ? MK_STR_NULL
                                                : mark == '!' ? MK_STR("other")
                                                              : mk_str_from_c(names[at])};
        } else {
            files[i] =
                (struct duda_sql_migration){.number = (uint32_t)number, .name = mk_str_from_c(names[at])};
            memcpy(files[i].checksum, names[at], name.len + 1);
            if (i)
                files[i - 1].next = &files[i];
        }
        at++;
    }
    history = (struct duda_sql_history){.applied = rows, .n = n[1], .service = mk_str_from_c(service)};
    return duda_sql_history_check(&history, n[0] ? files : NULL);
}

static unsigned next(void)
{
    return history.pending ? history.pending->number : 0;
}

static void migrations_not_applied_are_next(void **state)
{
    (void)state;
    assert_int_equal(check("1:a 2:b", "", ""), 0);
    assert_int_equal(next(), 1);
    assert_int_equal(check("1:a 2:b 7:c | 1:a", "", ""), 0);
    assert_int_equal(next(), 2);
    assert_false(history.lacks_checksums || history.is_adopted);
    assert_int_equal(check("1:a 2:b | 1:a 2:b", "", ""), 0);
    assert_int_equal(next(), 0);
    assert_int_equal(check("| 1:a", "", ""), 0);
    assert_int_equal(next(), 0);
}

static void migrations_newer_database_is_accepted(void **state)
{
    (void)state;
    assert_int_equal(check("1:a | 1:a 2:b 3:!c", "", ""), 0);
    assert_int_equal(next(), 0);
}

static void migrations_mismatch_is_explained(void **state)
{
    static const struct {
        const char *text, *error_text;
    } cases[] = {
        {"1:a 2:b | 1:!a 2:b", "a was edited after it had been run"},
        {"1:a 2:x | 1:a 2:b", "b has been run, but its file is now named x"},
        {"2:b | 1:a 2:b", "a has been run, but its file is missing"},
        {"1:a 2:b 3:c | 1:a 3:c", "b cannot run any more, because a later one has been run: c"},
        {"1:a 2:b | 1:a 3:c", "b cannot run any more, because a later one has been run: c"},
        {"1:x 2:y 3:z | 1:a 2:!y 3:!z", "a has been run, but its file is now named x; y was edited after it "
                                        "had been run; z was edited after it had been run"},
        {"1:x | 1:a", "a has been run, but its file is now named x: several services in one database need "
                      "MigrationsOf"},
        {"1:a 2:b 3:c 4:d 5:e | 1:!a 2:!b 3:!c 4:!d 5:!e",
         "a was edited after it had been run; b was edited after it had been run; c was edited after it had "
         "been run; and 2 "
         "more"},
    };
    (void)state;
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        assert_int_equal(check(cases[i].text, "", ""), -EINVAL);
        assert_string_equal(history.message, cases[i].error_text);
    }
}

static void migrations_without_checksum_are_accepted_and_reported(void **state)
{
    (void)state;
    assert_int_equal(check("1:a 2:b | 1:-a 2:b", "", ""), 0);
    assert_true(history.lacks_checksums);
    assert_int_equal(check("1:a | 1:a 2:-b", "", ""), 0);
    assert_false(history.lacks_checksums);
}

static void migrations_without_service_are_adopted_if_matching(void **state)
{
    (void)state;
    assert_int_equal(check("1:a 2:b | 1:-a", "shop", ""), 0);
    assert_true(history.is_adopted && history.lacks_checksums);
    assert_int_equal(next(), 2);
    assert_ptr_equal(duda_sql_history_find(&history, 1), &rows[0]);
    assert_null(duda_sql_history_find(&history, 2));
    static const char *const others[] = {"1:a 2:b | 1:x", "1:a | 1:a 2:b", "2:b | 1:a"};
    for (size_t i = 0; i < MK_LEN(others); i++) {
        assert_int_equal(check(others[i], "shop", ""), 0);
        assert_false(history.is_adopted);
        assert_int_equal(next(), files[0].number);
    }
    assert_int_equal(check("1:a | 1:a", "shop", "shop"), 0);
    assert_false(history.is_adopted);
    assert_int_equal(next(), 0);
    assert_int_equal(check("1:a", "shop", ""), 0);
    assert_false(history.is_adopted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(migrations_not_applied_are_next),
        cmocka_unit_test(migrations_newer_database_is_accepted),
        cmocka_unit_test(migrations_mismatch_is_explained),
        cmocka_unit_test(migrations_without_checksum_are_accepted_and_reported),
        cmocka_unit_test(migrations_without_service_are_adopted_if_matching),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
