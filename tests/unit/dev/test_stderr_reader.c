/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the stderr of processes from pipes. */
#include "stderr_reader.h"

#include "crash.h"

#include <fcntl.h>
#include <unistd.h>

#include "unit/test.h"

enum { LINES = 20000 };

struct received {
    size_t lines, crashes;
};

static void on_line(void *ctx, mk_str line)
{
    struct received *h = ctx;
    (void)line;
    h->lines++;
}

static void on_crash(void *ctx)
{
    struct received *h = ctx;
    h->crashes++;
}

/* /dev/zero acts as a process that never pauses. */
static void stderr_reader_limits_a_single_call(void **state)
{
    struct received received = {0};
    struct dev_stderr_reader h;
    struct mk_buf all = mk_buf_growing(1 << 20);
    int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    (void)state;
    assert_true(fd >= 0);
    dev_stderr_reader_init(&h, on_line, on_crash, &received);
    dev_stderr_reader_read(&h, &fd);
    dev_stderr_reader_append_to(&fd, &all);
    assert_true(all.len > 64 * 1024);
    mk_buf_free(&all);
    dev_stderr_reader_free(&h);
    close(fd);
}

static void write_all(int fd)
{
    static const char report[] = DEV_CRASH_HEAD "11 0\n" DEV_CRASH_FRAME "a.so 1\n" DEV_CRASH_END "\n";
    for (unsigned i = 0; i < LINES; i++)
        assert_int_equal(write(fd, "abcd\n", 5), 5);
    assert_int_equal(write(fd, report, sizeof report - 1), sizeof report - 1);
    close(fd);
}

/* Writes more than the line buffer holds, with a crash report at the end. */
static void stderr_reader_reads_a_burst_completely(void **state)
{
    struct received received = {0};
    struct dev_stderr_reader h;
    int ends[2];
    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    if (fcntl(ends[1], F_SETPIPE_SZ, 1 << 18) < 1 << 18)
        skip();
    write_all(ends[1]);
    dev_stderr_reader_init(&h, on_line, on_crash, &received);
    while (ends[0] >= 0)
        dev_stderr_reader_read(&h, &ends[0]);
    assert_int_equal(received.lines, LINES);
    assert_int_equal(received.crashes, 1);
    dev_stderr_reader_free(&h);
}

static void feed(struct dev_stderr_reader *h, const char *text)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(write(ends[1], text, strlen(text)), (ssize_t)strlen(text));
    dev_stderr_reader_read(h, &ends[0]);
    close(ends[1]);
    if (ends[0] >= 0)
        close(ends[0]);
}

static void stderr_reader_death_without_report_drops_earlier_report(void **state)
{
    static const char report[] = DEV_CRASH_HEAD "11 0\n" DEV_CRASH_FRAME "a.so 1\n" DEV_CRASH_END "\n";
    struct received received = {0};
    struct dev_stderr_reader h;
    (void)state;
    dev_stderr_reader_init(&h, on_line, on_crash, &received);
    feed(&h, report);
    assert_true(h.has_crashed && !h.has_died);
    dev_stderr_reader_worker_died(&h);
    assert_true(h.has_crashed && h.has_died); /* the report belongs to that worker */
    dev_stderr_reader_worker_died(&h);
    assert_false(h.has_crashed);
    feed(&h, report);
    assert_true(h.has_crashed && !h.has_died);
    dev_stderr_reader_free(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stderr_reader_limits_a_single_call),
        cmocka_unit_test(stderr_reader_reads_a_burst_completely),
        cmocka_unit_test(stderr_reader_death_without_report_drops_earlier_report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
