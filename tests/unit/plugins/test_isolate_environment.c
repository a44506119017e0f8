/* SPDX-License-Identifier: Apache-2.0 */
/* The environment variables that an isolated service inherits from the server. */
#include "unit/test.h"

#include <stdio.h>

#include "environment.h"

static char **make(const char *name, const struct mk_conf_words *env, const char *const *all)
{
    static struct isolate_settings settings;
    settings.env = env ? *env : (struct mk_conf_words){.n = 0};
    const struct isolate_group g = {.name = name, .settings = &settings};
    static char ours[] = "LISTEN_FDS=1";
    char *const own[] = {ours, NULL};
    char **made = isolate_environment_build(&g, (char *const *)(const void *)all, own);
    assert_non_null(made);
    return made;
}

/* Returns the value of this variable, which must be unique. NULL: not set. */
static const char *value_of(char **lines, const char *name)
{
    const char *found = NULL;
    size_t len = strlen(name);
    for (; *lines; lines++)
        if (strncmp(*lines, name, len) == 0 && (*lines)[len] == '=') {
            assert_null(found);
            found = *lines + len + 1;
        }
    return found;
}

static size_t count(char **lines)
{
    size_t n = 0;
    while (lines[n])
        n++;
    return n;
}

static void end(char **lines)
{
    for (char **e = lines; *e; e++)
        if (strncmp(*e, "DUDA_KEYS=", 10) == 0 && !strstr(*e, "raw"))
            mk_mem_free(*e);
    mk_mem_free(lines);
}

static void environment_inherits_only_listed_variables(void **state)
{
    static const char *const all[] = {"PATH=/bin",
                                      "HOME=/h",
                                      "LANG=C",
                                      "LANGUAGE=de",
                                      "LC_ALL=C",
                                      "LC_TIME=C",
                                      "TZ=UTC",
                                      "TMPDIR=/t",
                                      "SSL_CERT_DIR=/",
                                      "SSL_CERT_FILE=/c",
                                      "DB_PASSWORD=x",
                                      "PATHX=1",
                                      "XPATH=1",
                                      "LC=1",
                                      "HOME2=1",
                                      "AWS_SECRET=1",
                                      "LD_PRELOAD=/evil",
                                      "PGPASSWORD=p",
                                      "=odd",
                                      "odd",
                                      "NOTIFY_SOCKET=@",
                                      "LISTEN_PID=7",
                                      "MONKEY_X=1",
                                      "WATCHDOG_USEC=1",
                                      NULL};
    (void)state;
    char **made = make("shop", NULL, all);
    for (size_t i = 0; i < 10; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(all[i], "="), all[i]);
        assert_string_equal(value_of(made, name), all[i] + strlen(name) + 1);
    }
    assert_string_equal(value_of(made, "LISTEN_FDS"), "1");
    assert_int_equal(count(made), 11);
    end(made);
}

static void environment_configured_variables_are_inherited(void **state)
{
    static const char *const all[] = {"DB_PASSWORD=a=b", "DB_PASSWORD2=c", "MONKEY_X=1", "LISTEN_FDS=9",
                                      NULL};
    mk_str names[] = {MK_STR("DB_PASSWORD"), MK_STR("MONKEY_X"), MK_STR("LISTEN_FDS")};
    const struct mk_conf_words env = {.v = names, .n = 3};
    (void)state;
    char **made = make("shop", &env, all);
    assert_string_equal(value_of(made, "DB_PASSWORD"), "a=b");
    assert_string_equal(value_of(made, "LISTEN_FDS"), "1"); /* set by the supervisor */
    assert_int_equal(count(made), 2);
    end(made);
}

