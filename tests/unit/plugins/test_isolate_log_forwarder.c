/* SPDX-License-Identifier: Apache-2.0 */
/* Forwards a service's standard error to the error log. */
#include "unit/test.h"

#include <fcntl.h>
#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include "log_forwarder.h"

#define STAMP "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}[+-][0-9]{4} "

static char path[] = "/tmp/monkey-lines-XXXXXX";

/* ---- Fake syslog, which records its input ---- */

static char to_syslog[256];

static void add_to_syslog(int priority, const char *fmt, va_list args)
{
    size_t len = strlen(to_syslog);
    len += (size_t)snprintf(to_syslog + len, sizeof to_syslog - len, "%d ", priority);
    len += (size_t)vsnprintf(to_syslog + len, sizeof to_syslog - len, fmt, args);
    (void)snprintf(to_syslog + len, sizeof to_syslog - len, "|");
}

void syslog(int priority, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    add_to_syslog(priority, fmt, args);
    va_end(args);
}

void openlog(const char *name, int options, int facility)
{
    (void)snprintf(to_syslog, sizeof to_syslog, "%s %d %d|", name, options, facility);
}

/* ---- Lines ---- */

static struct isolate_log_forwarder lines;

static const char *log_text(void)
{
    static char text[1 << 16];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static void begin(void)
{
    mk_buf_free(&lines.rest);
    assert_int_equal(truncate(path, 0), 0);
    isolate_log_forwarder_init(&lines, "shop", path, false, false);
    lines.group = getpgrp();
}

static void append(const char *text)
{
    isolate_log_forwarder_append(&lines, mk_str_from_c(text));
}

static void expect_log(const char *pattern)
{
    regex_t r;
    assert_int_equal(regcomp(&r, pattern, REG_EXTENDED | REG_NOSUB), 0);
    if (regexec(&r, log_text(), 0, NULL, 0))
        fail_msg("`%s` is not the log:\n%s", pattern, log_text());
    regfree(&r);
}

/* Forwards a line in log format with this process ID, and expects a log entry that matches `pattern`. */
static void expect_line(const char *time, const char *level, int pid, const char *message,
                        const char *pattern)
{
    char line[512];
    begin();
    (void)snprintf(line, sizeof line, "%s %s %d: %s\n", time, level, pid, message);
    append(line);
    expect_log(pattern);
}

static void log_forwarder_plain_line_gets_time_and_name(void **state)
{
    char pattern[200];
    (void)state;
    begin();
    append("hello\n");
    (void)snprintf(pattern, sizeof pattern, "^" STAMP "\\[info\\] %d: shop: hello\n$", (int)getpid());
    expect_log(pattern);
}

static void log_forwarder_log_line_keeps_level_and_pid(void **state)
{
    char pattern[200];
    static const char *const levels[] = {"error", "warn", "info", "debug"};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        char level[16];
        (void)snprintf(level, sizeof level, "[%s]", levels[i]);
        (void)snprintf(pattern, sizeof pattern, "^" STAMP "\\[%s\\] %d: shop: it: is so\n$", levels[i],
                       (int)getpid());
        expect_line("2026-01-02T03:04:05+0000", level, (int)getpid(), "it: is so", pattern);
    }
}

static void log_forwarder_log_line_gets_time_of_supervisor(void **state)
{
    (void)state;
    expect_line("1999-01-02T03:04:05+0000", "[error]", (int)getpid(), "old", "^20[2-9][0-9]-");
}

