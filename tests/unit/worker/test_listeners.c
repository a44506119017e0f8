/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/listeners.h"

#include <stdlib.h>

#include "os/sock.h"
#include "unit/folder.h"
#include "unit/test.h"

enum { WANTED_MAX = 4 };

static struct mk_listeners l;
static struct mk_listen wanted_at[WANTED_MAX];
static struct mk_listens wanted = {.at = wanted_at};
static struct folder folder;
static unsigned n_logged;

static void on_log(struct mk_log *log, enum mk_log_level level, mk_str text)
{
    (void)log;
    (void)level;
    (void)text;
    n_logged++;
}

static struct mk_log log_of_test = {.level = MK_LOG_DEBUG, .write = on_log};

static void setup(void)
{
    memset(&l, 0, sizeof l);
    wanted.n = 0;
    n_logged = 0;
    folder_setup(&folder);
    unsetenv("MONKEY_SOCKETS");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_PID");
}

static void teardown(void)
{
    mk_listeners_close_all(&l, true);
}

static struct mk_sockaddr addr(const char *text)
{
    struct mk_sockaddr a;
    assert_int_equal(mk_sockaddr_parse(mk_str_from_c(text), MK_STR("127.0.0.1"), &a), 0);
    return a;
}

static struct mk_sockaddr unix_addr(const char *name)
{
    char text[128];
    snprintf(text, sizeof text, "unix:%s/%s", folder.path, name);
    return addr(text);
}

static void want(struct mk_sockaddr a)
{
    wanted_at[wanted.n++] = (struct mk_listen){.addr = a, .written = MK_STR("?")};
}

static mk_err open_listeners(unsigned workers)
{
    const struct mk_listen *failed = NULL;
    mk_err e = mk_listeners_open(&l, &wanted, workers, &failed);
    assert_int_equal(failed != NULL, e != 0);
    return e;
}

/* Opens a socket and returns the address chosen by the kernel. */
static struct mk_sockaddr open_any_port(unsigned workers)
{
    want(addr("0"));
    assert_int_equal(open_listeners(workers), 0);
    mk_listeners_close_unwanted(&l, true);
    return l.at[l.n - 1].addr;
}

static bool is_there(const char *name)
{
    return faccessat(folder.fd, name, F_OK, 0) == 0;
}

/* ---- Assignment of sockets to workers ---- */

static void listeners_each_socket_has_a_worker_and_vice_versa(void **state)
{
    (void)state;
    int fds[1];
    for (unsigned sockets = 1; sockets <= 20; sockets++)
        for (unsigned workers = 1; workers <= 20; workers++) {
            const struct mk_listener one = {.fds = fds, .n_fds = sockets};
            unsigned of_socket[20] = {0};
            for (unsigned w = 0; w < workers; w++) {
                unsigned n = 0;
                for (unsigned s = 0; s < sockets; s++) {
                    bool serves = mk_listener_is_for_worker(&one, s, w, workers);
                    n += serves;
                    of_socket[s] += serves;
                }
                assert_true(n > 0);
                if (sockets == workers)
                    assert_int_equal(n, 1);
            }
            for (unsigned s = 0; s < sockets; s++)
                assert_true(of_socket[s] > 0);
        }
}

/* ---- Opening and closing ---- */

static void listeners_address_has_socket_per_worker(void **state)
{
    (void)state;
    struct mk_sockaddr a = open_any_port(3);
    assert_int_equal(l.n, 1);
    assert_int_equal(l.at[0].n_fds, 3);
    assert_false(l.at[0].shared);
    assert_true(mk_sockaddr_port(&a) > 0);
    for (unsigned i = 0; i < 3; i++) {
        struct mk_sockaddr got;
        assert_int_equal(mk_sockaddr_getsockname(l.at[0].fds[i], &got), 0);
        assert_true(mk_sockaddr_eq(&got, &a));
        assert_true(fcntl(l.at[0].fds[i], F_GETFD) & FD_CLOEXEC);
    }
    assert_int_equal(open_listeners(5), 0); /* more workers get more sockets; none is reopened */
    assert_int_equal(l.n, 1);
    assert_int_equal(l.at[0].n_fds, 5);
    assert_int_equal(open_listeners(2), 0);
    /* fewer workers close no sockets, because their queues may hold connections */
    assert_int_equal(l.at[0].n_fds, 5);
}