#define KEY_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define KEY_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static void environment_keys_are_derived_for_each_group(void **state)
{
    static const char *const all[] = {"DUDA_KEYS=" KEY_A " " KEY_B "\n" KEY_A, NULL};
    static const char *const first[] = {"DUDA_KEYS=" KEY_A, NULL};
    (void)state;
    char **shop = make("shop", NULL, all), **vault = make("vault", NULL, all),
         **again = make("shop", NULL, all), **one = make("shop", NULL, first);
    const char *of_shop = value_of(shop, "DUDA_KEYS"), *of_vault = value_of(vault, "DUDA_KEYS");
    assert_int_equal(strlen(of_shop), 3 * 65);
    assert_null(strstr(of_shop, "aaaa"));
    assert_string_equal(of_shop, value_of(again, "DUDA_KEYS"));
    for (size_t i = 0; i < 3; i++)
        assert_memory_not_equal(of_shop + i * 65, of_vault + i * 65, 64);
    assert_memory_equal(of_shop, value_of(one, "DUDA_KEYS"),
                        64); /* each key is derived separately, so keys can be rotated */
    assert_memory_equal(of_shop, of_shop + 130, 64);
    assert_memory_not_equal(of_shop, of_shop + 65, 64);
    /* HMAC-SHA-256 of "isolate shop: DUDA_KEYS". */
    assert_memory_equal(of_shop, "9b38b38d46155b9383e93757ad606b779c28fc60a32c11bede5d8d5de62fcec8", 64);
    end(shop), end(vault), end(again), end(one);
}

/* Duda must be able to report that the key is too short, but the value of the key must stay secret. */
static void environment_short_key_is_masked_at_same_length(void **state)
{
    static const char *const all[] = {"DUDA_KEYS=secret", NULL};
    static const char *const limit[] = {"DUDA_KEYS=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL};
    (void)state;
    char **made = make("shop", NULL, all), **longer = make("shop", NULL, limit);
    assert_string_equal(value_of(made, "DUDA_KEYS"), "xxxxxx ");
    assert_string_equal(value_of(longer, "DUDA_KEYS"), "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx ");
    end(made), end(longer);
}

static void environment_configured_keys_are_inherited_unchanged(void **state)
{
    static const char *const all[] = {"DUDA_KEYS=raw", NULL};
    mk_str names[] = {MK_STR("DUDA_KEYS")};
    const struct mk_conf_words env = {.v = names, .n = 1};
    (void)state;
    char **made = make("shop", &env, all);
    assert_string_equal(value_of(made, "DUDA_KEYS"), "raw");
    end(made);
}

static void environment_of_check_has_no_variables_of_supervisor(void **state)
{
    static const char *const all[] = {"PATH=/bin", "SECRET=1", NULL};
    static const struct isolate_settings settings;
    const struct isolate_group g = {.name = "shop", .settings = &settings};
    (void)state;
    char **made = isolate_environment_build(&g, (char *const *)(const void *)all, NULL);
    assert_int_equal(count(made), 1);
    mk_mem_free(made);
}

static void environment_accepts_valid_names_only(void **state)
{
    static const char *const good[] = {"A", "_a1", "DB_PASSWORD", "DUDA_KEYS", "LISTEN", "z9"};
    static const char *const bad[] = {"",
                                      "1A",
                                      "A-B",
                                      "A=B",
                                      "A B",
                                      "LISTEN_FDS",
                                      "MONKEY_ISOLATE",
                                      "NOTIFY_SOCKET",
                                      "WATCHDOG_USEC",
                                      "\xc3\xa9"};
    (void)state;
    for (size_t i = 0; i < MK_LEN(good); i++)
        assert_true(isolate_environment_may_inherit(mk_str_from_c(good[i])));
    for (size_t i = 0; i < MK_LEN(bad); i++)
        assert_false(isolate_environment_may_inherit(mk_str_from_c(bad[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(environment_inherits_only_listed_variables),
                                       cmocka_unit_test(environment_configured_variables_are_inherited),
                                       cmocka_unit_test(environment_keys_are_derived_for_each_group),
                                       cmocka_unit_test(environment_short_key_is_masked_at_same_length),
                                       cmocka_unit_test(environment_configured_keys_are_inherited_unchanged),
                                       cmocka_unit_test(environment_of_check_has_no_variables_of_supervisor),
                                       cmocka_unit_test(environment_accepts_valid_names_only)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
