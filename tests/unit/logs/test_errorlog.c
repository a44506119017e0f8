/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/errorlog.h"

#include "base/num.h"
#include "unit/folder.h"
#include "unit/test.h"

static struct folder folder;
static struct mk_logfile file;
static struct mk_errorlog e;
static char path[PATH_MAX];

static void setup(void)
{
    folder_setup(&folder);
    assert_int_equal(mk_logfile_open(&file, mk_str_from_c(folder_path(&folder, "log", path)), NULL), 0);
}

static void begin(const struct mk_logfile *f)
{
    assert_int_equal(mk_errorlog_init(&e, MK_LOG_INFO, f), 0);
}

static void teardown(void)
{
    mk_errorlog_fini(&e);
    mk_logfile_close(&file);
}

static mk_str read_log(char buffer[8192])
{
    struct mk_buf text = mk_buf_fixed(buffer, 8192);
    assert_int_equal(mk_file_read_all(path, &text), 0);
    return mk_buf_str(&text);
}

/* "2026-11-21T08:34:56+0000 [warn] 123: text" */
static void check_line(mk_str line, const char *level, const char *text)
{
    mk_str time = mk_str_cut(&line, ' '), word = mk_str_cut(&line, ' '), number = mk_str_cut(&line, ' ');
    char expected[32];
    uint64_t pid;
    assert_int_equal(time.len, 24);
    assert_int_equal(time.p[10], 'T');
    snprintf(expected, sizeof expected, "[%s]", level);
    assert_str(word, expected);
    assert_true(number.len > 1 && number.p[number.len - 1] == ':');
    assert_true(mk_num_parse(mk_str_first(number, number.len - 1), &pid) && pid == (uint64_t)getpid());
    assert_str(line, text);
}

static void errorlog_writes_messages_immediately(void **state)
{
    (void)state;
    char buffer[8192];
    begin(&file);
    mk_log_error(&e.log, "number %d", 7);
    mk_log_warn(&e.log, "a warning");
    mk_log_info(&e.log, "told");
    mk_log_debug(&e.log, "not told");
    mk_str rest = read_log(buffer);
    check_line(mk_str_cut(&rest, '\n'), "error", "number 7");
    check_line(mk_str_cut(&rest, '\n'), "warn", "a warning");
    check_line(mk_str_cut(&rest, '\n'), "info", "told");
    assert_int_equal(rest.len, 0);
}

static void errorlog_client_text_stays_in_its_line(void **state)
{
    (void)state;
    char buffer[8192];
    begin(&file);
    mk_log_error(&e.log, "%s", "a\nb\x1b[2J\r");
    mk_str rest = read_log(buffer);
    mk_str line = mk_str_cut(&rest, '\n');
    assert_int_equal(rest.len, 0);
    for (size_t i = 0; i < line.len; i++)
        assert_true((unsigned char)line.p[i] >= 0x20);
}

static void errorlog_long_message_is_one_line(void **state)
{
    (void)state;
    char buffer[8192];
    begin(&file);
    for (int len = 900; len < 1400; len++)
        mk_log_error(&e.log, "%0*d", len, 0);
    mk_logfile_close(&file);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    int lines = 0;
    while (fgets(buffer, sizeof buffer, f)) {
        lines++;
        assert_int_equal(buffer[strlen(buffer) - 1], '\n');
        assert_int_equal(buffer[4], '-');
    }
    fclose(f);
    assert_int_equal(lines, 500);
}

/* Returns what the function writes to stderr. */
static mk_str on_stderr(void (*say)(void), char buffer[8192])
{
    int ends[2], before = dup(STDERR_FILENO);
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    say();
    dup2(before, STDERR_FILENO);
    close(before);
    close(ends[1]);
    ssize_t n = read(ends[0], buffer, 8191);
    close(ends[0]);
    assert_true(n > 0);
    return mk_str_of(buffer, (size_t)n);
}

static void log_line(void)
{
    mk_log_error(&e.log, "heard");
}

