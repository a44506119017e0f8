/* SPDX-License-Identifier: Apache-2.0 */
#include "os/syscall_filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/fd.h"
#include "unit/child.h"
#include "unit/test.h"

enum { ALLOW = 0, NEEDS_ARGS = -1, MPTCP = 262, SELF = 1234, FIRST_FREE_CALL = 600 };

static struct sock_filter code[MK_SYSCALL_FILTER_MAX];
static unsigned short n_code;

static void build(struct mk_syscall_filter f)
{
    n_code = mk_syscall_filter_build(&f, SELF, code);
    if (!n_code)
        skip(); /* MK_FULL_SANDBOX=OFF, or a machine without a filter */
}

/* Returns the error of a call, or ALLOW. Like the kernel, which remembers the calls that are always allowed, it
 * returns NEEDS_ARGS if the program reads arguments, and there are none. */
static int run_program(uint32_t arch, uint32_t nr, const uint64_t *args)
{
    struct seccomp_data data = {.nr = (int)nr, .arch = arch};
    uint32_t a = 0;
    if (args)
        memcpy(data.args, args, sizeof data.args);
    for (unsigned i = 0; i < n_code; i++) {
        const struct sock_filter *s = &code[i];
        bool jumps = true;
        switch (s->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            if (!args && s->k >= offsetof(struct seccomp_data, args))
                return NEEDS_ARGS;
            assert_true(s->k + sizeof a <= sizeof data);
            memcpy(&a, (const char *)&data + s->k, sizeof a);
            continue;
        case BPF_RET | BPF_K:
            assert_true(s->k == SECCOMP_RET_ALLOW || (s->k & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO);
            return s->k == SECCOMP_RET_ALLOW ? ALLOW : (int)(s->k & SECCOMP_RET_DATA);
        case BPF_JMP | BPF_JEQ | BPF_K:
            jumps = a == s->k;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            jumps = a >= s->k;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            jumps = a & s->k;
            break;
        default:
            fail();
        }
        i += jumps ? s->jt : s->jf;
    }
    fail(); /* the program must end with a return */
    return 0;
}

static uint32_t native_arch(void)
{
    return code[1].k; /* the comparison after the architecture was loaded */
}

static int decide(uint32_t nr)
{
    return run_program(native_arch(), nr, NULL);
}

#define DECIDE_WITH(nr, ...) run_program(native_arch(), nr, (const uint64_t[6]){__VA_ARGS__})

/* ---- The program ---- */

static void filter_decides_frequent_calls_without_arguments(void **state)
{
    static const uint32_t frequent[] = {
        SYS_read,        SYS_write,   SYS_writev,  SYS_recvfrom, SYS_recvmsg,
        SYS_epoll_pwait, SYS_accept4, SYS_close,   SYS_sendfile, SYS_setsockopt,
        SYS_epoll_ctl,   SYS_openat,  SYS_connect, SYS_futex,    SYS_shutdown,
#ifdef SYS_epoll_wait
        SYS_epoll_wait,
#endif
    };
    (void)state;
    build((struct mk_syscall_filter){0});
    for (size_t i = 0; i < MK_LEN(frequent); i++)
        assert_int_equal(decide(frequent[i]), ALLOW);
    assert_int_equal(decide(SYS_sendto), NEEDS_ARGS);
    build((struct mk_syscall_filter){.may_fast_open = true});
    assert_int_equal(decide(SYS_sendto), ALLOW);
    assert_int_equal(decide(SYS_sendmsg), ALLOW);
}

static void filter_denies_listed_calls(void **state)
{
    static const uint32_t listed[] = {SYS_execve,
                                      SYS_execveat,
                                      SYS_mount,
                                      SYS_umount2,
                                      SYS_setns,
                                      SYS_bpf,
                                      SYS_userfaultfd,
                                      SYS_perf_event_open,
                                      SYS_keyctl,
                                      SYS_chroot,
                                      SYS_add_key,
                                      SYS_init_module,
                                      SYS_reboot,
                                      SYS_swapon,
                                      SYS_kcmp,
                                      SYS_kexec_load,
                                      SYS_clock_settime,
                                      SYS_personality,
                                      425,
                                      426,
                                      427,
                                      428,
                                      438,
                                      442,
                                      467};
    (void)state;
    build((struct mk_syscall_filter){.may_listen = true, .may_fast_open = true});
    for (size_t i = 0; i < MK_LEN(listed); i++)
        assert_int_equal(decide(listed[i]), EPERM);
    assert_int_equal(decide(435), ENOSYS); /* clone3 */
    for (uint32_t nr = FIRST_FREE_CALL; nr < FIRST_FREE_CALL + 1000; nr++)
        assert_int_equal(decide(nr), ALLOW);
}

static void filter_denies_listen_unless_ports_may_be_bound(void **state)
{
    (void)state;
    build((struct mk_syscall_filter){0});
    assert_int_equal(decide(SYS_listen), EPERM);
    build((struct mk_syscall_filter){.may_listen = true});
    assert_int_equal(decide(SYS_listen), ALLOW);
}

static void filter_denies_other_abis(void **state)
{
    (void)state;
    build((struct mk_syscall_filter){0});
    assert_int_equal(run_program(AUDIT_ARCH_I386, SYS_read, NULL), ENOSYS);
    assert_int_equal(run_program(0, SYS_read, NULL), ENOSYS);
    assert_int_equal(decide(0x40000000 | SYS_read), ENOSYS);
}

static void filter_allows_sockets_that_the_server_needs(void **state)
{
    static const int families[] = {AF_INET, AF_INET6},
                     allowed[] = {0, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP},
                     denied[] = {MPTCP, 132 /* SCTP */, 256 /* SMC */, 33 /* DCCP */};
    (void)state;
    build((struct mk_syscall_filter){.may_listen = true, .may_fast_open = true});
    for (size_t i = 0; i < MK_LEN(families); i++) {
        for (size_t j = 0; j < MK_LEN(allowed); j++)
            assert_int_equal(
                DECIDE_WITH(SYS_socket, (uint64_t)families[i], SOCK_STREAM, (uint64_t)allowed[j]), ALLOW);
        for (size_t j = 0; j < MK_LEN(denied); j++)
            assert_int_equal(DECIDE_WITH(SYS_socket, (uint64_t)families[i], SOCK_STREAM, (uint64_t)denied[j]),
                             EPROTONOSUPPORT);
    }
    assert_int_equal(DECIDE_WITH(SYS_socket, AF_UNIX, SOCK_DGRAM, 0), ALLOW);
    assert_int_equal(DECIDE_WITH(SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), ALLOW);
    for (uint64_t protocol = 1; protocol < 64; protocol++) /* 2 and 10 are also AF_INET and AF_INET6 */
        assert_int_equal(DECIDE_WITH(SYS_socket, AF_NETLINK, SOCK_RAW, protocol), EPROTONOSUPPORT);
    for (uint64_t family = 0; family < 64; family++)
        if (family != AF_UNIX && family != AF_INET && family != AF_INET6 && family != AF_NETLINK)
            assert_int_equal(DECIDE_WITH(SYS_socket, family, SOCK_STREAM, 0), EAFNOSUPPORT);
}

/* The kernel ignores the high half of arguments of type int, so a filter must, too. */
static void filter_ignores_high_halves(void **state)
{
    const uint64_t high = UINT64_C(1) << 32;
    (void)state;
    build((struct mk_syscall_filter){0});
    assert_int_equal(DECIDE_WITH(SYS_ioctl, 0, high | TIOCSTI), EPERM);
    assert_int_equal(DECIDE_WITH(SYS_socket, AF_INET, SOCK_STREAM, high | MPTCP), EPROTONOSUPPORT);
    assert_int_equal(DECIDE_WITH(SYS_socket, high | 40, SOCK_STREAM, 0), EAFNOSUPPORT);
    assert_int_equal(DECIDE_WITH(SYS_sendto, 0, 0, 0, high | MSG_FASTOPEN), EOPNOTSUPP);
}

static void filter_checks_flags(void **state)
{
    (void)state;
    build((struct mk_syscall_filter){0});
    for (uint64_t more = 0; more <= MSG_NOSIGNAL; more += MSG_NOSIGNAL) {
        assert_int_equal(DECIDE_WITH(SYS_sendto, 0, 0, 0, more), ALLOW);
        assert_int_equal(DECIDE_WITH(SYS_sendto, 0, 0, 0, MSG_FASTOPEN | more), EOPNOTSUPP);
        assert_int_equal(DECIDE_WITH(SYS_sendmsg, 0, 0, MSG_FASTOPEN | more), EOPNOTSUPP);
        assert_int_equal(DECIDE_WITH(SYS_sendmmsg, 0, 0, 0, MSG_FASTOPEN | more), EOPNOTSUPP);
        assert_int_equal(DECIDE_WITH(SYS_sendmsg, 0, 0, more), ALLOW);
    }
    assert_int_equal(DECIDE_WITH(SYS_clone, SIGCHLD), ALLOW);
    assert_int_equal(DECIDE_WITH(SYS_clone, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_THREAD | CLONE_SIGHAND),
                     ALLOW);
    assert_int_equal(DECIDE_WITH(SYS_clone, CLONE_NEWUSER | SIGCHLD), EPERM);
    assert_int_equal(DECIDE_WITH(SYS_unshare, CLONE_FS), ALLOW);
    assert_int_equal(DECIDE_WITH(SYS_unshare, CLONE_NEWNET), EPERM);
    assert_int_equal(DECIDE_WITH(SYS_unshare, 0x80), EPERM); /* CLONE_NEWTIME */
    assert_int_equal(DECIDE_WITH(SYS_ioctl, 0, FIONREAD), ALLOW);
    assert_int_equal(DECIDE_WITH(SYS_ioctl, 0, TIOCSTI), EPERM);
    assert_int_equal(DECIDE_WITH(SYS_process_vm_readv, SELF), ALLOW);
    assert_int_equal(DECIDE_WITH(SYS_process_vm_readv, SELF + 1), EPERM);
    assert_int_equal(DECIDE_WITH(SYS_process_vm_writev, SELF + 1), EPERM);
}

/* ---- The kernel ---- */

#define EXPECT(call, error)                                                                                  \
    do {                                                                                                     \
        errno = 0;                                                                                           \
        if ((call) >= 0 || errno != (error))                                                                 \
            return __LINE__ % 256;                                                                           \
    } while (0)

static void *try_to_list_keys(void *ctx)
{
    int *go = ctx;
    char byte;
    ssize_t n = read(go[0], &byte, 1);
    long r = n == 1 ? syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0) : 0;
    return r < 0 && errno == EPERM ? NULL : ctx;
}

