/* SPDX-License-Identifier: Apache-2.0 */
/* User files: valid entries, and error messages for invalid lines. */
#include "unit/test.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "users.h"

/* Hash of "secret". */
#define SHA1  "{SHA1}5en6G6MezRroT3XKqkdPOmY/BfQ="
#define CRYPT "$5$salt$0123456789012345678901234567890123456789012"
#define HA1   "0123456789abcdef0123456789ABCDEF"

/* ---- Fake server ---- */

static char logged[16 * 1024];
static void *pieces[16];
static size_t n_pieces;

static void on_problem(const char *kind, const char *fmt, va_list args)
{
    size_t len = strlen(logged);
    len += (size_t)snprintf(logged + len, sizeof logged - len, "%s: ", kind);
    len += (size_t)vsnprintf(logged + len, sizeof logged - len, fmt, args);
    (void)snprintf(logged + len, sizeof logged - len, "\n");
}

void mk_config_error(struct mk_config *c, const void *section, const char *key, const char *fmt, ...)
{
    va_list args;
    (void)c, (void)section;
    assert_string_equal(key, "UserFile");
    va_start(args, fmt);
    on_problem("error", fmt, args);
    va_end(args);
}

void mk_config_warn(struct mk_config *c, const void *section, const char *key, const char *fmt, ...)
{
    va_list args;
    (void)c, (void)section, (void)key;
    va_start(args, fmt);
    on_problem("warning", fmt, args);
    va_end(args);
}

void mk_config_hint(struct mk_config *c, const char *fmt, ...)
{
    va_list args;
    (void)c;
    va_start(args, fmt);
    on_problem("hint", fmt, args);
    va_end(args);
}

void *mk_config_alloc(struct mk_config *c, size_t size)
{
    (void)c;
    assert_true(n_pieces < MK_LEN(pieces));
    return pieces[n_pieces++] = calloc(1, size);
}

/* ---- User files ---- */

static char path[] = "/tmp/monkey-users-XXXXXX";

static void setup(void)
{
    logged[0] = '\0';
    memcpy(path + strlen(path) - 6, "XXXXXX", 6);
    close(mkstemp(path));
}

static void teardown(void)
{
    while (n_pieces)
        free(pieces[--n_pieces]);
    assert_int_equal(unlink(path), 0);
}

static const struct auth_users *read_text(const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    const struct auth_users *u = auth_users_load(NULL, NULL, mk_str_from_c(path));
    assert_non_null(u);
    return u;
}

static void expect_log(const char *line, const char *what)
{
    char expected[256];
    (void)snprintf(expected, sizeof expected, "error: %s:%s: %s\n", path, line, what);
    if (!strstr(logged, expected))
        fail_msg("`%s` is not in:\n%s", expected, logged);
}

static void users_basic_entry_is_found_by_name(void **state)
{
    (void)state;
    const struct auth_users *u = read_text("# a comment\n\nzoe:" CRYPT "\r\n  ann:" CRYPT "  \nbob:" CRYPT);
    assert_string_equal(logged, "");
    assert_int_equal(u->n_basic, 3);
    assert_int_equal(u->n_digest, 0);
    assert_str(auth_users_find(u, MK_STR("ann"))->hash, CRYPT);
    assert_int_equal(auth_users_find(u, MK_STR("ann"))->line, 4);
    assert_str(auth_users_find(u, MK_STR("zoe"))->hash, CRYPT);
    assert_str(auth_users_find(u, MK_STR("bob"))->hash, CRYPT);
    assert_null(auth_users_find(u, MK_STR("an")));
    assert_null(auth_users_find(u, MK_STR("")));
    assert_null(auth_users_find(read_text(""), MK_STR("ann")));
}

static void users_digest_entry_is_found_by_realm_and_algorithm(void **state)
{
    (void)state;
    const struct auth_users *u =
        read_text("ann:one:" HA1 "\nann:two:" HA1 "\nann:one:" HA1 HA1 "\nbob:two:" HA1 "\n");
    assert_string_equal(logged, "");
    assert_int_equal(u->n_digest, 4);
    assert_int_equal(auth_users_find_digest(u, MK_STR("ann"), MK_STR("one"), AUTH_MD5)->line, 1);
    assert_int_equal(auth_users_find_digest(u, MK_STR("ann"), MK_STR("one"), AUTH_SHA256)->line, 3);
    assert_int_equal(auth_users_find_digest(u, MK_STR("bob"), MK_STR("two"), AUTH_MD5)->line, 4);
    assert_memory_equal(auth_users_find_digest(u, MK_STR("bob"), MK_STR("two"), AUTH_MD5)->ha1,
                        "\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef", 16);
    assert_null(auth_users_find_digest(u, MK_STR("bob"), MK_STR("one"), AUTH_MD5));
    assert_null(auth_users_find_digest(u, MK_STR("ann"), MK_STR("two"), AUTH_SHA256));
    assert_true(auth_users_has_realm(u, MK_STR("one"), AUTH_SHA256));
    assert_true(auth_users_has_realm(u, MK_STR("two"), AUTH_MD5));
    assert_false(auth_users_has_realm(u, MK_STR("two"), AUTH_SHA256));
    assert_false(auth_users_has_realm(u, MK_STR("three"), AUTH_MD5));
}

static void users_invalid_lines_are_reported_without_their_text(void **state)
{
    (void)state;
    (void)read_text("secret\nann:\n:" CRYPT "\nan\tn:" CRYPT "\nann::" HA1
                    "\nann:r:0123\nann:secret\nann:a:" HA1 "\n");
    expect_log("1", "expected name:hash or name:realm:hash");
    expect_log("2", "expected name:hash or name:realm:hash");
    expect_log("3", "a name has 1 to 255 bytes");
    expect_log("4", "control characters are not allowed");
    expect_log("5", "the realm is empty: expected name:realm:hash");
    expect_log("6", "invalid hash after the realm: expected 64 (SHA-256) or 32 (MD5) hexadecimal digits");
    assert_non_null(strstr(logged, ":7: unknown hash"));
    assert_null(strstr(logged, ":8:"));
    assert_null(strstr(logged, "secret"));
}

