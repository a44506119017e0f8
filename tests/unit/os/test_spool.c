/* SPDX-License-Identifier: Apache-2.0 */
#include "os/spool.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "unit/folder.h"
#include "unit/test.h"

static struct folder f;

static void setup(void)
{
    folder_setup(&f);
}

static void assert_reads(const struct mk_spool *s, uint64_t at, const char *text)
{
    char buffer[64] = "";
    size_t len = strlen(text), n = 0;
    while (n < len) {
        ssize_t r = mk_spool_read(s, buffer + n, len - n, at + n);
        assert_true(r > 0);
        n += (size_t)r;
    }
    assert_memory_equal(buffer, text, len);
}

static void assert_descriptor_reads(struct mk_spool *s, const char *text)
{
    char buffer[64];
    int fd = mk_spool_fd(s);
    assert_true(fd >= 0);
    ssize_t n = read(fd, buffer, sizeof buffer);
    assert_int_equal(n, strlen(text));
    assert_memory_equal(buffer, text, strlen(text));
}

static void spool_small_content_stays_in_memory(void **state)
{
    (void)state;
    struct mk_spool s;
    char buffer[8];
    mk_spool_init(&s, 64);
    mk_buf_add(&s.kept, MK_STR("little"));
    assert_int_equal(mk_spool_length(&s), 6);
    assert_reads(&s, 0, "little");
    assert_reads(&s, 4, "le");
    assert_int_equal(mk_spool_read(&s, buffer, sizeof buffer, 6), 0);
    assert_int_equal(mk_spool_read(&s, buffer, sizeof buffer, 100), 0);
    assert_int_equal(s.fd, -1);
    mk_spool_fini(&s);
}

static void spool_descriptor_of_memory_starts_at_beginning(void **state)
{
    (void)state;
    struct mk_spool s;
    mk_spool_init(&s, 64);
    mk_buf_add(&s.kept, MK_STR("little"));
    assert_descriptor_reads(&s, "little");
    assert_descriptor_reads(&s, "little"); /* a second descriptor reads the same bytes */
    assert_int_equal(mk_spool_length(&s), 6);
    assert_reads(&s, 0, "little");
    mk_spool_fini(&s);
}

static void spool_empty_has_descriptor(void **state)
{
    (void)state;
    struct mk_spool s;
    mk_spool_init(&s, 64);
    assert_descriptor_reads(&s, "");
    mk_spool_fini(&s);
}

static void spool_file_and_memory_read_as_one(void **state)
{
    (void)state;
    struct mk_spool s;
    mk_spool_init(&s, 64);
    mk_buf_add(&s.kept, MK_STR("one"));
    assert_int_equal(mk_spool_write_to_file(&s, f.path), 0);
    mk_buf_add(&s.kept, MK_STR("two"));
    assert_int_equal(mk_spool_write_to_file(&s, f.path), 0);
    mk_buf_add(&s.kept, MK_STR("three"));
    assert_int_equal(mk_spool_length(&s), 11);
    assert_reads(&s, 0, "onetwothree");
    assert_reads(&s, 4, "wothr");
    assert_descriptor_reads(&s, "onetwothree");
    mk_spool_fini(&s);
}

static void spool_file_is_unnamed_and_private(void **state)
{
    (void)state;
    struct mk_spool s;
    struct stat st;
    mk_spool_init(&s, 64);
    mk_buf_add(&s.kept, MK_STR("secret"));
    assert_int_equal(mk_spool_write_to_file(&s, f.path), 0);
    assert_int_equal(fstat(s.fd, &st), 0);
    assert_int_equal(st.st_nlink, 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_true(fcntl(s.fd, F_GETFD) & FD_CLOEXEC);
    mk_spool_fini(&s);
}

static void spool_missing_folder_is_an_error(void **state)
{
    (void)state;
    struct mk_spool s;
    mk_spool_init(&s, 64);
    mk_buf_add(&s.kept, MK_STR("x"));
    assert_int_equal(mk_spool_write_to_file(&s, "/nowhere/at/all"), -ENOENT);
    assert_int_equal(mk_spool_length(&s), 1);
    mk_spool_fini(&s);
}

/* Runs in the child: a write reaches the file size limit halfway. */
static int store_too_much(void)
{
    struct rlimit two = {2, 2};
    struct mk_spool s;
    (void)signal(SIGXFSZ, SIG_IGN);
    mk_spool_init(&s, 64);
    mk_buf_add(&s.kept, MK_STR("too much"));
    if (setrlimit(RLIMIT_FSIZE, &two) < 0)
        return 1;
    return mk_spool_write_to_file(&s, f.path) == -ENOSPC && mk_spool_fd(&s) < 0 ? 0 : 2;
}

static void spool_file_size_limit_counts_as_full_disk(void **state)
{
    (void)state;
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(store_too_much());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void spool_full_device_is_reported(void **state)
{
    (void)state;
    struct mk_spool s;
    mk_spool_init(&s, 64);
    mk_buf_add(&s.kept, MK_STR("x"));
    s.fd = open("/dev/full", O_RDWR | O_CLOEXEC);
    assert_int_equal(mk_spool_write_to_file(&s, f.path), -ENOSPC);
    mk_spool_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(spool_small_content_stays_in_memory, setup),
        fixture_test(spool_descriptor_of_memory_starts_at_beginning, setup),
        fixture_test(spool_empty_has_descriptor, setup),
        fixture_test(spool_file_and_memory_read_as_one, setup),
        fixture_test(spool_file_is_unnamed_and_private, setup),
        fixture_test(spool_missing_folder_is_an_error, setup),
        fixture_test(spool_file_size_limit_counts_as_full_disk, setup),
        fixture_test(spool_full_device_is_reported, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
