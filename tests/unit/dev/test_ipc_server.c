/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc_server.h"

#include <monkey/str.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "unit/folder.h"
#include "unit/test.h"

struct fixture {
    struct folder folder;
    struct dev_ipc_server office;
    char path[PATH_MAX];
    unsigned n_requests, faults;
    bool elsewhere; /* another process responds */
};

static bool on_ask(void *ctx, bool html, mk_str method, mk_str target, int fd, struct mk_buf *answer)
{
    struct fixture *r = ctx;
    r->n_requests++;
    if (r->elsewhere)
        return send(fd, "else", 4, 0) < 0;
    mk_buf_addf(answer, "%s %.*s %.*s\n", html ? "html" : "text", MK_STR_ARG(method), MK_STR_ARG(target));
    return true;
}

static void on_fault(void *ctx, bool html, mk_str method, mk_str target, struct mk_buf *answer)
{
    struct fixture *r = ctx;
    r->faults++;
    mk_buf_addf(answer, "fault %d %.*s %.*s", html, MK_STR_ARG(method), MK_STR_ARG(target));
}

static const struct dev_ipc_server_ops ops = {.check_request = on_ask, .fault = on_fault};

static struct fixture fixture;

static void setup(void)
{
    struct fixture *r = &fixture;
    *r = (struct fixture){0};
    folder_setup(&r->folder);
    assert_true(dev_ipc_server_open(&r->office, folder_path(&r->folder, "desk", r->path), &ops, r));
}

static void teardown(void)
{
    dev_ipc_server_close(&fixture.office);
}

static void want_many_descriptors(void)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_cur >= 2048)
        return;
    limit.rlim_cur = 2048;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0) {
        print_message("a process may have too few descriptors here\n");
        skip();
    }
}

static int connect_client(const struct fixture *r)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%.100s", r->path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

static int send_text(struct fixture *r, const char *question)
{
    int fd = connect_client(r);
    assert_int_equal(send(fd, question, strlen(question), 0), strlen(question));
    dev_ipc_server_process(&r->office);
    return fd;
}

static mk_str receive(int fd)
{
    static char text[4096];
    ssize_t n = recv(fd, text, sizeof text, MSG_DONTWAIT);
    return mk_str_of(text, n > 0 ? (size_t)n : 0);
}

static bool is_closed(int fd)
{
    char c;
    return recv(fd, &c, 1, MSG_DONTWAIT) == 0;
}

static void ipc_server_answers_requests(void **state)
{
    (void)state;
    struct fixture *r = &fixture;
    int fd = send_text(r, "check html GET /a?b\n");
    assert_str(receive(fd), "html GET /a?b\n");
    assert_true(is_closed(fd));
    close(fd);
    fd = send_text(r, "fault text PO");
    assert_int_equal(r->faults, 0); /* incomplete */
    assert_int_equal(send(fd, "ST /\n", 5, 0), 5);
    dev_ipc_server_process(&r->office);
    assert_str(receive(fd), "fault 0 POST /");
    close(fd);
}

static void ipc_server_another_process_can_answer(void **state)
{
    (void)state;
    struct fixture *r = &fixture;
    r->elsewhere = true;
    int fd = send_text(r, "check html GET /\n");
    assert_str(receive(fd), "else");
    assert_true(is_closed(fd));
    close(fd);
}

static void ipc_server_too_long_request_is_rejected(void **state)
{
    (void)state;
    struct fixture *r = &fixture;
    static char large_input[DEV_LINE_MAX + 4096];
    memset(large_input, 'a', sizeof large_input);
    int fd = connect_client(r);
    assert_true(send(fd, large_input, sizeof large_input, MSG_DONTWAIT) > DEV_LINE_MAX);
    dev_ipc_server_process(&r->office);
    dev_ipc_server_process(&r->office);
    assert_int_equal(r->n_requests, 0);
    close(fd);
}

static void ipc_server_streams_leave_slots_for_requests(void **state)
{
    (void)state;
    struct fixture *r = &fixture;
    enum { N = DEV_IPC_CLIENTS_MAX + 10 };
    static int fds[N];
    struct pollfd waits[DEV_IPC_CLIENTS_MAX + 1];
    want_many_descriptors();
    for (size_t i = 0; i < N; i++)
        fds[i] = send_text(r, "events\n");
    assert_str(receive(fds[N - 1]), "data: 0\n\n");
    assert_str(receive(fds[0]), "data: 0\n\n");
    assert_true(is_closed(fds[0])); /* the server has closed the oldest connections */
    dev_ipc_server_publish_state(&r->office, 7);
    assert_str(receive(fds[N - 1]), "data: 7\n\n");
    int fd = send_text(r, "check text GET /\n");
    assert_str(receive(fd), "text GET /\n");
    close(fd);
    size_t n = dev_ipc_server_add_pollfds(&r->office, waits);
    assert_int_equal(n, DEV_IPC_STREAMS_MAX + 1);
    assert_int_equal(poll(waits, n, 0), 0); /* the server sleeps, because it has nothing to do */
    for (size_t i = 0; i < N; i++)
        close(fds[i]);
    dev_ipc_server_process(&r->office);
}

static void ipc_server_full_waits_for_a_slot(void **state)
{
    (void)state;
    struct fixture *r = &fixture;
    static int fds[DEV_IPC_CLIENTS_MAX + 1];
    struct pollfd waits[DEV_IPC_CLIENTS_MAX + 1];
    want_many_descriptors();
    for (size_t i = 0; i < MK_LEN(fds); i++)
        fds[i] = send_text(r, "check");
    size_t n = dev_ipc_server_add_pollfds(&r->office, waits);
    assert_int_equal(n, DEV_IPC_CLIENTS_MAX);
    assert_int_equal(poll(waits, n, 0), 0);
    close(fds[0]);
    dev_ipc_server_process(&r->office);
    assert_int_equal(dev_ipc_server_add_pollfds(&r->office, waits), DEV_IPC_CLIENTS_MAX);
    for (size_t i = 1; i < MK_LEN(fds); i++)
        close(fds[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(ipc_server_answers_requests, setup, teardown),
        fixture_test(ipc_server_another_process_can_answer, setup, teardown),
        fixture_test(ipc_server_too_long_request_is_rejected, setup, teardown),
        fixture_test(ipc_server_streams_leave_slots_for_requests, setup, teardown),
        fixture_test(ipc_server_full_waits_for_a_slot, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
