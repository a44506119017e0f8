/* SPDX-License-Identifier: Apache-2.0 */
/* src/os/libc replaces functions of the C library in small static programs; here, its functions have other
 * names so that the tests can compare them with those of the C library. */
#define vsnprintf    small_vsnprintf
#define snprintf     small_snprintf
#define vfprintf     small_vfprintf
#define fprintf      small_fprintf
#define printf       small_printf
#define strftime     small_strftime
#define qsort        small_qsort
#define qsort_r      small_qsort_r
#define setpwent     small_setpwent
#define endpwent     small_endpwent
#define getpwent     small_getpwent
#define getpwnam     small_getpwnam
#define getpwuid     small_getpwuid
#define getgrnam     small_getgrnam
#define getgrouplist small_getgrouplist
#define initgroups   small_initgroups
#define PASSWD_FILE  test_passwd
#define GROUP_FILE   test_group
static char test_passwd[64], test_group[64];
#include "os/libc/format.c"
#include "os/libc/sort.c"
#define format_one strftime_one
#include "os/libc/strftime.c"
#undef vsnprintf
#undef snprintf
#undef vfprintf
#undef fprintf
#undef printf
#undef strftime
#undef qsort
#undef qsort_r
#include "os/libc/users.c"
int snprintf(char *buf, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
size_t strftime(char *buf, size_t size, const char *format, const struct tm *t);

#include <inttypes.h>
#include <limits.h>

#include "unit/test.h"

/* Expects the same text and length as from the C library, even if the buffer is too small. */
#define SAME(...)                                                                                            \
    do {                                                                                                     \
        for (size_t size = 0; size < 64; size += size < 12 ? 1 : 51) {                                       \
            char ours[64] = "unchanged", theirs[64] = "unchanged";                                           \
            assert_int_equal(small_snprintf(ours, size, __VA_ARGS__), snprintf(theirs, size, __VA_ARGS__));  \
            assert_string_equal(ours, theirs);                                                               \
        }                                                                                                    \
    } while (0)

static void format_writes_numbers_as_the_c_library(void **state)
{
    (void)state;
    static const int numbers[] = {0, 1, -1, 7, 10, -128, 255, 65536, INT_MAX, INT_MIN};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        int n = numbers[i];
        unsigned u = (unsigned)n;
        SAME("%d|%i", n, n);
        SAME("%u", u);
        SAME("%x|%X|%o", u, u, u);
        SAME("%5d|%-5d|%05d", n, n, n);
        SAME("%.3d|%8.3d|%-8.3d|", n, n, n);
        SAME("%02x|%04X|%08x", u, u, u);
        SAME("%*d|%-*d", 6, n, 6, n);
        SAME("%hhd|%hd|%hu", (signed char)n, (short)n, (unsigned short)n);
        SAME("%ld|%lu|%zu", (long)n, (unsigned long)u, (size_t)u);
        SAME("%lld", (long long)n * 4294967296);
        SAME("%" PRIx64, (uint64_t)u << 31);
        SAME("%jd", (intmax_t)n);
    }
    SAME("%llu %lld", ULLONG_MAX, LLONG_MIN);
    SAME("%p", (void *)&numbers);
}

static void format_writes_text_as_the_c_library(void **state)
{
    (void)state;
    static const char unterminated[3] = {'a', 'b', 'c'};
    SAME("plain");
    SAME("100%%");
    SAME("%s and %s", "one", "");
    SAME("%.*s", 3, unterminated);
    SAME("%.*s|%.0s|%.s", 2, "abc", "abc", "abc");
    SAME("%.*s", -1, "abc");
    SAME("%8s|%-8s|%8.2s", "abc", "abc", "abc");
    SAME("%*s|%*s", 6, "abc", -6, "abc");
    SAME("%c%c|%3c", 'x', 'y', 'z');
}

static void format_writes_to_a_stream(void **state)
{
    (void)state;
    char *text;
    size_t len;
    FILE *stream = open_memstream(&text, &len);
    assert_int_equal(small_fprintf(stream, "%s=%d\n", "a", 5), 4);
    assert_int_equal(fclose(stream), 0);
    assert_string_equal(text, "a=5\n");
    free(text);
}

static void strftime_writes_dates_as_the_c_library(void **state)
{
    (void)state;
    static const char *const formats[] = {"%d/%b/%Y:%H:%M:%S %z", "[%d/%b/%Y:%H:%M:%S %z]",
                                          "%Y-%m-%dT%H:%M:%SZ", "%H:%M:%S", ""};
    size_t (*of_libc)(char *, size_t, const char *, const struct tm *) =
        strftime; /* a direct call would need a literal format (-Wformat-nonliteral) */
    static const long offsets[] = {0, 3600, -3600, 20700, -12600};
    for (int month = 0; month < 12; month++)
        for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
            for (size_t j = 0; j < sizeof formats / sizeof *formats; j++)
                for (size_t size = 0; size < 32; size++) {
                    struct tm t = {.tm_year = 126,
                                   .tm_mon = month,
                                   .tm_mday = 1 + month,
                                   .tm_hour = 2 * month,
                                   .tm_min = 9,
                                   .tm_sec = 59,
                                   .tm_gmtoff = offsets[i]};
                    char ours[32] = "", theirs[32] = "";
                    size_t n = small_strftime(ours, size, formats[j], &t);
                    assert_int_equal(n, of_libc(theirs, size, formats[j], &t));
                    if (n)
                        assert_string_equal(ours, theirs);
                }
}

