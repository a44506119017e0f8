/* SPDX-License-Identifier: Apache-2.0 */
/* System calls that no worker needs, whatever its plugins and services do. */
#ifndef MK_OS_SYSCALL_TABLE_H
#define MK_OS_SYSCALL_TABLE_H

#include <stddef.h>
#include <stdint.h>

enum mk_syscall_group {
    MK_SYSCALL_PROGRAMS,
    MK_SYSCALL_DEBUGGING,
    MK_SYSCALL_MOUNTS,
    MK_SYSCALL_KERNEL,
    MK_SYSCALL_CLOCK,
    MK_SYSCALL_KEYS,
    MK_SYSCALL_IO_URING,
    MK_SYSCALL_N_GROUPS
};

struct mk_syscall {
    uint32_t number;
    enum mk_syscall_group group;
    const char *name;
};

extern const struct mk_syscall mk_syscall_table[];
extern const size_t mk_syscall_table_n;

#endif