/* The functions below run in a child, and return the number of the first failed line, or 0. */

static int deny_in_other_threads(void)
{
    const struct mk_syscall_filter f = {0};
    pthread_t thread;
    void *result;
    int go[2];
    if (pipe(go) || pthread_create(&thread, NULL, try_to_list_keys, go))
        return __LINE__ % 256;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || mk_syscall_filter_enforce(&f))
        return __LINE__ % 256;
    if (write(go[1], "", 1) != 1 || pthread_join(thread, &result) || result)
        return __LINE__ % 256;
    return 0;
}

static int deny_evasions_of_port_rules(void)
{
    const struct mk_syscall_filter f = {0};
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || mk_syscall_filter_enforce(&f))
        return __LINE__ % 256;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return __LINE__ % 256;
    EXPECT(listen(fd, 1), EPERM);
    EXPECT(sendto(fd, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL, (struct sockaddr *)&at, sizeof at), EOPNOTSUPP);
    EXPECT(socket(AF_INET, SOCK_STREAM, MPTCP), EPROTONOSUPPORT);
    EXPECT(socket(40 /* AF_VSOCK */, SOCK_STREAM, 0), EAFNOSUPPORT);
    mk_fd_close(&fd);
    return 0;
}

static int continue_normally(void)
{
    const struct mk_syscall_filter f = {.logs_denied = false};
    char from[] = "abc", to[sizeof from];
    struct iovec theirs = {from, sizeof from}, ours = {to, sizeof to};
    pthread_t thread;
    int go[2], status;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || mk_syscall_filter_enforce(&f))
        return __LINE__ % 256;
    if (pipe(go) || write(go[1], "", 1) != 1 || pthread_create(&thread, NULL, try_to_list_keys, go) ||
        pthread_join(thread, NULL)) /* without clone3() */
        return __LINE__ % 256;
    if (process_vm_readv(getpid(), &ours, 1, &theirs, 1, 0) != (ssize_t)sizeof from)
        return __LINE__ % 256;
    pid_t pid = fork();
    if (pid == 0)
        _exit(7);
    EXPECT(unshare(CLONE_NEWUSER), EPERM);
    EXPECT(execl("/bin/true", "true", NULL), EPERM);
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7 ? 0
                                                                                            : __LINE__ % 256;
}