struct item {
    unsigned key;
    char rest[3];
};

static int compare_keys(const void *a, const void *b)
{
    unsigned x = ((const struct item *)a)->key, y = ((const struct item *)b)->key;
    return (x > y) - (x < y);
}

static int compare_down(const void *a, const void *b, void *ctx)
{
    ++*(unsigned *)ctx;
    return compare_keys(b, a);
}

static void sort_orders_items_and_keeps_them(void **state)
{
    (void)state;
    for (size_t n = 0; n < 200; n++) {
        struct item items[200] = {0};
        unsigned sum = 0, left = 0, calls = 0, seed = (unsigned)n;
        for (size_t i = 0; i < n; i++) {
            seed = seed * 1103515245 + 12345;
            items[i].key = seed >> 16 & 63;
            items[i].rest[0] = (char)items[i].key;
            sum += items[i].key;
        }
        small_qsort(items, n, sizeof *items, compare_keys);
        for (size_t i = 0; i < n; i++) {
            assert_true(i == 0 || items[i - 1].key <= items[i].key);
            assert_int_equal(items[i].key, items[i].rest[0]);
            left += items[i].key;
        }
        assert_int_equal(left, sum);
        small_qsort_r(items, n, sizeof *items, compare_down, &calls);
        for (size_t i = 1; i < n; i++)
            assert_true(items[i - 1].key >= items[i].key);
        assert_true(n < 2 || calls > 0);
    }
}

static void write_file(char path[64], const char *name, const char *text)
{
    (void)snprintf(path, 64, "/tmp/monkey-test-%d-%s", (int)getpid(), name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void users_are_found_by_name_and_number(void **state)
{
    (void)state;
    write_file(
        test_passwd, "passwd",
        "root:x:0:0:root:/root:/bin/sh\n\n# comment\nbad:x:12\nbad:x:x:5::/:/\nbig:x:4294967296:5::/:/\n"
        "www:x:33:34:Web,,:/srv/www:/usr/sbin/nologin\nlast:x:7:8::/:");
    assert_int_equal(small_getpwnam("root")->pw_uid, 0);
    struct passwd *www = small_getpwnam("www");
    assert_int_equal(www->pw_uid, 33);
    assert_int_equal(www->pw_gid, 34);
    assert_string_equal(www->pw_gecos, "Web,,");
    assert_string_equal(www->pw_dir, "/srv/www");
    assert_string_equal(www->pw_shell, "/usr/sbin/nologin");
    assert_string_equal(small_getpwuid(7)->pw_name, "last");
    assert_null(small_getpwnam("bad"));
    assert_null(small_getpwnam("big"));
    assert_null(small_getpwnam("ww"));
    assert_null(small_getpwuid(12));
    small_setpwent();
    assert_string_equal(small_getpwent()->pw_name, "root");
    assert_string_equal(small_getpwent()->pw_name, "www");
    assert_string_equal(small_getpwent()->pw_name, "last");
    assert_null(small_getpwent());
    small_endpwent();
    assert_int_equal(unlink(test_passwd), 0);
    assert_null(small_getpwnam("root"));
}

static void groups_are_found_by_name_and_member(void **state)
{
    (void)state;
    gid_t list[3];
    int n = 3;
    write_file(
        test_group, "group",
        "root:x:0:\nwww:x:34:\nmedia:x:50:ana,www\nwwwx:x:51:wwwx,xwww\nlog:x:52:www,ana\nown:x:33:www\n");
    assert_int_equal(small_getgrnam("media")->gr_gid, 50);
    assert_null(small_getgrnam("medi"));
    assert_int_equal(small_getgrouplist("www", 33, list, &n), 3);
    assert_int_equal(n, 3);
    assert_true(list[0] == 33 && list[1] == 50 && list[2] == 52);
    n = 2;
    assert_int_equal(small_getgrouplist("www", 33, list, &n), -1);
    assert_int_equal(n, 3);
    n = 3;
    assert_int_equal(small_getgrouplist("none", 5, list, &n), 1);
    assert_int_equal(list[0], 5);
    write_file(test_group, "group", "");
    assert_null(small_getgrnam("root"));
    assert_int_equal(unlink(test_group), 0);
    n = 3;
    assert_int_equal(small_getgrouplist("www", 33, list, &n), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(format_writes_numbers_as_the_c_library),
                                       cmocka_unit_test(format_writes_text_as_the_c_library),
                                       cmocka_unit_test(format_writes_to_a_stream),
                                       cmocka_unit_test(strftime_writes_dates_as_the_c_library),
                                       cmocka_unit_test(sort_orders_items_and_keeps_them),
                                       cmocka_unit_test(users_are_found_by_name_and_number),
                                       cmocka_unit_test(groups_are_found_by_name_and_member)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
