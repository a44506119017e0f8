/* SPDX-License-Identifier: Apache-2.0 */
#include "os/port_rules.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "os/fd.h"
#include "unit/test.h"

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* Listens on a free port, which it stores. */
static int listen_somewhere(uint16_t *port)
{
    struct sockaddr_in at = loopback(0);
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&at, len) == 0 && listen(fd, 8) == 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

/* Return 0 or an errno value. */
static int try_use(int type, int (*use)(int, const struct sockaddr *, socklen_t), uint16_t port)
{
    struct sockaddr_in at = loopback(port);
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    int e = fd < 0 || use(fd, (const struct sockaddr *)&at, sizeof at) < 0 ? errno : 0;
    mk_fd_close(&fd);
    return e;
}

static int try_connect(uint16_t port)
{
    return try_use(SOCK_STREAM, connect, port);
}

static int try_bind(uint16_t port)
{
    return try_use(SOCK_STREAM, bind, port);
}

/* Two listening sockets; the tests allow only the first port. */
static uint16_t allowed, other;

static bool begin(struct mk_port_rules *r, unsigned uses)
{
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && mk_port_rules_open(r, uses) == 0;
}

/* The functions below run in a child, and return the number of the first failed line, or 0. */

static int restrict_both(void)
{
    struct mk_port_rules r;
    if (!begin(&r, MK_PORT_CONNECT | MK_PORT_BIND))
        return __LINE__ % 256;
    for (int i = 0; i < 2; i++)
        if (mk_port_rules_allow(&r, MK_PORT_CONNECT, allowed))
            return __LINE__ % 256;
    if (mk_port_rules_enforce(&r) || r.fd != -1)
        return __LINE__ % 256;
    if (try_connect(allowed) || try_connect(other) != EACCES)
        return __LINE__ % 256;
    if (try_bind(0) != EACCES || try_bind(allowed) != EACCES)
        return __LINE__ % 256;
    return try_use(SOCK_DGRAM, bind, 0) || try_use(SOCK_DGRAM, connect, 53) ? __LINE__ % 256 : 0;
}

static int restrict_connect(void)
{
    struct mk_port_rules r;
    if (!begin(&r, MK_PORT_CONNECT) || mk_port_rules_enforce(&r))
        return __LINE__ % 256;
    return try_connect(allowed) != EACCES || try_bind(0) ? __LINE__ % 256 : 0;
}

static int restrict_bind(void)
{
    struct mk_port_rules r;
    if (!begin(&r, MK_PORT_BIND) || mk_port_rules_allow(&r, MK_PORT_BIND, 0) || mk_port_rules_enforce(&r))
        return __LINE__ % 256;
    return try_connect(other) || try_bind(0) || try_bind(allowed) != EACCES ? __LINE__ % 256 : 0;
}

/* More ports than any fixed table would hold. */
static int allow_all_ports_one_by_one(void)
{
    struct mk_port_rules r;
    if (!begin(&r, MK_PORT_CONNECT))
        return __LINE__ % 256;
    for (unsigned port = 1; port <= UINT16_MAX; port++)
        if (port != other && mk_port_rules_allow(&r, MK_PORT_CONNECT, (uint16_t)port))
            return __LINE__ % 256;
    if (mk_port_rules_enforce(&r))
        return __LINE__ % 256;
    return try_connect(allowed) || try_connect(other) != EACCES ? __LINE__ % 256 : 0;
}

static int restrict_nothing(void)
{
    struct mk_port_rules r;
    if (mk_port_rules_open(&r, 0) || r.fd != -1 || mk_port_rules_allow(&r, MK_PORT_CONNECT, 1) ||
        mk_port_rules_enforce(&r))
        return __LINE__ % 256;
    return try_connect(allowed) || try_connect(other) || try_bind(0) ? __LINE__ % 256 : 0;
}

static void run(int (*child)(void))
{
    int status = 0, fds[2] = {listen_somewhere(&allowed), listen_somewhere(&other)};
    pid_t pid = fork();
    if (pid == 0)
        _exit(child());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    mk_fd_close(&fds[0]);
    mk_fd_close(&fds[1]);
}

static void run_if_supported(int (*child)(void))
{
    struct mk_port_rules r;
    mk_err e = mk_port_rules_open(&r, MK_PORT_CONNECT);
    mk_fd_close(&r.fd);
    if (e == -EOPNOTSUPP)
        skip(); /* Linux before 6.7, or MK_FULL_SANDBOX=OFF */
    assert_int_equal(e, 0);
    run(child);
}

static void port_rules_allow_only_listed_ports(void **state)
{
    (void)state;
    run_if_supported(restrict_both);
}

static void port_rules_restrict_one_use_alone(void **state)
{
    (void)state;
    run_if_supported(restrict_connect);
    run_if_supported(restrict_bind);
}

static void port_rules_have_no_limit(void **state)
{
    (void)state;
    run_if_supported(allow_all_ports_one_by_one);
}

static void port_rules_without_uses_do_nothing(void **state)
{
    (void)state;
    run(restrict_nothing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(port_rules_allow_only_listed_ports),
        cmocka_unit_test(port_rules_restrict_one_use_alone),
        cmocka_unit_test(port_rules_have_no_limit),
        cmocka_unit_test(port_rules_without_uses_do_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