static void run_if_supported(int (*child)(void))
{
    if (!mk_syscall_filter_is_supported())
        skip();
    assert_int_equal(run_in_child(child), 0);
}

static void filter_applies_to_all_threads(void **state)
{
    (void)state;
    run_if_supported(deny_in_other_threads);
}

static void filter_closes_gaps_of_port_rules(void **state)
{
    (void)state;
    run_if_supported(deny_evasions_of_port_rules);
}

static void filter_leaves_threads_and_forks_alone(void **state)
{
    (void)state;
    run_if_supported(continue_normally);
}

static const char *describe(struct mk_syscall_filter f)
{
    static char text[4096];
    struct mk_buf out = mk_buf_fixed(text, sizeof text - 1);
    mk_syscall_filter_print(&f, &out);
    assert_false(out.failed);
    text[out.len] = '\0';
    return text;
}

static void filter_description_follows_the_options(void **state)
{
    (void)state;
    build((struct mk_syscall_filter){0}); /* skips without a filter */
    const char *text = describe((struct mk_syscall_filter){0});
    assert_non_null(strstr(text, "  deny programs: execve, execveat\n"));
    assert_non_null(strstr(text, "  deny listen\n"));
    assert_non_null(strstr(text, "MSG_FASTOPEN\n"));
    text = describe((struct mk_syscall_filter){.may_listen = true, .may_fast_open = true});
    assert_null(strstr(text, "listen"));
    assert_null(strstr(text, "MSG_FASTOPEN"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filter_decides_frequent_calls_without_arguments),
        cmocka_unit_test(filter_denies_listed_calls),
        cmocka_unit_test(filter_denies_listen_unless_ports_may_be_bound),
        cmocka_unit_test(filter_denies_other_abis),
        cmocka_unit_test(filter_allows_sockets_that_the_server_needs),
        cmocka_unit_test(filter_ignores_high_halves),
        cmocka_unit_test(filter_checks_flags),
        cmocka_unit_test(filter_applies_to_all_threads),
        cmocka_unit_test(filter_closes_gaps_of_port_rules),
        cmocka_unit_test(filter_leaves_threads_and_forks_alone),
        cmocka_unit_test(filter_description_follows_the_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