static void log_forwarder_forged_line_is_plain_text(void **state)
{
    char pattern[200];
    (void)state;
    (void)snprintf(pattern, sizeof pattern,
                   "^" STAMP "\\[info\\] %d: shop: 2026-01-02T03:04:05\\+0000 \\[error\\] 1: FORGED\n$",
                   (int)getpid());
    /* the line claims another process ID */
    expect_line("2026-01-02T03:04:05+0000", "[error]", 1, "FORGED", pattern);
    begin();
    lines.group = 0;
    (void)snprintf(pattern, sizeof pattern, "2026-01-02T03:04:05+0000 [error] %d: x\n", (int)getpid());
    append(pattern);
    expect_log("shop: 2026-01-02T03:04:05\\+0000 \\[error\\]");
    static const char *const odd[] = {"2026-01-02T03:04:05+0000 [fatal] 0: x\n",
                                      "2026-01-02T03:04:05+0000 [error] 0: x\n",
                                      "2026-01-02 [error] 0: x\n",
                                      "xx26-01-02T03:04:05+0000 [error] 0: x\n",
                                      "2026-01-02T03:04:05+0000 [error] x\n",
                                      "2026-01-02T03:04:05+0000 [error]0: x\n",
                                      "2026-01-02T03:04:05+0000\n",
                                      "[error] 1: x\n",
                                      "2026-01-02T03:04:05+0000 [error] 99999999999999999999: x\n"};
    for (size_t i = 0; i < MK_LEN(odd); i++) {
        begin();
        append(odd[i]);
        expect_log("^" STAMP "\\[info\\] [0-9]+: shop: [2x\\[]");
    }
}

/* The forwarder reads the last output of a worker after the worker's death. */
static void log_forwarder_line_of_dead_process_keeps_pid(void **state)
{
    char pattern[100];
    pid_t pid = fork();
    (void)state;
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    (void)snprintf(pattern, sizeof pattern, "^" STAMP "\\[error\\] %d: shop: bye\n$", (int)pid);
    expect_line("2026-01-02T03:04:05+0000", "[error]", (int)pid, "bye", pattern);
}

static void log_forwarder_escapes_control_characters(void **state)
{
    (void)state;
    begin();
    append("a\033[2Jb\ac\rd\177e\tf\n");
    expect_log("shop: a\\\\x1B\\[2Jb\\\\x07c\\\\x0Dd\\\\x7Fe\tf\n$");
    begin();
    isolate_log_forwarder_append(&lines, MK_STR("nul\0end\n"));
    expect_log("shop: nul\\\\x00end\n$");
}

static void log_forwarder_escapes_c1_and_invalid_utf8(void **state)
{
    static const struct {
        const char *text, *shown;
    } cases[] = {{"\xc2\x9b", "\\xC2\\x9B"},
                 {"\xc2\x80", "\\xC2\\x80"},
                 {"\xc2\xa0", "\xc2\xa0"},
                 {"\x9b", "\\x9B"},
                 {"\xc3\xa9", "\xc3\xa9"},
                 {"\xe2\x82\xac", "\xe2\x82\xac"},
                 {"\xf0\x9f\x90\x92", "\xf0\x9f\x90\x92"},
                 {"\xc3\x9b", "\xc3\x9b"},
                 {"\xc0\x9b", "\\xC0\\x9B"},
                 {"\xe0\x82\x9b", "\\xE0\\x82\\x9B"},
                 {"\xf0\x80\x82\x9b", "\\xF0\\x80\\x82\\x9B"},
                 {"\xc3", "\\xC3"},
                 {"\xe2\x82", "\\xE2\\x82"},
                 {"\xf5\x9b\x9b\x9b", "\\xF5\\x9B\\x9B\\x9B"},
                 {"\xff\x9b", "\\xFF\\x9B"},
                 {"\xff"
                  "abc",
                  "\\xFFabc"}, /* only this byte is escaped, not the bytes after it */
                 {"\x9b\xc3\xa9", "\\x9B\xc3\xa9"},
                 {"\xc2\xc2\x9b", "\\xC2\\xC2\\x9B"}};
    (void)state;
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        char line[40], end[80];
        begin();
        (void)snprintf(line, sizeof line, "%s\n", cases[i].text);
        (void)snprintf(end, sizeof end, "shop: %s\n", cases[i].shown);
        append(line);
        assert_non_null(strstr(log_text(), end));
    }
}

