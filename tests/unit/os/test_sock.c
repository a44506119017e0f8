/* SPDX-License-Identifier: Apache-2.0 */
#include "os/sock.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/syscall.h>

#include "unit/folder.h"
#include "unit/test.h"

static const struct mk_sock_options options = {.backlog = 16, .mode = 0600};

static struct mk_sockaddr addr(const char *text)
{
    struct mk_sockaddr a;
    assert_int_equal(mk_sockaddr_parse(mk_str_from_c(text), MK_STR("127.0.0.1"), &a), 0);
    return a;
}

static int listen_at(const struct mk_sockaddr *a, const struct mk_sock_options *o, struct mk_sockaddr *bound)
{
    int fd = -1;
    assert_int_equal(mk_sock_listen(a, o, &fd), 0);
    assert_int_equal(mk_sockaddr_getsockname(fd, bound), 0);
    return fd;
}

/* Connects a client and sends data: listeners wait for the first bytes before they return a connection. */
static int call(const struct mk_sockaddr *a)
{
    int fd = socket(a->any.sa_family, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, &a->any, a->len), 0);
    assert_int_equal(send(fd, "x", 1, 0), 1);
    return fd;
}

static int accept_client(int listener, struct mk_addr *peer)
{
    struct pollfd p = {.fd = listener, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 5000), 1);
    int fd = mk_sock_accept(listener, peer);
    assert_true(fd >= 0);
    return fd;
}

static int option(int fd, int level, int name)
{
    int value = -1;
    socklen_t len = sizeof value;
    assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
    return value;
}