static void listeners_unix_socket_is_shared(void **state)
{
    (void)state;
    want(unix_addr("s"));
    assert_int_equal(open_listeners(4), 0);
    assert_int_equal(l.at[0].n_fds, 1);
    assert_true(l.at[0].shared);
    assert_true(is_there("s"));
    mk_listeners_close_all(&l, false);
    assert_true(is_there("s"));
    assert_int_equal(open_listeners(4), 0);
    mk_listeners_close_all(&l, true);
    assert_false(is_there("s"));
}

static void listeners_unwanted_are_closed(void **state)
{
    (void)state;
    want(unix_addr("a"));
    want(unix_addr("b"));
    assert_int_equal(open_listeners(1), 0);
    wanted.n = 0;
    want(unix_addr("b"));
    want(unix_addr("c"));
    assert_int_equal(open_listeners(1), 0);
    assert_int_equal(l.n, 3); /* the old sockets stay until the reload is certain */
    mk_listeners_close_unwanted(&l, true);
    assert_int_equal(l.n, 2);
    assert_true(!is_there("a") && is_there("b") && is_there("c"));
}

static void listeners_failed_open_changes_nothing(void **state)
{
    (void)state;
    struct mk_sock_options o = {.backlog = 1};
    struct mk_sockaddr any = addr("0"), taken;
    int other = -1;
    assert_int_equal(mk_sock_listen(&any, &o, &other), 0);
    assert_int_equal(mk_sockaddr_getsockname(other, &taken), 0);
    want(unix_addr("a"));
    want(unix_addr("b"));
    assert_int_equal(open_listeners(2), 0);
    mk_listeners_close_unwanted(&l, true);
    wanted.n = 0;
    want(unix_addr("b"));
    want(unix_addr("c"));
    want(taken);
    assert_int_equal(open_listeners(3), -EADDRINUSE);
    assert_int_equal(l.n, 2);
    assert_true(l.at[0].wanted && l.at[1].wanted); /* both are kept, because replacement workers need them */
    assert_true(is_there("a") && is_there("b"));
    close(other);
}

static void listeners_failed_open_closes_new_sockets(void **state)
{
    (void)state;
    struct mk_sockaddr a = open_any_port(2);
    wanted.n = 0;
    want(a);
    want(unix_addr("no/such/folder"));
    assert_int_equal(open_listeners(5), -ENOENT);
    assert_int_equal(l.n, 1);
    assert_int_equal(l.at[0].n_fds, 2);
}

static void listeners_port_of_other_program_is_not_shared(void **state)
{
    (void)state;
    struct mk_sock_options o = {.backlog = 1, .reuse_port = true};
    struct mk_sockaddr any = addr("0"), taken;
    int other = -1;
    assert_int_equal(mk_sock_listen(&any, &o, &other), 0);
    assert_int_equal(mk_sockaddr_getsockname(other, &taken), 0);
    want(taken);
    assert_int_equal(open_listeners(1), -EADDRINUSE);
    close(other);
    assert_int_equal(open_listeners(1), 0);
}

static void listeners_close_new_removes_unused_sockets(void **state)
{
    (void)state;
    open_any_port(2);
    assert_int_equal(open_listeners(5), 0);
    assert_int_equal(l.at[0].n_fds, 5);
    mk_listeners_close_new(&l);
    assert_int_equal(l.at[0].n_fds, 2);
}

static bool listens(int fd)
{
    int on = 0;
    socklen_t len = sizeof on;
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &len), 0);
    return on;
}