/* The message part of a line in log format is escaped as well. */
static void log_forwarder_escapes_log_line(void **state)
{
    (void)state;
    expect_line("2026-01-02T03:04:05+0000", "[warn]", (int)getpid(), "a\033b",
                "\\[warn\\] [0-9]+: shop: a\\\\x1Bb\n$");
}

static void log_forwarder_joins_pieces_of_line(void **state)
{
    (void)state;
    begin();
    append("one ");
    assert_string_equal(log_text(), "");
    append("two\nthr");
    append("ee\n\n");
    expect_log("^[^\n]*shop: one two\n[^\n]*shop: three\n[^\n]*shop: \n$");
}

static void log_forwarder_splits_long_line(void **state)
{
    static char text[20 * 1024 + 1];
    (void)state;
    begin();
    memset(text, 'a', sizeof text - 1);
    append(text);
    append("b\nnext\n");
    const char *log = log_text(), *a = strchr(log, '\n'), *b = a ? strchr(a + 1, '\n') : NULL;
    assert_non_null(b);
    assert_true(a - log > 16 * 1024 && a - log < 16 * 1024 + 100);
    assert_true(b - a > 4 * 1024 && b - a < 4 * 1024 + 100 && b[-1] == 'b');
    assert_non_null(strstr(b, ": shop: next\n"));
    assert_int_equal(strspn(strchr(strstr(log, ": shop: "), 'a'), "a"), 16 * 1024);
}

static void log_forwarder_keeps_line_of_maximum_length(void **state)
{
    static char text[16 * 1024 + 1];
    (void)state;
    begin();
    memset(text, 'a', sizeof text - 1);
    append(text);
    assert_string_equal(log_text(), "");
    append("\n");
    expect_log("^[^\n]*shop: a+\n$");
}

/* Crash reports contain such lines. */
static void log_forwarder_keeps_lines_after_long_one(void **state)
{
    static char text[16 * 1024];
    (void)state;
    begin();
    memset(text, 'a', sizeof text - 1);
    append(text);
    append("aaa\nthe handler crashed\nhere\n");
    expect_log("\n[^\n]*shop: the handler crashed\n[^\n]*shop: here\n$");
}

static void log_forwarder_flush_completes_last_line(void **state)
{
    (void)state;
    begin();
    append("one\nabort");
    isolate_log_forwarder_flush(&lines);
    append("2026-01-02T03:04:05+0000 [warn] 1: two\n");
    isolate_log_forwarder_flush(&lines);
    expect_log(
        "^[^\n]*shop: one\n[^\n]*shop: abort\n[^\n]*shop: 2026-01-02T03:04:05\\+0000 \\[warn\\] 1: two\n$");
}

/* The prefix makes each line longer. */
static void log_forwarder_many_empty_lines_fit_buffer(void **state)
{
    static char text[4096 + 1];
    (void)state;
    begin();
    memset(text, '\n', sizeof text - 1);
    append(text);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size > 4096 * 40);
}

static void log_forwarder_own_message_has_level(void **state)
{
    char pattern[200];
    (void)state;
    begin();
    isolate_log_forwarder_printf(&lines, "error", "code %d", 7);
    (void)snprintf(pattern, sizeof pattern, "^" STAMP "\\[error\\] %d: shop: code 7\n$", (int)getpid());
    expect_log(pattern);
}

/* journald adds the time and the process ID itself, and reads the level from the priority prefix ("<3>"). */
static void log_forwarder_journal_line_begins_with_priority(void **state)
{
    char line[200], pattern[200];
    (void)state;
    begin();
    lines.has_priorities = true;
    isolate_log_forwarder_printf(&lines, "warn", "code %d", 7);
    (void)snprintf(line, sizeof line, "2026-11-28T01:02:03+0000 [error] %d: said\n<0>plain\n", (int)getpid());
    append(line);
    (void)snprintf(pattern, sizeof pattern, "^<4>shop: code 7\n<3>shop\\[%d\\]: said\n<6>shop: <0>plain\n$",
                   (int)getpid());
    expect_log(pattern);
}