static void check_flags(int fd)
{
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

static void check_connection(const char *where, const char *peer_text)
{
    char buffer[MK_SOCKADDR_TEXT_MAX];
    struct mk_buf text = mk_buf_fixed(buffer, sizeof buffer);
    struct mk_sock_options o = {.backlog = 16, .send_room = 100000};
    struct mk_sockaddr address = addr(where), bound;
    struct mk_addr peer;
    int listener = listen_at(&address, &o, &bound);
    check_flags(listener);
    assert_false(mk_sock_is_dual_stack(listener));
    assert_int_equal(mk_sock_accept(listener, &peer), -EAGAIN);
    int client = call(&bound), fd = accept_client(listener, &peer);
    check_flags(fd);
    mk_addr_format(&peer, &text);
    assert_str(mk_buf_str(&text), peer_text);
    assert_true(peer.port > 0);
    assert_int_equal(option(fd, IPPROTO_TCP, TCP_NODELAY), 1);
    assert_int_equal(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    assert_int_equal(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 180000);
    assert_int_equal(option(fd, SOL_SOCKET, SO_SNDBUF), 200000);
    close(client);
    close(fd);
    close(listener);
}

static void sock_accepts_ipv4(void **state)
{
    (void)state;
    check_connection("127.0.0.1:0", "127.0.0.1");
}

static void sock_accepts_ipv6(void **state)
{
    (void)state;
    struct mk_sockaddr a = addr("[::1]:0");
    int fd = -1;
    if (mk_sock_listen(&a, &options, &fd))
        skip();
    close(fd);
    check_connection("[::1]:0", "::1");
}

static void sock_address_in_use_is_an_error(void **state)
{
    (void)state;
    struct mk_sockaddr address = addr("0"), bound;
    int first = listen_at(&address, &options, &bound), second = 0;
    assert_int_equal(mk_sock_listen(&bound, &options, &second), -EADDRINUSE);
    assert_int_equal(second, -1);
    assert_int_equal(mk_sock_test_bind(&bound), -EADDRINUSE);
    close(first);
    assert_int_equal(mk_sock_test_bind(&bound), 0);
}

static void sock_reuse_port_shares_address(void **state)
{
    (void)state;
    struct mk_sock_options shared = options;
    shared.reuse_port = true;
    struct mk_sockaddr address = addr("0"), bound, again;
    int first = listen_at(&address, &shared, &bound), second = listen_at(&bound, &shared, &again);
    assert_true(mk_sockaddr_eq(&bound, &again));
    assert_int_equal(mk_sock_test_bind(&bound), -EADDRINUSE); /* another program still gets the error */
    close(first);
    close(second);
}

static void sock_any_port_can_be_bound(void **state)
{
    (void)state;
    struct mk_sockaddr any_port = addr("0"), file = addr("unix:/nowhere/at/all");
    int fd = -1;
    assert_int_equal(mk_sock_test_bind(&any_port), 0);
    assert_int_equal(mk_sock_test_bind(&file), 0);
    assert_int_equal(mk_sock_listen(&file, &options, &fd), -ENOENT);
}

/* ---- Unix sockets ---- */

static struct mk_sockaddr unix_addr(const struct folder *f, const char *name)
{
    char text[128];
    snprintf(text, sizeof text, "unix:%s/%s", f->path, name);
    return addr(text);
}

static void sock_unix_has_mode_and_no_peer_address(void **state)
{
    (void)state;
    struct folder f;
    struct stat st;
    struct mk_addr peer;
    folder_init(&f);
    struct mk_sockaddr a = unix_addr(&f, "s"), bound;
    int listener = listen_at(&a, &options, &bound);
    assert_true(mk_sockaddr_eq(&a, &bound));
    assert_int_equal(fstatat(f.fd, "s", &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    int client = call(&a), fd = accept_client(listener, &peer);
    assert_int_equal(peer.is_unix, 1);
    close(client);
    close(fd);
    close(listener);
    folder_fini(&f);
}

/* Replaces libc's bind() to swap the new socket file for a link to another file. */
static const struct folder *swaps;

int bind(int fd, const struct sockaddr *at, socklen_t len)
{
    int r = (int)syscall(SYS_bind, fd, at, len);
    if (swaps && r == 0) {
        assert_int_equal(renameat(swaps->fd, "s", swaps->fd, "moved"), 0);
        folder_add_link(swaps, "s", "victim");
    }
    return r;
}

static unsigned mode_of(const struct folder *f, const char *name)
{
    struct stat st;
    assert_int_equal(fstatat(f->fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    return st.st_mode & 0777;
}

static void sock_unix_mode_does_not_follow_swapped_link(void **state)
{
    (void)state;
    struct folder f;
    struct mk_sock_options open_to_all = {.backlog = 16, .mode = 0666};
    struct mk_sockaddr bound;
    folder_init(&f);
    folder_add(&f, "victim", MK_STR("secret"));
    assert_int_equal(fchmodat(f.fd, "victim", 0600, 0), 0);
    struct mk_sockaddr a = unix_addr(&f, "s");
    mode_t before = umask(027);
    swaps = &f;
    int listener = listen_at(&a, &open_to_all, &bound);
    swaps = NULL;
    assert_int_equal(umask(before), 027);
    assert_int_equal(mode_of(&f, "victim"), 0600);
    assert_int_equal(mode_of(&f, "moved"), 0666);
    close(listener);
    folder_fini(&f);
}

static void sock_unix_stale_file_is_replaced_but_not_living_one(void **state)
{
    (void)state;
    struct folder f;
    struct mk_addr peer;
    int second = 0;
    folder_init(&f);
    struct mk_sockaddr a = unix_addr(&f, "s"), bound;
    int first = listen_at(&a, &options, &bound);
    assert_int_equal(mk_sock_listen(&a, &options, &second), -EADDRINUSE);
    int client = call(&a), fd = accept_client(first, &peer); /* the living listener still works */
    close(client);
    close(fd);
    close(first);
    second = listen_at(&a, &options, &bound);
    client = call(&a);
    fd = accept_client(second, &peer);
    close(client);
    close(fd);
    close(second);
    folder_fini(&f);
}

static void sock_unix_other_file_is_never_removed(void **state)
{
    (void)state;
    struct folder f;
    char buffer[PATH_MAX], text[16];
    struct mk_buf out = mk_buf_fixed(text, sizeof text);
    int fd = -1;
    folder_init(&f);
    folder_add(&f, "s", MK_STR("precious"));
    struct mk_sockaddr a = unix_addr(&f, "s");
    assert_int_equal(mk_sock_listen(&a, &options, &fd), -EADDRINUSE);
    assert_int_equal(mk_file_read_all(folder_path(&f, "s", buffer), &out), 0);
    assert_str(mk_buf_str(&out), "precious");
    folder_fini(&f);
}

static void sock_reset_reaches_client_at_once(void **state)
{
    (void)state;
    struct mk_sockaddr address = addr("0"), bound;
    struct mk_addr peer;
    char buffer[8];
    int listener = listen_at(&address, &options, &bound), client = call(&bound),
        fd = accept_client(listener, &peer);
    mk_sock_close_with_rst(&fd);
    assert_int_equal(fd, -1);
    assert_int_equal(recv(client, buffer, sizeof buffer, 0), -1);
    assert_int_equal(errno, ECONNRESET);
    mk_sock_close_with_rst(&fd);
    close(client);
    close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sock_accepts_ipv4),
        cmocka_unit_test(sock_accepts_ipv6),
        cmocka_unit_test(sock_address_in_use_is_an_error),
        cmocka_unit_test(sock_reuse_port_shares_address),
        cmocka_unit_test(sock_any_port_can_be_bound),
        cmocka_unit_test(sock_unix_has_mode_and_no_peer_address),
        cmocka_unit_test(sock_unix_mode_does_not_follow_swapped_link),
        cmocka_unit_test(sock_unix_stale_file_is_replaced_but_not_living_one),
        cmocka_unit_test(sock_unix_other_file_is_never_removed),
        cmocka_unit_test(sock_reset_reaches_client_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
