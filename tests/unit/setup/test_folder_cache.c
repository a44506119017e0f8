/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/folder_cache.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit/folder.h"
#include "unit/test.h"

static struct folder top;

static const char *under(const char *name)
{
    static char path[4][PATH_MAX];
    static unsigned i;
    char *to = path[i++ % 4];
    assert_true(snprintf(to, PATH_MAX, "%s/%s", top.path, name) < PATH_MAX);
    return to;
}

static void setup(void)
{
    folder_setup(&top);
    folder_add_folder(&top, "a");
    folder_add_folder(&top, "b");
    folder_add_link(&top, "now", "a");
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static void folder_cache_shares_descriptors(void **state)
{
    (void)state;
    struct mk_folder_cache f = {0};
    int a, again, b;
    assert_int_equal(mk_folder_cache_acquire(&f, under("a"), &a), 0);
    assert_int_equal(mk_folder_cache_acquire(&f, under("a"), &again), 0);
    assert_int_equal(mk_folder_cache_acquire(&f, under("b"), &b), 0);
    assert_int_equal(a, again);
    assert_int_not_equal(a, b);
    int fd = a;
    mk_folder_cache_release(&f, &a);
    assert_int_equal(a, -1);
    assert_true(is_open(fd));
    mk_folder_cache_release(&f, &again);
    assert_false(is_open(fd));
    assert_true(is_open(b));
    mk_folder_cache_release(&f, &again); /* releasing -1 has no effect */
    mk_folder_cache_fini(&f);
    assert_false(is_open(b));
}

static void folder_cache_replaced_link_leads_to_the_new_folder(void **state)
{
    (void)state;
    struct mk_folder_cache f = {0};
    int before, after;
    struct stat st, wanted;
    assert_int_equal(mk_folder_cache_acquire(&f, under("now"), &before), 0);
    assert_int_equal(unlink(under("now")), 0);
    assert_int_equal(symlink("b", under("now")), 0);
    assert_int_equal(mk_folder_cache_acquire(&f, under("now"), &after), 0);
    assert_int_not_equal(before, after);
    assert_int_equal(fstat(after, &st), 0);
    assert_int_equal(stat(under("b"), &wanted), 0);
    assert_int_equal(st.st_ino, wanted.st_ino);
    int fd = before;
    mk_folder_cache_release(&f, &before);
    assert_false(is_open(fd));
    assert_true(is_open(after));
    mk_folder_cache_fini(&f);
}

static void folder_cache_missing_folder_and_file_are_errors(void **state)
{
    (void)state;
    struct mk_folder_cache f = {0};
    int fd = 7;
    assert_int_equal(mk_folder_cache_acquire(&f, under("missing"), &fd), -ENOENT);
    assert_int_equal(fd, -1);
    assert_int_equal(mk_folder_cache_acquire(&f, "/dev/null", &fd), -ENOTDIR);
    assert_int_equal(fd, -1);
    mk_folder_cache_release(&f, &fd);
    mk_folder_cache_fini(&f);
}

static void folder_cache_known_folder_needs_no_new_descriptor(void **state)
{
    (void)state;
    struct mk_folder_cache f = {0};
    struct rlimit before, none;
    int a, again, b;
    assert_int_equal(mk_folder_cache_acquire(&f, under("a"), &a), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    mk_err known = mk_folder_cache_acquire(&f, under("a"), &again),
           other = mk_folder_cache_acquire(&f, under("b"), &b);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(known, 0);
    assert_int_equal(again, a);
    assert_int_equal(other, -EMFILE);
    mk_folder_cache_fini(&f);
}

static void folder_cache_finds_many_folders(void **state)
{
    (void)state;
    enum { N = 900 };
    struct mk_folder_cache f = {0};
    int fds[N];
    char name[16];
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "a/%d", i);
        assert_int_equal(mkdir(under(name), 0755), 0);
        assert_int_equal(mk_folder_cache_acquire(&f, under(name), &fds[i]), 0);
    }
    assert_int_equal(f.n, N);
    for (int i = 0, again; i < N; i++) {
        snprintf(name, sizeof name, "a/%d", i);
        assert_int_equal(mk_folder_cache_acquire(&f, under(name), &again), 0);
        assert_int_equal(again, fds[i]);
        mk_folder_cache_release(&f, &again);
        mk_folder_cache_release(&f, &fds[i]);
        assert_int_equal(rmdir(under(name)), 0);
    }
    assert_int_equal(f.n, 0);
    mk_folder_cache_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(folder_cache_shares_descriptors, setup),
        fixture_test(folder_cache_replaced_link_leads_to_the_new_folder, setup),
        fixture_test(folder_cache_missing_folder_and_file_are_errors, setup),
        fixture_test(folder_cache_known_folder_needs_no_new_descriptor, setup),
        fixture_test(folder_cache_finds_many_folders, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