static void log_forwarder_syslog_gets_priority_of_each_line(void **state)
{
    char line[100], expected[200];
    (void)state;
    begin();
    mk_buf_free(&lines.rest);
    isolate_log_forwarder_init(&lines, "shop", "syslog", true, false);
    lines.group = getpgrp();
    isolate_log_forwarder_printf(&lines, "warn", "code %d", 7);
    (void)snprintf(line, sizeof line, "2026-11-28T01:02:03+0000 [error] %d: one\ntwo %%s\n", (int)getpid());
    append(line);
    (void)snprintf(expected, sizeof expected, "monkey %d %d|4 shop: code 7|3 shop[%d]: one|6 shop: two %%s|",
                   LOG_PID, LOG_DAEMON, (int)getpid());
    assert_string_equal(to_syslog, expected);
    assert_string_equal(log_text(), "");
}

static void log_forwarder_writes_to_stderr_if_configured(void **state)
{
    int before = dup(STDERR_FILENO), fd = open(path, O_WRONLY | O_APPEND);
    (void)state;
    begin();
    mk_buf_free(&lines.rest);
    to_syslog[0] = '\0';
    isolate_log_forwarder_init(&lines, "shop", "stderr", false, false);
    assert_true(before >= 0 && fd >= 0 && dup2(fd, STDERR_FILENO) == STDERR_FILENO);
    append("one\n");
    append("two\n"); /* the forwarder has kept the log open */
    assert_int_equal(dup2(before, STDERR_FILENO), STDERR_FILENO);
    close(before);
    close(fd);
    expect_log("^[^\n]*shop: one\n[^\n]*shop: two\n$");
    assert_string_equal(to_syslog, "");
}

/* Other users could have replaced the log file. */
static void log_forwarder_rejects_links_and_special_files(void **state)
{
    char link_path[sizeof path + 8];
    (void)state;
    begin();
    (void)snprintf(link_path, sizeof link_path, "%s.link", path);
    assert_int_equal(symlink(path, link_path), 0);
    lines.log = link_path;
    append("x\n");
    assert_string_equal(log_text(), "");
    assert_int_equal(unlink(link_path), 0);
    assert_int_equal(link(path, link_path), 0);
    lines.log = path;
    append("x\n");
    assert_string_equal(log_text(), "");
    assert_int_equal(unlink(link_path), 0);
    append("x\n");
    expect_log("shop: x\n$");
}

/* ---- JSON ---- */

static void begin_json(void)
{
    begin();
    lines.is_json = true;
}

static void log_forwarder_json_keeps_the_fields_of_a_line(void **state)
{
    char line[300], pattern[300];
    (void)state;
    begin_json();
    (void)snprintf(line, sizeof line,
                   "{\"time\":\"2000-01-01T00:00:00+0000\",\"level\":\"warn\",\"pid\":%d,\"message\":\"a "
                   "\\\"b\\\"\",\"order\":-1.5e3,\"ok\":true,\"request\":\"5f\"}\n",
                   (int)getpid());
    append(line);
    (void)snprintf(pattern, sizeof pattern,
                   "^\\{\"time\":\"2[0-9T:+-]+\",\"level\":\"warn\",\"pid\":%d,\"isolate\":\"shop\","
                   "\"message\":\"a \\\\\"b\\\\\"\",\"order\":-1.5e3,\"ok\":true,\"request\":\"5f\"\\}\n$",
                   (int)getpid());
    expect_log(pattern);
}

static void log_forwarder_json_lines_cannot_forge_members(void **state)
{
    char pattern[200];
    (void)state;
    begin_json();
    append("{\"message\":\"x\",\"isolate\":\"other\",\"pid\":1,\"level\":7,\"time\":\"then\",\"n\":1}\n");
    (void)snprintf(
        pattern, sizeof pattern,
        "^\\{\"time\":\"2[^\"]+\",\"level\":\"info\",\"pid\":%d,\"isolate\":\"shop\",\"message\":\"x\","
        "\"n\":1\\}\n$",
        (int)getpid());
    expect_log(pattern);
}

