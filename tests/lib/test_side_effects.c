/* SPDX-License-Identifier: Apache-2.0 */
/* Side effects that the library must not have on its program. */
#include <dirent.h>
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "lib/embed.h"

static char folder[64];

static const char *in_folder(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* Creates a server with plugins, logs, files, a unix socket and a TCP socket. */
static struct mk_server *set_up(unsigned *port)
{
    struct mk_server *s = server_with("GET /hello", respond_hello, NULL, port);
    char where[160];
    snprintf(where, sizeof where, "unix:%s", in_folder("a.sock"));
    assert_int_equal(mk_server_listen(s, where, NULL), 0);
    assert_int_equal(mk_server_set(s, "PLUGINS", "Load", "headers"), 0);
    assert_int_equal(mk_server_set(s, "PLUGINS", "Load", "dirlisting"), 0);
    assert_int_equal(mk_server_set(s, "SERVER", "AccessLog", in_folder("log")), 0);
    assert_int_equal(mk_server_add_vhost(s, NULL, folder), 0);
    return s;
}

static void serve_a_while(void)
{
    unsigned port;
    struct mk_server *s = set_up(&port);
    assert_int_equal(mk_server_start(s, 2), 0);
    assert_holds(fetch(port, "GET", "/hello"), "hello");
    assert_holds(fetch(port, "GET", "/small"), "small");
    assert_holds(fetch(port, "GET", "/missing"), "404");
    mk_server_free(s);
    s = set_up(&port);
    assert_int_equal(mk_server_set(s, "PLUGINS", "Load", "nothing"), 0);
    assert_int_equal(mk_server_start(s, 1), -EINVAL);
    mk_server_free(s);
}

static void library_keeps_signals_folder_umask_and_locale(void **state)
{
    struct sigaction before[32], after;
    sigset_t mask, mask_after;
    char cwd[PATH_MAX], cwd_after[PATH_MAX], locale[256];
    (void)state;
    for (int i = 1; i < 32; i++)
        assert_int_equal(sigaction(i, NULL, &before[i]), 0);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
    assert_non_null(getcwd(cwd, sizeof cwd));
    snprintf(locale, sizeof locale, "%s", setlocale(LC_ALL, NULL));
    mode_t old = umask(0031);
    serve_a_while();
    assert_int_equal(umask(old), 0031);
    for (int i = 1; i < 32; i++) {
        assert_int_equal(sigaction(i, NULL, &after), 0);
        assert_true(after.sa_handler == before[i].sa_handler);
    }
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &mask_after), 0);
    for (int i = 1; i < 32; i++)
        assert_int_equal(sigismember(&mask, i), sigismember(&mask_after, i));
    assert_string_equal(getcwd(cwd_after, sizeof cwd_after), cwd);
    assert_string_equal(setlocale(LC_ALL, NULL), locale);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* the library has not forked */
    assert_int_equal(errno, ECHILD);
}

/* Returns the number of descriptors. Descriptors above the standard ones must be close-on-exec, except for
 * descriptors inherited from the test runner. */