static void users_name_has_at_most_255_bytes(void **state)
{
    char text[400];
    (void)state;
    (void)snprintf(text, sizeof text, "%0255d:" CRYPT "\n", 7);
    assert_int_equal(read_text(text)->n_basic, 1);
    assert_string_equal(logged, "");
    (void)snprintf(text, sizeof text, "%0256d:" CRYPT "\n", 7);
    (void)read_text(text);
    expect_log("1", "a name has 1 to 255 bytes");
}

static void users_duplicates_are_reported(void **state)
{
    (void)state;
    (void)read_text("ann:" CRYPT "\nbob:" CRYPT "\nann:" CRYPT "\nzoe:r:" HA1 "\nzoe:s:" HA1 "\nzoe:r:" HA1
                    "\n");
    expect_log("3", "ann is already on line 1");
    expect_log("6", "zoe is already on line 4");
    assert_null(strstr(logged, "bob"));
    assert_null(strstr(logged, ":5:"));
}

static void users_many_errors_are_summarized(void **state)
{
    (void)state;
    char text[2 * 23 + 1] = "";
    for (size_t i = 0; i < sizeof text - 1; i += 2)
        memcpy(text + i, "x\n", 2);
    (void)read_text(text);
    expect_log("20", "expected name:hash or name:realm:hash");
    assert_null(strstr(logged, ":21:"));
    assert_non_null(strstr(logged, ": 3 more invalid lines\n"));
    logged[0] = '\0';
    text[40] = '\0';
    (void)read_text(text);
    assert_null(strstr(logged, "more invalid lines"));
}

static void users_weak_hashes_are_reported(void **state)
{
    (void)state;
    (void)read_text("ann:" SHA1 "\nbob:" CRYPT "\n");
    assert_non_null(strstr(logged, ": 1 password is hashed with {SHA1}, which offers no protection"));
    (void)read_text("ann:" SHA1 "\nbob:" SHA1 "\n");
    assert_non_null(strstr(logged, ": 2 passwords are hashed with {SHA1}"));
}

static void users_world_readable_file_is_reported(void **state)
{
    (void)state;
    assert_int_equal(chmod(path, 0644), 0);
    (void)read_text("ann:" CRYPT "\n");
    assert_non_null(strstr(logged, "warning: every user of this machine can read "));
    assert_non_null(strstr(logged, "hint: chmod o-r "));
    assert_int_equal(chmod(path, 0640), 0);
    logged[0] = '\0';
    (void)read_text("ann:" CRYPT "\n");
    assert_string_equal(logged, "");
}

static void users_unreadable_file_is_reported(void **state)
{
    (void)state;
    assert_non_null(auth_users_load(NULL, NULL, MK_STR("/there/is/none")));
    assert_non_null(strstr(logged, "error: cannot open /there/is/none: No such file or directory\n"));
    assert_non_null(strstr(logged, "hint: `monkey passwd -c /there/is/none NAME` creates it\n"));
    assert_non_null(auth_users_load(NULL, NULL, MK_STR("/tmp")));
    assert_non_null(strstr(logged, "error: cannot read /tmp: it is not a regular file\n"));
    assert_int_equal(truncate(path, 64 << 20), 0);
    assert_int_equal(truncate(path, (64 << 20) + 1), 0);
    assert_non_null(auth_users_load(NULL, NULL, mk_str_from_c(path)));
    assert_non_null(strstr(logged, ": it is larger than 64 MB\n"));
}

/* An unknown user is always checked against the same hash, so that the time of the check does not reveal
 * which users exist. */
static void users_unknown_user_gets_stable_decoy(void **state)
{
    static const uint8_t key[AUTH_KEY_LEN] = {1}, other[AUTH_KEY_LEN] = {2};
    unsigned seen = 0, differ = 0;
    (void)state;
    const struct auth_users *u = read_text("a:" CRYPT "\nb:" CRYPT "\nc:" CRYPT "\n");
    for (char name = 'd'; name <= 'z'; name++) {
        const struct auth_user *one = auth_users_find_decoy(u, key, mk_str_of(&name, 1));
        assert_in_range(one - u->basic, 0, 2);
        assert_ptr_equal(auth_users_find_decoy(u, key, mk_str_of(&name, 1)), one);
        seen |= 1U << (one - u->basic);
        differ += auth_users_find_decoy(u, other, mk_str_of(&name, 1)) != one;
    }
    assert_int_equal(seen, 7);
    assert_true(differ > 0);
    assert_null(auth_users_find_decoy(read_text(""), key, MK_STR("d")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(users_basic_entry_is_found_by_name, setup, teardown),
        fixture_test(users_digest_entry_is_found_by_realm_and_algorithm, setup, teardown),
        fixture_test(users_invalid_lines_are_reported_without_their_text, setup, teardown),
        fixture_test(users_name_has_at_most_255_bytes, setup, teardown),
        fixture_test(users_duplicates_are_reported, setup, teardown),
        fixture_test(users_many_errors_are_summarized, setup, teardown),
        fixture_test(users_weak_hashes_are_reported, setup, teardown),
        fixture_test(users_world_readable_file_is_reported, setup, teardown),
        fixture_test(users_unreadable_file_is_reported, setup, teardown),
        fixture_test(users_unknown_user_gets_stable_decoy, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