/* Anything but an object of plain members becomes the text of a message. */
static void log_forwarder_json_other_output_is_a_message(void **state)
{
    static const char *const texts[] = {
        "hello",
        "{\"message\":\"x\"",
        "{\"message\":\"x\"} {\"pid\":1}",
        "{\"message\":\"x\",\"n\":{\"pid\":1}}",
        "{\"message\":\"x\",\"p\\u0069d\":1}",
        "{\"message\":\"\\x\"}",
        "{\"message\":\"\\u12\"}",
        "{\"message\":\"\x01\"}",
        "{\"message\":\"\xff\"}",
        "{\"message\":\"x\",\"n\":01}",
        "{\"message\":\"x\",\"n\":1.}",
        "{\"message\":\"x\",\"n\":1e}",
        "{\"message\":\"x\",\"n\":tru}",
        "{\"message\":\"x\",}",
        "{\"message\"}",
        "{\"n\":1}",
        "{}",
        "{",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        begin_json();
        append(texts[i]);
        append("\n");
        expect_log("^\\{\"time\":\"[^\"]+\",\"level\":\"info\",\"pid\":[0-9]+,\"isolate\":\"shop\","
                   "\"message\":\"[^\n]*\"\\}\n$");
        assert_null(strstr(log_text(), "\"n\":"));
        assert_null(strstr(log_text(), "\"pid\":1}"));
    }
}

static void log_forwarder_json_message_of_the_supervisor(void **state)
{
    (void)state;
    begin_json();
    isolate_log_forwarder_printf(&lines, "error", "it \"%s\"", "died");
    expect_log(
        "^\\{\"time\":\"[^\"]+\",\"level\":\"error\",\"pid\":[0-9]+,\"isolate\":\"shop\",\"message\":\"it "
        "\\\\\"died\\\\\"\"\\}\n$");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(log_forwarder_plain_line_gets_time_and_name),
                                       cmocka_unit_test(log_forwarder_log_line_keeps_level_and_pid),
                                       cmocka_unit_test(log_forwarder_log_line_gets_time_of_supervisor),
                                       cmocka_unit_test(log_forwarder_forged_line_is_plain_text),
                                       cmocka_unit_test(log_forwarder_line_of_dead_process_keeps_pid),
                                       cmocka_unit_test(log_forwarder_escapes_control_characters),
                                       cmocka_unit_test(log_forwarder_escapes_c1_and_invalid_utf8),
                                       cmocka_unit_test(log_forwarder_escapes_log_line),
                                       cmocka_unit_test(log_forwarder_joins_pieces_of_line),
                                       cmocka_unit_test(log_forwarder_splits_long_line),
                                       cmocka_unit_test(log_forwarder_keeps_line_of_maximum_length),
                                       cmocka_unit_test(log_forwarder_keeps_lines_after_long_one),
                                       cmocka_unit_test(log_forwarder_flush_completes_last_line),
                                       cmocka_unit_test(log_forwarder_many_empty_lines_fit_buffer),
                                       cmocka_unit_test(log_forwarder_own_message_has_level),
                                       cmocka_unit_test(log_forwarder_journal_line_begins_with_priority),
                                       cmocka_unit_test(log_forwarder_syslog_gets_priority_of_each_line),
                                       cmocka_unit_test(log_forwarder_writes_to_stderr_if_configured),
                                       cmocka_unit_test(log_forwarder_rejects_links_and_special_files),
                                       cmocka_unit_test(log_forwarder_json_keeps_the_fields_of_a_line),
                                       cmocka_unit_test(log_forwarder_json_lines_cannot_forge_members),
                                       cmocka_unit_test(log_forwarder_json_other_output_is_a_message),
                                       cmocka_unit_test(log_forwarder_json_message_of_the_supervisor)};
    /* A process group inherited from outside the PID namespace has the ID 0. */
    (void)setpgid(0, 0);
    close(mkstemp(path));
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    mk_buf_free(&lines.rest);
    unlink(path);
    return failed;
}