static unsigned count_descriptors(unsigned *n_inherited)
{
    DIR *all = opendir("/proc/self/fd");
    unsigned n = 0;
    *n_inherited = 0;
    for (const struct dirent *e; (e = readdir(all));) {
        int fd = (int)strtol(e->d_name, NULL, 10);
        if (e->d_name[0] == '.' || fd == dirfd(all))
            continue;
        n++;
        *n_inherited += !(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    }
    closedir(all);
    return n;
}

static void library_closes_descriptors_and_sets_close_on_exec(void **state)
{
    (void)state;
    unsigned port, inherited_before, inherited, n = count_descriptors(&inherited_before);
    struct mk_server *s = set_up(&port);
    assert_int_equal(mk_server_start(s, 2), 0);
    int client = dial(port);
    send_request_on(client, "GET", "/small");
    assert_true(count_descriptors(&inherited) > n);
    assert_int_equal(inherited, inherited_before);
    (void)receive_all(client);
    mk_server_free(s);
    assert_int_equal(count_descriptors(&inherited), n);
}

static void library_prints_nothing(void **state)
{
    struct stat st;
    char text[128];
    (void)state;
    snprintf(text, sizeof text, "%s", in_folder("said"));
    fflush(stdout);
    fflush(stderr);
    int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
    int file = open(text, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    serve_a_while();
    fflush(stdout);
    fflush(stderr);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    assert_int_equal(fstat(file, &st), 0);
    close(file);
    close(out);
    close(err);
    assert_int_equal(st.st_size, 0);
}

static int request_by_unix_socket(const char *target)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(a.sun_path, sizeof a.sun_path, "%s", in_folder("a.sock"));
    assert_int_equal(connect(client, (struct sockaddr *)&a, sizeof a), 0);
    send_request_on(client, "GET", target);
    return client;
}

static void run_steps(struct mk_server *s)
{
    for (int turns = 0; turns < 10; turns++)
        assert_int_equal(mk_server_step(s), 1);
}

/* The client uses a unix socket, where sendfile(2) raises SIGPIPE. */
static void client_disconnect_raises_no_signal(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = set_up(&port);
    assert_true(mk_server_fd(s) >= 0);
    for (int i = 0; i < 5; i++) {
        char buffer[1000];
        int client = request_by_unix_socket("/large");
        while (recv(client, buffer, sizeof buffer, 0) <= 0)
            assert_int_equal(mk_server_step(s), 1);
        close(client);
        run_steps(s);
    }
    mk_server_free(s);
}

static void log_without_reader_raises_no_signal(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = server_with("GET /hello", respond_hello, NULL, &port);
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    int reader = open(in_folder("pipe"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_int_equal(mk_server_set(s, "SERVER", "AccessLog", in_folder("pipe")), 0);
    assert_true(mk_server_fd(s) >= 0);
    close(reader);
    int client = dial(port);
    send_request_on(client, "GET", "/hello");
    struct pollfd p = {.fd = client, .events = POLLIN};
    while (poll(&p, 1, 0) == 0)
        assert_int_equal(mk_server_step(s), 1);
    assert_holds(receive_all(client), "hello");
    mk_server_free(s); /* writes the log */
    (void)unlink(in_folder("pipe"));
}

static void library_keeps_errno(void **state)
{
    (void)state;
    unsigned port;
    errno = 77;
    struct mk_server *s = mk_server_new(NULL);
    assert_int_equal(errno, 77);
    assert_int_equal(mk_server_set(s, "SERVER", "Nothing", "1"), -EINVAL);
    assert_int_equal(mk_server_listen(s, "127.0.0.1:0", &port), 0);
    assert_int_equal(mk_server_listen_fd(s, -1, false), -EBADF);
    assert_int_equal(mk_server_add_route(s, "GET /", respond_hello, NULL), 0);
    assert_int_equal(mk_server_add_vhost(s, "a", "/no/such/folder"), 0);
    assert_int_equal(mk_server_start(s, 1), -EINVAL);
    mk_server_free(s);
    assert_int_equal(errno, 77);
    s = mk_server_new(NULL);
    assert_int_equal(mk_server_start(s, 1), 0);
    mk_server_stop(s, 1000);
    assert_int_equal(mk_server_wait(s), 0);
    mk_server_free(s);
    assert_int_equal(errno, 77);
    s = mk_server_new(NULL);
    assert_true(mk_server_fd(s) >= 0);
    assert_int_equal(mk_server_step(s), 1);
    mk_server_free(s);
    assert_int_equal(errno, 77);
}

/* The child of fork(2) only executes another program. */
static void forked_child_may_execute_a_program(void **state)
{
    (void)state;
    unsigned port;
    int status = -1;
    struct mk_server *s = set_up(&port);
    assert_int_equal(mk_server_start(s, 2), 0);
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 7);
    assert_holds(fetch(port, "GET", "/hello"), "hello");
    mk_server_free(s);
}

static void write_file(const char *name, size_t len)
{
    FILE *f = fopen(in_folder(name), "w");
    for (size_t i = 0; i < len; i += 5)
        fputs("small", f);
    fclose(f);
}

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/monkey-manners-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    write_file("small", 5);
    write_file("large", 4 << 20);
    return 0;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"small", "large", "log", "said", "pipe", "a.sock"};
    (void)state;
    for (size_t i = 0; i < MK_LEN(names); i++)
        (void)unlink(in_folder(names[i]));
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(library_keeps_signals_folder_umask_and_locale),
        cmocka_unit_test(library_closes_descriptors_and_sets_close_on_exec),
        cmocka_unit_test(library_prints_nothing),
        cmocka_unit_test(client_disconnect_raises_no_signal),
        cmocka_unit_test(log_without_reader_raises_no_signal),
        cmocka_unit_test(library_keeps_errno),
        cmocka_unit_test(forked_child_may_execute_a_program),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
