/* SPDX-License-Identifier: Apache-2.0 */
#include "os/syscall_table.h"

#include <sys/syscall.h>

#include "base/compiler.h"
#include "base/poison.h"

/* Calls that the build machine's headers may lack. Since Linux 5.1, a new call has the same number on all
 * machines. */
enum {
    NR_OPEN_TREE = 428,
    NR_MOVE_MOUNT,
    NR_FSOPEN,
    NR_FSCONFIG,
    NR_FSMOUNT,
    NR_FSPICK,
    NR_PIDFD_GETFD = 438,
    NR_MOUNT_SETATTR = 442,
    NR_OPEN_TREE_ATTR = 467,
};

/* clang-format off */
#define DENY(group, call) {SYS_##call, MK_SYSCALL_##group, #call}

const struct mk_syscall mk_syscall_table[] = {
    /* The spawner starts programs, outside the sandbox. Landlock does not restrict files in memory
     * (memfd_create), which could be executed otherwise. */
    DENY(PROGRAMS, execve),
    DENY(PROGRAMS, execveat),
#ifndef MK_HAS_ASAN /* AddressSanitizer looks for leaks by tracing the threads of its own process */
    DENY(DEBUGGING, ptrace),
#endif
    DENY(DEBUGGING, kcmp),
    {NR_PIDFD_GETFD, MK_SYSCALL_DEBUGGING, "pidfd_getfd"},
    DENY(MOUNTS, mount),
    DENY(MOUNTS, umount2),
    DENY(MOUNTS, pivot_root),
    DENY(MOUNTS, chroot),
    {NR_OPEN_TREE, MK_SYSCALL_MOUNTS, "open_tree"},
    {NR_OPEN_TREE_ATTR, MK_SYSCALL_MOUNTS, "open_tree_attr"},
    {NR_MOVE_MOUNT, MK_SYSCALL_MOUNTS, "move_mount"},
    {NR_MOUNT_SETATTR, MK_SYSCALL_MOUNTS, "mount_setattr"},
    {NR_FSOPEN, MK_SYSCALL_MOUNTS, "fsopen"},
    {NR_FSCONFIG, MK_SYSCALL_MOUNTS, "fsconfig"},
    {NR_FSMOUNT, MK_SYSCALL_MOUNTS, "fsmount"},
    {NR_FSPICK, MK_SYSCALL_MOUNTS, "fspick"},
    DENY(MOUNTS, setns),
    DENY(MOUNTS, open_by_handle_at), /* opens files without their path */
    DENY(KERNEL, init_module),
    DENY(KERNEL, finit_module),
    DENY(KERNEL, delete_module),
    DENY(KERNEL, kexec_load),
#ifdef SYS_kexec_file_load
    DENY(KERNEL, kexec_file_load),
#endif
    DENY(KERNEL, reboot),
    DENY(KERNEL, swapon),
    DENY(KERNEL, swapoff),
    DENY(KERNEL, acct),
    DENY(KERNEL, quotactl),
    DENY(KERNEL, syslog),
    DENY(KERNEL, bpf),
    DENY(KERNEL, perf_event_open),
    DENY(KERNEL, userfaultfd),
    DENY(KERNEL, personality),
#ifdef __x86_64__
    DENY(KERNEL, iopl),
    DENY(KERNEL, ioperm),
    DENY(KERNEL, modify_ldt),
#endif
    DENY(CLOCK, settimeofday),
    DENY(CLOCK, clock_settime),
    DENY(CLOCK, adjtimex),
    DENY(CLOCK, clock_adjtime),
#ifdef SYS_clock_settime64
    DENY(CLOCK, clock_settime64),
    DENY(CLOCK, clock_adjtime64),
#endif
    DENY(CLOCK, sethostname),
    DENY(CLOCK, setdomainname),
    DENY(KEYS, add_key),
    DENY(KEYS, request_key),
    DENY(KEYS, keyctl),
    /* An operation of io_uring is not a system call, so the filter would not see it. */
    DENY(IO_URING, io_uring_setup),
    DENY(IO_URING, io_uring_enter),
    DENY(IO_URING, io_uring_register),
};
/* clang-format on */
const size_t mk_syscall_table_n = MK_LEN(mk_syscall_table);
