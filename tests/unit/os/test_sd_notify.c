/* SPDX-License-Identifier: Apache-2.0 */
#include "os/sd_notify.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "unit/folder.h"
#include "unit/test.h"

static void forget(void)
{
    unsetenv("NOTIFY_SOCKET");
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

/* Opens the socket of a service manager at this address; `name` may begin with '@'. */
static int listen_at(const char *name)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    size_t len = strlen(name);
    memcpy(at.sun_path, name, len);
    if (name[0] == '@')
        at.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    assert_int_equal(
        bind(fd, (struct sockaddr *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)), 0);
    return fd;
}

static void check_told(const char *name)
{
    char buffer[64];
    int fd = listen_at(name);
    setenv("NOTIFY_SOCKET", name, 1);
    assert_int_equal(mk_sd_notify("READY=1\nMAINPID=7"), 0);
    ssize_t n = recv(fd, buffer, sizeof buffer, 0);
    assert_true(n > 0);
    assert_str(mk_str_of(buffer, (size_t)n), "READY=1\nMAINPID=7");
    assert_true(recv(fd, buffer, sizeof buffer, 0) < 0);
    close(fd);
}

static void sd_notify_without_manager_does_nothing(void **state)
{
    (void)state;
    assert_int_equal(mk_sd_notify("READY=1"), 0);
    setenv("NOTIFY_SOCKET", "", 1);
    assert_int_equal(mk_sd_notify("READY=1"), 0);
}

static void sd_notify_reaches_manager(void **state)
{
    (void)state;
    struct folder f;
    char buffer[PATH_MAX];
    folder_init(&f);
    check_told(folder_path(&f, "notify", buffer));
    snprintf(buffer, sizeof buffer, "@monkey-test-%d", (int)getpid());
    check_told(buffer);
    folder_fini(&f);
}

static void sd_notify_unreachable_manager_is_an_error(void **state)
{
    (void)state;
    char longest[sizeof((struct sockaddr_un *)0)->sun_path + 1];
    setenv("NOTIFY_SOCKET", "/nowhere/at/all", 1);
    assert_int_equal(mk_sd_notify("READY=1"), -ENOENT);
    setenv("NOTIFY_SOCKET", "relative", 1);
    assert_int_equal(mk_sd_notify("READY=1"), -EINVAL);
    memset(longest, '/', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    setenv("NOTIFY_SOCKET", longest, 1);
    assert_int_equal(mk_sd_notify("READY=1"), -EINVAL);
}

static uint32_t watchdog(const char *us, const char *pid)
{
    setenv("NOTIFY_SOCKET", "@manager", 1);
    setenv("WATCHDOG_USEC", us, 1);
    setenv("WATCHDOG_PID", pid, 1);
    return mk_sd_watchdog_ms();
}

static void sd_watchdog_time_is_that_of_this_process(void **state)
{
    (void)state;
    char mine[16], other[16];
    snprintf(mine, sizeof mine, "%d", (int)getpid());
    snprintf(other, sizeof other, "%d", (int)getppid());
    assert_int_equal(mk_sd_watchdog_ms(), 0);
    assert_int_equal(watchdog("30000000", mine), 30000);
    assert_null(getenv("WATCHDOG_PID")); /* a successor has another process ID */
    assert_int_equal(mk_sd_watchdog_ms(), 30000);
    assert_int_equal(watchdog("30000000", ""), 30000);
    assert_int_equal(watchdog("18446744073709551615", mine), 24 * 3600 * 1000);
    static const char *const broken[] = {"", "0", "-1", "x", "18446744073709551616"};
    for (size_t i = 0; i < MK_LEN(broken); i++)
        assert_int_equal(watchdog(broken[i], mine), 0);
    assert_int_equal(watchdog("30000000", other), 0);
    assert_int_equal(watchdog("30000000", "x"), 0);
    assert_int_equal(watchdog("30000000", mine), 30000);
    unsetenv("NOTIFY_SOCKET");
    assert_int_equal(mk_sd_watchdog_ms(), 0);
}

static unsigned sockets(const char *pid, const char *n)
{
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", n, 1);
    return mk_sd_listen_fds();
}

static void sd_listen_fds_counts_own_sockets(void **state)
{
    (void)state;
    char mine[16], other[16];
    snprintf(mine, sizeof mine, "%d", (int)getpid());
    snprintf(other, sizeof other, "%d", (int)getppid());
    assert_int_equal(mk_sd_listen_fds(), 0);
    assert_int_equal(sockets(mine, "3"), 3);
    assert_int_equal(sockets(mine, "0"), 0);
    assert_int_equal(sockets(mine, "1024"), 1024);
    assert_int_equal(sockets(mine, "1025"), 0);
    assert_int_equal(sockets(mine, "-1"), 0);
    assert_int_equal(sockets(mine, ""), 0);
    assert_int_equal(sockets(other, "3"), 0);
    assert_int_equal(sockets("", "3"), 0);
    unsetenv("LISTEN_PID");
    assert_int_equal(mk_sd_listen_fds(), 0);
}

static void name_stream(int fd, unsigned long more)
{
    struct stat st;
    char text[64];
    assert_int_equal(fstat(fd, &st), 0);
    snprintf(text, sizeof text, "%lu:%lu", (unsigned long)st.st_dev, (unsigned long)st.st_ino + more);
    setenv("JOURNAL_STREAM", text, 1);
}

static void sd_journal_stream_is_recognized(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_false(mk_sd_is_journal_stream(ends[1]));
    name_stream(ends[1], 0);
    assert_true(mk_sd_is_journal_stream(ends[1]));
    assert_false(mk_sd_is_journal_stream(-1));
    name_stream(ends[1], 1);
    assert_false(mk_sd_is_journal_stream(ends[1]));
    static const char *const broken[] = {"", ":", "1", "1:", ":1", "x:y"};
    for (size_t i = 0; i < MK_LEN(broken); i++) {
        setenv("JOURNAL_STREAM", broken[i], 1);
        assert_false(mk_sd_is_journal_stream(ends[1]));
    }
    unsetenv("JOURNAL_STREAM");
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(sd_notify_without_manager_does_nothing, forget, forget),
        fixture_test(sd_notify_reaches_manager, forget, forget),
        fixture_test(sd_notify_unreachable_manager_is_an_error, forget, forget),
        fixture_test(sd_watchdog_time_is_that_of_this_process, forget, forget),
        fixture_test(sd_listen_fds_counts_own_sockets, forget, forget),
        fixture_test(sd_journal_stream_is_recognized, forget, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