static void errorlog_without_a_file_writes_to_stderr(void **state)
{
    (void)state;
    char buffer[8192];
    begin(NULL);
    mk_str output = on_stderr(log_line, buffer);
    check_line(mk_str_first(output, output.len - 1), "error", "heard");
    mk_logfile_close(&file);
    mk_errorlog_switch(&e, MK_LOG_INFO, &file);
    output = on_stderr(log_line, buffer);
    check_line(mk_str_first(output, output.len - 1), "error", "heard");
}

/* The writer keeps lines in order, and counts lost lines. */
static void errorlog_uses_the_writer_of_the_worker(void **state)
{
    (void)state;
    char buffer[8192];
    struct mk_logfile full;
    struct mk_logwriter workers;
    struct mk_log other = {0};
    begin(&file);
    mk_logwriter_init(&workers, &file);
    e.own.lost = 2;
    e.own.lost_by = -ENOSPC;
    assert_int_equal(mk_errorlog_set_writer(&e.log, &workers), 0);
    mk_buf_add(mk_logwriter_reserve(&workers, MK_LOG_INFO, 10), MK_STR("waits\n"));
    mk_log_error(&e.log, "said");
    mk_str rest = read_log(buffer);
    assert_str(mk_str_cut(&rest, '\n'), "waits");
    check_line(mk_str_cut(&rest, '\n'), "error", "2 lines of this log were lost: No space left on device");
    check_line(mk_str_cut(&rest, '\n'), "error", "said");
    assert_int_equal(e.own.lines.len, 0);
    assert_int_equal(mk_logfile_open(&full, MK_STR("/dev/full"), NULL), 0);
    mk_logwriter_switch_file(&workers, &full);
    mk_log_error(&e.log, "lost");
    assert_int_equal(mk_errorlog_set_writer(&e.log, NULL), 0);
    assert_int_equal(workers.lost, 0);
    assert_int_equal(e.own.lost, 1);
    assert_int_equal(mk_errorlog_set_writer(&other, &workers), 0); /* this is not an error log */
    mk_logwriter_fini(&workers);
    mk_logfile_close(&full);
    mk_errorlog_report_lost(&e.log);
    rest = read_log(buffer);
    assert_contains(rest, "1 lines of this log were lost: No space left on device");
}

/* The journal adds the time and the process ID itself, and reads the level from the priority prefix
 * ("<3>"). */
static void errorlog_journal_gets_priorities_instead_of_prefixes(void **state)
{
    (void)state;
    char buffer[8192];
    file.has_priorities = true;
    begin(&file);
    e.log.level = MK_LOG_DEBUG;
    mk_log_error(&e.log, "one");
    mk_log_warn(&e.log, "two");
    mk_log_info(&e.log, "<0>three");
    mk_log_debug(&e.log, "four");
    assert_str(read_log(buffer), "<3>one\n<4>two\n<6><0>three\n<7>four\n");
}

/* These lines were pending when the count was reported, and could not be written either. */
static void errorlog_lines_lost_during_the_report_stay_counted(void **state)
{
    (void)state;
    struct mk_logfile full;
    begin(&file);
    assert_int_equal(mk_logfile_open(&full, MK_STR("/dev/full"), NULL), 0);
    mk_errorlog_switch(&e, MK_LOG_INFO, &full);
    e.own.lost = 5;
    for (int i = 0; i < 3; i++)
        mk_buf_add(mk_logwriter_reserve(&e.own, MK_LOG_INFO, 10), MK_STR("waits\n"));
    mk_errorlog_report_lost(&e.log);
    assert_int_equal(e.own.lost, 8);
    assert_int_equal(e.own.lost_by, -ENOSPC);
    mk_errorlog_switch(&e, MK_LOG_INFO, &file);
    mk_logfile_close(&full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(errorlog_writes_messages_immediately, setup, teardown),
        fixture_test(errorlog_client_text_stays_in_its_line, setup, teardown),
        fixture_test(errorlog_long_message_is_one_line, setup, teardown),
        fixture_test(errorlog_uses_the_writer_of_the_worker, setup, teardown),
        fixture_test(errorlog_journal_gets_priorities_instead_of_prefixes, setup, teardown),
        fixture_test(errorlog_lines_lost_during_the_report_stay_counted, setup, teardown),
        fixture_test(errorlog_without_a_file_writes_to_stderr, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
