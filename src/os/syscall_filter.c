/* SPDX-License-Identifier: Apache-2.0 */
#include "os/syscall_filter.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"
#include "os/syscall_table.h"

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__) && defined(__AARCH64EL__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#elif defined(__arm__) && defined(__ARMEL__) && defined(__ARM_EABI__)
#define NATIVE_ARCH AUDIT_ARCH_ARM
#elif defined(__riscv) && __riscv_xlen == 64
#define NATIVE_ARCH AUDIT_ARCH_RISCV64
#else
#define NATIVE_ARCH 0 /* no filter: byte order, or system calls whose arguments are in memory */
#endif

enum {
    NR_CLONE3 = 435,
    FIRST_X32_CALL = 0x40000000, /* calls of x86-64 with 32-bit pointers; unused numbers elsewhere */
    NEW_TIME = 0x80,             /* CLONE_NEWTIME, only of unshare(); a signal number for clone() */
    NAMESPACES = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
                 CLONE_NEWNET,
    TYPE_LINUX_CONSOLE = 0x541C, /* TIOCLINUX */
};

/* ---- Building the program ---- */

struct builder {
    struct sock_filter *code;
    unsigned short n;
};

static uint32_t fail_with(unsigned error)
{
    return SECCOMP_RET_ERRNO | error;
}

static void add_step(struct builder *b, uint16_t op, uint32_t k, uint8_t if_true, uint8_t if_false)
{
    MK_ASSERT(b->n < MK_SYSCALL_FILTER_MAX);
    b->code[b->n++] = (struct sock_filter){.code = op, .jt = if_true, .jf = if_false, .k = k};
}

static void add_load(struct builder *b, size_t offset)
{
    add_step(b, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/* Loads the low half of an argument. The kernel ignores the high half of the arguments that are checked here, because
 * they are of type int. */
static void load_arg(struct builder *b, unsigned arg)
{
    add_load(b, offsetof(struct seccomp_data, args) + arg * sizeof(uint64_t));
}

static void add_return(struct builder *b, uint32_t result)
{
    add_step(b, BPF_RET | BPF_K, result, 0, 0);
}

static void return_if_equal(struct builder *b, uint32_t value, uint32_t result)
{
    add_step(b, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    add_return(b, result);
}

static void return_if_any_bit(struct builder *b, uint32_t bits, uint32_t result)
{
    add_step(b, BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
    add_return(b, result);
}

/* The steps up to end_block() are for one system call only, and end with a return. */
static unsigned short begin_block(struct builder *b, uint32_t number)
{
    add_step(b, BPF_JMP | BPF_JEQ | BPF_K, number, 0, 0);
    return b->n;
}

static void end_block(struct builder *b, unsigned short start)
{
    MK_ASSERT(b->n - start <= UINT8_MAX);
    b->code[start - 1].jf = (uint8_t)(b->n - start);
}

/* ---- Checks of arguments ---- */

static void deny_bits(struct builder *b, uint32_t number, unsigned arg, uint32_t bits, uint32_t result)
{
    unsigned short start = begin_block(b, number);
    load_arg(b, arg);
    return_if_any_bit(b, bits, result);
    add_return(b, SECCOMP_RET_ALLOW);
    end_block(b, start);
}

/* Denies access to the memory of other processes. Crash reports read the worker's own memory. */
static void allow_only_self(struct builder *b, uint32_t number, int self)
{
    unsigned short start = begin_block(b, number);
    load_arg(b, 0);
    return_if_equal(b, (uint32_t)self, SECCOMP_RET_ALLOW);
    add_return(b, fail_with(EPERM));
    end_block(b, start);
}

/* These requests type into the terminal, or change its driver. */
static void check_ioctl(struct builder *b)
{
    unsigned short start = begin_block(b, SYS_ioctl);
    load_arg(b, 1);
    return_if_equal(b, TIOCSTI, fail_with(EPERM));
    return_if_equal(b, TIOCSETD, fail_with(EPERM));
    return_if_equal(b, TYPE_LINUX_CONSOLE, fail_with(EPERM));
    add_return(b, SECCOMP_RET_ALLOW);
    end_block(b, start);
}

/* Landlock restricts only the ports of TCP itself, so protocols that replace it are denied, such as Multipath TCP,
 * SMC and SCTP. getaddrinfo() and getifaddrs() use netlink. */
static void check_socket(struct builder *b)
{
    static const uint32_t protocols[] = {IPPROTO_IP, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP, IPPROTO_ICMPV6};
    unsigned short start = begin_block(b, SYS_socket);
    load_arg(b, 0);
    return_if_equal(b, AF_UNIX, SECCOMP_RET_ALLOW);
    add_step(b, BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 4);
    load_arg(b, 2);
    return_if_equal(b, NETLINK_ROUTE, SECCOMP_RET_ALLOW);
    add_return(b, fail_with(EPROTONOSUPPORT));
    add_step(b, BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 2, 0);
    add_step(b, BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 1, 0);
    add_return(b, fail_with(EAFNOSUPPORT));
    load_arg(b, 2);
    for (size_t i = 0; i < MK_LEN(protocols); i++)
        return_if_equal(b, protocols[i], SECCOMP_RET_ALLOW);
    add_return(b, fail_with(EPROTONOSUPPORT));
    end_block(b, start);
}

/* The C library falls back to connect() on this error, which it also gets if the kernel disables Fast Open. */
static void deny_fast_open(struct builder *b)
{
    deny_bits(b, SYS_sendto, 3, MSG_FASTOPEN, fail_with(EOPNOTSUPP));
    deny_bits(b, SYS_sendmsg, 2, MSG_FASTOPEN, fail_with(EOPNOTSUPP));
    deny_bits(b, SYS_sendmmsg, 3, MSG_FASTOPEN, fail_with(EOPNOTSUPP));
}

/* ---- The list ---- */

static size_t sort_numbers(uint32_t *out, bool may_listen)
{
    size_t n = 0;
    for (size_t i = 0; i <= mk_syscall_table_n; i++) {
        if (i == mk_syscall_table_n && may_listen)
            break;
        uint32_t number = i < mk_syscall_table_n ? mk_syscall_table[i].number : SYS_listen;
        size_t at = n++;
        for (; at > 0 && out[at - 1] > number; at--)
            out[at] = out[at - 1];
        out[at] = number;
    }
    return n;
}

/* A binary search, because kernels before 5.11 run the program for every call. */
static void deny_sorted(struct builder *b, const uint32_t *numbers, size_t n)
{
    size_t half = n / 2;
    if (n <= 4) {
        for (size_t i = 0; i < n; i++)
            return_if_equal(b, numbers[i], fail_with(EPERM));
        add_return(b, SECCOMP_RET_ALLOW);
        return;
    }
    add_step(b, BPF_JMP | BPF_JGE | BPF_K, numbers[half], 0, 0);
    unsigned short start = b->n;
    deny_sorted(b, numbers, half);
    MK_ASSERT(b->n - start <= UINT8_MAX);
    b->code[start - 1].jt = (uint8_t)(b->n - start);
    deny_sorted(b, numbers + half, n - half);
}

/* ---- The program ---- */

/* Denies calls of other ABIs, such as 32-bit programs, because their numbers have other meanings. */
static void check_abi(struct builder *b)
{
    add_load(b, offsetof(struct seccomp_data, arch));
    add_step(b, BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0);
    add_return(b, fail_with(ENOSYS));
    add_load(b, offsetof(struct seccomp_data, nr));
    add_step(b, BPF_JMP | BPF_JGE | BPF_K, FIRST_X32_CALL, 0, 1);
    add_return(b, fail_with(ENOSYS));
}

unsigned short mk_syscall_filter_build(const struct mk_syscall_filter *f, int self, struct sock_filter *code)
{
    struct builder b = {.code = code};
    uint32_t numbers[MK_SYSCALL_FILTER_MAX / 2];
    MK_ASSERT(mk_syscall_table_n < MK_LEN(numbers));
    check_abi(&b);
    if (!f->may_fast_open) /* first, because responses are sent so */
        deny_fast_open(&b);
    check_socket(&b);
    check_ioctl(&b);
    deny_bits(&b, SYS_clone, 0, NAMESPACES, fail_with(EPERM));
    deny_bits(&b, SYS_unshare, 0, NAMESPACES | NEW_TIME, fail_with(EPERM));
    allow_only_self(&b, SYS_process_vm_readv, self);
    allow_only_self(&b, SYS_process_vm_writev, self);
    /* Its flags are in memory, where a filter cannot read them. The C library falls back to clone(). */
    return_if_equal(&b, NR_CLONE3, fail_with(ENOSYS));
    deny_sorted(&b, numbers, sort_numbers(numbers, f->may_listen));
    return b.n;
}

bool mk_syscall_filter_is_supported(void)
{
    uint32_t action = SECCOMP_RET_ERRNO;
    return NATIVE_ARCH && syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

mk_err mk_syscall_filter_enforce(const struct mk_syscall_filter *f)
{
    struct sock_filter code[MK_SYSCALL_FILTER_MAX];
    struct sock_fprog program = {.filter = code};
    /* Before Linux 5.16, a filter slowed down all code of the process otherwise, to mitigate Spectre for programs that run
     * foreign code. */
    unsigned flags = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW |
                     (f->logs_denied ? SECCOMP_FILTER_FLAG_LOG : 0);
    if (!mk_syscall_filter_is_supported())
        return -EOPNOTSUPP;
    program.len = mk_syscall_filter_build(f, getpid(), code);
    long r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    if (r == 0)
        return 0;
    /* Above 0: the number of a thread that has a filter of its own, so nothing has changed. EPERM and EACCES: a filter
     * of the container forbids it. */
    return r > 0 || errno == EINVAL || errno == EPERM || errno == EACCES ? -EOPNOTSUPP : mk_err_last();
}

/* ---- Description ---- */

static void print_group(enum mk_syscall_group group, const char *title, struct mk_buf *out)
{
    const char *before = ": ";
    mk_buf_addf(out, "  deny %s", title);
    for (size_t i = 0; i < mk_syscall_table_n; i++)
        if (mk_syscall_table[i].group == group) {
            mk_buf_addf(out, "%s%s", before, mk_syscall_table[i].name);
            before = ", ";
        }
}

void mk_syscall_filter_print(const struct mk_syscall_filter *f, struct mk_buf *out)
{
    static const char *const titles[] = {
        [MK_SYSCALL_PROGRAMS] = "programs",  [MK_SYSCALL_DEBUGGING] = "other processes",
        [MK_SYSCALL_MOUNTS] = "mounts",      [MK_SYSCALL_KERNEL] = "kernel",
        [MK_SYSCALL_CLOCK] = "clock, names", [MK_SYSCALL_KEYS] = "keys",
        [MK_SYSCALL_IO_URING] = "io_uring",
    };
    for (unsigned i = 0; i < MK_SYSCALL_N_GROUPS; i++) {
        print_group((enum mk_syscall_group)i, titles[i], out);
        if (i == MK_SYSCALL_DEBUGGING)
            mk_buf_add(out, MK_STR(", process_vm_readv and process_vm_writev of other processes"));
        mk_buf_add_char(out, '\n');
    }
    mk_buf_add(out,
               MK_STR("  deny namespaces: clone and unshare with CLONE_NEW*, clone3\n"
                      "  deny sockets, except unix, NETLINK_ROUTE, and IPv4 and IPv6 with TCP, UDP or ICMP\n"
                      "  deny terminal: ioctl with TIOCSTI, TIOCSETD or TIOCLINUX\n"));
    if (!f->may_listen)
        mk_buf_add(out, MK_STR("  deny listen\n"));
    if (!f->may_fast_open)
        mk_buf_add(out, MK_STR("  deny sendto, sendmsg and sendmmsg with MSG_FASTOPEN\n"));
}
