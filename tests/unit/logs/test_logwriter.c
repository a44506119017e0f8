/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/logwriter.h"

#include <signal.h>
#include <sys/resource.h>

#include "unit/logs/log_case.h"

static struct mk_logwriter w;

static void close_log(void)
{
    mk_logwriter_fini(&w);
    mk_logfile_close(&f);
}

static void teardown(void)
{
    close_log();
}

static void open_log(const char *where)
{
    assert_int_equal(mk_logfile_open(&f, mk_str_from_c(where), NULL), 0);
    mk_logwriter_init(&w, &f);
}

static bool add(const char *line)
{
    struct mk_buf *out = mk_logwriter_reserve(&w, MK_LOG_INFO, 100);
    assert_non_null(out);
    mk_buf_add(out, mk_str_from_c(line));
    return mk_logwriter_commit(&w);
}

static void logwriter_lines_are_buffered_and_appended(void **state)
{
    (void)state;
    struct stat st;
    folder_add(&folder, "log", MK_STR("old\n"));
    open_log(path);
    assert_int_equal(f.kind, MK_LOGFILE_FILE);
    assert_true(fcntl(f.fd, F_GETFD) & FD_CLOEXEC);
    assert_true(add("one\n"));
    assert_true(add("two\n"));
    check("log", "old\n");
    mk_logwriter_flush(&w);
    check("log", "old\none\ntwo\n");
    mk_logwriter_flush(&w);
    add("three\n");
    close_log();
    check("log", "old\none\ntwo\nthree\n");
    open_log(folder_path(&folder, "new", path));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777 & ~0640u, 0);
}

static void logwriter_full_block_is_written(void **state)
{
    (void)state;
    struct stat st;
    char line[100];
    memset(line, 'x', sizeof line);
    line[sizeof line - 2] = '\n';
    line[sizeof line - 1] = '\0';
    open_log(path);
    for (int i = 0; i < 1000; i++) {
        add(line);
        assert_true(w.lines.len <= MK_LOGWRITER_BLOCK);
    }
    assert_int_equal(stat(path, &st), 0);
    assert_true((size_t)st.st_size > 1000 * 99 - MK_LOGWRITER_BLOCK && st.st_size % 99 == 0);
    mk_logwriter_flush(&w);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 1000 * 99);
    assert_int_equal(w.lost, 0);
}

static void logwriter_lost_lines_are_counted(void **state)
{
    (void)state;
    open_log("/dev/full");
    add("one\n");
    add("two\n");
    mk_logwriter_flush(&w);
    assert_int_equal(w.lost, 2);
    assert_int_equal(w.lines.len, 0);
    add("three\n");
    mk_logwriter_flush(&w);
    assert_int_equal(w.lost, 3);
    assert_string_equal(mk_logwriter_loss_reason(&w), "No space left on device");
}

static void limit_file_size(rlim_t size)
{
    struct rlimit r;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &r), 0);
    r.rlim_cur = size;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &r), 0);
}

static void logwriter_line_is_complete_or_lost(void **state)
{
    (void)state;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    open_log(path);
    add("one\n");
    add("two and more\n");
    add("three\n");
    limit_file_size(8); /* "one\ntwo " */
    mk_logwriter_flush(&w);
    assert_int_equal(w.lost, 2);
    check("log", "one\n");
    add("longer than that\n");
    mk_logwriter_flush(&w);
    assert_int_equal(w.lost, 3);
    assert_string_equal(mk_logwriter_loss_reason(&w), "File too large");
    limit_file_size(RLIM_INFINITY);
    add("four\n");
    mk_logwriter_flush(&w);
    signal(SIGXFSZ, handler);
    check("log", "one\nfour\n");
}

/* Unlike a file, a pipe cannot be truncated. */
static void logwriter_rest_of_a_partial_line_follows(void **state)
{
    (void)state;
    static char line[3 * 4096], buffer[sizeof line];
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\n';
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_int_equal(fcntl(reader, F_SETPIPE_SZ, 4096), 4096);
    open_log(path);
    mk_buf_add(mk_logwriter_reserve(&w, MK_LOG_INFO, sizeof line), mk_str_of(line, sizeof line));
    mk_logwriter_flush(&w);
    add("next\n");
    mk_logwriter_flush(&w);
    assert_int_equal(w.lost, 1); /* lost "next"; the long line continues */
    size_t got = 0;
    for (int i = 0; i < 3; i++) {
        ssize_t n = read(reader, buffer + got, sizeof buffer - got);
        assert_true(n > 0);
        got += (size_t)n;
        mk_logwriter_flush(&w);
    }
    assert_int_equal(got, sizeof line);
    assert_memory_equal(buffer, line, sizeof line);
    add("last\n");
    mk_logwriter_flush(&w);
    assert_int_equal(read(reader, buffer, sizeof buffer), 5);
    assert_int_equal(w.lost, 1);
    close(reader);
}