static void listeners_new_socket_listens_when_worker_starts(void **state)
{
    (void)state;
    open_any_port(2);
    assert_int_equal(open_listeners(3), 0);
    int new = l.at[0].fds[2];
    assert_true(listens(l.at[0].fds[0]) && listens(l.at[0].fds[1]) && !listens(new));
    assert_int_equal(mk_sock_start_listening(new, 1), 0);
    assert_int_equal(mk_sock_start_listening(new, 1), 0);
    assert_true(listens(new));
}

/* ---- Handover ---- */

static void listeners_successor_inherits_sockets(void **state)
{
    (void)state;
    char text[256];
    struct mk_buf out = mk_buf_fixed(text, sizeof text - 1);
    struct mk_listeners heir = {.n = 0};
    open_any_port(3);
    want(unix_addr("s"));
    assert_int_equal(open_listeners(3), 0);
    mk_listeners_export(&l, &out, true);
    text[out.len] = '\0';
    for (unsigned i = 0; i < l.n; i++)
        for (unsigned j = 0; j < l.at[i].n_fds; j++)
            assert_int_equal(fcntl(l.at[i].fds[j], F_GETFD), 0); /* the sockets survive exec */
    assert_true(mk_str_starts(mk_buf_str(&out), MK_STR("MONKEY_SOCKETS=")));
    assert_int_equal(setenv("MONKEY_SOCKETS", strchr(text, '=') + 1, 1), 0);
    mk_listeners_inherit(&heir, &log_of_test);
    assert_null(getenv("MONKEY_SOCKETS"));
    assert_int_equal(n_logged, 0);
    assert_int_equal(heir.n, 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(mk_sockaddr_eq(&heir.at[i].addr, &l.at[i].addr));
        assert_int_equal(heir.at[i].n_fds, l.at[i].n_fds);
        assert_int_equal(heir.at[i].shared, l.at[i].shared);
        assert_true(fcntl(heir.at[i].fds[0], F_GETFD) & FD_CLOEXEC);
    }
    const struct mk_listen *failed;
    /* port 0 stands for the same port as before */
    assert_int_equal(mk_listeners_open(&heir, &wanted, 3, &failed), 0);
    assert_int_equal(heir.n, 2);
    mk_listeners_export(&l, &out, false);
    assert_true(fcntl(l.at[0].fds[0], F_GETFD) & FD_CLOEXEC);
    for (unsigned i = 0; i < heir.n; i++)
        for (unsigned j = 0; j < heir.at[i].n_fds; j++)
            heir.at[i].fds[j] = -1; /* in this test, both are the same process */
    mk_listeners_close_all(&heir, true);
    assert_true(is_there("s")); /* the successor does not own the socket yet */
}

static void listeners_inherit_skips_other_descriptors(void **state)
{
    (void)state;
    char list[64];
    int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    snprintf(list, sizeof list, "%d,999,x,-1,0,1,2,", file);
    assert_int_equal(setenv("MONKEY_SOCKETS", list, 1), 0);
    mk_listeners_inherit(&l, &log_of_test);
    assert_int_equal(l.n, 0);
    assert_int_equal(n_logged, 2); /* the two candidates are the file and 999 */
    close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listeners_each_socket_has_a_worker_and_vice_versa),
        fixture_test(listeners_address_has_socket_per_worker, setup, teardown),
        fixture_test(listeners_unix_socket_is_shared, setup, teardown),
        fixture_test(listeners_unwanted_are_closed, setup, teardown),
        fixture_test(listeners_failed_open_changes_nothing, setup, teardown),
        fixture_test(listeners_failed_open_closes_new_sockets, setup, teardown),
        fixture_test(listeners_port_of_other_program_is_not_shared, setup, teardown),
        fixture_test(listeners_close_new_removes_unused_sockets, setup, teardown),
        fixture_test(listeners_new_socket_listens_when_worker_starts, setup, teardown),
        fixture_test(listeners_successor_inherits_sockets, setup, teardown),
        fixture_test(listeners_inherit_skips_other_descriptors, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