/* Other processes share the stream, so its flags must not change. */
static void logwriter_full_shared_stream_does_not_block(void **state)
{
    (void)state;
    int ends[2], out = dup(STDOUT_FILENO);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(fcntl(ends[0], F_SETPIPE_SZ, 4096), 4096);
    assert_int_equal(dup2(ends[1], STDOUT_FILENO), STDOUT_FILENO);
    open_log("stdout");
    for (int i = 0; i < 2000; i++)
        add("a line\n");
    mk_logwriter_flush(&w);
    assert_int_equal(fcntl(STDOUT_FILENO, F_GETFL) & O_NONBLOCK, 0);
    close_log();
    open_log("stdout");
    /* as if the kernel had not given us our own descriptor */
    assert_int_equal(dup3(ends[1], f.fd, O_CLOEXEC), f.fd);
    assert_int_equal(mk_logwriter_replace_fd(&w, ends[1]), 0);
    add("a line\n");
    mk_logwriter_flush(&w);
    assert_int_equal(dup2(out, STDOUT_FILENO), STDOUT_FILENO);
    assert_int_equal(w.lost, 1);
    assert_string_equal(mk_logwriter_loss_reason(&w), "its reader is too slow");
    char buffer[4096];
    ssize_t n = read(ends[0], buffer, sizeof buffer);
    assert_true(n > 0 && n % 7 == 0); /* complete lines */
    add("last\n");
    mk_logwriter_flush(&w);
    assert_int_equal(read(ends[0], buffer, sizeof buffer), 5);
    close(ends[0]);
    close(ends[1]);
    close(out);
}

static void logwriter_pipe_without_a_reader_does_not_block(void **state)
{
    (void)state;
    char line[101];
    memset(line, 'x', sizeof line - 1);
    line[99] = '\n';
    line[100] = '\0';
    assert_int_equal(mkfifoat(folder.fd, "log", 0600), 0);
    assert_int_equal(mk_logfile_open(&f, mk_str_from_c(path), NULL), -ENXIO);
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    open_log(path);
    for (int i = 0; i < 2000; i++)
        add(line);
    mk_logwriter_flush(&w);
    assert_in_range(w.lost, 1, 1999);
    assert_string_equal(mk_logwriter_loss_reason(&w), "its reader is too slow");
    char buffer[1000];
    size_t got = 0;
    for (ssize_t n; (n = read(reader, buffer, sizeof buffer)) > 0;)
        got += (size_t)n;
    assert_true(got / 100 + w.lost >= 2000);
    close(reader);
    void (*handler)(int) = signal(SIGPIPE, SIG_IGN);
    add("behind\n");
    mk_logwriter_flush(&w);
    signal(SIGPIPE, handler);
    assert_string_equal(mk_logwriter_loss_reason(&w), "it has no reader");
}

static void logwriter_writes_to_a_new_file_after_rotation(void **state)
{
    (void)state;
    char moved[PATH_MAX];
    open_log(path);
    add("before\n");
    mk_logwriter_flush(&w);
    assert_int_equal(rename(path, folder_path(&folder, "log.1", moved)), 0);
    int fd = mk_logfile_reopen(&f);
    assert_true(fd >= 0);
    assert_int_equal(dup2(fd, f.fd), f.fd);
    close(fd);
    add("behind\n");
    mk_logwriter_flush(&w);
    check("log.1", "before\n");
    check("log", "behind\n");
}

static void logwriter_writes_to_standard_streams(void **state)
{
    (void)state;
    int ends[2], before = dup(STDOUT_FILENO);
    char buffer[16];
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    dup2(ends[1], STDOUT_FILENO);
    open_log("stdout");
    dup2(before, STDOUT_FILENO);
    assert_int_equal(f.kind, MK_LOGFILE_STREAM);
    assert_true(f.fd > 2);
    add("line\n");
    mk_logwriter_flush(&w);
    assert_int_equal(read(ends[0], buffer, sizeof buffer), 5);
    assert_memory_equal(buffer, "line\n", 5);
    close(before);
    close(ends[0]);
    close(ends[1]);
}

static void logwriter_terminal_gets_every_line_immediately(void **state)
{
    (void)state;
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    char buffer[64];
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    open_log(ptsname(master));
    assert_true(f.at_once);
    assert_false(add("line\n")); /* nothing is buffered */
    size_t has = 0;
    while (has < 5) { /* the terminal may pass the line on in parts */
        ssize_t n = read(master, buffer + has, sizeof buffer - has);
        assert_true(n > 0);
        has += (size_t)n;
    }
    assert_memory_equal(buffer, "line", 4);
    close(master);
}

static void logwriter_write_now_flushes_buffered_lines_first(void **state)
{
    (void)state;
    open_log(path);
    add("waits\n");
    assert_true(mk_logwriter_write_now(&w, MK_LOG_ERROR, MK_STR("said\n")));
    check("log", "waits\nsaid\n");
    assert_int_equal(w.lines.len, 0);
}

/* Client text must not be taken for a priority. */
static void logwriter_journal_lines_have_a_priority(void **state)
{
    (void)state;
    open_log(path);
    f.has_priorities = true;
    add("<0>client\n");
    assert_true(mk_logwriter_write_now(&w, MK_LOG_WARN, MK_STR("said\n")));
    check("log", "<6><0>client\n<4>said\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(logwriter_lines_are_buffered_and_appended, setup, teardown),
        fixture_test(logwriter_full_block_is_written, setup, teardown),
        fixture_test(logwriter_lost_lines_are_counted, setup, teardown),
        fixture_test(logwriter_line_is_complete_or_lost, setup, teardown),
        fixture_test(logwriter_rest_of_a_partial_line_follows, setup, teardown),
        fixture_test(logwriter_full_shared_stream_does_not_block, setup, teardown),
        fixture_test(logwriter_pipe_without_a_reader_does_not_block, setup, teardown),
        fixture_test(logwriter_writes_to_a_new_file_after_rotation, setup, teardown),
        fixture_test(logwriter_writes_to_standard_streams, setup, teardown),
        fixture_test(logwriter_terminal_gets_every_line_immediately, setup, teardown),
        fixture_test(logwriter_write_now_flushes_buffered_lines_first, setup, teardown),
        fixture_test(logwriter_journal_lines_have_a_priority, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
